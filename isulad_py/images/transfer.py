"""One layer from a registry into the store: fetched, hashed, inflated and written at the same time."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from msgspec import Struct

from isulad_py.host.handover import Handover
from isulad_py.host.layer_tree import TreeFacts
from isulad_py.host.tasks import to_the_end
from isulad_py.images.http import Gauge, Interrupted, check_complete
from isulad_py.images.manifest import Descriptor
from isulad_py.images.options import Endpoint, RegistryOptions
from isulad_py.images.registry import Repository
from isulad_py.images.unpack import BlobDamaged, BlobFacts, unpack
from isulad_py.model.errors import EngineError, Unavailable
from isulad_py.model.ids import ChainId, Digest
from isulad_py.ports.clock import Clock
from isulad_py.ports.layers import LayerFacts, LayerIngest

HANDOVER_BYTES: Final = 1024 * 1024
"""Of each layer between the socket and its thread."""
PROGRESS_BYTES: Final = 1024 * 1024
"""A connection that broke after so much was worth its while: it does not count as a try."""
MAX_THREADS: Final = 64
"""Layers of all pulls at once; more wait for a thread. Idle ones are given up by nobody, but take little."""

AT_WORK: Final = min(4, max(2, os.cpu_count() or 1))
"""Threads that inflate and write at the same time; the others wait for bytes or for their turn. All of them at once
would pass the interpreter lock around between more threads than there are processors, and the loop would wait behind
each: with five layers on two busy processors its lag was 26 ms instead of 10, and the pull no faster."""

Say = Callable[[int], None]
"""Told how many bytes of a layer have come."""


class LayerPlan(Struct, frozen=True, kw_only=True):
    descriptor: Descriptor
    chain_id: ChainId
    diff_id: Digest


class _Decided(Exception):
    """An error past the endpoints that might be asked next: no other registry would make it better."""

    def __init__(self, error: EngineError, endpoint: Endpoint) -> None:
        super().__init__(error)
        self.error = error
        self.endpoint = endpoint


class Transfer:
    def __init__(self, *, layers: LayerIngest, options: RegistryOptions, clock: Clock) -> None:
        self.options = options
        self._layers = layers
        self._clock = clock
        self._turns = threading.Semaphore(AT_WORK)
        self._threads = ThreadPoolExecutor(max_workers=MAX_THREADS, thread_name_prefix="unpack")

    def close(self) -> None:
        """After all transfers have ended."""
        self._threads.shutdown(wait=False)

    async def bring(self, repository: Repository, plan: LayerPlan, say: Say) -> LayerFacts:
        """The layer, sealed in the store. A damaged blob, or one that a mirror lacks, is had from the next endpoint."""

        async def ask(endpoint: Endpoint) -> LayerFacts:
            staged = await self._layers.stage(plan.chain_id)
            try:
                tree = await self._stream(repository, endpoint, plan, staged, say)
                facts = LayerFacts(
                    chain_id=plan.chain_id,
                    diff_id=plan.diff_id,
                    used_bytes=tree.used_bytes,
                    inodes=tree.inodes,
                    implied=tree.implied,
                )
                await self._layers.seal(staged, facts)
            except BaseException:
                await self._layers.discard(staged)
                raise
            return facts

        try:
            return await repository.each(f"fetch layer {plan.descriptor.digest}", ask)
        except _Decided as decided:
            error = repository.named(decided.error, decided.endpoint, f"unpack layer {plan.descriptor.digest}")
            raise error from decided.error

    async def _stream(
        self, repository: Repository, endpoint: Endpoint, plan: LayerPlan, staged: str, say: Say
    ) -> TreeFacts:
        handover = Handover(HANDOVER_BYTES)
        blob = BlobFacts(digest=Digest(plan.descriptor.digest), size=plan.descriptor.size, diff_id=plan.diff_id)
        loop = asyncio.get_running_loop()
        worker = loop.run_in_executor(self._threads, self._consume, handover, blob, staged)
        try:
            await self._feed(repository, endpoint, plan.descriptor, handover, say)
            handover.end()
            return await asyncio.shield(worker)
        except BlobDamaged:
            raise
        except BaseException as error:
            handover.abort()
            await to_the_end(_settle(worker), name="end of an unpacking thread")
            if isinstance(error, EngineError) and worker.exception() is error:
                raise _Decided(error, endpoint) from error
            raise

    def _consume(self, handover: Handover, blob: BlobFacts, directory: str) -> TreeFacts:
        """In its thread."""

        def grow(used_bytes: int, inodes: int) -> None:
            handover.check()
            self._layers.take(used_bytes, inodes)

        try:
            # Closed here: an error's traceback would keep the generator, and with it the turn.
            with contextlib.closing(self._in_turns(handover)) as chunks:
                recipe = self._layers.recipe_of(directory)
                return unpack(chunks, blob, directory, self.options.limits, recipe, grow=grow)
        finally:
            handover.give_up()

    def _in_turns(self, handover: Handover) -> Generator[bytes, None, None]:
        """Waits for bytes without a turn, and keeps one until the next are asked for."""
        for chunk in handover:
            with self._turns:
                yield chunk

    async def _feed(
        self, repository: Repository, endpoint: Endpoint, blob: Descriptor, handover: Handover, say: Say
    ) -> None:
        """The whole blob, in as many connections as it takes. Returns early where the consumer has given up."""
        offset = fruitless = 0
        while True:
            begun = offset
            try:
                async with contextlib.aclosing(self._chunks(repository, endpoint, blob, offset)) as chunks:
                    async for chunk in chunks:
                        offset += len(chunk)
                        if not await handover.put(chunk):
                            return
                        say(offset)
            except Interrupted:
                if offset == blob.size:
                    return  # broken behind the last byte: its digest tells whether that is all
                fruitless = 0 if offset - begun >= PROGRESS_BYTES else fruitless + 1
                if fruitless >= self.options.tries:
                    raise
            else:
                return
            await self._clock.sleep(self.options.backoff_seconds * 2 ** (max(fruitless, 1) - 1))

    async def _chunks(
        self, repository: Repository, endpoint: Endpoint, blob: Descriptor, offset: int
    ) -> AsyncGenerator[bytes, None]:
        """From `offset` on, in one connection."""
        headers = {"Range": f"bytes={offset}-"} if offset else {}
        async with repository.open(endpoint, f"blobs/{blob.digest}", headers=headers) as response:
            skip = 0
            if response.status == 206:
                told = response.headers.get("Content-Range", "")
                if not offset or not told.startswith(f"bytes {offset}-"):
                    raise Unavailable(f"asked for bytes from {offset}, got {told[:100]!r}")
            else:
                check_complete(response, blob.size, f"blob {blob.digest}")
                skip, offset = offset, 0  # the registry knows no ranges: what is there already goes by
            gauge = Gauge(self.options, self._clock)
            while chunk := await gauge.read(response.content.readany):
                offset += len(chunk)
                if skip >= len(chunk):
                    skip -= len(chunk)
                    continue
                yield chunk[skip:] if skip else chunk
                skip = 0
        if offset < blob.size:
            raise Interrupted(f"the blob ends after {offset} of {blob.size} bytes")


async def _settle(worker: asyncio.Future[TreeFacts]) -> None:
    """Until the thread has let go of the directory, whatever it says."""
    await asyncio.wait({worker})
    if not worker.cancelled():
        worker.exception()  # seen: a cancelled pull has nobody else to look, and asyncio would complain

"""Pulls that are followed while they run."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

from isulad_py.engine.images import Images
from isulad_py.engine.progress import Latest, PullState
from isulad_py.model.container import ImageSpec
from isulad_py.model.image import Credentials, ImageRecord
from isulad_py.ports.tasks import Tasks

if TYPE_CHECKING:
    import asyncio


class Pulls:
    def __init__(self, *, images: Images, tasks: Tasks) -> None:
        self._images = images
        self._tasks = tasks

    @contextlib.contextmanager
    def following(self, spec: ImageSpec, credentials: Credentials | None) -> Iterator[AsyncIterator[PullState]]:
        """Begins the pull, or joins the one that is under way; gives its states, the last one with the image. A slow
        reader misses states, and holds nobody up. Leaving the block early is as a caller of `Images.pull` who goes
        away. Errors as there, out of the iterator."""
        latest: Latest[PullState] = Latest()
        pull = self._tasks.start(self._pull(spec, credentials, latest), name="pull: followed")
        try:
            yield self._states(latest, pull)
        finally:
            pull.cancel()

    async def _pull(
        self, spec: ImageSpec, credentials: Credentials | None, latest: Latest[PullState]
    ) -> ImageRecord | Exception:
        """An error is on its way to the reader; for the owner of tasks it is not a death."""
        try:
            return await self._images.pull(spec, credentials, latest.put)
        except Exception as error:
            return error
        finally:
            latest.end()

    async def _states(
        self, latest: Latest[PullState], pull: asyncio.Task[ImageRecord | Exception]
    ) -> AsyncIterator[PullState]:
        last = PullState()
        async for last in latest.values():
            yield last
        outcome = await pull
        if isinstance(outcome, Exception):
            raise outcome
        yield PullState(step="done", layers=last.layers, image=outcome)

"""The other end: a running daemon, asked over its socket."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, Final, TypeVar

from betterproto.grpc.grpclib_client import ServiceStub
from grpclib.client import Channel
from grpclib.exceptions import GRPCError, StreamTerminatedError

from isulad_py.api import images as native
from isulad_py.api.isulad import v1 as own
from isulad_py.api.runtime import v1 as cri
from isulad_py.engine.progress import PullState
from isulad_py.model.errors import DataLoss, FailedPrecondition, Unavailable
from isulad_py.model.image import Credentials, ImageRecord
from isulad_py.wire.status import error_of
from isulad_py.wire.translate import images, native_images

T = TypeVar("T")
CRI: Final = "/runtime.v1alpha2.ImageService"
"""The version that every configuration serves."""


class DaemonImages:
    """Images of the daemon that listens at `path`. Paths of archives are absolute. Errors are the daemon's, in the
    class that its status stands for; Unavailable where it does not answer."""

    def __init__(self, channel: Channel, path: str) -> None:
        self._path = path
        self._cri: Any = ServiceStub(channel)
        self._images = own.ImagesStub(channel)
        self._native = native.ImagesServiceStub(channel)

    @classmethod
    @contextlib.asynccontextmanager
    async def connected(cls, path: str) -> AsyncIterator[DaemonImages]:
        channel = Channel(path=path)
        try:
            yield cls(channel, path)
        finally:
            channel.close()

    async def listed(self) -> list[ImageRecord]:
        path, request = f"{CRI}/ListImages", cri.ListImagesRequest()
        answer = await self._answer(self._cri._unary_unary(path, request, cri.ListImagesResponse))
        return [native_images.listed(image) for image in answer.images]

    async def load(self, path: str, name: str) -> list[ImageRecord]:
        answer = await self._answer(self._images.load(own.LoadRequest(path=path, name=name)))
        return [native_images.listed(image) for image in answer.images]

    async def save(self, image: str, path: str, form: str) -> ImageRecord:
        answer = await self._answer(self._images.save(own.SaveRequest(image=image, path=path, format=form)))
        return native_images.listed(answer.image)

    async def import_rootfs(self, path: str, name: str) -> ImageRecord:
        answer = await self._answer(self._images.import_(own.ImportRequest(path=path, name=name)))
        return native_images.listed(answer.image)

    async def tag(self, image: str, name: str) -> ImageRecord:
        answer = await self._answer(self._images.tag(own.TagRequest(image=image, name=name)))
        return native_images.listed(answer.image)

    async def pull(
        self, image: str, credentials: Credentials | None, watch: Callable[[PullState], None]
    ) -> ImageRecord:
        request = own.PullRequest(image=image, auth=images.auth_message(credentials))
        record = None
        with self._translated():
            async for answer in self._images.pull(request):
                state = native_images.pull_state(answer)
                record = state.image
                watch(state)
        if record is None:
            raise DataLoss("the daemon's answer ends without an image")
        return record

    async def remove(self, image: str) -> None:
        """An error for what is not there."""
        answer = await self._answer(self._native.delete(native.DeleteImageRequest(name=image)))
        _check(answer.cc, answer.errmsg)

    async def inspect(self, image: str) -> str:
        answer = await self._answer(self._native.inspect(native.InspectImageRequest(id=image)))
        _check(answer.cc, answer.errmsg)
        return answer.image_json

    async def _answer(self, call: Awaitable[T]) -> T:
        with self._translated():
            return await call

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except GRPCError as error:
            raise error_of(error.status, error.message or "") from error
        except (StreamTerminatedError, OSError) as error:
            raise Unavailable(f"the daemon at {self._path}: {error}") from error


def _check(cc: int, words: str) -> None:
    if cc:
        raise FailedPrecondition(words)

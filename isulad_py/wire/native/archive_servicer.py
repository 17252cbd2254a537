"""isulad.v1.Images, for `isulad image`: decode, one service call, encode."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

from isulad_py.api.isulad import v1 as own
from isulad_py.engine.progress import PullState
from isulad_py.model.container import ImageSpec
from isulad_py.wire.native.services import NativeServices
from isulad_py.wire.translate import checks, images, native_images


class ArchiveServicer:
    def __init__(self, *, services: NativeServices) -> None:
        self._archives = services.archives
        self._pulls = services.pulls

    async def load(self, request: own.LoadRequest) -> own.LoadResponse:
        records = await self._archives.load(checks.absolute(request.path, "path"), checks.name(request.name, "name"))
        return own.LoadResponse(images=[images.image_item(record) for record in records])

    async def save(self, request: own.SaveRequest) -> own.SaveResponse:
        image = checks.required_name(request.image, "image")
        path = checks.absolute(request.path, "path")
        record = await self._archives.save(image, path, checks.required_name(request.format, "format"))
        return own.SaveResponse(image=images.image_item(record))

    async def import_(self, request: own.ImportRequest) -> own.ImportResponse:
        path = checks.absolute(request.path, "path")
        record = await self._archives.import_rootfs(path, checks.required_name(request.name, "name"))
        return own.ImportResponse(image=images.image_item(record))

    async def tag(self, request: own.TagRequest) -> own.TagResponse:
        image = checks.required_name(request.image, "image")
        record = await self._archives.tag(image, checks.required_name(request.name, "name"))
        return own.TagResponse(image=images.image_item(record))

    @contextmanager
    def pull(self, request: own.PullRequest) -> Iterator[AsyncIterator[own.PullResponse]]:
        spec = ImageSpec(image=checks.required_name(request.image, "image"))
        with self._pulls.following(spec, images.credentials(request.auth)) as states:
            yield _answers(states)


async def _answers(states: AsyncIterator[PullState]) -> AsyncIterator[own.PullResponse]:
    async for state in states:
        yield native_images.own_pull_answer(state)

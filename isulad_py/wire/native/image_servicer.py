"""iSulad's ImagesService: decode, one service call, encode."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

from isulad_py.api import images as native
from isulad_py.engine.image_filters import select
from isulad_py.engine.progress import PullState
from isulad_py.model.errors import Unsupported
from isulad_py.model.reference import familiar, parse
from isulad_py.wire import codec
from isulad_py.wire.encodings import join_fresh
from isulad_py.wire.native.services import NativeServices
from isulad_py.wire.translate import checks, native_images


class NativeImageServicer:
    def __init__(self, *, services: NativeServices) -> None:
        self._images = services.images
        self._archives = services.archives
        self._pulls = services.pulls

    async def list(self, request: native.ListImagesRequest) -> bytes:
        """Encoded entry by entry, so that a node of many images does not hold up the loop."""
        wanted = native_images.image_filter(request.filters)
        records = select(self._images.list(), wanted, self._images.require)
        entries = (entry for record in records for entry in native_images.image_entries(record))
        return await join_fresh(codec.element(1, bytes(entry)) for entry in entries)

    async def delete(self, request: native.DeleteImageRequest) -> native.DeleteImageResponse:
        """`force` changes nothing, as in iSulad: an image in use stays."""
        name = checks.required_name(request.name, "name")
        self._images.require(name)
        await self._images.remove(name)
        return native.DeleteImageResponse(name=name)

    async def load(self, request: native.LoadImageRequest) -> native.LoadImageResponse:
        native_images.load_type(request.type)
        path = checks.absolute(request.file, "file")
        await self._archives.load(path, checks.name(request.tag, "tag"))
        return native.LoadImageResponse()

    async def inspect(self, request: native.InspectImageRequest) -> native.InspectImageResponse:
        record = self._images.require(checks.required_name(request.id, "id"))
        return native.InspectImageResponse(image_json=native_images.inspection(record))

    async def tag(self, request: native.TagImageRequest) -> native.TagImageResponse:
        name = checks.required_name(request.dest_name, "dest_name")
        await self._archives.tag(checks.required_name(request.src_name, "src_name"), name)
        return native.TagImageResponse()

    async def import_(self, request: native.ImportRequest) -> native.ImportResponse:
        path = checks.absolute(request.file, "file")
        record = await self._archives.import_rootfs(path, checks.required_name(request.tag, "tag"))
        return native.ImportResponse(id=record.id)

    async def login(self, _request: native.LoginRequest) -> native.LoginResponse:
        raise Unsupported("Login: this daemon keeps no passwords: give them with each pull, or name registry-auth-file")

    async def logout(self, _request: native.LogoutRequest) -> native.LogoutResponse:
        raise Unsupported("Logout: this daemon keeps no passwords")

    async def search(self, _request: native.SearchRequest) -> native.SearchResponse:
        raise Unsupported("Search: the registries of today have no search for clients (distribution spec)")

    @contextmanager
    def pull_image(self, request: native.PullImageRequest) -> Iterator[AsyncIterator[native.PullImageResponse]]:
        spec, credentials = native_images.pull_of(request)
        name = familiar(str(parse(spec.image)))
        with self._pulls.following(spec, credentials) as states:
            yield _answers(states, name, progress=request.is_progress_visible)


async def _answers(
    states: AsyncIterator[PullState], name: str, *, progress: bool
) -> AsyncIterator[native.PullImageResponse]:
    async for state in states:
        if progress or state.image is not None:
            yield native_images.pull_answer(state, name)

"""ImageService: decode, one service call, encode. What is not here answers UNIMPLEMENTED with its name."""

from __future__ import annotations

from contextlib import nullcontext

from isulad_py.api.runtime import v1 as cri
from isulad_py.wire.cri.services import Lists, Services
from isulad_py.wire.encodings import Chunks
from isulad_py.wire.translate import checks, images


class ImageServicer:
    def __init__(self, *, services: Services, lists: Lists) -> None:
        self._images = services.images
        self._lists = lists

    async def list_images(self, request: cri.ListImagesRequest) -> bytes:
        wanted = checks.name(request.filter.image.image, "filter.image.image")
        return await self._lists.images.join(self._images.list(wanted), complete=not wanted)

    def stream_images(self, request: cri.StreamImagesRequest) -> Chunks:
        wanted = checks.name(request.filter.image.image, "filter.image.image")
        return nullcontext(self._lists.images.chunks(self._images.list(wanted), complete=not wanted))

    async def image_status(self, request: cri.ImageStatusRequest) -> cri.ImageStatusResponse:
        record = self._images.status(images.image_spec(request.image, "image").image)
        if record is None:
            return cri.ImageStatusResponse()  # no error: kubelets ask before each pull
        info = self._images.info(record) if request.verbose else {}
        return cri.ImageStatusResponse(image=images.image_item(record), info=info)

    async def pull_image(self, request: cri.PullImageRequest) -> cri.PullImageResponse:
        spec = images.image_spec(request.image, "image")
        record = await self._images.pull(spec, images.credentials(request.auth))
        return cri.PullImageResponse(image_ref=record.id)

    async def remove_image(self, request: cri.RemoveImageRequest) -> cri.RemoveImageResponse:
        await self._images.remove(images.image_spec(request.image, "image").image)
        return cri.RemoveImageResponse()

    async def image_fs_info(self, _request: cri.ImageFsInfoRequest) -> cri.ImageFsInfoResponse:
        of_images, of_containers = await self._images.usage()
        return cri.ImageFsInfoResponse(
            image_filesystems=[images.filesystem_usage(of_images)],
            container_filesystems=[images.filesystem_usage(of_containers)],
        )

"""Each RPC of ImageService through a real channel."""

from __future__ import annotations

from typing import Any

from isulad_py.model.image import Credentials
from tests.wire.conftest import Served


async def test_an_images_life(served: Served, client: Any) -> None:
    spec = {"image": "registry.test/app:1"}
    absent = await client.image.ImageStatus(client.m.ImageStatusRequest(image=spec))
    assert not absent.HasField("image")
    pulled = await client.image.PullImage(
        client.m.PullImageRequest(image=spec, auth={"username": "u", "password": "p"})
    )
    assert served.engine.credentials == [Credentials(username="u", password="p")]
    present = await client.image.ImageStatus(client.m.ImageStatusRequest(image=spec, verbose=True))
    assert (present.image.id, present.image.size) == (pulled.image_ref, 5)
    assert pulled.image_ref in present.info["info"]
    listed = await client.image.ListImages(client.m.ListImagesRequest())
    assert [image.id for image in listed.images] == [pulled.image_ref]
    other = await client.image.ListImages(client.m.ListImagesRequest(filter={"image": {"image": "other"}}))
    assert not other.images
    for _ in range(2):
        await client.image.RemoveImage(client.m.RemoveImageRequest(image=spec))
    assert not (await client.image.ListImages(client.m.ListImagesRequest())).images


async def test_file_systems(client: Any) -> None:
    answer = await client.image.ImageFsInfo(client.m.ImageFsInfoRequest())
    assert [usage.fs_id.mountpoint for usage in answer.image_filesystems] == ["/graph/images"]
    assert [usage.used_bytes.value for usage in answer.container_filesystems] == [4]


async def test_streamed_images_are_the_list(served: Served, client: Any) -> None:
    spec = {"image": "registry.test/app:1"}
    await client.image.PullImage(client.m.PullImageRequest(image=spec))
    for wanted, count in (({}, 1), ({"image": spec}, 1), ({"image": {"image": "other"}}, 0)):
        stream = client.image.StreamImages(client.m.StreamImagesRequest(filter=wanted))
        assert len([image async for answer in stream for image in answer.images]) == count

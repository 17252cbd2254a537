from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import pytest

from isulad_py.api.runtime import v1 as cri
from isulad_py.wire.methods import Method, bind


class Servicer:
    async def list_images(self, _request: cri.ListImagesRequest) -> bytes:
        return b""

    @contextmanager
    def stream_images(self, _request: cri.StreamImagesRequest) -> Iterator[AsyncIterator[bytes]]:
        raise NotImplementedError


def test_methods_are_bound_by_name_and_kind() -> None:
    servicer = Servicer()
    table = bind(cri.ImageServiceBase(), servicer, package="other.v9")
    assert len(table) == 6
    listing = table["/other.v9.ImageService/ListImages"]
    assert listing == Method(
        name="other.v9.ImageService/ListImages", request=cri.ListImagesRequest, unary=servicer.list_images
    )
    streaming = table["/other.v9.ImageService/StreamImages"]
    assert (streaming.unary, streaming.streaming) == (None, servicer.stream_images)
    missing = table["/other.v9.ImageService/PullImage"]
    assert (missing.unary, missing.streaming, missing.short_name) == (None, None, "PullImage")


def test_a_name_that_is_no_rpc_is_a_mistake() -> None:
    class Misspelt:
        async def list_imagez(self) -> None: ...

    with pytest.raises(ValueError, match="list_imagez"):
        bind(cri.ImageServiceBase(), Misspelt(), package="runtime.v1")


def test_servicers_share_a_service_and_no_name() -> None:
    class Pulling:
        async def pull_image(self) -> None: ...

    servicer, pulling = Servicer(), Pulling()
    table = bind(cri.ImageServiceBase(), servicer, pulling, package="p")
    assert table["/p.ImageService/PullImage"].unary == pulling.pull_image
    assert table["/p.ImageService/ListImages"].unary == servicer.list_images
    with pytest.raises(ValueError, match="two servicers answer list_images"):
        bind(cri.ImageServiceBase(), servicer, Servicer(), package="p")


def test_only_events_end_with_their_client() -> None:
    table = bind(cri.RuntimeServiceBase(), package="p") | bind(cri.ImageServiceBase(), package="p")
    assert [method.short_name for method in table.values() if method.endless] == ["GetContainerEvents"]


@pytest.mark.parametrize(
    ("name", "polled"),
    [
        ("ListPodSandbox", True),
        ("ContainerStatus", True),
        ("ImageFsInfo", True),
        ("Version", True),
        ("RunPodSandbox", False),
        ("UpdateRuntimeConfig", False),
        ("PullImage", False),
    ],
)
def test_calls_by_the_second(name: str, polled: bool) -> None:
    assert Method(name=f"runtime.v1.RuntimeService/{name}", request=cri.VersionRequest).polled is polled

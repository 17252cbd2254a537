"""isulad.v1.Images: what `isulad image` asks, with errors as gRPC has them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from tests.wire.native import NativeServed, native_served


@pytest.fixture
async def native(tmp_path: Path) -> AsyncIterator[NativeServed]:
    async with native_served(tmp_path) as served:
        yield served


async def test_in_out_and_named(native: NativeServed) -> None:
    service, m = native.service("isulad.v1", "Images")
    native.files.offer("/a.tar", "one:1", "two:2")
    loaded = await service.Load(m.LoadRequest(path="/a.tar"))
    assert [list(image.repo_tags) for image in loaded.images] == [
        ["docker.io/library/one:1"],
        ["docker.io/library/two:2"],
    ]
    saved = await service.Save(m.SaveRequest(image="one:1", path="/out.tar", format="oci-archive"))
    assert saved.image.id == loaded.images[0].id == native.files.saved["/out.tar"].id
    made = await service.Import(m.ImportRequest(path="/root.tar", name="made:1"))
    assert list(made.image.repo_tags) == ["docker.io/library/made:1"]
    tagged = await service.Tag(m.TagRequest(image="made:1", name="again:2"))
    assert list(tagged.image.repo_tags) == ["docker.io/library/made:1", "docker.io/library/again:2"]


async def test_a_pull_is_followed(native: NativeServed) -> None:
    service, m = native.service("isulad.v1", "Images")
    answers = [answer async for answer in service.Pull(m.PullRequest(image="busybox:1"))]
    assert answers[-1].step == "done"
    assert answers[-1].image.id
    assert not any(answer.HasField("image") for answer in answers[:-1])
    [layer] = answers[-1].layers
    assert layer.digest.startswith("sha256:")
    assert layer.total_bytes > 0


CASES: list[tuple[str, dict[str, str], grpc.StatusCode, str]] = [
    ("Load", {"path": "a.tar"}, grpc.StatusCode.INVALID_ARGUMENT, "path"),
    ("Load", {"path": "/absent.tar"}, grpc.StatusCode.INVALID_ARGUMENT, "/absent.tar"),
    ("Load", {"path": "/a\nb"}, grpc.StatusCode.INVALID_ARGUMENT, "path"),
    ("Save", {"image": "", "path": "/x", "format": "oci-archive"}, grpc.StatusCode.INVALID_ARGUMENT, "image"),
    ("Save", {"image": "a", "path": "x", "format": "oci-archive"}, grpc.StatusCode.INVALID_ARGUMENT, "path"),
    ("Save", {"image": "a", "path": "/x", "format": ""}, grpc.StatusCode.INVALID_ARGUMENT, "format"),
    ("Save", {"image": "absent:1", "path": "/x", "format": "oci-archive"}, grpc.StatusCode.NOT_FOUND, "absent:1"),
    ("Import", {"path": "/x", "name": ""}, grpc.StatusCode.INVALID_ARGUMENT, "name"),
    ("Import", {"path": "/x", "name": "UPPER"}, grpc.StatusCode.INVALID_ARGUMENT, "name"),
    ("Tag", {"image": "", "name": "x"}, grpc.StatusCode.INVALID_ARGUMENT, "image"),
    ("Tag", {"image": "absent:1", "name": "x"}, grpc.StatusCode.NOT_FOUND, "absent:1"),
]


@pytest.mark.parametrize(("method", "fields", "code", "words"), CASES)
async def test_what_is_wrong_is_named(
    native: NativeServed, method: str, fields: dict[str, str], code: grpc.StatusCode, words: str
) -> None:
    service, m = native.service("isulad.v1", "Images")
    request: Any = getattr(m, f"{method}Request")(**fields)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await getattr(service, method)(request)
    assert caught.value.code() is code
    assert words in (caught.value.details() or "")


async def test_a_pull_that_fails_has_its_own_code(native: NativeServed) -> None:
    service, m = native.service("isulad.v1", "Images")
    for name, code in (("absent:1", grpc.StatusCode.NOT_FOUND), ("UPPER", grpc.StatusCode.INVALID_ARGUMENT)):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            [_ async for _ in service.Pull(m.PullRequest(image=name))]
        assert caught.value.code() is code

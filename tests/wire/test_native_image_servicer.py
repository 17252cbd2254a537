"""iSulad's image service, as its client meets it: C core, errors in the answers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from isulad_py.model.errors import HostFailure, NotFound, PermissionDenied
from isulad_py.model.image import ImageConfig
from tests.unit.engine.node import pod_config
from tests.wire.native import NativeServed, native_served


@pytest.fixture
async def native(tmp_path: Path) -> AsyncIterator[NativeServed]:
    async with native_served(tmp_path) as served:
        yield served


def isula(native: NativeServed) -> tuple[Any, Any]:
    return native.service("images", "ImagesService")


async def test_an_images_life(native: NativeServed) -> None:
    service, m = isula(native)
    native.files.offer("/a.tar", "app:1")
    loaded = await service.Load(m.LoadImageRequest(file="/a.tar", type="docker", tag="example.org/mine:2"))
    assert (loaded.cc, loaded.errmsg) == (0, "")
    assert not (await service.Tag(m.TagImageRequest(src_name="app:1", dest_name="other:3"))).cc
    listed = await service.List(m.ListImagesRequest())
    assert [image.name for image in listed.images] == ["app:1", "example.org/mine:2", "other:3"]
    [identity] = {image.target.digest for image in listed.images}
    assert identity.startswith("sha256:")
    inspected = await service.Inspect(m.InspectImageRequest(id="app:1"))
    document = json.loads(inspected.ImageJSON)["image"]
    assert (document["id"], document["repo_tags"][0]) == (identity.removeprefix("sha256:"), "app:1")
    imported = await service.Import(m.ImportRequest(file="/root.tar", tag="made:1"))
    assert imported.id.startswith("sha256:")
    removed = await service.Delete(m.DeleteImageRequest(name="made:1"))
    assert (removed.name, removed.cc) == ("made:1", 0)
    assert {image.target.digest for image in (await service.List(m.ListImagesRequest())).images} == {identity}


async def test_filters(native: NativeServed) -> None:
    service, m = isula(native)
    native.world.source.offer("app:1", config=ImageConfig(labels={"tier": "web"}))
    for name in ("app:1", "busybox:1"):
        [_ async for _ in service.PullImage(m.PullImageRequest(image={"image": name}))]

    async def names(**filters: str) -> list[str]:
        answer = await service.List(m.ListImagesRequest(filters=filters))
        assert not answer.cc, answer.errmsg
        return sorted(image.name for image in answer.images)

    assert await names(label="tier=web") == ["app:1"]
    assert await names(reference="busy*") == ["busybox:1"]
    assert await names(dangling="true") == []
    for filters in ({"size": "1"}, {"dangling": "perhaps"}, {"label": ""}):
        assert (await service.List(m.ListImagesRequest(filters=filters))).cc == 4
    assert (await service.List(m.ListImagesRequest(filters={"before": "absent:1"}))).cc == 5


async def test_a_pull_with_progress_ends_with_the_image(native: NativeServed) -> None:
    service, m = isula(native)
    held = native.world.source.faults.hold("fetch")
    stream = service.PullImage(m.PullImageRequest(image={"image": "busybox:1"}, is_progress_visible=True))
    answers = [await stream.read()]
    held.set()
    while (answer := await stream.read()) is not grpc.aio.EOF:
        answers.append(answer)
    documents = [json.loads(answer.progress_data) for answer in answers]
    assert all({"id", "total", "current"} == set(layer) for doc in documents for layer in doc["progresses"])
    assert [answer.image_ref for answer in answers[:-1]] == [""] * (len(answers) - 1)
    assert (answers[-1].image_ref, documents[-1]["image"]) == ("busybox:1", "busybox:1")
    quiet = [answer async for answer in service.PullImage(m.PullImageRequest(image={"image": "busybox:1"}))]
    assert [answer.image_ref for answer in quiet] == ["busybox:1"]


async def test_a_client_that_goes_away_ends_its_pull(native: NativeServed) -> None:
    service, m = isula(native)
    native.world.source.faults.hold("fetch")
    stream = service.PullImage(m.PullImageRequest(image={"image": "busybox:1"}, is_progress_visible=True))
    await stream.read()
    await native.world.source.faults.wait_entered("fetch")
    stream.cancel()
    await native.node.tasks.wait_for({"pull"})
    assert native.node.services.images.list() == []


async def test_errors_are_in_the_answers_and_the_log_knows_them(native: NativeServed) -> None:
    service, m = isula(native)
    absent = await service.Inspect(m.InspectImageRequest(id="absent:1"))
    assert (absent.cc, absent.errmsg) == (5, "image.image: absent:1 is not on this node")
    assert native.seen.finished[-1] == ("images.ImagesService/Inspect", "NOT_FOUND")
    assert (await service.Delete(m.DeleteImageRequest(name="absent:1"))).cc == 5
    assert (await service.Delete(m.DeleteImageRequest())).cc == 4
    relative = await service.Load(m.LoadImageRequest(file="a.tar", type="docker"))
    assert (relative.cc, relative.errmsg) == (4, "file: 'a.tar' is not an absolute path")
    assert (await service.Load(m.LoadImageRequest(file="/a", type="odd"))).cc == 4
    for refused in (
        await service.Load(m.LoadImageRequest(file="/a", type="embedded")),
        await service.Login(m.LoginRequest(username="u", password="hunter2", server="s", type="docker")),
        await service.Logout(m.LogoutRequest(server="s", type="docker")),
        await service.Search(m.SearchRequest(search_name="busybox", limit=5)),
    ):
        assert refused.cc == 5
        assert refused.errmsg
        assert "hunter2" not in refused.errmsg


async def test_an_image_in_use_stays(native: NativeServed) -> None:
    service, m = isula(native)
    await native.node.pull()
    pod = await native.node.services.pods.run(pod_config(), "")
    await native.node.create(pod)
    answer = await service.Delete(m.DeleteImageRequest(name="busybox:1", force=True))
    assert answer.cc == 5
    assert "in use" in answer.errmsg


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NotFound("registry r: no such image"), grpc.StatusCode.INTERNAL),
        (HostFailure("disk"), grpc.StatusCode.INTERNAL),
        (PermissionDenied("policy"), grpc.StatusCode.PERMISSION_DENIED),
    ],
)
async def test_a_pull_that_fails_says_so_in_words_that_isula_shows(
    native: NativeServed, error: Exception, code: grpc.StatusCode
) -> None:
    service, m = isula(native)
    native.world.source.faults.fail["resolve"] = error
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        [_ async for _ in service.PullImage(m.PullImageRequest(image={"image": "busybox:1"}))]
    assert (caught.value.code(), caught.value.details()) == (code, str(error))
    with pytest.raises(grpc.aio.AioRpcError, match=r"image\.image is empty"):
        [_ async for _ in service.PullImage(m.PullImageRequest())]


async def test_a_deadline_is_a_status_here_too(native: NativeServed) -> None:
    service, m = isula(native)
    native.files.faults.hold("load")
    native.files.offer("/a.tar", "app:1")
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await service.Load(m.LoadImageRequest(file="/a.tar", type="docker"), timeout=0.05)
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED

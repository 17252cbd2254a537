"""Our end of the socket against our daemon's end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from isulad_py.engine.progress import PullState
from isulad_py.model.errors import FailedPrecondition, InvalidInput, NotFound, Unauthenticated, Unavailable
from isulad_py.model.image import Credentials
from isulad_py.wire.native.client import DaemonImages
from tests.wire.native import NativeServed, native_served


@pytest.fixture
async def native(tmp_path: Path) -> AsyncIterator[NativeServed]:
    async with native_served(tmp_path) as served:
        yield served


async def test_every_command(native: NativeServed) -> None:
    native.files.offer("/a.tar", "one:1")
    async with DaemonImages.connected(str(native.path)) as daemon:
        [loaded] = await daemon.load("/a.tar", "mine:2")
        assert loaded.repo_tags == ("docker.io/library/one:1", "docker.io/library/mine:2")
        assert await daemon.listed() == [loaded]
        assert (await daemon.save("one:1", "/out.tar", "docker-archive")).id == loaded.id
        assert (await daemon.tag("one:1", "three:3")).repo_tags[-1] == "docker.io/library/three:3"
        assert (await daemon.import_rootfs("/root.tar", "made:1")).repo_tags == ("docker.io/library/made:1",)
        assert json.loads(await daemon.inspect("made:1"))["image"]["repo_tags"] == ["made:1"]
        await daemon.remove("made:1")
        for refused in (daemon.remove("made:1"), daemon.inspect("made:1")):
            with pytest.raises(FailedPrecondition, match="made:1 is not on this node"):
                await refused
        with pytest.raises(InvalidInput, match=r"/absent\.tar"):
            await daemon.load("/absent.tar", "")
        with pytest.raises(NotFound, match="absent:1"):
            await daemon.save("absent:1", "/out.tar", "docker-archive")
        with pytest.raises(InvalidInput, match="path"):
            await daemon.load("relative", "")


async def test_a_pull_with_credentials_and_progress(native: NativeServed) -> None:
    login = Credentials(username="user", password="secret")
    native.world.source.offer("locked.example/app:1")
    native.world.source.passwords["locked.example"] = login
    states: list[PullState] = []
    async with DaemonImages.connected(str(native.path)) as daemon:
        with pytest.raises(Unauthenticated):
            await daemon.pull("locked.example/app:1", None, states.append)
        record = await daemon.pull("locked.example/app:1", login, states.append)
    assert record.repo_tags == ("locked.example/app:1",)
    assert (states[-1].step, states[-1].image) == ("done", record)
    assert native.world.source.pulls[-1].credentials == login


async def test_one_who_gives_up_ends_the_pull(native: NativeServed) -> None:
    native.world.source.faults.hold("fetch")
    async with DaemonImages.connected(str(native.path)) as daemon:
        pull = asyncio.ensure_future(daemon.pull("busybox:1", None, lambda _: None))
        await native.world.source.faults.wait_entered("fetch")
        pull.cancel()
        await asyncio.wait({pull})
    await native.node.tasks.wait_for({"pull"})
    assert native.node.services.images.list() == []


async def test_nobody_there(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="nowhere"):
        async with DaemonImages.connected(str(tmp_path / "nowhere")) as daemon:
            await daemon.listed()

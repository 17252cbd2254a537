"""The part of the daemon that works on a graph by itself, with a registry over real HTTP."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from isulad_py.config.schema import Config
from isulad_py.daemon.image_graph import GraphImages
from isulad_py.engine.progress import PullState
from isulad_py.engine.registry import CONTAINER, encode
from isulad_py.host.clock import SystemClock
from isulad_py.model.container import ContainerConfig, ContainerMetadata, ContainerRecord, ImageSpec
from isulad_py.model.errors import FailedPrecondition, NotFound
from isulad_py.model.ids import ContainerId, PodId, new_id
from isulad_py.storage.records import SqliteRecords
from tests.fakes.registry import FakeRegistry
from tests.images import File, make_image, tar_layer


async def test_pulled_and_removed(tmp_path: Path) -> None:
    config = Config(graph=str(tmp_path), certs_dir="")
    image = make_image([tar_layer([File("x", uid=os.geteuid(), gid=os.getegid())])])
    states: list[PullState] = []
    async with FakeRegistry().serve() as registry:
        name = registry.put("app", "v1", image)
        async with GraphImages.opened(config) as graph:
            record = await graph.pull(name, None, states.append)
    assert (record.id, record.repo_tags) == (image.image_id, (name,))
    assert states[0].step == "resolving"
    async with GraphImages.opened(config) as graph:
        assert await graph.listed() == [record]
        assert image.image_id.removeprefix("sha256:") in await graph.inspect(name)
        await graph.remove(name)
        for refused in (graph.remove(name), graph.inspect(name)):
            with pytest.raises(NotFound, match=name):
                await refused


async def test_what_a_container_on_record_was_made_from_stays(tmp_path: Path) -> None:
    config = Config(graph=str(tmp_path), certs_dir="")
    async with FakeRegistry().serve() as registry:
        image = make_image([tar_layer([File("x", uid=os.geteuid(), gid=os.getegid())])])
        name = registry.put("app", "v1", image)
        async with GraphImages.opened(config) as graph:
            await graph.pull(name, None, lambda _: None)
    container = ContainerRecord(
        id=ContainerId(new_id()),
        pod_id=PodId(new_id()),
        config=ContainerConfig(metadata=ContainerMetadata(name="main"), image=ImageSpec(image=name)),
        created_at=1,
        image_id=image.image_id,
        image_ref=name,
    )
    records = await SqliteRecords.open(tmp_path / "isulad.db", now_ns=SystemClock().now_ns)
    await records.put(CONTAINER, container.id, encode(container))
    await records.close()
    async with GraphImages.opened(config) as graph:
        with pytest.raises(FailedPrecondition, match="in use"):
            await graph.remove(name)

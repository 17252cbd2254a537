from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from isulad_py.host import mounts
from isulad_py.model.errors import Unsupported
from isulad_py.model.ids import ContainerId
from isulad_py.ports.storage import RootfsRequest
from isulad_py.storage.external_rootfs import ExternalRootFilesystems
from isulad_py.storage.layers import LayerStore
from isulad_py.storage.root_filesystems import NodeRootFilesystems
from isulad_py.storage.rootfs import OverlayRootFilesystems
from tests.fakes.clock import FakeClock
from tests.fakes.tasks import TestTasks

pytestmark = pytest.mark.root

ONE, TWO = ContainerId("1" * 64), ContainerId("2" * 64)


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[NodeRootFilesystems]:
    graph, tasks = str(tmp_path / "graph"), TestTasks()
    Path(graph).mkdir()
    layers = await LayerStore.open(graph, tasks=tasks, clock=FakeClock(), boot_id="boot")
    overlay = await OverlayRootFilesystems.open(layers=layers, tasks=tasks, clock=FakeClock())
    yield NodeRootFilesystems(overlay=overlay, external=await ExternalRootFilesystems.open(graph, state="/no/such"))
    mounts.unmount_under(graph)
    await tasks.close()


async def test_both_kinds_side_by_side(node: NodeRootFilesystems, tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    external = RootfsRequest(container_id=ONE, layers=(), external=str(tmp_path / "root"))
    overlay = RootfsRequest(container_id=TWO, layers=())
    for request in (external, overlay):
        path = await node.prepare(request)
        assert path == node.path_for(request.container_id)
        Path(path, "file").write_text("x")
        mounts.unmount(path)
        assert not await node.mounted(request.container_id)
        assert await node.remount(request) == path
        assert await node.mounted(request.container_id)
        assert Path(path, "file").read_text() == "x"
    assert await node.present() == {ONE, TWO}
    Path(node.path_for(TWO), "data").mkdir()
    await node.fill_volumes(TWO, ["/data"])
    assert Path(node.volumes(TWO, ["/data"])["/data"]).is_dir()
    with pytest.raises(Unsupported, match="external_rootfs"):
        await node.fill_volumes(ONE, ["/data"])
    assert await node.usage(ONE) is None
    assert await node.usage(TWO) is not None
    assert (await node.total_usage()).inodes_used == 2, "what is in an external root does not count"
    assert (await node.capacity()).total_bytes > 0
    for container_id in (ONE, TWO):
        await node.remove(container_id)
        await node.remove(container_id)
    assert await node.present() == frozenset()
    assert (tmp_path / "root/file").read_text() == "x"

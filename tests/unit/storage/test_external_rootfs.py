from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from isulad_py.host import mounts
from isulad_py.model.errors import AlreadyExists, FailedPrecondition, HostFailure, InvalidInput, NotFound, Unsupported
from isulad_py.model.ids import ContainerId
from isulad_py.model.pod import PodUsers
from isulad_py.model.security import NamespaceMode, UserNamespace
from isulad_py.ports.storage import RootfsRequest
from isulad_py.storage import external_rootfs
from isulad_py.storage.external_rootfs import ExternalRootFilesystems

pytestmark = pytest.mark.root

ONE, TWO = ContainerId("1" * 64), ContainerId("2" * 64)


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[str]:
    graph = tmp_path / "graph"
    graph.mkdir()
    yield str(graph)
    mounts.unmount_under(str(graph))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    (root / "etc/hostname").write_text("mine")
    return root


def request_of(container_id: ContainerId, root: Path, **fields: Any) -> RootfsRequest:
    return RootfsRequest(container_id=container_id, layers=(), external=str(root), **fields)


async def test_what_the_container_writes_is_there_and_stays(graph: str, root: Path) -> None:
    store = await ExternalRootFilesystems.open(graph, state="/no/such")
    path = Path(await store.prepare(request_of(ONE, root)))
    assert (path / "etc/hostname").read_text() == "mine"
    (path / "new").write_text("written")
    await store.remove(ONE)
    await store.remove(ONE)
    assert (root / "new").read_text() == "written"
    assert list(Path(graph, "external").iterdir()) == []
    assert not store.present()


async def test_it_is_one_container_s(graph: str, root: Path) -> None:
    store = await ExternalRootFilesystems.open(graph, state="/no/such")
    await store.prepare(request_of(ONE, root))
    for path in (root, root / "etc", root.parent / "link"):
        if not path.exists():
            path.symlink_to(root)
        with pytest.raises(FailedPrecondition, match=f"in use by container {ONE}"):
            await store.prepare(request_of(TWO, path))
    with pytest.raises(AlreadyExists, match=ONE):
        await store.prepare(request_of(ONE, root))
    assert store.present() == {ONE}
    assert mounts.is_mountpoint(store.path_for(ONE))
    await store.remove(ONE)
    await store.prepare(request_of(TWO, root))


async def test_also_for_the_next_daemon_and_after_a_reboot(graph: str, root: Path) -> None:
    former = await ExternalRootFilesystems.open(graph, state="/no/such")
    path = await former.prepare(request_of(ONE, root))
    store = await ExternalRootFilesystems.open(graph, state="/no/such")
    with pytest.raises(FailedPrecondition, match=ONE):
        await store.prepare(request_of(TWO, root))
    mounts.unmount(path)
    assert await store.remount(ONE) == path
    assert await store.remount(ONE) == path
    assert (Path(path) / "etc/hostname").read_text() == "mine"
    with pytest.raises(NotFound):
        await store.remount(TWO)
    await store.remove(ONE)
    assert (root / "etc/hostname").read_text() == "mine"


async def test_half_made_and_half_removed_ones_are_gone_after_a_start(graph: str) -> None:
    Path(graph, "external", ONE, "root").mkdir(parents=True)
    Path(graph, "external", "not an id").mkdir()
    store = await ExternalRootFilesystems.open(graph, state="/no/such")
    assert not store.present()
    assert not Path(graph, "external", ONE).exists()


async def test_while_a_note_cannot_be_read_nobody_is_given_a_root(graph: str, root: Path) -> None:
    former = await ExternalRootFilesystems.open(graph, state="/no/such")
    await former.prepare(request_of(ONE, root))
    Path(graph, "external", ONE, "external.json").write_text("{")
    store = await ExternalRootFilesystems.open(graph, state="/no/such")
    assert store.present() == {ONE}
    with pytest.raises(FailedPrecondition, match=ONE):
        await store.prepare(request_of(TWO, root))
    await store.remove(ONE)
    await store.prepare(request_of(TWO, root))


async def test_what_is_refused_leaves_nothing(graph: str, root: Path) -> None:
    store = await ExternalRootFilesystems.open(graph, state="/no/such")
    with pytest.raises(Unsupported, match="bounded"):
        await store.prepare(request_of(ONE, root, quota_bytes=1 << 20))
    users = PodUsers(ids=UserNamespace(mode=NamespaceMode.POD), path="/not/looked/at")
    with pytest.raises(Unsupported, match="external_rootfs: not in a pod with a user namespace"):
        await store.prepare(request_of(ONE, root, users=users))
    with pytest.raises(InvalidInput):
        await store.prepare(request_of(ONE, Path(graph)))
    with pytest.raises(NotFound):
        await store.prepare(request_of(ONE, root / "none"))
    assert not store.present()


async def test_a_mount_that_fails_leaves_nothing(graph: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise HostFailure("mount: no")

    store = await ExternalRootFilesystems.open(graph, state="/no/such")
    with monkeypatch.context() as patched:
        patched.setattr(external_rootfs, "mount", fail)
        with pytest.raises(HostFailure):
            await store.prepare(request_of(ONE, root))
    assert not store.present()
    assert list(Path(graph, "external").iterdir()) == []
    await store.prepare(request_of(TWO, root))

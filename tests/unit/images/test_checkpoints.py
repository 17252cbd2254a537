"""Checkpoints on disk: the place that one is made in, the archive, what is kept for a restore."""

from __future__ import annotations

import asyncio
import stat
import tarfile
from pathlib import Path

import pytest

from isulad_py.images.checkpoints import CheckpointDirectory
from isulad_py.model.errors import AlreadyExists, EngineError, InvalidInput, NotFound, PermissionDenied
from isulad_py.model.ids import ContainerId
from isulad_py.ports.storage import Changes
from tests.unit.images.test_checkpoint_read import archive, members

ONE = ContainerId("1" * 64)


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    for name in ("graph", "out", "upper"):
        (tmp_path / name).mkdir()
    return tmp_path


def directory(graph: Path) -> CheckpointDirectory:
    return CheckpointDirectory(str(graph / "graph"))


def left(graph: Path) -> list[str]:
    kept = graph / "graph/checkpoints"
    return [path.name for path in (*(kept.iterdir() if kept.exists() else ()), *(graph / "out").iterdir())]


async def begun(graph: Path, location: str) -> CheckpointDirectory:
    files = directory(graph)
    place = await files.begin(ONE, location)
    assert place == files.place(ONE)
    Path(place.images, "inventory.img").write_bytes(b"i")
    Path(place.work, "dump.log").write_text("log")
    (graph / "upper/file").write_text("x")
    return files


async def test_an_archive_of_everything_that_was_kept(graph: Path) -> None:
    location = str(graph / "out/one.tar")
    files = await begun(graph, location)
    (graph / "log").write_text("a line\n")
    await files.keep_changes(ONE, Changes(upper=str(graph / "upper"), lower=()))
    await files.write(ONE, location, {"config.dump": b"{}"}, str(graph / "log"))
    with tarfile.open(location) as made:
        assert set(made.getnames()) == {
            "config.dump",
            "deleted.files",
            "rootfs-diff.tar",
            "dump.log",
            "checkpoint",
            "checkpoint/inventory.img",
            "container.log",
        }
    assert stat.S_IMODE(Path(location).stat().st_mode) == 0o600
    assert await files.present() == {ONE}
    await files.discard(ONE, location)
    await files.discard(ONE, location)
    assert left(graph) == ["one.tar"]


async def test_what_a_dead_daemon_left_is_found_by_the_container(graph: Path) -> None:
    location = str(graph / "out/one.tar")
    await begun(graph, location)
    part = graph / f"out/.one.tar.{ONE[:16]}.part"
    part.touch()
    files = directory(graph)
    assert await files.present() == {ONE}
    await files.discard(ONE, location)
    assert left(graph) == []
    assert await files.present() == frozenset()


async def test_one_that_is_begun_again_begins_empty(graph: Path) -> None:
    location = str(graph / "out/one.tar")
    files = await begun(graph, location)
    place = await files.begin(ONE, location)
    assert [path.name for path in Path(place.work).iterdir()] == ["checkpoint"]
    assert list(Path(place.images).iterdir()) == []


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("none/one.tar", InvalidInput),
        ("there", AlreadyExists),
        ("dangling", AlreadyExists),
        ("there/one.tar", InvalidInput),
        ("..", InvalidInput),
        ("one.tar/", InvalidInput),
        ("n" * 300, InvalidInput),
    ],
)
async def test_places_where_no_archive_can_be(graph: Path, name: str, kind: type[EngineError]) -> None:
    (graph / "out/there").touch()
    (graph / "out/dangling").symlink_to("nowhere")
    with pytest.raises(kind, match=r"^location: "):
        await directory(graph).begin(ONE, f"{graph}/out/{name}")
    assert await directory(graph).present() == frozenset()


async def test_a_file_that_came_meanwhile_stays(graph: Path) -> None:
    location = graph / "out/one.tar"
    files = await begun(graph, str(location))
    location.write_text("another's")
    with pytest.raises(AlreadyExists, match=r"^location: "):
        await files.write(ONE, str(location), {}, "")
    await files.discard(ONE, str(location))
    assert location.read_text() == "another's"
    assert left(graph) == ["one.tar"]


async def test_a_cancelled_archive_ends_its_thread(graph: Path) -> None:
    location = str(graph / "out/one.tar")
    files = await begun(graph, location)
    with Path(files.place(ONE).images, "pages-1.img").open("wb") as pages:
        pages.truncate(1 << 32)
    work = asyncio.create_task(files.write(ONE, location, {}, ""))
    while not list((graph / "out").iterdir()):
        await asyncio.sleep(0)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    await files.discard(ONE, location)
    assert left(graph) == []


async def test_what_is_kept_for_a_restore(graph: Path) -> None:
    files = directory(graph)
    async with files.open(archive(graph / "c.tar", members())) as opened:
        assert opened.about.name == "main"
        await opened.unpack(ONE, b"a spec")
    assert await files.spec(ONE) == b"a spec"
    assert Path(files.place(ONE).images, "inventory.img").read_bytes() == b"inventory"
    await files.discard(ONE)
    with pytest.raises(NotFound):
        await files.spec(ONE)
    with pytest.raises(InvalidInput, match="archive"):
        async with files.open(str(graph / "none")):
            pass


async def test_documents(graph: Path) -> None:
    files, path = directory(graph), graph / "out/pod.options"
    await files.write_document(str(path), b"{}")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert await files.read_document(str(path)) == b"{}"
    with pytest.raises(AlreadyExists, match=r"pod\.options exists"):
        await files.write_document(str(path), b"[]")
    path.chmod(0o666)
    with pytest.raises(PermissionDenied):
        await files.read_document(str(path))
    await files.remove(str(path))
    await files.remove(str(path))
    with pytest.raises(InvalidInput):
        await files.read_document(str(path))


def test_ids_that_name_no_directory(graph: Path) -> None:
    for name in ("", "../x", ".x"):
        with pytest.raises(InvalidInput, match="container id"):
            directory(graph).place(ContainerId(name))

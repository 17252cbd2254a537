"""The store's directories, without a kernel's help; life and crashes: tests/integration/storage."""

from __future__ import annotations

import hashlib
import stat
from pathlib import Path

import pytest
from msgspec.structs import replace

from isulad_py.host.layer_tree import IMPLIED_BYTES, MAX_IMPLIED_BYTES
from isulad_py.model.errors import HostFailure, InvalidInput, ResourceExhausted
from isulad_py.model.ids import ChainId, Digest
from isulad_py.ports.layers import LayerFacts
from isulad_py.storage import layer_disk
from isulad_py.storage.layer_disk import LayerDisk, Sealed
from isulad_py.storage.paths import OverlayPaths, link_name
from isulad_py.storage.trash import Trash
from tests.fakes.tasks import TestTasks

CHAIN = ChainId("sha256:" + hashlib.sha256(b"chain").hexdigest())
FACTS = LayerFacts(chain_id=CHAIN, diff_id=Digest(CHAIN), used_bytes=4096, inodes=1, implied=(b"", b"\xff/b"))


@pytest.fixture
def disk(tmp_path: Path) -> LayerDisk:
    paths = OverlayPaths(str(tmp_path))
    disk = LayerDisk(paths, trash=Trash(paths.trash, tasks=TestTasks()), boot_id="boot")
    assert disk.load() == ({}, {})
    return disk


def sealed(disk: LayerDisk, name: str = "one") -> Sealed:
    layer = Sealed(folder=f"{disk.paths.ingest}/{name}", facts=FACTS, at=0)
    disk.make_staging(layer.folder)
    disk.seal(layer)
    return layer


def test_staged_sealed_published_and_out(disk: LayerDisk) -> None:
    layer = sealed(disk)
    _, found = disk.load()
    assert replace(found[CHAIN], at=0) == layer.brief()
    assert disk.ages([CHAIN], found[CHAIN].at) == {}
    disk.move_in([CHAIN], {CHAIN: layer})
    assert Path(disk.paths.links, link_name(CHAIN)).resolve() == Path(disk.paths.diff(CHAIN))
    published, left = disk.load()
    assert (published[CHAIN].used_bytes, published[CHAIN].implied, left) == (4096, (), {})
    assert disk.ages([CHAIN], found[CHAIN].at + 5_000_000_000) == {CHAIN: 5.0}
    disk.move_out([CHAIN])
    disk.move_out([CHAIN])
    assert disk.load() == ({}, {})


def test_moving_in_can_be_repeated(disk: LayerDisk) -> None:
    layer = sealed(disk)
    disk.move_in([CHAIN], {CHAIN: layer})
    Path(disk.paths.links, link_name(CHAIN)).unlink()
    disk.move_in([], {CHAIN: layer})
    assert Path(disk.paths.links, link_name(CHAIN)).exists()


def test_moving_in_goes_on_after_an_error(disk: LayerDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first layer has its place already when the second cannot have it."""
    other = ChainId("sha256:" + hashlib.sha256(b"other").hexdigest())
    layers = {CHAIN: sealed(disk), other: Sealed(folder=f"{disk.paths.ingest}/two", facts=FACTS, at=0)}
    layers[other] = replace(layers[other], facts=replace(FACTS, chain_id=other))
    disk.make_staging(layers[other].folder)
    disk.seal(layers[other])
    steps: list[str] = []

    def fail(_moment: str, _room: str, step: str) -> None:
        steps.append(step)
        if steps.count("named") == 1 and step == "named":
            raise HostFailure("no more")

    broken = LayerDisk(disk.paths, trash=disk.trash, boot_id="boot", failpoint=fail)
    with pytest.raises(HostFailure, match="no more"):
        broken.move_in([CHAIN, other], layers)
    disk.move_in([CHAIN, other], layers)
    assert set(disk.load()[0]) == {CHAIN, other}


def test_directories_inherit_by_the_notes_on_disk(disk: LayerDisk) -> None:
    """Memory has none of them: a name of 4 KiB can imply 2,000 directories."""
    below = ChainId("sha256:" + hashlib.sha256(b"below").hexdigest())
    base = Sealed(folder=f"{disk.paths.ingest}/base", facts=replace(FACTS, chain_id=below), at=0)
    top = Sealed(folder=f"{disk.paths.ingest}/top", facts=replace(FACTS, implied=(b"d",)), at=0)
    for layer, mode in ((base, 0o711), (top, 0o755)):
        disk.make_staging(layer.folder)
        Path(layer.folder, "diff/d").mkdir()
        Path(layer.folder, "diff/d").chmod(mode)
        disk.seal(layer)
    disk.move_in([below, CHAIN], {below: base.brief(), CHAIN: top.brief()})
    assert stat.S_IMODE(Path(disk.paths.diff(CHAIN), "d").stat().st_mode) == 0o711


def test_a_short_name_is_never_bent_to_another_layer(disk: LayerDisk) -> None:
    layer = sealed(disk)
    Path(disk.paths.links, link_name(CHAIN)).symlink_to("../layers/other/diff")
    with pytest.raises(HostFailure, match="another layer"):
        disk.move_in([CHAIN], {CHAIN: layer})


def test_of_two_sealed_ones_one_is_kept(disk: LayerDisk) -> None:
    sealed(disk, "one")
    sealed(disk, "two")
    _, left = disk.load()
    assert list(left) == [CHAIN]
    assert len(list(Path(disk.paths.ingest).iterdir())) == 1


def test_a_layer_under_a_foreign_name_is_moved_aside(disk: LayerDisk) -> None:
    layer = sealed(disk)
    Path(layer.folder).rename(f"{disk.paths.layers}/{'0' * 64}")
    assert disk.load() == ({}, {})
    assert len(list(Path(disk.paths.aside).iterdir())) == 1


def test_a_nearly_full_disk_takes_no_layer(disk: LayerDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layer_disk, "RESERVE_BYTES", 1 << 62)
    full = LayerDisk(disk.paths, trash=disk.trash, boot_id="boot")
    with pytest.raises(ResourceExhausted, match="MiB would be free"):
        full.make_staging(f"{disk.paths.ingest}/x")
    with pytest.raises(ResourceExhausted, match="MiB would be free"):
        full.reserve.take(1, 0)
    assert list(Path(disk.paths.ingest).iterdir()) == []


def test_notes_that_the_next_start_could_not_read_are_not_written(disk: LayerDisk) -> None:
    """The most that unpacking lets pass can be read again."""
    deep = b"d/" * 2000
    most = tuple(b"%04d" % n + deep for n in range(MAX_IMPLIED_BYTES // (len(deep) + 4 + IMPLIED_BYTES)))
    layer = Sealed(folder=f"{disk.paths.ingest}/one", facts=replace(FACTS, implied=most), at=0)
    disk.make_staging(layer.folder)
    disk.seal(layer)
    assert disk.load()[1][CHAIN].facts == layer.brief().facts
    with pytest.raises(ResourceExhausted, match="bytes of notes"):
        disk.seal(Sealed(folder=layer.folder, facts=replace(FACTS, implied=(*most, *most)), at=0))
    assert disk.load()[1][CHAIN].facts == layer.brief().facts


def test_strange_chain_ids_name_no_directory(disk: LayerDisk) -> None:
    with pytest.raises(InvalidInput):
        disk.move_out([ChainId("sha256:../../etc")])

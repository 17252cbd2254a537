"""Blobs to directories: what is verified, what is refused."""

from __future__ import annotations

import gzip
import hashlib
import os
import random
import shutil
import stat
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from isulad_py.host.disk_reserve import DiskReserve
from isulad_py.host.trees import remove_tree
from isulad_py.images.unpack import BlobFacts, UnpackLimits, unpack
from isulad_py.model.errors import DataLoss, EngineError, ResourceExhausted
from isulad_py.model.ids import Digest
from tests.fakes.growth import freely
from tests.images import MTIME, Dir, Entry, File, Hardlink, ImageLayer, Symlink, busybox_layer, layer_of, tar, tar_layer

LIMITS = UnpackLimits()
ME = (os.geteuid(), os.getegid())


def file(name: str, data: bytes = b"x") -> File:
    return File(name, data, uid=ME[0], gid=ME[1])


def info(name: str, kind: bytes = tarfile.REGTYPE, **fields: object) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.uid, made.gid = kind, *ME
    for key, value in fields.items():
        setattr(made, key, value)
    return made


def facts_of(layer: ImageLayer) -> BlobFacts:
    return BlobFacts(digest=Digest(layer.digest), size=len(layer.blob), diff_id=Digest(layer.diff_id))


def pieces(blob: bytes, size: int = 70_000) -> list[bytes]:
    return [blob[at : at + size] for at in range(0, len(blob), size)]


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "root"
    path.mkdir()
    yield path
    remove_tree(str(path))  # some are too deep for anybody else's cleaning


def unpack_entries(root: Path, *entries: Entry) -> None:
    layer = tar_layer(entries)
    unpack(pieces(layer.blob), facts_of(layer), str(root), LIMITS, grow=freely)


@pytest.mark.parametrize("compression", ["gzip", "zstd", "none"])
def test_a_layer_arrives_whole(root: Path, compression: str) -> None:
    layer = tar_layer([file("a/b", b"content"), Symlink("l", "a/b")][:1], compression)  # type: ignore[arg-type]
    facts = unpack(pieces(layer.blob), facts_of(layer), str(root), LIMITS, grow=freely)
    assert (root / "a/b").read_bytes() == b"content"
    assert facts.implied == (b"", b"a")
    assert facts.inodes == 3


def test_a_changed_byte_anywhere_is_noticed(tmp_path: Path) -> None:
    layer = tar_layer([file("a", random.Random(1).randbytes(300)), file("b", b"y" * 1000)])
    for at in range(len(layer.blob)):
        blob = bytearray(layer.blob)
        blob[at] ^= 0x55
        root = tmp_path / str(at)
        root.mkdir()
        with pytest.raises(DataLoss, match=r"came with digest"):
            unpack([bytes(blob)], facts_of(layer), str(root), LIMITS, grow=freely)


def test_a_blob_cut_anywhere_is_noticed(tmp_path: Path) -> None:
    layer = tar_layer([file("a", b"x" * 1000)])
    for at in range(0, len(layer.blob), 7):
        root = tmp_path / str(at)
        root.mkdir()
        with pytest.raises(DataLoss, match=rf"{layer.digest} came with digest.*\({at} bytes\)"):
            unpack(pieces(layer.blob[:at], 10), facts_of(layer), str(root), LIMITS, grow=freely)


def test_a_blob_longer_than_said_is_not_read_on(root: Path) -> None:
    layer = tar_layer([file("a")])

    def endless() -> object:
        yield layer.blob
        while True:
            yield b"more"

    with pytest.raises(DataLoss, match=r"longer than the \d+ bytes"):
        unpack(endless(), facts_of(layer), str(root), LIMITS, grow=freely)  # type: ignore[arg-type]


def test_a_false_diff_id_is_noticed(root: Path) -> None:
    layer = tar_layer([file("a")])
    other = Digest("sha256:" + "0" * 64)
    with pytest.raises(DataLoss, match=f"{other} unpacks to digest {layer.diff_id}"):
        unpack([layer.blob], replace(facts_of(layer), diff_id=other), str(root), LIMITS, grow=freely)


def test_what_follows_the_archive_counts_for_the_diff_id(root: Path) -> None:
    layer = layer_of(tar([file("a")]) + b"junk" * 1000)
    unpack([layer.blob], facts_of(layer), str(root), LIMITS, grow=freely)
    assert [path.name for path in root.iterdir()] == ["a"]


def test_sha512_digests(root: Path) -> None:
    layer = tar_layer([file("a")])
    raw = gzip.decompress(layer.blob)
    facts = BlobFacts(
        digest=Digest("sha512:" + hashlib.sha512(layer.blob).hexdigest()),
        size=len(layer.blob),
        diff_id=Digest("sha512:" + hashlib.sha512(raw).hexdigest()),
    )
    unpack([layer.blob], facts, str(root), LIMITS, grow=freely)


def test_a_bomb_is_stopped(root: Path) -> None:
    layer = tar_layer([file("zeros", bytes(20_000_000))])
    limits = replace(LIMITS, expansion_grace_bytes=1_000_000, expansion=10)
    with pytest.raises(ResourceExhausted, match="expands without end"):
        unpack(pieces(layer.blob), facts_of(layer), str(root), limits, grow=freely)
    assert sum(path.stat().st_size for path in root.iterdir()) < 3_000_000


def test_too_many_entries_are_stopped(root: Path) -> None:
    layer = tar_layer([file(f"f{n}", b"") for n in range(50)])
    with pytest.raises(ResourceExhausted, match="more than 40 entries"):
        unpack([layer.blob], facts_of(layer), str(root), replace(LIMITS, entries=40), grow=freely)
    assert len(list(root.iterdir())) == 40


def test_a_nearly_full_disk_is_left_alone(root: Path) -> None:
    layer = tar_layer([file("a")])
    disk = DiskReserve(str(root), keep_bytes=1 << 62, keep_inodes=0)
    with pytest.raises(ResourceExhausted, match="the disk is full"):
        unpack([layer.blob], facts_of(layer), str(root), LIMITS, grow=disk.take)


def test_directories_that_only_names_imply_count(root: Path) -> None:
    layer = tar_layer([file(f"{number:04d}/" + "a/" * 300 + "f", b"") for number in range(10)])
    assert len(layer.blob) < 1000
    with pytest.raises(ResourceExhausted, match="more than 700 entries and directories"):
        unpack([layer.blob], facts_of(layer), str(root), replace(LIMITS, entries=700), grow=freely)


@pytest.mark.root
def test_whiteouts_become_overlays(root: Path) -> None:
    unpack_entries(
        root,
        Dir("etc"),
        file("etc/.wh.passwd", b""),
        file(".wh.srv", b""),
        Dir("var"),
        file("var/.wh..wh..opq", b""),
        file("var/new"),
        file(".wh..wh.aufs", b""),
        Dir(".wh..wh.plnk"),
        file(".wh..wh.plnk/12.34", b"data"),
        file("etc/.wh", b"an ordinary name"),
    )
    assert sorted(path.name for path in root.iterdir()) == ["etc", "srv", "var"]
    for name in ("etc/passwd", "srv"):
        state = (root / name).lstat()
        assert (stat.S_ISCHR(state.st_mode), state.st_rdev) == (True, 0)
    assert os.getxattr(root / "var", "trusted.overlay.opaque") == b"y"
    assert (root / "var/new").read_bytes() == b"x"
    assert (root / "etc/.wh").exists()


HOSTILE: dict[str, list[Entry]] = {
    "climbs": [file("../escaped")],
    "climbs in the middle": [file("a/../../escaped")],
    "climbs behind a slash": [file("/../escaped")],
    "directory climbs": [info("../escaped", tarfile.DIRTYPE)],
    "link climbs": [Symlink("../escaped", "x")],
    "hard link to the outside": [Hardlink("a", "../victim")],
    "hard link to an absolute file": [Hardlink("a", "/etc/passwd")],
    "hard link through a link": [Symlink("d", ".."), Hardlink("a", "d/victim")],
    "hard link to a directory": [Dir("d"), Hardlink("a", "d")],
    "file through a link to a file": [file("f"), file("f/below")],
    "file through a loop": [Symlink("l", "l"), file("l/below")],
    "file at the root": [file("a/..")],
    "whiteout climbs": [file("../.wh.victim", b"")],
    "whiteout of the parent": [file("d/.wh...", b"")],
    "whiteout of nothing": [file(".wh.", b"")],
    "opaque climbs": [file("../.wh..wh..opq", b"")],
    "owner out of range": [info("f", uid=1 << 33)],
    "long component": [file("n" * 300)],
    "deep name": [file("d/" * 3000 + "f")],
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_archives_are_refused(root: Path, name: str) -> None:
    victim = root.parent / "victim"
    victim.write_text("alive")
    entries = [info(e.name, tarfile.SYMTYPE, linkname=e.target) if isinstance(e, Symlink) else e for e in HOSTILE[name]]
    with pytest.raises(EngineError) as caught:
        unpack_entries(root, *entries)
    assert isinstance(caught.value, DataLoss), caught.value
    assert "entry" in str(caught.value)
    assert sorted(path.name for path in root.parent.iterdir()) == ["root", "victim"]
    assert (victim.read_text(), victim.stat().st_nlink) == ("alive", 1)


@pytest.mark.root
@pytest.mark.parametrize(
    ("target", "seen"),
    [("../victim-folder", "../victim-folder"), ("/", "/"), ("/proc/self/root", "/proc/self/root"), ("..", "..")],
)
def test_files_through_links_stay_inside(root: Path, target: str, seen: str) -> None:
    victim = root.parent / "victim-folder"
    victim.mkdir()
    unpack_entries(root, Symlink("l", target), file("l/planted"))
    assert (root / target.removeprefix("../").strip("/.") / "planted").read_bytes() == b"x"
    assert (root / "l").readlink() == Path(seen)
    assert list(victim.iterdir()) == []
    assert not Path("/planted").exists()
    assert not (root.parent / "planted").exists()


def snapshot(folder: Path) -> dict[str, tuple[object, ...]]:
    found: dict[str, tuple[object, ...]] = {}
    links: dict[int, str] = {}
    for path in sorted(folder.rglob("*")):
        state = path.lstat()
        content: object = None
        if stat.S_ISREG(state.st_mode):
            content = (hashlib.sha256(path.read_bytes()).digest(), links.setdefault(state.st_ino, str(path.name)))
        elif stat.S_ISLNK(state.st_mode):
            content = path.readlink()
        found[str(path.relative_to(folder))] = (
            state.st_mode,
            state.st_uid,
            state.st_gid,
            0 if stat.S_ISDIR(state.st_mode) else state.st_mtime_ns,  # GNU tar forgets some of them
            state.st_rdev,
            content,
            {
                name: os.getxattr(path, name, follow_symlinks=False)
                for name in os.listxattr(path, follow_symlinks=False)
            },
        )
    return found


@pytest.mark.root
@pytest.mark.skipif(shutil.which("tar") is None, reason="needs GNU tar")
@pytest.mark.parametrize(
    "make",
    [
        pytest.param(busybox_layer, id="busybox"),
        pytest.param(
            lambda: tar_layer(
                [
                    Dir("d", 0o2775, 5, 6),
                    File("d/setuid", b"x", 0o6755, 7, 8),
                    File("d/xattr", b"x", xattrs={"user.a": b"1", "user.b": b"\x01\x02"}),
                    Symlink("d/" + "long" * 60, "target" * 30),
                    info("again", tarfile.LNKTYPE, linkname="d/setuid", mode=0o6755, uid=7, gid=8, mtime=MTIME),
                    File("empty", b""),
                ]
            ),
            id="attributes",
        ),
    ],
)
def test_the_same_as_gnu_tar(root: Path, make: Callable[[], ImageLayer]) -> None:
    layer = make()
    wanted = root.parent / "wanted"
    wanted.mkdir()
    command = ["tar", "-xpf", "-", "-C", str(wanted), "--xattrs", "--xattrs-include=*", "--numeric-owner"]
    subprocess.run(command, input=gzip.decompress(layer.blob), check=True)
    unpack(pieces(layer.blob), facts_of(layer), str(root), LIMITS, grow=freely)
    assert snapshot(root) == snapshot(wanted)

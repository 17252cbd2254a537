from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from isulad_py.images.archive import Archive
from isulad_py.images.unpack import UnpackLimits
from isulad_py.model.errors import DataLoss, HostFailure, InvalidInput, ResourceExhausted
from tests.images import Dir, File, Hardlink, Symlink, tar
from tests.unit.images.archive_stand import PACKED


def made(tmp_path: Path, *entries: object) -> Archive:
    path = tmp_path / "a.tar"
    path.write_bytes(tar(entries))  # type: ignore[arg-type]
    return Archive(str(path)).open()


def test_files_and_links_by_name(tmp_path: Path) -> None:
    archive = made(tmp_path, Dir("1"), File("./1/layer.tar", b"data"), Symlink("2/layer.tar", "../1/layer.tar"))
    for name in ("1/layer.tar", "2/layer.tar"):
        assert archive.read(name, 10) == b"data"
    assert not archive.has("1")
    with pytest.raises(ResourceExhausted, match=r"a\.tar: 1/layer\.tar: 4 bytes"):
        archive.read("1/layer.tar", 3)
    with pytest.raises(DataLoss, match=r"a\.tar: has no 'absent'"):
        archive.size("absent")
    archive.close()
    archive.close()


def test_links_lead_nowhere_else(tmp_path: Path) -> None:
    archive = made(tmp_path, Symlink("out", "/etc/passwd"), Symlink("a", "b"), Symlink("b", "a"), Hardlink("h", "a"))
    for name in ("out", "a", "h"):
        with pytest.raises(DataLoss, match="has no"):
            archive.read(name, 100_000)
    archive.close()


def test_what_could_be_read_in_two_ways_or_not_at_all(tmp_path: Path) -> None:
    with pytest.raises(DataLoss, match=r"a\.tar: \./x: comes twice"):
        made(tmp_path, File("x", b"1"), File("./x", b"2"))
    path = tmp_path / "b.tar"
    path.write_bytes(b"1" * 2000)
    with pytest.raises(DataLoss, match=r"b\.tar: tar: .*checksum"):
        Archive(str(path)).open()
    with pytest.raises(InvalidInput, match="absent"):
        Archive(str(tmp_path / "absent")).open()
    with pytest.raises(InvalidInput, match="null"):
        Archive("/dev/null").open()


def test_a_truncated_archive(tmp_path: Path) -> None:
    whole = tar([File("x", b"1" * 5000)])
    path = tmp_path / "c.tar"
    path.write_bytes(whole[:2000])
    with pytest.raises(DataLoss, match=r"c\.tar: tar: the archive ends"):
        Archive(str(path)).open()


def test_a_directory_keeps_what_is_outside_outside(tmp_path: Path) -> None:
    folder = tmp_path / "layout"
    folder.mkdir()
    (tmp_path / "secret").write_text("s")
    (folder / "way").symlink_to("../secret")
    (folder / "in").write_bytes(b"data")
    archive = Archive(str(folder)).open()
    assert archive.read("in", 10) == b"data"
    for name in ("way", "../secret", "a\0b"):
        with pytest.raises(DataLoss, match="layout"):
            archive.read(name, 10)


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.mark.parametrize("name", PACKED)
def test_an_archive_that_is_compressed_as_a_whole(tmp_path: Path, name: str) -> None:
    path, scratch = tmp_path / "a.tar", tmp_path / "scratch"
    scratch.mkdir()
    packed = PACKED[name](tar([File("x", b"data"), Symlink("y", "x")]))
    path.write_bytes(packed)
    archive = Archive(str(path), scratch=str(scratch)).open()
    assert (archive.read("y", 10), archive.read("x", 10)) == (b"data", b"data")
    assert list(scratch.iterdir()) == [], "the file has no name"
    archive.close()
    path.write_bytes(PACKED[name](packed))
    with pytest.raises(DataLoss, match=r"a\.tar: tar: "):
        Archive(str(path), scratch=str(scratch)).open()
    path.write_bytes(PACKED[name](bytes(40_000_000)))
    before = open_files()
    with pytest.raises(ResourceExhausted, match=r"a\.tar: it expands without end"):
        Archive(
            str(path), scratch=str(scratch), limits=UnpackLimits(expansion=2, expansion_grace_bytes=1_000_000)
        ).open()
    with pytest.raises(ResourceExhausted, match=rf"a\.tar: {scratch}: the disk is full"):
        Archive(str(path), scratch=str(scratch), limits=UnpackLimits(reserve_bytes=1 << 62)).open()
    assert open_files() == before
    with pytest.raises(HostFailure, match="absent"):
        Archive(str(path), scratch=str(tmp_path / "absent")).open()


def sparse(real_size: int, pieces: str, data: bytes) -> tarfile.TarInfo:
    info = tarfile.TarInfo("x")
    info.pax_headers = {"GNU.sparse.map": pieces, "GNU.sparse.size": str(real_size)}
    info.size = len(data)
    return info


def made_sparse(tmp_path: Path, real_size: int, pieces: str, data: bytes, **limits: int) -> Archive:
    path = tmp_path / "sparse.tar"
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(sparse(real_size, pieces, data), io.BytesIO(data))
        archive.addfile(tarfile.TarInfo("after"))
    return Archive(str(path), limits=UnpackLimits(**limits)).open()


def test_a_sparse_file_is_read_with_its_holes(tmp_path: Path) -> None:
    archive = made_sparse(tmp_path, 3_000_000, "2,3,2000000,2", b"abcde")
    data = bytearray(3_000_000)
    data[2:5], data[2_000_000:2_000_002] = b"abc", b"de"
    assert archive.size("x") == len(data)
    assert archive.read("x", len(data)) == bytes(data)
    assert archive.has("after")
    archive.close()
    hole = made_sparse(tmp_path, 4096, "4096,0", b"")
    assert hole.read("x", 4096) == bytes(4096)
    hole.close()


def test_a_sparse_file_that_is_nothing_but_size(tmp_path: Path) -> None:
    with pytest.raises(ResourceExhausted, match=r"sparse\.tar: x expands without end"):
        made_sparse(tmp_path, 1 << 60, "0,1", b"a")
    with pytest.raises(DataLoss, match="sparse map"):
        made_sparse(tmp_path, 10, "5,6", b"abcdef")


@pytest.mark.skipif(shutil.which("tar") is None, reason="needs tar")
@pytest.mark.parametrize("form", ["gnu", "posix"])
def test_what_gnu_tar_makes_of_a_sparse_file(tmp_path: Path, form: str) -> None:
    with (tmp_path / "x").open("wb") as file:
        file.seek(1_000_000)
        file.write(b"end")
    path = tmp_path / "a.tar"
    subprocess.run(["tar", "-S", f"--format={form}", "-cf", path, "-C", tmp_path, "x"], check=True)
    archive = Archive(str(path)).open()
    assert archive.read("x", 2_000_000) == bytes(1_000_000) + b"end"
    archive.close()


def test_a_flood_of_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isulad_py.images.archive.MAX_ENTRIES", 100)
    with pytest.raises(ResourceExhausted, match="more than 100 entries"):
        made(tmp_path, *(File(str(number)) for number in range(200)))
    with pytest.raises(ResourceExhausted, match="longer names than 300"):
        made(tmp_path, File("n" * 400))

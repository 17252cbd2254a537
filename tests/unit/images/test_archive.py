from __future__ import annotations

import gzip
import tarfile
from pathlib import Path

import pytest

from isulad_py.images.archive import Archive
from isulad_py.model.errors import DataLoss, InvalidInput, ResourceExhausted, Unsupported
from tests.images import Dir, File, Hardlink, Symlink, tar


def made(tmp_path: Path, *entries: object) -> Archive:
    path = tmp_path / "a.tar"
    path.write_bytes(tar(entries))  # type: ignore[arg-type]
    return Archive(str(path))


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
    path.write_bytes(gzip.compress(tar([File("x")])))
    with pytest.raises(Unsupported, match=r"b\.tar: compressed as a whole"):
        Archive(str(path))
    path.write_bytes(b"1" * 2000)
    with pytest.raises(DataLoss, match=r"b\.tar: tar: .*checksum"):
        Archive(str(path))
    with pytest.raises(InvalidInput, match="absent"):
        Archive(str(tmp_path / "absent"))
    with pytest.raises(InvalidInput, match="null"):
        Archive("/dev/null")


def test_a_truncated_archive(tmp_path: Path) -> None:
    whole = tar([File("x", b"1" * 5000)])
    path = tmp_path / "c.tar"
    path.write_bytes(whole[:2000])
    with pytest.raises(DataLoss, match=r"c\.tar: tar: the archive ends"):
        Archive(str(path))


def test_a_directory_keeps_what_is_outside_outside(tmp_path: Path) -> None:
    folder = tmp_path / "layout"
    folder.mkdir()
    (tmp_path / "secret").write_text("s")
    (folder / "way").symlink_to("../secret")
    (folder / "in").write_bytes(b"data")
    archive = Archive(str(folder))
    assert archive.read("in", 10) == b"data"
    for name in ("way", "../secret", "a\0b"):
        with pytest.raises(DataLoss, match="layout"):
            archive.read(name, 10)


def test_sparse_files_are_refused(tmp_path: Path) -> None:
    info = tarfile.TarInfo("x")
    info.pax_headers = {"GNU.sparse.map": "0,1", "GNU.sparse.size": "4096"}
    info.size = 1
    with pytest.raises(Unsupported, match="x: a sparse file"):
        made(tmp_path, info)

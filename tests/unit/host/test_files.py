from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from isulad_py.host import files
from isulad_py.host.failures import translated
from isulad_py.model.errors import HostFailure, NotFound, ResourceExhausted


def test_write_replaces_the_file_whole_and_sets_the_mode(tmp_path: Path) -> None:
    path = tmp_path / "file"
    files.write_atomic(str(path), b"one", mode=0o600)
    files.write_atomic(str(path), b"two", mode=0o666, durable=True)
    assert path.read_bytes() == b"two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o666
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


@pytest.mark.root
def test_a_file_may_be_written_for_somebody_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    files.write_atomic(str(path), b"one", owner=(100_000, 200_000))
    assert (path.stat().st_uid, path.stat().st_gid) == (100_000, 200_000)
    files.write_atomic(str(path), b"two")
    assert (path.stat().st_uid, path.stat().st_gid) == (os.geteuid(), os.getegid())


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(HostFailure, match=r"write .*taken"):
        files.write_atomic(str(tmp_path / "taken"), b"x")
    with pytest.raises(HostFailure, match=r"write .*no such file"):
        files.write_atomic(str(tmp_path / "absent" / "file"), b"x")
    assert [entry.name for entry in tmp_path.iterdir()] == ["taken"]


def test_a_full_disk_is_resource_exhausted() -> None:
    fd = os.open("/dev/full", os.O_WRONLY)
    try:
        with pytest.raises(ResourceExhausted, match="no space left"), translated("write"):
            os.write(fd, b"x")
    finally:
        os.close(fd)


def test_reading_is_limited_and_takes_only_regular_files(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert files.read_limited(str(path), 5) == b"12345"
    with pytest.raises(ResourceExhausted, match="longer than 4 bytes"):
        files.read_limited(str(path), 4)
    with pytest.raises(NotFound):
        files.read_limited(str(tmp_path / "absent"), 4)
    with pytest.raises(NotFound):
        files.read_limited(str(path / "below"), 4)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(HostFailure, match="not a regular file"):
        files.read_limited(str(tmp_path / "fifo"), 4)
    with pytest.raises(HostFailure, match="not a regular file"):
        files.read_limited(str(tmp_path), 4)


def test_directories_are_made_with_their_parents_and_exact_modes(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "c"
    before = os.umask(0o077)
    try:
        files.ensure_dir(str(path), 0o755)
    finally:
        os.umask(before)
    assert [stat.S_IMODE(p.stat().st_mode) for p in (path, path.parent, path.parent.parent)] == [0o755] * 3
    path.chmod(0o700)
    files.ensure_dir(str(path), 0o755)
    assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_a_file_where_a_directory_should_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(HostFailure, match=r"make directory .*file"):
        files.ensure_dir(str(tmp_path / "file"))
    with pytest.raises(HostFailure, match="make directory"):
        files.ensure_dir(str(tmp_path / "file" / "below"))


def test_removing_a_file_twice_is_success(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    files.remove_file(str(tmp_path / "file"))
    files.remove_file(str(tmp_path / "file"))
    files.remove_file(str(tmp_path / "absent" / "file"))
    with pytest.raises(HostFailure):
        files.remove_file(str(tmp_path))

from __future__ import annotations

import os
import socket
import stat
import tempfile
from pathlib import Path

import pytest

from isulad_py.host import tree_copies
from isulad_py.host.tree_copies import Allowance, copy_contents
from isulad_py.model.errors import FailedPrecondition, NotFound, ResourceExhausted

PLENTY = (1000, 1 << 30)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root/data").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_text("secret")
    return tmp_path / "root"


def copied(root: Path, path: str = "/data", allowance: tuple[int, int] = PLENTY) -> Path:
    target = Path(tempfile.mkdtemp(dir=root.parent))
    copy_contents(str(root), path, str(target), Allowance(entries=allowance[0], used_bytes=allowance[1]))
    return target


def test_files_keep_what_they_have(root: Path) -> None:
    data = root / "data"
    (data / "a/b").mkdir(parents=True)
    (data / "a/b/file").write_bytes(b"x" * 100_000)
    os.setxattr(data / "a/b/file", "user.mine", b"1")
    (data / "a/b/file").chmod(0o6751)
    os.utime(data / "a/b/file", ns=(1_000, 2_000))
    os.utime(data / "a", ns=(3_000, 4_000))
    data.chmod(0o1777)
    target = copied(root)
    file = target / "a/b/file"
    assert file.read_bytes() == b"x" * 100_000
    assert os.getxattr(file, "user.mine") == b"1"
    assert (stat.S_IMODE(file.stat().st_mode), file.stat().st_mtime_ns) == (0o6751, 2_000)
    assert ((target / "a").stat().st_mtime_ns, stat.S_IMODE(target.stat().st_mode)) == (4_000, 0o1777)


@pytest.mark.root
def test_owners_and_devices_are_kept(root: Path) -> None:
    data = root / "data"
    os.chown(data, 5, 6)
    (data / "link").symlink_to("nowhere")
    os.chown(data / "link", 7, 8, follow_symlinks=False)
    os.mknod(data / "null", stat.S_IFCHR | 0o640, os.makedev(1, 3))
    target = copied(root)
    assert (target.stat().st_uid, target.stat().st_gid) == (5, 6)
    assert ((target / "link").lstat().st_uid, (target / "link").lstat().st_gid) == (7, 8)
    null = (target / "null").stat()
    assert (null.st_mode, null.st_rdev) == (stat.S_IFCHR | 0o640, os.makedev(1, 3))


def test_links_are_copied_and_never_followed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = root / "data"
    (data / "absolute").symlink_to(root.parent / "outside")
    (data / "climbing").symlink_to("../../outside/secret")
    (data / "one").write_text("same")
    (data / "sub").mkdir()
    (data / "sub/two").hardlink_to(data / "one")
    os.mkfifo(data / "fifo", 0o604)
    monkeypatch.chdir(data)  # a socket's name may have 107 bytes
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
    target = copied(root)
    assert str((target / "absolute").readlink()) == str(root.parent / "outside")
    assert str((target / "climbing").readlink()) == "../../outside/secret"
    assert (target / "one").samefile(target / "sub/two")
    assert stat.S_ISFIFO((target / "fifo").stat().st_mode)
    assert stat.S_IMODE((target / "fifo").stat().st_mode) == 0o604
    assert stat.S_ISSOCK((target / "socket").stat().st_mode)


def test_the_directory_itself_is_found_inside_the_root(root: Path) -> None:
    (root / "inside").mkdir()
    (root / "inside/file").touch()
    (root / "link").symlink_to("/inside")
    (root / "out").symlink_to(root.parent / "outside")
    assert [path.name for path in copied(root, "/link").iterdir()] == ["file"]
    with pytest.raises(NotFound):
        copied(root, "/out")
    with pytest.raises(NotFound):
        copied(root, "/none")
    with pytest.raises(FailedPrecondition):
        copied(root, "/inside/file")


def test_a_hole_stays_one(root: Path) -> None:
    with (root / "data/file").open("wb") as file:
        file.write(b"begin")
        file.seek(1 << 40)
        file.write(b"end")
        file.truncate(1 << 41)
    (root / "data/empty").touch()
    target = copied(root)
    copy = target / "file"
    assert (copy.stat().st_size, (target / "empty").stat().st_size) == (1 << 41, 0)
    assert copy.stat().st_blocks * 512 < 1 << 20
    with copy.open("rb") as file:
        assert file.read(5) == b"begin"
        file.seek(1 << 40)
        assert file.read(4) == b"end\0"


def test_more_than_allowed_is_refused(root: Path) -> None:
    for number in range(3):
        (root / f"data/{number}").write_bytes(b"x" * 10_000)
    with pytest.raises(ResourceExhausted):
        copied(root, allowance=(2, 1 << 20))
    with pytest.raises(ResourceExhausted):
        copied(root, allowance=(10, 20_000))


def test_what_is_nested_too_deep_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_copies, "MAX_DEPTH", 4)
    (root / "data/1/2/3").mkdir(parents=True)
    before = len(list(Path("/proc/self/fd").iterdir()))
    copied(root)
    (root / "deep/1/2/3/4").mkdir(parents=True)
    with pytest.raises(FailedPrecondition, match=r"/deep: .*4 deep"):
        copied(root, "/deep")
    assert len(list(Path("/proc/self/fd").iterdir())) == before

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from isulad_py.host import mounts
from isulad_py.model.errors import FailedPrecondition, InvalidInput, NotFound, Unsupported
from isulad_py.storage.external import ExternalRoot, look_at, mount, overlap


@pytest.fixture
def graph(tmp_path: Path) -> str:
    (tmp_path / "graph").mkdir()
    return str(tmp_path / "graph")


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Path]:
    target = tmp_path / "target"
    target.mkdir()
    yield target
    mounts.unmount_under(str(target))


def test_a_directory_is_resolved(tmp_path: Path, graph: str) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "link").symlink_to("root")
    assert look_at(f"{tmp_path}/link/../link", kept=[graph]) == ExternalRoot(path=f"{tmp_path}/root")


@pytest.mark.parametrize("path", ["", "relative", "/", "/etc/passwd", "/\0", "{tmp}/socket", "{tmp}/loop"])
def test_what_cannot_be_a_root(tmp_path: Path, graph: str, path: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        with pytest.raises(InvalidInput, match="external_rootfs"):
            look_at(path.format(tmp=tmp_path), kept=[graph])


@pytest.mark.parametrize("path", ["graph", "graph/overlay", "link", "."])
def test_what_the_engine_keeps_is_no_root(tmp_path: Path, graph: str, path: str) -> None:
    (tmp_path / "graph/overlay").mkdir()
    (tmp_path / "link").symlink_to("graph/overlay")
    with pytest.raises(InvalidInput, match="this engine keeps"):
        look_at(f"{tmp_path}/{path}", kept=[graph])


def test_what_is_not_there(tmp_path: Path, graph: str) -> None:
    for path in (f"{tmp_path}/none", "/etc/passwd/sub"):
        with pytest.raises(NotFound, match="external_rootfs"):
            look_at(path, kept=[graph])


@pytest.mark.parametrize(("other", "expected"), [("/a/b", True), ("/a/b/c", True), ("/a", True), ("/a/bc", False)])
def test_overlap(other: str, expected: bool) -> None:
    assert overlap("/a/b", other) is expected


@pytest.mark.root
def test_a_directory_with_its_mounts_and_without_their_end(tmp_path: Path, graph: str, target: Path) -> None:
    """Whatever is unmounted in the container's view stays mounted in the host's, though that is shared."""
    root = tmp_path / "root"
    (root / "data").mkdir(parents=True)
    mounts.bind(str(root), str(root))
    try:
        mounts.mount("", str(root), flags=mounts.MS_SHARED)
        mounts.mount("tmpfs", str(root / "data"), "tmpfs")
        (root / "data/file").write_text("x")
        mount(look_at(str(root), kept=[graph]), str(target))
        assert (target / "data/file").read_text() == "x"
        mounts.unmount_under(str(target))
        assert (root / "data/file").read_text() == "x"
        assert not (target / "data").exists()
    finally:
        mounts.unmount_under(str(root))


@pytest.fixture
def device(tmp_path: Path) -> Iterator[str]:
    """A loop device of 32 MiB."""
    image = tmp_path / "disk"
    with image.open("wb") as file:
        file.truncate(32 << 20)
    found = subprocess.run(["losetup", "--find", "--show", str(image)], capture_output=True, text=True, check=False)
    if found.returncode:
        pytest.skip(f"no loop device: {found.stderr.strip()}")
    device = found.stdout.strip()
    yield device
    subprocess.run(["losetup", "--detach", device], check=True)


@pytest.mark.root
@pytest.mark.skipif(shutil.which("mkfs.ext4") is None, reason="needs mkfs.ext4")
def test_a_device_is_mounted_whatever_its_file_system_and_by_one_only(device: str, graph: str, target: Path) -> None:
    with pytest.raises(Unsupported, match="no file system"):
        mount(look_at(device, kept=[graph]), str(target))
    subprocess.run(["mkfs.ext4", "-q", device], check=True)
    root = look_at(device, kept=[graph])
    assert root == ExternalRoot(path=device, device=True)
    mount(root, str(target))
    assert (target / "lost+found").is_dir()
    with pytest.raises(FailedPrecondition, match="in use"):
        look_at(device, kept=[graph])
    mounts.unmount_under(str(target))
    assert look_at(device, kept=[graph]) == root

"""A writable layer as an archive of what is new and a list of what is gone. Whiteouts are devices: root makes them."""

from __future__ import annotations

import os
import stat
import tarfile
from pathlib import Path

import pytest

from isulad_py.host.inherit import OPAQUE
from isulad_py.images.checkpoint_changes import write_changes
from isulad_py.model.errors import Aborted, FailedPrecondition, HostFailure
from isulad_py.ports.storage import Changes


@pytest.fixture
def layers(tmp_path: Path) -> Changes:
    for name in ("upper", "one", "two"):
        (tmp_path / name).mkdir()
    return Changes(upper=str(tmp_path / "upper"), lower=(str(tmp_path / "one"), str(tmp_path / "two")))


def names(path: Path) -> set[str]:
    with tarfile.open(path) as archive:
        return set(archive.getnames())


def test_what_is_new(layers: Changes, tmp_path: Path) -> None:
    upper = Path(layers.upper)
    (upper / "etc/deep").mkdir(parents=True)
    (upper / "etc/deep/file").write_text("x")
    (upper / "top").write_text("y")
    assert write_changes(layers, str(tmp_path / "a.tar"), lambda: False) == []
    assert names(tmp_path / "a.tar") == {"etc", "etc/deep", "etc/deep/file", "top"}
    assert stat.S_IMODE((tmp_path / "a.tar").stat().st_mode) == 0o600
    with pytest.raises(HostFailure, match="file exists"):
        write_changes(layers, str(tmp_path / "a.tar"), lambda: False)


def test_one_that_nobody_waits_for(layers: Changes, tmp_path: Path) -> None:
    (Path(layers.upper) / "top").write_text("y")
    with pytest.raises(Aborted):
        write_changes(layers, str(tmp_path / "a.tar"), lambda: True)


@pytest.mark.root
def test_what_is_gone(layers: Changes, tmp_path: Path) -> None:
    upper = Path(layers.upper)
    (upper / "bin").mkdir()
    os.mknod(upper / "bin/vi", stat.S_IFCHR, 0)
    os.mknod(upper / "gone", stat.S_IFCHR, 0)
    assert sorted(write_changes(layers, str(tmp_path / "a.tar"), lambda: False)) == ["/bin/vi", "/gone"]
    assert names(tmp_path / "a.tar") == {"bin"}


@pytest.mark.root
def test_a_directory_that_was_made_anew_tells_what_it_hides(layers: Changes, tmp_path: Path) -> None:
    upper, one, two = Path(layers.upper), *map(Path, layers.lower)
    for folder in (upper / "d", one / "d", two / "d", upper / "l", two / "l", upper / "f"):
        folder.mkdir()
    (one / "l").symlink_to("elsewhere")
    (one / "f").touch()
    for path in (one / "d/a", one / "d/kept", two / "d/b", two / "l/hidden", upper / "d/kept"):
        path.touch()
    for name in "dlf":
        os.setxattr(upper / name, OPAQUE, b"y")
    assert sorted(write_changes(layers, str(tmp_path / "a.tar"), lambda: False)) == ["/d/a", "/d/b"]


@pytest.mark.root
def test_what_no_archive_can_tell(layers: Changes, tmp_path: Path) -> None:
    (Path(layers.upper) / "moved").mkdir()
    os.setxattr(Path(layers.upper) / "moved", "trusted.overlay.redirect", b"/from")
    with pytest.raises(FailedPrecondition, match="/moved was renamed"):
        write_changes(layers, str(tmp_path / "a.tar"), lambda: False)
    (Path(layers.upper) / "moved").rmdir()
    os.mknod(Path(layers.upper) / os.fsdecode(b"\xff"), stat.S_IFCHR, 0)
    with pytest.raises(FailedPrecondition, match="not UTF-8"):
        write_changes(layers, str(tmp_path / "b.tar"), lambda: False)

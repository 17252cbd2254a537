from __future__ import annotations

import os
from pathlib import Path

import pytest

from isulad_py.host.block_devices import device_under, name_of, numbers_under, size_of
from isulad_py.model.errors import EngineError


def test_a_device_is_named_by_sysfs(tmp_path: Path) -> None:
    folder = tmp_path / "dev/block/8:1"
    folder.mkdir(parents=True)
    (folder / "uevent").write_text("MAJOR=8\nMINOR=1\nDEVNAME=sda1\nDEVTYPE=partition\n")
    assert name_of(8, 1, sysfs=str(tmp_path)) == "/dev/sda1"
    assert name_of(8, 2, sysfs=str(tmp_path)) == "8:2"


def test_what_is_under_a_path(tmp_path: Path) -> None:
    assert device_under(str(tmp_path))
    assert device_under("/proc") == "proc"
    assert os.makedev(*numbers_under(str(tmp_path))) == tmp_path.stat().st_dev
    assert size_of(str(tmp_path)) == os.statvfs(tmp_path).f_blocks * os.statvfs(tmp_path).f_frsize


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    for look in (device_under, numbers_under, size_of):
        with pytest.raises(EngineError, match="look at the file system"):
            look(str(tmp_path / "no"))

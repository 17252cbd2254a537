"""A reserve that several fill against. On a real file system: tests/integration/storage."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from isulad_py.host import disk_reserve
from isulad_py.host.disk_reserve import LOOK_BYTES, LOOK_INODES, DiskReserve
from isulad_py.model.errors import HostFailure, ResourceExhausted

MIB = 1 << 20


class Disk:
    """What statvfs tells; root could have more blocks than `f_bavail`."""

    def __init__(self, free_bytes: int = 1 << 40, free_inodes: int = 1 << 30, inodes: int = 1 << 31) -> None:
        self.free_bytes, self.free_inodes, self.inodes = free_bytes, free_inodes, inodes
        self.looks = 0

    def statvfs(self, _path: str) -> SimpleNamespace:
        self.looks += 1
        return SimpleNamespace(
            f_bavail=self.free_bytes // 4096,
            f_bfree=1 << 40,
            f_frsize=4096,
            f_favail=self.free_inodes,
            f_ffree=1 << 40,
            f_files=self.inodes,
        )


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    disk = Disk()
    monkeypatch.setattr(disk_reserve, "os", SimpleNamespace(statvfs=disk.statvfs))
    return disk


def test_all_together_never_go_into_the_reserve(disk: Disk) -> None:
    disk.free_bytes = 100 * MIB
    reserve = DiskReserve("/", keep_bytes=64 * MIB, keep_inodes=0)
    with pytest.raises(ResourceExhausted, match="less than 64 MiB would be free"):
        for _ in range(10_000):
            reserve.take(4096, 1)
            disk.free_bytes -= 4096
    assert disk.free_bytes == 64 * MIB


def test_nor_into_the_inodes(disk: Disk) -> None:
    disk.free_inodes = 5000
    reserve = DiskReserve("/", keep_bytes=0, keep_inodes=1000)
    with pytest.raises(ResourceExhausted, match="less than 1000 inodes would be free"):
        for _ in range(10_000):
            reserve.take(0, 1)
            disk.free_inodes -= 1
    assert disk.free_inodes == 1000


def test_it_is_looked_at_now_and_then(disk: Disk) -> None:
    reserve = DiskReserve("/", keep_bytes=0, keep_inodes=0)
    for _ in range(40):
        reserve.take(LOOK_BYTES // 10, 0)
    assert disk.looks == 4
    for _ in range(2 * LOOK_INODES):
        reserve.take(0, 1)
    assert disk.looks == 5
    disk.free_bytes = 0
    reserve.take(1, 0)
    with pytest.raises(ResourceExhausted):
        DiskReserve("/", keep_bytes=1, keep_inodes=0).check()


def test_a_check_looks_whatever_was_found_before(disk: Disk) -> None:
    reserve = DiskReserve("/", keep_bytes=MIB, keep_inodes=0)
    reserve.take(1, 1)
    disk.free_bytes = 0
    with pytest.raises(ResourceExhausted):
        reserve.check()
    with pytest.raises(ResourceExhausted):
        reserve.take(1, 0)
    disk.free_bytes = 10 * MIB
    reserve.take(1, 0)


def test_file_systems_that_tell_no_inodes(disk: Disk) -> None:
    disk.inodes = disk.free_inodes = 0
    reserve = DiskReserve("/", keep_bytes=0, keep_inodes=1000)
    for _ in range(3 * LOOK_INODES):
        reserve.take(0, 1)


def test_a_place_that_is_gone() -> None:
    with pytest.raises(HostFailure, match="look at the disk"):
        DiskReserve("/nowhere", keep_bytes=0, keep_inodes=0).take(1, 1)

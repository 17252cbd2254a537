"""Real namespaces, pinned below a temporary directory. Needs root."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from isulad_py.host import mounts, namespaces
from isulad_py.model.errors import HostFailure, InvalidInput

pytestmark = pytest.mark.root


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    mounts.unmount_under(str(tmp_path))


def test_namespaces_live_until_they_are_released(place: Path) -> None:
    request = namespaces.NewNamespaces(
        net_path=str(place / "net"),
        ipc_path=str(place / "ipc"),
        uts_path=str(place / "uts"),
        hostname="pod-a",
        sysctls={"net.ipv4.ip_local_port_range": "2000 3001", "kernel.shmmax": "65536"},
    )
    host = (socket.gethostname(), Path("/proc/sys/kernel/shmmax").read_text())
    namespaces.create(request)
    assert all(namespaces.is_pinned(path) for _, _, path in request.pins())

    def inside() -> tuple[list[str], str]:
        names = [name for _, name in socket.if_nameindex()]
        with socket.create_server(("127.0.0.1", 0)) as server:
            socket.create_connection(server.getsockname(), timeout=5).close()
        return names, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0]

    assert namespaces.call_in_netns(request.net_path, inside) == (["lo"], "2000")
    assert (socket.gethostname(), Path("/proc/sys/kernel/shmmax").read_text()) == host
    for _, _, path in request.pins():
        namespaces.release(path)
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("sysctls", [{"net.ipv4.nothing_like_this": "1"}, {"net.ipv4.ip_forward": "many"}])
def test_a_sysctl_that_the_kernel_does_not_take_leaves_nothing(place: Path, sysctls: dict[str, str]) -> None:
    request = namespaces.NewNamespaces(net_path=str(place / "net"), uts_path=str(place / "uts"), sysctls=sysctls)
    with pytest.raises(InvalidInput, match=next(iter(sysctls)).replace(".", r"\.")):
        namespaces.create(request)
    assert list(place.iterdir()) == []


def test_a_pin_that_cannot_be_made_undoes_the_others(place: Path) -> None:
    (place / "uts").mkdir()
    request = namespaces.NewNamespaces(net_path=str(place / "net"), uts_path=str(place / "uts"))
    with pytest.raises(HostFailure, match="pin a namespace"):
        namespaces.create(request)
    assert [entry.name for entry in place.iterdir()] == ["uts"]
    assert mounts.mountpoints_under(str(place)) == []


async def test_work_runs_inside_the_namespace_and_its_thread_ends(place: Path) -> None:
    request = namespaces.NewNamespaces(net_path=str(place / "net"))
    namespaces.create(request)
    inode = await namespaces.run_in_netns(request.net_path, lambda: Path("/proc/thread-self/ns/net").stat().st_ino)
    assert inode == (place / "net").stat().st_ino != Path("/proc/self/ns/net").stat().st_ino

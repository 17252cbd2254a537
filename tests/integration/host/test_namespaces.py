"""Real namespaces, pinned below a temporary directory. Needs root."""

from __future__ import annotations

import asyncio
import fcntl
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from isulad_py.host import mounts, namespaces, pidfd, user_namespaces
from isulad_py.model.errors import HostFailure, InvalidInput
from isulad_py.model.security import IdMapping, NamespaceMode, UserNamespace

pytestmark = pytest.mark.root

NS_GET_USERNS: Final = 0xB701


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


IDS = (IdMapping(host_id=100_000, container_id=0, length=65536),)
USERS = UserNamespace(mode=NamespaceMode.POD, uids=IDS, gids=IDS)


def all_in(place: Path, **fields: Any) -> namespaces.NewNamespaces:
    paths = {f"{kind}_path": str(place / kind) for kind in ("user", "net", "ipc", "uts")}
    return namespaces.NewNamespaces(**paths, **fields)


async def test_namespaces_of_a_user_namespace_belong_to_it(place: Path) -> None:
    request = all_in(place, hostname="pod-a", sysctls={"kernel.shmmax": "65536", "net.ipv4.ip_forward": "1"})
    await user_namespaces.create(request, USERS)
    assert all(namespaces.is_pinned(path) for _, _, path in request.pins())
    user = (place / "user").stat()
    for kind in ("net", "ipc", "uts"):
        fd = os.open(place / kind, os.O_RDONLY)
        owner = fcntl.ioctl(fd, NS_GET_USERNS)
        assert os.fstat(owner).st_ino == user.st_ino, kind
        os.close(owner)
        os.close(fd)
    assert namespaces.call_in_netns(request.net_path, lambda: [name for _, name in socket.if_nameindex()]) == ["lo"]
    for _, _, path in request.pins():
        namespaces.release(path)
    assert list(place.iterdir()) == []


@pytest.mark.parametrize(
    ("request_of", "users", "error"),
    [
        ({"sysctls": {"kernel.shmmax": "many"}}, USERS, InvalidInput),
        ({"sysctls": {"net.ipv4.nothing_like_this": "1"}}, USERS, InvalidInput),
        ({}, UserNamespace(mode=NamespaceMode.POD, uids=(*IDS, *IDS), gids=IDS), HostFailure),
    ],
)
async def test_what_cannot_be_made_leaves_nothing(
    place: Path, request_of: dict[str, Any], users: UserNamespace, error: type[Exception]
) -> None:
    with pytest.raises(error):
        await user_namespaces.create(all_in(place, **request_of), users)
    assert list(place.iterdir()) == []


async def test_a_creation_that_is_cancelled_leaves_nothing(place: Path) -> None:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(user_namespaces.create(all_in(place), USERS))
        await asyncio.sleep(0)
        task.cancel()
    assert task.cancelled()
    assert list(place.iterdir()) == []


async def test_who_holds_a_user_namespace_ends_with_this_process() -> None:
    """As with a daemon that is killed while it makes one."""
    script = (
        "import asyncio, os\n"
        "from isulad_py.host import user_namespaces\n"
        "from isulad_py.model.security import IdMapping, NamespaceMode, UserNamespace\n"
        "ids = (IdMapping(host_id=100_000, container_id=0, length=1),)\n"
        "async def main():\n"
        "    users = UserNamespace(mode=NamespaceMode.POD, uids=ids, gids=ids)\n"
        "    async with user_namespaces.held(users) as pid:\n"
        "        print(pid, flush=True)\n"
        "        os.kill(os.getpid(), 9)\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert done.returncode == -9, done.stderr
    await pidfd.wait_end(int(done.stdout), pidfd.start_time(int(done.stdout)))

"""What every PodEnvironments does: the fake, and the real one (root) below a temporary directory."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from isulad_py.host import mounts, namespaces, process
from isulad_py.host.clock import SystemClock
from isulad_py.host.facts import read_facts
from isulad_py.model.errors import AlreadyExists, InvalidInput
from isulad_py.model.ids import PodId, new_id
from isulad_py.model.network import Dns
from isulad_py.model.security import IdMapping, NamespaceMode, UserNamespace
from isulad_py.ports.sandbox import EnvironmentRequest, PodEnvironments
from isulad_py.runtime.cgroups import CgroupTree
from isulad_py.runtime.sandbox import HostEnvironments
from tests.fakes.sandbox import FakeEnvironments


def real(tmp_path: Path) -> HostEnvironments:
    (tmp_path / "etc").mkdir(exist_ok=True)
    (tmp_path / "etc/hosts").write_text("127.0.0.1 host-entry\n")
    (tmp_path / "etc/resolv.conf").write_text("nameserver 192.0.2.1\n")
    cgroups = CgroupTree(read_facts(), systemd=False, clock=SystemClock())
    return HostEnvironments(state_dir=str(tmp_path / "state"), cgroups=cgroups, etc_dir=str(tmp_path / "etc"))


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.root)])
async def environments(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[PodEnvironments]:
    if request.param == "fake":
        yield FakeEnvironments()
        return
    made = real(tmp_path)
    yield made
    left = await made.present()
    for pod_id in left:
        await made.destroy(pod_id)
    assert mounts.mountpoints_under(str(tmp_path)) == []


def wanted(**changes: object) -> EnvironmentRequest:
    fields: dict[str, object] = {"pod_id": PodId(new_id()), "hostname": "pod-a", "network": True, "ipc": True}
    return EnvironmentRequest(**{**fields, **changes})  # type: ignore[arg-type]


async def test_a_pod_gets_what_it_asks_for_until_it_is_destroyed(environments: PodEnvironments) -> None:
    request = wanted()
    environment = await environments.create(request)
    assert environment.hostname == "pod-a"
    assert all((environment.netns_path, environment.ipcns_path, environment.utsns_path, environment.shm_path))
    assert await environments.intact(environment)
    assert await environments.present() == {request.pod_id}
    await environments.destroy(request.pod_id)
    assert not await environments.intact(environment)
    assert await environments.present() == frozenset()


async def test_the_hosts_own_is_an_empty_path(environments: PodEnvironments) -> None:
    environment = await environments.create(wanted(hostname="", network=False, ipc=False))
    assert (environment.netns_path, environment.ipcns_path, environment.utsns_path, environment.shm_path) == ("",) * 4
    assert environment.hostname
    assert await environments.intact(environment)


async def test_destroying_is_idempotent_and_knows_ids_only(environments: PodEnvironments) -> None:
    await environments.destroy(PodId(new_id()))
    request = wanted()
    await environments.create(request)
    await environments.destroy(request.pod_id)
    await environments.destroy(request.pod_id)


async def test_an_id_in_use_is_refused_and_its_holder_unharmed(environments: PodEnvironments) -> None:
    request = wanted()
    environment = await environments.create(request)
    with pytest.raises(AlreadyExists):
        await environments.create(request)
    assert await environments.intact(environment)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"hostname": "x" * 65}, "hostname"),
        ({"hostname": "a\nb"}, "hostname"),
        ({"dns": Dns(servers=("1.1.1.1\nnameserver 2.2.2.2",))}, r"dns_config\.servers"),
        ({"dns": Dns(searches=("a b",))}, r"dns_config\.searches"),
        ({"dns": Dns(options=("",))}, r"dns_config\.options"),
        ({"sysctls": {"kernel.panic": "1"}}, r"kernel\.panic"),
        ({"sysctls": {"vm.swappiness": "1"}}, r"vm\.swappiness"),
        ({"sysctls": {"net/../kernel/panic": "1"}}, "sysctl"),
        ({"network": False, "sysctls": {"net.ipv4.ip_forward": "1"}}, r"net\.ipv4\.ip_forward"),
        ({"ipc": False, "sysctls": {"kernel.shmmax": "1"}}, r"kernel\.shmmax"),
    ],
)
async def test_wrong_input_is_refused_by_field_and_leaves_nothing(
    environments: PodEnvironments, changes: dict[str, object], field: str
) -> None:
    with pytest.raises(InvalidInput, match=field):
        await environments.create(wanted(**changes))
    assert await environments.present() == frozenset()


def users(first: int = 100_000) -> UserNamespace:
    ids = (
        IdMapping(host_id=first, container_id=0, length=1000),
        IdMapping(host_id=first + 5000, container_id=1000, length=10),
    )
    return UserNamespace(mode=NamespaceMode.POD, uids=ids, gids=(replace(ids[0], host_id=first + 20_000),))


async def test_a_pod_may_have_users_of_its_own_until_it_is_destroyed(environments: PodEnvironments) -> None:
    request = wanted(users=users())
    environment = await environments.create(request)
    assert environment.userns_path
    assert await environments.intact(environment)
    await environments.settle(request, ["192.0.2.44"])
    await environments.destroy(request.pod_id)
    assert not await environments.intact(environment)
    assert await environments.present() == frozenset()
    others = await environments.create(wanted())
    assert others.userns_path == ""


async def test_pods_do_not_touch_each_other(environments: PodEnvironments) -> None:
    requests = [wanted(hostname=f"pod-{number}") for number in range(10)]
    made = await asyncio.gather(*(environments.create(request) for request in requests))
    await asyncio.gather(*(environments.destroy(request.pod_id) for request in requests[::2]))
    assert [await environments.intact(environment) for environment in made] == [False, True] * 5


@pytest.mark.parametrize("owned", [None, users()])
async def test_a_cancelled_creation_leaves_nothing(environments: PodEnvironments, owned: UserNamespace | None) -> None:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(environments.create(wanted(users=owned)), name="create")
        await asyncio.sleep(0)
        task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        # It may have been done before the cancellation came.
        environment = task.result()
        assert await environments.intact(environment)
        return
    assert await environments.present() == frozenset()


async def test_cgroups_come_and_go(environments: PodEnvironments) -> None:
    path = f"/isulad-py-test-{secrets.token_hex(6)}"
    await environments.ensure_cgroup(f"{path}/pod")
    await environments.ensure_cgroup(f"{path}/pod")
    await environments.remove_cgroup(path)
    await environments.remove_cgroup(path)


@pytest.mark.root
@pytest.mark.parametrize(
    "lost", ["ns/user", "ns/net", "ns/ipc", "ns/uts", "shm", "resolv.conf", "hosts", "hostname", "all but ns"]
)
async def test_an_environment_that_is_half_made_is_not_intact_and_goes_all_the_same(tmp_path: Path, lost: str) -> None:
    """As a daemon leaves it that is killed at any line of `create`."""
    environments = real(tmp_path)
    request = wanted(users=users())
    environment = await environments.create(request)
    directory = tmp_path / "state/pods" / request.pod_id
    if lost == "all but ns":
        mounts.unmount(str(directory / "shm"))
        for name in ("hosts", "hostname", "resolv.conf"):
            (directory / name).unlink()
    elif lost.startswith("ns/"):
        namespaces.release(str(directory / lost))
    else:
        mounts.unmount(str(directory / lost))
        if (directory / lost).is_file():
            (directory / lost).unlink()
    assert not await environments.intact(environment)
    assert await environments.present() == {request.pod_id}
    await environments.destroy(request.pod_id)
    assert not directory.exists()
    assert mounts.mountpoints_under(str(tmp_path)) == []


@pytest.mark.root
async def test_what_somebody_else_mounted_below_goes_too_untouched(tmp_path: Path) -> None:
    environments = real(tmp_path)
    request = wanted()
    await environments.create(request)
    (tmp_path / "data").mkdir()
    (tmp_path / "data/kept").write_text("x")
    inside = tmp_path / "state/pods" / request.pod_id / "extra"
    inside.mkdir()
    mounts.bind(str(tmp_path / "data"), str(inside))
    await environments.destroy(request.pod_id)
    assert (tmp_path / "data/kept").exists()
    assert await environments.present() == frozenset()


@pytest.mark.root
async def test_files_and_namespaces_say_what_was_asked_for(tmp_path: Path) -> None:
    environments = real(tmp_path)
    dns = Dns(servers=("192.0.2.9", "2001:db8::9"), searches=("a.example", "b.example"), options=("ndots:5",))
    request = wanted(
        dns=dns,
        sysctls={"net.ipv4.ip_local_port_range": "2000 3001", "net.ipv4.conf.dummy0.arp_ignore": "2"},
        shm_bytes=1 << 20,
    )
    made = await environments.create(request)
    try:
        assert Path(made.resolv_path).read_text() == (
            "search a.example b.example\nnameserver 192.0.2.9\nnameserver 2001:db8::9\noptions ndots:5\n"
        )
        assert Path(made.hostname_path).read_text() == "pod-a\n"
        assert "localhost" in Path(made.hosts_path).read_text()
        assert Path(made.shm_path).stat().st_mode & 0o7777 == 0o1777
        ports = await namespaces.run_in_netns(
            made.netns_path, lambda: Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()
        )
        assert ports == ["2000", "3001"]
        # The interface does not come into being here, so the sysctl that names it is refused at last.
        with pytest.raises(InvalidInput, match=r"net\.ipv4\.conf\.dummy0\.arp_ignore"):
            await environments.settle(request, ["192.0.2.44"])
        assert Path(made.hosts_path).read_text().endswith("192.0.2.44\tpod-a\n")
    finally:
        await environments.destroy(request.pod_id)


@pytest.mark.root
async def test_ports_and_ping_for_every_user_where_nothing_else_is_asked(tmp_path: Path) -> None:
    cgroups = CgroupTree(read_facts(), systemd=False, clock=SystemClock())
    environments = HostEnvironments(
        state_dir=str(tmp_path), cgroups=cgroups, unprivileged_ports=True, unprivileged_icmp=True
    )
    table = ("ip_unprivileged_port_start", "ping_group_range")

    async def values(request: EnvironmentRequest) -> list[list[str]]:
        made = await environments.create(request)
        try:
            return await namespaces.run_in_netns(
                made.netns_path, lambda: [Path(f"/proc/sys/net/ipv4/{name}").read_text().split() for name in table]
            )
        finally:
            await environments.destroy(request.pod_id)

    assert await values(wanted()) == [["0"], ["0", "2147483647"]]
    asked = {"net/ipv4/ip_unprivileged_port_start": "80", "net.ipv4.ping_group_range": "5 6"}
    assert await values(wanted(sysctls=asked)) == [["80"], ["5", "6"]]
    before = [Path(f"/proc/sys/net/ipv4/{name}").read_text().split() for name in table]
    assert await values(wanted(hostname="", network=False)) == before


@pytest.mark.root
async def test_a_pod_on_the_hosts_network_has_the_hosts_files(tmp_path: Path) -> None:
    environments = real(tmp_path)
    request = wanted(hostname="", network=False, ipc=False)
    made = await environments.create(request)
    assert Path(made.hosts_path).read_text() == "127.0.0.1 host-entry\n"
    assert Path(made.resolv_path).read_text() == "nameserver 192.0.2.1\n"
    await environments.settle(request, ["192.0.2.44"])
    assert Path(made.hosts_path).read_text() == "127.0.0.1 host-entry\n"
    await environments.destroy(request.pod_id)


@pytest.mark.root
async def test_what_belongs_to_the_pod_belongs_to_its_root(tmp_path: Path) -> None:
    environments = real(tmp_path)
    sysctls = {"kernel.shmmax": "65536", "net.ipv4.ip_forward": "1", "kernel.domainname": "example"}
    request = wanted(users=users(), sysctls=sysctls)
    made = await environments.create(request)
    await environments.settle(request, ["192.0.2.44"])
    try:
        for path in (made.hosts_path, made.resolv_path, made.hostname_path, made.shm_path):
            status = Path(path).stat()
            assert (status.st_uid, status.st_gid) == (100_000, 120_000), path
        script = (
            "cat /proc/self/uid_map /proc/self/gid_map; hostname; cd /proc/sys; cat kernel/shmmax kernel/domainname"
        )
        pins = [f"--user={made.userns_path}", f"--net={made.netns_path}"]
        pins += [f"--ipc={made.ipcns_path}", f"--uts={made.utsns_path}"]
        # Root in there has the rights of root in all of them: they are owned by the user namespace.
        script += "; echo 0 > net/ipv4/ip_forward; hostname other; hostname"
        done = await process.run(process.Command(argv=("nsenter", *pins, "sh", "-ec", script)))
        assert done.check("enter").stdout.decode().split() == (
            ["0", "100000", "1000", "1000", "105000", "10", "0", "120000", "1000", "pod-a", "65536", "example", "other"]
        )
    finally:
        await environments.destroy(request.pod_id)


@pytest.mark.root
@pytest.mark.parametrize("owned", [None, users()])
@pytest.mark.parametrize("sysctls", [{"net.ipv4.no_such_thing": "1"}, {"kernel.shmmni": "many"}])
async def test_a_sysctl_that_the_kernel_does_not_take_leaves_nothing(
    tmp_path: Path, sysctls: dict[str, str], owned: UserNamespace | None
) -> None:
    environments = real(tmp_path)
    with pytest.raises(InvalidInput, match=r"no_such_thing|shmmni"):
        await environments.create(wanted(sysctls=sysctls, users=owned))
    assert await environments.present() == frozenset()
    assert mounts.mountpoints_under(str(tmp_path)) == []

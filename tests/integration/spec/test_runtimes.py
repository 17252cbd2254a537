"""Real OCI runtimes take what `spec.build` makes, and do what it says."""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from isulad_py.host.facts import read_facts
from isulad_py.host.process import Command, Completed, run
from isulad_py.model.container import ContainerConfig, ContainerMetadata, Identity, Mount
from isulad_py.model.devices import HostDevice
from isulad_py.model.ids import PodId
from isulad_py.model.image import ImageConfig
from isulad_py.model.pod import PodConfig, PodEnvironment, PodMetadata, PodRecord
from isulad_py.model.resources import HugepageLimit, Resources
from isulad_py.model.security import (
    Capabilities,
    ContainerSecurity,
    NamespaceMode,
    NamespaceOptions,
    PodSecurity,
    ProfileKind,
    SecurityProfile,
)
from isulad_py.spec.build import build_container, build_exec, build_pause
from isulad_py.spec.inputs import ContainerInputs, Defaults, Handler, PauseInputs, Ulimit
from tests.stand.cgroups import hierarchies, remove_cgroup

pytestmark = pytest.mark.root

OWN_PID = NamespaceOptions(pid=NamespaceMode.CONTAINER)
CONFINED = SecurityProfile(kind=ProfileKind.RUNTIME_DEFAULT)
APPLETS = ("sh", "cat", "true", "touch", "grep", "mkdir", "unshare", "sleep", "ls", "chroot")
UNIFIED = "/sys/fs/cgroup/unified"


class Bench:
    """One runtime with a root directory, a busybox root file system and a cgroup parent of its own."""

    def __init__(self, runtime: str, root: Path) -> None:
        self.runtime = runtime
        self.root = root
        self.parent = f"spectest{secrets.token_hex(4)}"
        self.started: list[str] = []
        self.facts = read_facts()
        self.rootfs = root / "rootfs"
        for name in ("bin", "dev", "proc", "sys", "etc", "tmp", "data"):
            (self.rootfs / name).mkdir(parents=True)
        shutil.copy("/bin/busybox", self.rootfs / "bin/busybox")
        for name in APPLETS:
            (self.rootfs / "bin" / name).symlink_to("busybox")
        for name in ("shm", "run"):
            (root / name).mkdir()
        self.environment = PodEnvironment(shm_path=str(root / "shm"), hostname="web-0")

    def pod(self, *, privileged: bool = False) -> PodRecord:
        config = PodConfig(metadata=PodMetadata(name="web"), security=PodSecurity(privileged=privileged))
        return PodRecord(id=PodId("pod1"), config=config, environment=self.environment)

    def spec(self, command: Sequence[str], security: ContainerSecurity, config: dict[str, Any], **inputs: Any) -> bytes:
        container_id = self._new_id()
        asked = ContainerConfig(
            metadata=ContainerMetadata(name="app"), command=tuple(command), security=security, **config
        )
        options: dict[str, Any] = {
            "config": asked,
            "pod": self.pod(privileged=security.privileged),
            "image": ImageConfig(),
            "host": self.facts,
            "rootfs_path": str(self.rootfs),
            "cgroups_path": f"/{self.parent}/{container_id}",
        }
        return build_container(ContainerInputs(**{**options, **inputs}))

    def _new_id(self) -> str:
        container_id = f"{self.parent}-{len(self.started)}"
        self.started.append(container_id)
        return container_id

    async def call(self, *args: str, before: str = ":") -> Completed:
        """In a mount namespace of its own: crun 1.8 wants no second cgroup tree, and `before` may mount things."""
        hide = f"umount {UNIFIED} 2>/dev/null;" if self.runtime == "crun" and Path(UNIFIED).exists() else ""
        script = f'{hide} {before} && exec "$@"'
        argv = ("unshare", "-m", "sh", "-c", script, "sh", self.runtime, "--root", str(self.root / "run"), *args)
        # Not /dev/null, which crun before 1.24 gives to the container's user.
        return await run(Command(argv=argv, stdin=b"", timeout_seconds=30))

    async def sh(
        self, script: str, security: ContainerSecurity | None = None, before: str = ":", **fields: Any
    ) -> Completed:
        """Runs a shell script in a container to its end; `fields` are of the config, or of the inputs."""
        config = {name: fields.pop(name) for name in ("mounts", "resources", "envs") if name in fields}
        plain = security or ContainerSecurity(namespaces=OWN_PID, seccomp=CONFINED)
        spec = self.spec(("/bin/sh", "-c", script), plain, config, **fields)
        return await self.call("run", "--bundle", self.bundle(spec), self.started[-1], before=before)

    def bundle(self, spec: bytes) -> str:
        path = self.root / self.started[-1]
        path.mkdir()
        (path / "config.json").write_bytes(spec)
        return str(path)

    async def close(self) -> None:
        for container_id in self.started:
            await self.call("delete", "--force", container_id)
        for hierarchy in hierarchies():
            assert remove_cgroup(hierarchy.mountpoint / self.parent)


@pytest.fixture(params=["runc", "crun"])
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bench]:
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    found = Bench(request.param, tmp_path)
    yield found
    await found.close()


def status(done: Completed) -> dict[str, str]:
    """Of /proc/self/status, as a container printed it."""
    assert done.returncode == 0, done
    lines = (line.partition(":") for line in done.stdout.decode().splitlines())
    return {name: value.strip() for name, _, value in lines}


async def test_a_plain_container_runs_confined(bench: Bench) -> None:
    found = status(await bench.sh("cat /proc/self/status"))
    assert found["Seccomp"] == "2"
    assert int(found["CapEff"], 16) == int(found["CapBnd"], 16) == 0xA80425FB
    assert found["NoNewPrivs"] == "0"
    assert found["Pid"] == found["NSpid"]


async def test_the_default_filter_holds_back_new_namespaces_but_lets_programs_live(bench: Bench) -> None:
    assert (await bench.sh("mkdir /tmp/a && touch /tmp/a/b && (true; true) | cat && chroot / true")).returncode == 0
    done = await bench.sh("unshare -n true")
    assert done.returncode != 0
    assert b"not permitted" in done.stderr


async def test_a_privileged_container_has_what_we_have(bench: Bench) -> None:
    null = HostDevice(path="/dev/other", type="c", major=1, minor=3)
    security = ContainerSecurity(privileged=True, namespaces=OWN_PID)
    done = await bench.sh("cat /proc/self/status; test -c /dev/other || echo X:no", security, host_devices=(null,))
    found = status(done)
    assert found["Seccomp"] == "0"
    assert "X" not in found
    own = dict(line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":\t" in line)
    assert int(found["CapEff"], 16) == int(own["CapBnd"], 16)


async def test_read_only_masked_and_without_new_privileges(bench: Bench) -> None:
    security = ContainerSecurity(
        namespaces=OWN_PID,
        readonly_rootfs=True,
        no_new_privs=True,
        masked_paths=("/proc/meminfo", "/sys/kernel"),
        readonly_paths=("/proc/sys",),
    )
    done = await bench.sh("grep NoNewPrivs /proc/self/status; cat /proc/meminfo; ls /sys/kernel; touch /x", security)
    assert done.returncode != 0
    assert done.stdout == b"NoNewPrivs:\t1\n"
    assert b"Read-only file system" in done.stderr


async def test_limits_reach_the_cgroup_and_the_process(bench: Bench) -> None:
    resources = Resources(
        memory_limit_bytes=64 << 20,
        memory_swap_limit_bytes=64 << 20,
        cpu_shares=100,
        cpu_quota_us=50_000,
        cpu_period_us=100_000,
        cpuset_cpus="0",
        oom_score_adj=-997,
        hugepage_limits=(HugepageLimit(page_size="2MB", limit_bytes=0),),
    )
    if bench.facts.cgroup_version == 2:
        files = "memory.max cpu.max pids.max"
        expected = [b"67108864", b"50000 100000", b"55"]
    else:
        names = ("memory/memory.limit_in_bytes", "cpu/cpu.cfs_quota_us", "pids/pids.max", "cpu/cpu.shares")
        files = " ".join(names)
        expected = [b"67108864", b"50000", b"55", b"100"]
    defaults = Defaults(pids_limit=55, ulimits=(Ulimit(name="nofile", hard=88, soft=88),), umask=0o027)
    script = f"cd /sys/fs/cgroup; cat {files}; cat /proc/self/oom_score_adj; ulimit -n; umask"
    done = await bench.sh(script, resources=resources, defaults=defaults)
    score = -997 if bench.facts.can_lower_oom_score else max(-997, bench.facts.oom_score_adj)
    assert done.stdout.splitlines() == [*expected, str(score).encode(), b"88", b"0027"], done.stderr


async def test_a_user_without_capabilities(bench: Bench) -> None:
    security = ContainerSecurity(namespaces=OWN_PID, capabilities=Capabilities(drop=("ALL",)))
    identity = Identity(uid=1234, gid=55, supplemental_groups=(55, 77))
    done = await bench.sh("cat /proc/self/status", security, identity=identity)
    found = status(done)
    assert found["Uid"].split() == ["1234"] * 4
    assert found["Gid"].split() == ["55"] * 4
    assert found["Groups"].split() == ["55", "77"]
    assert {int(found[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}


async def test_ambient_capabilities_reach_an_ordinary_user(bench: Bench) -> None:
    security = ContainerSecurity(namespaces=OWN_PID, capabilities=Capabilities(add_ambient=("NET_ADMIN",)))
    found = status(await bench.sh("cat /proc/self/status", security, identity=Identity(uid=1234, gid=55)))
    assert int(found["CapAmb"], 16) == int(found["CapEff"], 16) == 1 << 12


async def test_a_localhost_profile_forbids_what_it_says(bench: Bench) -> None:
    profile = {
        "defaultAction": "SCMP_ACT_ALLOW",
        "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 13}],
    }
    security = ContainerSecurity(
        namespaces=OWN_PID, seccomp=SecurityProfile(kind=ProfileKind.LOCALHOST, localhost_ref="/p")
    )
    done = await bench.sh("mkdir /tmp/a", security, seccomp_profile=json.dumps(profile).encode())
    assert b"Permission denied" in done.stderr


async def test_mounts_and_devices(bench: Bench) -> None:
    outer, inner, hosts = bench.root / "outer", bench.root / "inner", bench.root / "hosts"
    (outer / "sub").mkdir(parents=True)
    inner.mkdir()
    (inner / "file").write_text("inner\n")
    hosts.write_text("1.2.3.4 x\n")
    mounts = (
        Mount(container_path="/data/vol/sub", host_path=str(inner), readonly=True, mount_options=("noexec",)),
        Mount(container_path="/data/vol", host_path=str(outer)),
        Mount(container_path="/etc/hosts", host_path=str(hosts), readonly=True),
    )
    zero = HostDevice(path="/dev/mine", type="c", major=1, minor=5, permissions="r")
    script = (
        "cat /data/vol/sub/file /etc/hosts; touch /data/vol/new; touch /data/vol/sub/x; "
        "grep ' /data/vol/sub ' /proc/mounts; test -c /dev/mine && echo device"
    )
    done = await bench.sh(script, mounts=mounts, devices=(zero,))
    first, second, mounted, device = done.stdout.decode().splitlines()
    assert (first, second, device) == ("inner", "1.2.3.4 x", "device")
    assert {"ro", "noexec"} <= set(mounted.split()[3].split(","))
    assert (outer / "new").exists()
    assert b"Read-only file system" in done.stderr


async def test_recursive_read_only_covers_what_is_mounted_below(bench: Bench) -> None:
    outer = bench.root / "outer"
    (outer / "sub").mkdir(parents=True)
    mount = Mount(container_path="/data/vol", host_path=str(outer), readonly=True, recursive_read_only=True)
    before = f"mount -t tmpfs tmpfs {outer}/sub"
    able = Handler(recursive_read_only=True)
    done = await bench.sh("touch /data/vol/sub/x", mounts=(mount,), handler=able, before=before)
    assert b"Read-only file system" in done.stderr


async def test_exec_joins_with_the_same_confinement(bench: Bench) -> None:
    security = ContainerSecurity(namespaces=OWN_PID, no_new_privs=True, seccomp=CONFINED)
    # Soft as hard, because runc 1.1 races with its own Go runtime, which raises the soft limit for itself.
    defaults = Defaults(ulimits=(Ulimit(name="nofile", hard=99, soft=99),))
    spec = bench.spec(
        ("/bin/sleep", "100"), security, {"envs": (("A", "1"),)}, identity=Identity(uid=5, gid=6), defaults=defaults
    )
    bundle = bench.bundle(spec)
    container_id = bench.started[-1]
    silence = bench.root / "silence"
    silence.touch()
    started = await bench.call(
        "run", "--detach", "--bundle", bundle, container_id, before=f"exec >{silence} 2>&1 <{silence}"
    )
    assert started.returncode == 0
    script = "cat /proc/self/status; echo A:$A; echo Files:$(ulimit -n)"
    process = bench.root / "process.json"
    process.write_bytes(build_exec(spec, ("/bin/sh", "-c", script), terminal=False))
    found = status(await bench.call("exec", "--process", str(process), container_id))
    assert (found["A"], found["Files"], found["NoNewPrivs"], found["Seccomp"]) == ("1", "99", "1", "2")
    assert found["Uid"].split()[0] == "5"


async def test_a_container_joins_the_pid_namespace_of_the_pause_container(bench: Bench) -> None:
    pause_id = bench._new_id()
    spec = build_pause(
        PauseInputs(
            pod=bench.pod(),
            image=ImageConfig(cmd=("/bin/sleep", "100")),
            host=bench.facts,
            rootfs_path=str(bench.rootfs),
            cgroups_path=f"/{bench.parent}/{pause_id}",
        )
    )
    started = await bench.call(
        "run", "--detach", "--bundle", bench.bundle(spec), pause_id, before="exec >/dev/null 2>&1 </dev/null"
    )
    assert started.returncode == 0
    pid = json.loads((await bench.call("state", pause_id)).stdout)["pid"]
    security = ContainerSecurity(namespaces=NamespaceOptions(pid=NamespaceMode.POD))
    done = await bench.sh("cat /proc/1/cmdline", security, pod_pidns_path=f"/proc/{pid}/ns/pid")
    assert done.stdout == b"/bin/sleep\x00100\x00", done.stderr

"""The whole document, as a runtime reads it."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from isulad_py.model.container import ContainerConfig, Identity, Mount
from isulad_py.model.devices import HostDevice
from isulad_py.model.edits import EditMount, Edits
from isulad_py.model.errors import DataLoss, InvalidInput
from isulad_py.model.hooks import Hook, HookEntry, StagedHook, When
from isulad_py.model.image import ImageConfig
from isulad_py.model.pod import PodConfig, PodEnvironment
from isulad_py.model.resources import Resources
from isulad_py.model.security import (
    IdMapping,
    NamespaceMode,
    NamespaceOptions,
    PodSecurity,
    ProfileKind,
    SecurityProfile,
)
from isulad_py.spec.build import build_container, build_exec, build_pause
from isulad_py.spec.inputs import Defaults, Handler, PauseInputs, Ulimit
from tests.fakes.spec_inputs import capable_host, config, inputs, pod, privileged_pod, secured


def built(asked: ContainerConfig | None = None, **fields: Any) -> dict[str, Any]:
    return dict(json.loads(build_container(inputs(asked, **fields))))


def paused(**fields: Any) -> dict[str, Any]:
    plain = PauseInputs(
        pod=pod(),
        image=ImageConfig(entrypoint=("/pause",)),
        host=capable_host(),
        rootfs_path="/graph/rootfs/p1",
        cgroups_path="/kubepods/pod1/p1",
    )
    return dict(json.loads(build_pause(msgspec.structs.replace(plain, **fields))))


def test_a_plain_container() -> None:
    spec = built()
    assert spec["ociVersion"] == "1.0.2"
    assert spec["root"] == {"path": "/graph/rootfs/c1"}
    assert "hostname" not in spec
    assert "hooks" not in spec
    process = spec["process"]
    assert process["args"] == ["/bin/app"]
    assert process["user"] == {"uid": 0, "gid": 0}
    assert process["cwd"] == "/"
    assert "HOSTNAME=web-0" in process["env"]
    assert process["oomScoreAdj"] == 0
    assert "terminal" not in process
    assert "noNewPrivileges" not in process
    linux = spec["linux"]
    assert linux["cgroupsPath"] == "/kubepods/pod1/c1"
    assert "seccomp" not in linux
    assert linux["resources"] == {"devices": [{"allow": False, "access": "rwm"}]}
    assert linux["namespaces"] == [
        {"type": "pid"},
        {"type": "network", "path": "/run/pods/p/net"},
        {"type": "ipc", "path": "/run/pods/p/ipc"},
        {"type": "uts", "path": "/run/pods/p/uts"},
        {"type": "mount"},
    ]
    assert spec["annotations"]["io.kubernetes.cri.container-type"] == "container"


def test_the_security_context_reaches_its_places() -> None:
    spec = built(
        secured(
            readonly_rootfs=True,
            no_new_privs=True,
            masked_paths=("/proc/kcore",),
            readonly_paths=("/proc/sys/",),
            seccomp=SecurityProfile(kind=ProfileKind.UNCONFINED),
        ),
        process_label="pl",
        mount_label="ml",
    )
    assert spec["root"]["readonly"] is True
    assert spec["process"]["noNewPrivileges"] is True
    assert spec["process"]["selinuxLabel"] == "pl"
    assert spec["linux"]["mountLabel"] == "ml"
    assert spec["linux"]["maskedPaths"] == ["/proc/kcore"]
    assert spec["linux"]["readonlyPaths"] == ["/proc/sys"]
    assert "seccomp" not in spec["linux"]
    hosts = next(mount for mount in spec["mounts"] if mount["destination"] == "/etc/hosts")
    assert hosts["options"][-1] == "ro"


def test_a_privileged_container_is_open() -> None:
    sda = HostDevice(path="/dev/sda", type="b", major=8, minor=0)
    held = ("CAP_CHOWN", "CAP_SYS_ADMIN")
    spec = built(
        secured(privileged=True, masked_paths=("/proc/kcore",), readonly_paths=("/proc/sys",)),
        pod=privileged_pod(),
        host=capable_host(capabilities=held),
        host_devices=(sda,),
    )
    linux = spec["linux"]
    assert spec["process"]["capabilities"]["bounding"] == list(held)
    assert {"maskedPaths", "readonlyPaths", "seccomp"}.isdisjoint(linux)
    assert linux["resources"]["devices"] == [{"allow": True, "access": "rwm"}]
    assert [device["path"] for device in linux["devices"]] == ["/dev/sda"]
    assert next(mount for mount in spec["mounts"] if mount["destination"] == "/sys")["options"][-1] == "rw"


def test_the_hosts_devices_are_not_for_others() -> None:
    sda = HostDevice(path="/dev/sda", type="b", major=8, minor=0)
    assert "devices" not in built(host_devices=(sda,))["linux"]


def test_a_container_of_a_pod_that_is_not_privileged_cannot_be() -> None:
    with pytest.raises(InvalidInput, match=r"security_context\.privileged"):
        built(secured(privileged=True))


def test_image_and_request_are_merged() -> None:
    image = ImageConfig(entrypoint=("/entry",), cmd=("x",), env=("A=1",), working_dir="/srv", volumes=("/v",))
    spec = built(
        config(command=(), args=("y",), envs=(("A", "2"),), tty=True),
        image=image,
        identity=Identity(uid=5, gid=6, supplemental_groups=(6, 7)),
        home="/home/five",
        volume_dirs={"/v": "/graph/volumes/1"},
    )
    process = spec["process"]
    assert process["args"] == ["/entry", "y"]
    assert process["cwd"] == "/srv"
    assert process["terminal"] is True
    assert process["user"] == {"uid": 5, "gid": 6, "additionalGids": [6, 7]}
    assert {"A=2", "TERM=xterm", "HOME=/home/five"} <= set(process["env"])
    assert "/v" in [mount["destination"] for mount in spec["mounts"]]


def test_a_request_takes_the_place_of_the_pods_file_and_of_an_image_volume() -> None:
    spec = built(
        config(
            mounts=(Mount(container_path="/etc/hosts", host_path="/h"), Mount(container_path="/v", host_path="/mine"))
        ),
        image=ImageConfig(volumes=("/v",)),
        volume_dirs={"/v": "/graph/volumes/1"},
    )
    sources = [mount["source"] for mount in spec["mounts"] if mount["destination"] in {"/etc/hosts", "/v"}]
    assert sources == ["/mine", "/h"]


def test_defaults_of_the_configuration() -> None:
    spec = built(
        defaults=Defaults(
            ulimits=(Ulimit(name="nofile", hard=9, soft=8),), umask=0o027, pids_limit=77, apparmor="ours"
        ),
        host=capable_host(apparmor=True),
    )
    assert spec["process"]["rlimits"] == [{"type": "RLIMIT_NOFILE", "hard": 9, "soft": 8}]
    assert spec["process"]["user"]["umask"] == 0o027
    assert spec["process"]["apparmorProfile"] == "ours"
    assert spec["linux"]["resources"]["pids"] == {"limit": 77}


def test_a_host_network_pod_has_the_hosts_name() -> None:
    spec = built(pod=pod(environment=PodEnvironment()))
    assert "HOSTNAME=node" in spec["process"]["env"]
    assert spec["linux"]["namespaces"] == [{"type": "pid"}, {"type": "mount"}]


def test_resources_and_oom_score() -> None:
    asked = config(resources=Resources(cpu_shares=2, memory_limit_bytes=1 << 20, oom_score_adj=-997))
    host = capable_host(can_lower_oom_score=False, oom_score_adj=-10)
    spec = built(asked, host=host)
    assert spec["process"]["oomScoreAdj"] == -10
    assert spec["linux"]["resources"]["memory"] == {"limit": 1 << 20, "swap": 1 << 20}
    assert spec["linux"]["resources"]["cpu"] == {"shares": 2}


def test_mapped_mounts_need_a_newer_version() -> None:
    mapping = (IdMapping(host_id=9, container_id=0, length=5),)
    mount = Mount(container_path="/d", host_path="/d", uid_mappings=mapping, gid_mappings=mapping)
    spec = built(config(mounts=(mount,)), handler=Handler(idmap_mounts=True))
    assert spec["ociVersion"] == "1.1.0"


def test_edits_of_devices_win() -> None:
    node = HostDevice(path="/dev/gpu", type="c", major=195, minor=0, permissions="none")
    edits = Edits(
        env=("A=device", "B=2"),
        devices=(node,),
        mounts=(EditMount(destination="/lib/x", source="/host/x", type="bind", options=("rbind", "ro")),),
        hooks=(StagedHook(stage="createContainer", hook=Hook(path="/bin/h", timeout=5)),),
        additional_gids=(0, 44, 7),
    )
    asked = config(envs=(("A", "request"),), mounts=(Mount(container_path="/lib/x", host_path="/request"),))
    spec = built(asked, edits=edits, identity=Identity(uid=5, gid=5, supplemental_groups=(5, 7)))
    assert spec["process"]["env"][-2:] == ["A=device", "B=2"]
    assert spec["process"]["user"]["additionalGids"] == [5, 7, 44]
    assert [mount["source"] for mount in spec["mounts"] if mount["destination"] == "/lib/x"] == ["/host/x"]
    assert spec["linux"]["devices"][0]["path"] == "/dev/gpu"
    assert all("major" not in rule for rule in spec["linux"]["resources"]["devices"])
    assert spec["hooks"] == {"createContainer": [{"path": "/bin/h", "timeout": 5}]}


def test_hooks_know_the_pods_annotations_and_the_command() -> None:
    when = When(annotations={"^team$": "^red"}, commands=("app$",))
    entry = HookEntry(stages=("poststop",), hook=Hook(path="/bin/h"), when=when)
    assert "hooks" not in built(hooks=(entry,))
    metadata = pod().config.metadata
    red = pod(config=PodConfig(metadata=metadata, annotations={"team": "red one"}))
    assert built(hooks=(entry,), pod=red)["hooks"] == {"poststop": [{"path": "/bin/h"}]}


def test_the_pause_container_holds_a_pid_namespace_and_can_do_nothing() -> None:
    spec = paused()
    assert spec["process"]["args"] == ["/pause"]
    assert spec["process"]["noNewPrivileges"] is True
    assert spec["process"]["oomScoreAdj"] == -998
    assert spec["root"]["readonly"] is True
    assert {"type": "pid"} in spec["linux"]["namespaces"]
    assert spec["linux"]["resources"]["cpu"] == {"shares": 2}
    assert spec["annotations"]["io.kubernetes.cri.container-type"] == "sandbox"


def test_the_pause_container_of_a_pod_in_the_hosts_pid_namespace_is_there_too() -> None:
    security = PodSecurity(namespaces=NamespaceOptions(pid=NamespaceMode.NODE))
    record = pod(config=msgspec.structs.replace(pod().config, security=security))
    assert "pid" not in [namespace["type"] for namespace in paused(pod=record)["linux"]["namespaces"]]


def test_the_pause_command_can_be_given() -> None:
    assert paused(args=("/bin/sleep", "inf"))["process"]["args"] == ["/bin/sleep", "inf"]


def test_an_exec_is_the_first_process_with_another_command() -> None:
    spec = build_container(
        inputs(
            secured(no_new_privs=True),
            identity=Identity(uid=5, gid=6),
            defaults=Defaults(ulimits=(Ulimit(name="nofile", hard=9, soft=8),)),
        )
    )
    process = json.loads(build_exec(spec, ("ls", "-l"), terminal=False))
    first = json.loads(spec)["process"]
    assert process == {**first, "args": ["ls", "-l"]}


def test_an_exec_at_a_terminal_says_so() -> None:
    process = json.loads(build_exec(build_container(inputs()), ("sh",), terminal=True))
    assert process["terminal"] is True
    assert process["env"][-1] == "TERM=xterm"
    spec = build_container(inputs(config(envs=(("TERM", "linux"),), tty=True)))
    plain = json.loads(build_exec(spec, ("sh",), terminal=False))
    assert "terminal" not in plain
    assert "TERM=linux" in json.loads(build_exec(spec, ("sh",), terminal=True))["env"]


@pytest.mark.parametrize("cmd", [(), ("",), ("a", "\0")])
def test_an_unusable_command_is_refused(cmd: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInput, match="cmd"):
        build_exec(build_container(inputs()), cmd, terminal=False)


@pytest.mark.parametrize("spec", [b"", b"{}", b'{"process":{"args":[]}}'])
def test_a_damaged_bundle_is_told(spec: bytes) -> None:
    with pytest.raises(DataLoss, match=r"config\.json"):
        build_exec(spec, ("ls",), terminal=False)

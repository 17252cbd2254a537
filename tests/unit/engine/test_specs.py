from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from isulad_py.model.container import Device, ImageSpec, Mount
from isulad_py.model.devices import HostDevice
from isulad_py.model.edits import Edits
from isulad_py.model.errors import FailedPrecondition, HostFailure, InvalidInput, NotFound, ResourceExhausted
from isulad_py.model.handlers import RuntimeHandler
from isulad_py.model.hooks import Hook, HookEntry, When
from isulad_py.model.image import ImageConfig
from isulad_py.model.resources import Resources
from isulad_py.model.security import (
    Capabilities,
    ContainerSecurity,
    NamespaceMode,
    NamespaceOptions,
    PodSecurity,
    ProfileKind,
    SecurityProfile,
)
from tests.unit.engine.node import IMAGE, Node, World


def spec_of(world: World, container_id: str) -> dict[str, Any]:
    return dict(json.loads(world.runtime.containers[container_id].launch.spec))  # type: ignore[index]


def pid_namespace(spec: dict[str, Any]) -> dict[str, Any]:
    return next(ns for ns in spec["linux"]["namespaces"] if ns["type"] == "pid")


def with_pid(mode: NamespaceMode, target: str = "") -> ContainerSecurity:
    return ContainerSecurity(namespaces=NamespaceOptions(pid=mode, target_id=target))


async def test_a_debugging_container_joins_its_target(node: Node, world: World) -> None:
    pod_id = await node.run_pod()
    target = await node.run_container(pod_id, name="target", security=with_pid(NamespaceMode.CONTAINER))
    debug = await node.create(pod_id, name="debug", security=with_pid(NamespaceMode.TARGET, target))
    pid = node.services.queries.container(target).processes.pid
    assert pid_namespace(spec_of(world, debug)) == {"type": "pid", "path": f"/proc/{pid}/ns/pid"}
    other = await node.run_pod("other")
    with pytest.raises(InvalidInput, match="target_id"):
        await node.create(other, security=with_pid(NamespaceMode.TARGET, target))
    await node.services.containers.stop(target, 0)
    with pytest.raises(FailedPrecondition, match="target_id"):
        await node.create(pod_id, name="late", security=with_pid(NamespaceMode.TARGET, target))


async def test_a_shared_pid_namespace_is_the_pause_containers(node: Node, world: World) -> None:
    pod_id = await node.run_pod(pid=NamespaceMode.POD)
    container_id = await node.create(pod_id, security=with_pid(NamespaceMode.POD))
    path = node.services.queries.pod(pod_id).environment.pidns_path
    assert pid_namespace(spec_of(world, container_id)) == {"type": "pid", "path": path}


async def test_image_volumes_are_mounted_and_given_back(node: Node, world: World) -> None:
    pod_id = await node.run_pod()
    volume = Mount(container_path="/data", image=ImageSpec(image=IMAGE), image_sub_path="sub")
    container_id = await node.create(pod_id, mounts=(volume,))
    [key] = world.layers.mounted_views
    mounts = {mount["destination"]: mount for mount in spec_of(world, container_id)["mounts"]}
    assert mounts["/data"]["source"] == f"/fake/views/{key}/sub"
    assert "ro" in mounts["/data"]["options"]
    image = node.services.images.require(IMAGE)
    [shown] = node.services.queries.container(container_id).mounts
    assert shown.image == ImageSpec(image=IMAGE, image_ref=image.id)
    assert node.services.registry.images_in_use()[image.id] == container_id
    await node.services.containers.remove(container_id)
    assert not world.layers.mounted_views
    with pytest.raises(NotFound):
        await node.create(pod_id, mounts=(Mount(container_path="/d", image=ImageSpec(image="no/such:image")),))
    assert not world.layers.mounted_views


async def test_a_localhost_seccomp_profile_is_read(node: Node, world: World) -> None:
    world.hostfiles.profiles["/profiles/one.json"] = b'{"defaultAction":"SCMP_ACT_ALLOW"}'
    pod_id = await node.run_pod()
    profile = SecurityProfile(kind=ProfileKind.LOCALHOST, localhost_ref="/profiles/one.json")
    container_id = await node.create(pod_id, security=ContainerSecurity(seccomp=profile))
    assert spec_of(world, container_id)["linux"]["seccomp"]["defaultAction"] == "SCMP_ACT_ALLOW"


def seccomp_file(path: str) -> SecurityProfile:
    return SecurityProfile(kind=ProfileKind.LOCALHOST, localhost_ref=path)


@pytest.mark.parametrize("pid", [NamespaceMode.CONTAINER, NamespaceMode.POD])
async def test_a_pods_seccomp_profile_must_be_there_with_or_without_a_pause_container(
    node: Node, world: World, pid: NamespaceMode
) -> None:
    world.hostfiles.profiles["/profiles/bad.json"] = b"{}"
    world.environments.faults.fail_once("create", HostFailure("refused too late"))
    for path, field in (("/profiles/none.json", "localhost_ref"), ("/profiles/bad.json", "seccomp: profile")):
        security = PodSecurity(namespaces=NamespaceOptions(pid=pid), seccomp=seccomp_file(path))
        with pytest.raises(InvalidInput, match=field):
            await node.run_pod(security=security)
    assert not any(world.traces().values())


async def test_a_privileged_pod_needs_no_seccomp_profile(node: Node) -> None:
    namespaces = NamespaceOptions(pid=NamespaceMode.POD)
    await node.run_pod(security=PodSecurity(namespaces=namespaces, privileged=True, seccomp=seccomp_file("/no/such")))


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"security": ContainerSecurity(privileged=True)}, r"^config\.linux\.security_context\.privileged"),
        (
            {"security": with_pid(NamespaceMode.TARGET, "nobody")},
            r"^config\.linux\.security_context\.namespace_options\.target_id: no container nobody in the pod",
        ),
        (
            {"security": ContainerSecurity(capabilities=Capabilities(add=("NONSENSE",)))},
            r"^config\.linux\.security_context\.capabilities\.add_capabilities",
        ),
        (
            {"security": ContainerSecurity(seccomp=seccomp_file("/no/such"))},
            r"^config\.linux\.security_context\.seccomp\.localhost_ref",
        ),
        ({"resources": Resources(cpu_shares=1)}, r"linux\.resources\.cpu_shares: 1 is not within"),
        (
            {"resources": Resources(memory_limit_bytes=1 << 26, memory_swap_limit_bytes=1 << 25)},
            r"linux\.resources\.memory_swap_limit_in_bytes: 33554432 is below",
        ),
        (
            {"devices": (Device(container_path="/dev/../x", host_path="/dev/null"),)},
            r"^config\.devices\[0\]\.container_path",
        ),
    ],
)
async def test_what_is_wrong_with_a_container_is_found_before_anything_is_made(
    node: Node, world: World, fields: dict[str, Any], complaint: str
) -> None:
    pod_id = await node.run_pod()
    before = world.traces()
    world.rootfs.faults.fail_once("prepare", HostFailure("refused too late"))
    with pytest.raises(InvalidInput, match=complaint):
        await node.create(pod_id, **fields)
    assert world.traces() == before


async def test_the_working_directory_is_made(node: Node, world: World) -> None:
    await node.create(await node.run_pod(), working_dir="/some/where")
    assert "/some/where" in {path for _, path in world.hostfiles.directories}


async def test_cdi_devices_come_by_field_and_by_annotation(node: Node, world: World) -> None:
    device = HostDevice(path="/dev/gpu0", type="c", major=195, minor=0)
    world.injections.declared["vendor.com/gpu=0"] = Edits(env=("GPU=0",), devices=(device,))
    pod_id = await node.run_pod()
    by_field = await node.create(pod_id, name="field", cdi_devices=("vendor.com/gpu=0",))
    by_annotation = await node.create(pod_id, name="note", annotations={"cdi.k8s.io/plugin_0": "vendor.com/gpu=0"})
    for container_id in (by_field, by_annotation):
        spec = spec_of(world, container_id)
        assert "GPU=0" in spec["process"]["env"]
        assert spec["linux"]["devices"][0]["path"] == "/dev/gpu0"
    before = world.traces()
    for name in ("vendor.com/gpu=1", "nonsense", "", "a/b=c\n"):
        with pytest.raises(InvalidInput, match=r"config\.CDI_devices\[1\]"):
            await node.create(pod_id, name="bad", cdi_devices=("vendor.com/gpu=0", name))
    assert world.traces() == before


async def test_hooks_of_the_operator_reach_containers(node: Node, world: World) -> None:
    hook = Hook(path="/bin/hook", args=("hook", "one"))
    world.injections.entries = (HookEntry(stages=("prestart",), hook=hook, when=When(always=True)),)
    container_id = await node.create(await node.run_pod())
    assert spec_of(world, container_id)["hooks"] == {"prestart": [{"path": "/bin/hook", "args": ["hook", "one"]}]}


async def test_the_default_apparmor_profile_is_loaded_for_whoever_is_not_privileged(world: World) -> None:
    world.host["apparmor"] = True
    async with world.daemon() as node:
        await node.pull()
        pid = NamespaceOptions(pid=NamespaceMode.CONTAINER)
        pod_id = await node.run_pod(security=PodSecurity(privileged=True, namespaces=pid))
        above = await node.create(pod_id, name="above", security=ContainerSecurity(privileged=True))
        assert "apparmorProfile" not in spec_of(world, above)["process"]
        assert world.profiles.loaded == set()
        plain = await node.create(pod_id, name="plain")
        assert spec_of(world, plain)["process"]["apparmorProfile"] == "isulad-default"
        assert world.profiles.loaded == {"isulad-default"}


async def test_a_localhost_apparmor_profile_must_be_loaded(world: World) -> None:
    world.host["apparmor"] = True
    world.profiles.loaded.add("mine")
    async with world.daemon() as node:
        await node.pull()
        pod_id = await node.run_pod(security=PodSecurity(privileged=True))
        mine = SecurityProfile(kind=ProfileKind.LOCALHOST, localhost_ref="localhost/mine")
        container_id = await node.create(pod_id, name="mine", security=ContainerSecurity(apparmor=mine))
        assert spec_of(world, container_id)["process"]["apparmorProfile"] == "mine"
        before = world.traces()
        for privileged in (False, True):
            other = SecurityProfile(kind=ProfileKind.LOCALHOST, localhost_ref="localhost/other")
            with pytest.raises(InvalidInput, match=r"security_context\.apparmor\.localhost_ref"):
                security = ContainerSecurity(apparmor=other, privileged=privileged)
                await node.create(pod_id, name="other", security=security)
        assert world.traces() == before


async def test_a_pods_apparmor_profile_is_its_pause_containers(world: World) -> None:
    world.host["apparmor"] = True
    async with world.daemon() as node:
        other = SecurityProfile(kind=ProfileKind.LOCALHOST, localhost_ref="other")
        with pytest.raises(InvalidInput, match="localhost_ref"):
            await node.run_pod(pid=NamespaceMode.POD, security=PodSecurity(apparmor=other))
        assert not any(world.traces().values())


async def test_a_handlers_annotations_profile_and_mode(world: World, tmp_path: Path) -> None:
    profile = tmp_path / "seccomp.json"
    profile.write_text('{"defaultAction":"SCMP_ACT_ERRNO","syscalls":[{"names":["mkdir"],"action":"SCMP_ACT_ALLOW"}]}')
    world.handler = RuntimeHandler(
        name="runc", annotations=("run.oci.*", "exact"), sandbox_mode="pause", seccomp_profile=str(profile)
    )
    async with world.daemon() as node:
        await node.pull()
        pod_id = await node.run_pod(annotations={"run.oci.a": "1", "other": "2", "exact.not": "3"})
        confined = ContainerSecurity(seccomp=SecurityProfile(kind=ProfileKind.RUNTIME_DEFAULT))
        container_id = await node.create(pod_id, annotations={"exact": "4", "run.oci.a": "5"}, security=confined)
        pause, spec = spec_of(world, pod_id), spec_of(world, container_id)
        wanted = ("run.oci.a", "other", "exact.not", "exact")
        assert [pause["annotations"].get(key) for key in wanted] == ["1", None, None, None]
        assert [spec["annotations"].get(key) for key in wanted] == ["5", None, None, "4"]
        assert [rule["names"] for rule in spec["linux"]["seccomp"]["syscalls"]] == [["mkdir"]]


@pytest.mark.parametrize(("mode", "held"), [("", True), ("namespaces", False), ("pause", True)])
async def test_a_handlers_own_mode_comes_before_that_of_all(world: World, mode: str, *, held: bool) -> None:
    world.handler = RuntimeHandler(name="runc", sandbox_mode=mode)
    async with world.daemon(pod_sandbox_mode="pause") as node:
        pod_id = await node.run_pod()
        assert (pod_id in world.runtime.containers) is held


async def test_a_handlers_profile_is_read_at_the_start(world: World, tmp_path: Path) -> None:
    world.handler = RuntimeHandler(name="runc", seccomp_profile=str(tmp_path / "none"))
    with pytest.raises(InvalidInput, match="runtimes: runc: seccomp-profile: "):
        async with world.daemon():
            pass


async def test_volumes_of_the_image_are_directories_of_the_container(node: Node, world: World) -> None:
    world.source.offer("db:1", content="db", config=ImageConfig(cmd=("serve",), volumes=("/data", "/mine")))
    await node.services.images.pull(ImageSpec(image="db:1"), None)
    pod_id = await node.run_pod()
    asked = (Mount(container_path="/mine", host_path="/srv"),)
    container_id = await node.create(pod_id, image=ImageSpec(image="db:1"), mounts=asked)
    assert world.rootfs.filled == {container_id: ("/data",)}
    mounted = {mount["destination"]: mount["source"] for mount in spec_of(world, container_id)["mounts"]}
    assert (mounted["/data"], mounted["/mine"]) == (world.rootfs.volumes(container_id, ["/data"])["/data"], "/srv")
    shown = node.services.queries.container(container_id).mounts
    assert [mount.container_path for mount in shown] == ["/mine"]
    world.rootfs.faults.fail_once("fill_volumes", ResourceExhausted("too much"))
    before = world.traces()
    with pytest.raises(ResourceExhausted):
        await node.create(pod_id, name="second", image=ImageSpec(image="db:1"))
    assert world.traces() == before
    await node.services.containers.remove(container_id)
    assert world.rootfs.filled == {}

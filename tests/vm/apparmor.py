"""AppArmor profiles on a kernel that has them: which one a container's processes run under, and that it holds."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from isulad_py.spec.apparmor_default import NAME
from tests.stand.node import Node
from tests.vm.world import process_of

OWN = "stand-no-writes"
PROFILE = f"""\
profile {OWN} flags=(attach_disconnected) {{
  file,
  capability,
  signal,
  deny /** w,
}}
"""
LOADED = Path("/sys/kernel/security/apparmor/profiles")


@pytest.fixture(autouse=True)
def own_profile() -> Iterator[None]:
    parse("--replace", PROFILE)
    yield
    parse("--remove", PROFILE)


def parse(action: str, text: str) -> None:
    argv = ["apparmor_parser", action, "--skip-cache"]
    subprocess.run(argv, input=text.encode(), check=True, capture_output=True, timeout=60)


def secured(node: Node, *command: str, **security: Any) -> Any:
    config = node.container_config(*command)
    config.linux.security_context.MergeFrom(node.m.LinuxContainerSecurityContext(**security))
    return config


def started(node: Node, *command: str, **security: Any) -> str:
    container_id = node.create(node.run_pod(), secured(node, *command, **security))
    node.start(container_id)
    return container_id


def profile(node: Node, kind: str, ref: str = "") -> dict[str, Any]:
    profile_type = getattr(node.m.SecurityProfile, kind)
    return {"apparmor": node.m.SecurityProfile(profile_type=profile_type, localhost_ref=ref)}


def under(node: Node, container_id: str) -> set[str]:
    """Of the first process, as the host sees it, and of an exec."""
    first = Path(f"/proc/{process_of(node, container_id)}/attr/current").read_text().strip("\0\n")
    second = node.exec(container_id, "cat", "/proc/self/attr/current").stdout.decode().strip("\0\n")
    return {first, second}


def test_who_asks_for_nothing_gets_the_default(node: Node) -> None:
    assert under(node, started(node)) == {f"{NAME} (enforce)"}


def test_the_default_is_loaded_anew_after_the_host_unloaded_it(node: Node) -> None:
    config = node.pod_config()
    pod_id = node.run_pod(config)
    node.run_container(pod_id, name="first")
    parse("--remove", f"profile {NAME} {{}}")
    assert NAME not in LOADED.read_text()
    container_id = node.create(pod_id, secured(node, **profile(node, "RuntimeDefault")))
    node.start(container_id)
    assert under(node, container_id) == {f"{NAME} (enforce)"}


def test_unconfined_and_privileged_go_without(node: Node) -> None:
    assert under(node, started(node, **profile(node, "Unconfined"))) == {"unconfined"}
    config = node.pod_config("above")
    config.linux.security_context.privileged = True
    above = node.create(node.run_pod(config), secured(node, privileged=True))
    node.start(above)
    assert under(node, above) == {"unconfined"}


@pytest.mark.parametrize("form", ["field", "older field", "both"])
def test_a_profile_of_the_hosts_holds(node: Node, form: str) -> None:
    security = profile(node, "Localhost", OWN) if form != "older field" else {"apparmor_profile": f"localhost/{OWN}"}
    if form == "both":
        security["apparmor_profile"] = "localhost/nowhere"  # the newer field counts (CRI)
    container_id = started(node, **security)
    assert under(node, container_id) == {f"{OWN} (enforce)"}
    assert node.exec(container_id, "touch", "/tmp/file").exit_code != 0
    assert node.exec(container_id, "cat", "/etc/passwd").exit_code == 0


@pytest.mark.parametrize("form", ["field", "older field", "privileged"])
def test_a_profile_that_is_not_loaded_is_refused_by_name(node: Node, form: str) -> None:
    security = profile(node, "Localhost", "nowhere")
    if form == "older field":
        security = {"apparmor_profile": "localhost/nowhere"}
    pod = node.pod_config("p")
    if form == "privileged":
        pod.linux.security_context.privileged = security["privileged"] = True
    request = node.m.CreateContainerRequest(pod_sandbox_id=node.run_pod(pod), config=secured(node, **security))
    code, words = node.fails("CreateContainer", request)
    assert code == "INVALID_ARGUMENT"
    assert "security_context.apparmor.localhost_ref" in words
    assert "'nowhere' is not loaded" in words
    assert node.containers() == []


@pytest.mark.parametrize(
    ("script", "allowed"),
    [
        ("echo 3 > /proc/sys/vm/drop_caches", False),
        ("echo b > /proc/sysrq-trigger", False),
        ("echo 1 > /proc/sys/kernel/panic", False),
        ("head -c 1 /proc/kcore", False),
        ("mkdir /m && mount -t tmpfs none /m", False),
        ("echo 0 > /sys/kernel/mm/ksm/run", False),
        ("ls /sys/firmware/acpi", False),
        ("ls /sys/kernel/security/apparmor", False),
        ("sleep 100 & kill $!", True),
        ("echo here > /tmp/file && chmod 600 /tmp/file && cat /proc/sys/vm/swappiness /sys/kernel/mm/ksm/run", True),
        ("umount /dev/mqueue", True),
    ],
)
def test_what_the_default_forbids_even_to_the_capable(node: Node, script: str, *, allowed: bool) -> None:
    """With the capabilities for it and nothing masked: what stands in the way is the profile, as a second run without
    it shows."""
    capable: dict[str, Any] = {"capabilities": node.m.Capability(add_capabilities=["SYS_ADMIN", "SYS_RAWIO"])}
    confined, free = (
        secured(node, **capable, **profile(node, kind)) for kind in ("RuntimeDefault", "Unconfined")
    )  # fmt: skip
    pod_id = node.run_pod()
    codes = []
    for name, config in (("confined", confined), ("free", free)):
        config.metadata.name = name
        config.log_path = f"{name}.log"
        container_id = node.create(pod_id, config)
        node.start(container_id)
        if "sysrq" in script and name == "free":
            continue  # it would restart the machine
        # /proc and /sys are read-only for others than the privileged: again, so that only the profile says no.
        node.exec(container_id, "sh", "-c", "mount -o remount,rw /proc; mount -o remount,rw /sys")
        codes.append(node.exec(container_id, "sh", "-c", script).exit_code)
    assert (codes[0] == 0) is allowed


def test_signals_reach_those_they_should(node: Node) -> None:
    """Of the daemon, and of each other in a shared PID namespace."""
    config = node.pod_config("shared")
    config.linux.security_context.namespace_options.pid = node.m.POD
    pod_id = node.run_pod(config)
    ids = []
    for name in ("one", "two"):
        asked = node.container_config("sh", "-c", "trap 'exit 7' TERM USR1; while :; do sleep 0.1; done", name=name)
        asked.linux.security_context.namespace_options.pid = node.m.POD
        ids.append(node.create(pod_id, asked))
        node.start(ids[-1])
    found = node.exec(
        ids[0], "sh", "-c", "for p in /proc/[0-9]*; do grep -qs 'exi[t] 7' $p/cmdline && echo ${p#/proc/}; done"
    )
    pids = found.stdout.decode().split()
    assert len(pids) >= 2
    assert node.exec(ids[0], "kill", "-USR1", *pids).exit_code == 0
    assert [node.wait_exit(each).exit_code for each in ids] == [7, 7]
    last = started(node, "sh", "-c", "trap 'exit 9' TERM; while :; do sleep 0.1; done")
    node.stop(last, timeout=30)
    assert node.status(last).exit_code == 9


def test_a_pods_profile_is_its_pause_containers(node: Node) -> None:
    config = node.pod_config("paused")
    config.linux.security_context.namespace_options.pid = node.m.POD
    config.linux.security_context.apparmor.profile_type = node.m.SecurityProfile.Localhost
    config.linux.security_context.apparmor.localhost_ref = "nowhere"
    code, words = node.fails("RunPodSandbox", node.m.RunPodSandboxRequest(config=config))
    assert (code, "localhost_ref" in words) == ("INVALID_ARGUMENT", True)
    config.linux.security_context.apparmor.localhost_ref = OWN
    pod_id = node.run_pod(config)
    asked = node.container_config("sleep", "1000")
    asked.linux.security_context.namespace_options.pid = node.m.POD
    container_id = node.create(pod_id, asked)
    node.start(container_id)
    pause = Path(f"/proc/{process_of(node, container_id)}/root/proc/1/attr/current")
    assert pause.read_text().strip("\0\n") == f"{OWN} (enforce)"

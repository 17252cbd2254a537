"""Run inside the emulated machine (tests/vm/run): the unit file under a real systemd, with cgroup v2 alone.

Emulated code is some ten times slower, hence the generous bounds.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import images
from tests.stand.daemon import StandDaemon
from tests.stand.mark import make_mark
from tests.stand.network import stand_network
from tests.stand.node import Node
from tests.stand.registry import registry

PROJECT = Path(__file__).resolve().parents[2]
UNIT = "isulad.service"
CONFIG = Path("/etc/isulad/daemon.json")
WATCHDOG_SECONDS = 15
DROP_IN = f"""[Service]
Environment=PYTHONPATH={os.environ.get("PYTHONPATH", "")}
WatchdogSec={WATCHDOG_SECONDS}
"""

pytestmark = pytest.mark.timeout(300)


def systemctl(*arguments: str, check: bool = True) -> str:
    done = subprocess.run(["systemctl", *arguments], capture_output=True, text=True, check=False)
    assert not check or done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}\n{journal()}"
    return done.stdout.strip()


def journal() -> str:
    """What the daemon said."""
    return subprocess.run(
        ["journalctl", "-u", UNIT, "-o", "cat", "--no-pager"], capture_output=True, text=True, check=True
    ).stdout


def show(name: str) -> str:
    return systemctl("show", "--property", name, "--value", UNIT)


def main_pid() -> int:
    return int(show("MainPID"))


def wait(condition: Callable[[], Any], seconds: float = 120) -> Any:
    """The condition's first true value."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"not within {seconds} s; the daemon said:\n{journal()}"
        time.sleep(0.2)


def get(path: str) -> tuple[int, str]:
    port = Path("/run/isulad/health.port").read_text().strip()
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def write_config(**keys: Any) -> None:
    CONFIG.parent.mkdir(exist_ok=True)
    CONFIG.write_text(json.dumps({"log-format": "json", "systemd-cgroup": True, **keys}))


@pytest.fixture(scope="module")
def installed() -> None:
    shutil.copy(PROJECT / "systemd" / UNIT, "/etc/systemd/system")
    drop_in = Path("/etc/systemd/system/isulad.service.d/vm.conf")
    drop_in.parent.mkdir()
    drop_in.write_text(DROP_IN)
    command = Path("/usr/bin/isulad")
    command.write_text('#!/bin/sh\nexec python3 -m isulad_py "$@"\n')
    command.chmod(0o755)
    write_config()
    systemctl("daemon-reload")


@pytest.fixture
def daemon(installed: None) -> Iterator[int]:
    """Started and ready; gives its pid."""
    systemctl("reset-failed", UNIT, check=False)
    systemctl("start", UNIT)
    yield main_pid()
    systemctl("stop", UNIT)


def test_it_is_ready_when_systemd_says_so(daemon: int) -> None:
    assert show("ActiveState") == "active"
    assert show("StatusText").startswith("serving on unix:///var/run/isulad.sock")
    assert get("/healthz") == (200, "ok\n")
    limits = Path(f"/proc/{daemon}/limits").read_text()
    assert "1048576" in next(line for line in limits.splitlines() if line.startswith("Max open files"))
    assert Path(f"/proc/{daemon}/oom_score_adj").read_text().strip() == "-999"
    assert (show("Delegate"), show("KillMode")) == ("yes", "process")
    assert Path("/run/isulad.pid").read_text().strip() == str(daemon)


def test_reload_keeps_the_process(daemon: int) -> None:
    write_config(**{"log-level": "DEBUG", "graph": "/var/lib/elsewhere"})
    try:
        systemctl("reload", UNIT)
        wait(lambda: "configuration reloaded" in journal())
        assert "need a restart" in journal()
        assert main_pid() == daemon
        wait(lambda: show("ActiveState") == "active")
    finally:
        write_config()


def test_a_killed_daemon_is_started_again(daemon: int) -> None:
    os.kill(daemon, signal.SIGKILL)
    wait(lambda: main_pid() not in {0, daemon} and show("ActiveState") == "active")
    assert get("/healthz")[0] == 200


def test_a_loop_that_hangs_is_noticed(daemon: int) -> None:
    restarts = int(show("NRestarts"))
    os.kill(daemon, signal.SIGSTOP)
    try:
        wait(lambda: int(show("NRestarts")) > restarts and show("ActiveState") == "active")
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(daemon, signal.SIGCONT)
    assert "watchdog" in journal().lower() or show("NRestarts") != str(restarts)


def test_a_wrong_file_is_a_failure_with_its_findings(installed: None) -> None:
    CONFIG.write_text('{"graph": 7, "statee": "/x"}')
    try:
        systemctl("start", UNIT, check=False)
        wait(lambda: show("ActiveState") in {"failed", "activating"})
        for words in ("graph: expected str, got int", "did you mean state?"):
            assert words in journal()
    finally:
        write_config()
        systemctl("stop", UNIT)


def test_a_second_daemon_is_refused(daemon: int) -> None:
    done = subprocess.run(["/usr/bin/isulad"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"in use by another isulad, pid {daemon}" in done.stderr
    assert main_pid() == daemon


@pytest.fixture(scope="module")
def node(installed: None) -> Iterator[Node]:
    """Registry, image and network; the daemon is systemd's to start."""
    mark = make_mark("vm")
    with contextlib.ExitStack() as stack:
        host = stack.enter_context(registry(mark.root / "registry"))
        images.push(host, "test/busybox", "latest", images.busybox_image())
        network = stack.enter_context(stand_network(mark, mark.root / "cni"))
        write_config(**{"cni-conf-dir": str(network.conf_dir), "cni-bin-dir": str(network.bin_dir)})
        systemctl("restart", UNIT)
        daemon = StandDaemon(mark.root, {"hosts": ["unix:///run/isulad.sock"]})
        made = Node(
            mark, daemon, network, host, Path("/var/lib/isulad"), Path("/run/isulad"), f"{host}/test/busybox:latest"
        )
        stack.callback(made.reconnect)
        made.pull()
        yield made
        systemctl("start", UNIT)
        made.reconnect()
        made.clear_pods()
        systemctl("stop", UNIT)


def process_of(node: Node, container_id: str) -> int:
    request = node.m.ContainerStatusRequest(container_id=container_id, verbose=True)
    return int(json.loads(node.call("ContainerStatus", request).info["info"])["pid"])


@pytest.mark.parametrize("ending", ["kill", "hang", "restart", "stop and start"])
def test_containers_outlive_the_daemon(node: Node, ending: str) -> None:
    systemctl("start", UNIT)
    node.reconnect()
    container_id = node.run_container(node.run_pod())
    process, before = process_of(node, container_id), main_pid()
    if ending == "kill":
        os.kill(before, signal.SIGKILL)
    elif ending == "hang":
        os.kill(before, signal.SIGSTOP)
    elif ending == "restart":
        systemctl("restart", UNIT)
    else:
        systemctl("stop", UNIT)
        assert Path(f"/proc/{process}").exists()
        systemctl("start", UNIT)
    wait(lambda: main_pid() not in {0, before} and show("ActiveState") == "active")
    node.reconnect()
    assert process_of(node, container_id) == process
    assert node.status(container_id).state == node.m.CONTAINER_RUNNING
    assert node.exec(container_id, "echo", "still here").stdout == b"still here\n"
    node.stop(container_id)
    assert node.status(container_id).exit_code == 137


def test_systemd_makes_the_cgroups(node: Node) -> None:
    """And what is asked for stands in the files of cgroup v2."""
    systemctl("start", UNIT)
    node.reconnect()
    config = node.container_config()
    config.linux.resources.memory_limit_in_bytes = 64 * 1024 * 1024
    config.linux.resources.cpu_quota = 50_000
    config.linux.resources.cpu_period = 100_000
    container_id = node.create(node.run_pod(), config)
    node.start(container_id)
    path = Path(f"/proc/{process_of(node, container_id)}/cgroup").read_text().strip().removeprefix("0::")
    assert ".slice/" in path
    assert path.endswith(".scope")
    folder = Path("/sys/fs/cgroup") / path.lstrip("/")
    assert (folder / "memory.max").read_text().strip() == str(64 * 1024 * 1024)
    assert (folder / "cpu.max").read_text().strip() == "50000 100000"
    request = node.m.ContainerStatsRequest(container_id=container_id)
    stats = node.call("ContainerStats", request).stats
    assert stats.memory.working_set_bytes.value > 0
    assert stats.cpu.usage_core_nano_seconds.value > 0

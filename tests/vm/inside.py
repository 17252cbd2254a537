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

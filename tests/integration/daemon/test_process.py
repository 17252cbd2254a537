"""The daemon as a process: refusals, signals, the health endpoint, its memory at rest."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.stand.disk import memory_disk
from tests.stand.leftovers import clear
from tests.stand.mark import make_mark

pytestmark = pytest.mark.root

PROJECT = Path(__file__).resolve().parents[3]
IDLE_PSS_MB = 60


class Isulad:
    """One daemon in folders of its own."""

    def __init__(self, root: Path, state: Path, parent: str) -> None:
        self.root = root
        self.state = state
        self.file = root / "daemon.json"
        self.log = root / "log"
        self.keys: dict[str, Any] = {
            "graph": str(root / "graph"),
            "state": str(state / "isulad"),
            "hosts": [f"unix://{state}/isulad.sock"],
            "group": "root",
            "metrics-port": 0,
            "websocket-server-listening-port": 0,
            "cni-conf-dir": str(root / "net.d"),
            "cgroup-parent": parent,
            "log-format": "json",
        }
        self.process: subprocess.Popen[bytes] | None = None
        (root / "net.d").mkdir()

    def spawn(self, **keys: Any) -> subprocess.Popen[bytes]:
        self.file.write_text(json.dumps({**self.keys, **{name.replace("_", "-"): v for name, v in keys.items()}}))
        with self.log.open("ab") as log:
            command = [sys.executable, "-m", "isulad_py", "--config", str(self.file)]
            return subprocess.Popen(command, cwd=PROJECT, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def start(self, **keys: Any) -> None:
        self.process = self.spawn(**keys)
        self.wait_for("ready")

    def wait_for(self, event: str, seconds: float = 30) -> dict[str, Any]:
        """The first line with that event; it polls, because a log gives no sign."""
        deadline = time.monotonic() + seconds
        while True:
            for line in self.lines():
                if line["event"] == event:
                    return line
            assert time.monotonic() < deadline, f"no {event!r} in:\n{self.log.read_text()}"
            time.sleep(0.02)

    def lines(self) -> list[dict[str, Any]]:
        text = self.log.read_text() if self.log.exists() else ""
        return [json.loads(line) for line in text.splitlines() if line.startswith("{") and line.endswith("}")]

    def end(self, number: int = signal.SIGTERM) -> int:
        process, self.process = self.process, None
        if process is None:
            return 0
        process.send_signal(number)
        try:
            return process.wait(30)
        finally:
            process.kill()
            process.wait()

    def get(self, path: str) -> tuple[int, bytes]:
        port = (self.state / "isulad/health.port").read_text().strip()
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()


@pytest.fixture
def isulad() -> Iterator[Isulad]:
    mark = make_mark("proc")
    try:
        with memory_disk(mark) as state:
            made = Isulad(mark.root, state, mark.cgroup_parent)
            try:
                yield made
            finally:
                made.end(signal.SIGKILL)
    finally:
        clear(mark)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_starts_serves_and_ends(isulad: Isulad, number: int) -> None:
    isulad.start()
    assert isulad.get("/healthz") == (200, b"ok\n")
    assert b"process_resident_memory_bytes" in isulad.get("/metrics")[1]
    assert isulad.end(number) == 0
    assert isulad.wait_for("stopped")["reason"] == signal.Signals(number).name
    assert not (isulad.state / "isulad.pid").exists()
    assert not (isulad.state / "isulad/health.port").exists()
    assert [line for line in isulad.lines() if line["level"] in {"error", "crit"}] == []


def test_readiness_has_reasons(isulad: Isulad) -> None:
    """Without a CNI configuration the node can run host-network pods only."""
    isulad.start()
    status, body = isulad.get("/readyz")
    assert status == 503
    assert "network" in json.loads(body)["reasons"]


def test_a_second_daemon_is_refused_and_harms_nobody(isulad: Isulad) -> None:
    isulad.start()
    assert isulad.process is not None
    other = isulad.spawn()
    assert other.wait(30) == 1
    assert f"in use by another isulad, pid {isulad.process.pid}" in isulad.log.read_text()
    assert isulad.get("/healthz")[0] == 200
    assert (isulad.state / "isulad.pid").read_text().strip() == str(isulad.process.pid)


def test_a_killed_daemon_is_no_obstacle(isulad: Isulad) -> None:
    isulad.start()
    isulad.end(signal.SIGKILL)
    isulad.log.unlink()
    isulad.start()
    assert isulad.end() == 0


def test_hangup_reloads(isulad: Isulad) -> None:
    isulad.start()
    assert isulad.process is not None
    changed = {**isulad.keys, "log-level": "ERROR", "metrics-port": 1}
    isulad.file.write_text(json.dumps(changed))
    isulad.process.send_signal(signal.SIGHUP)
    assert isulad.wait_for("these keys changed, and need a restart")["keys"] == "metrics-port"
    isulad.file.write_text("{")
    isulad.process.send_signal(signal.SIGHUP)
    isulad.wait_for("configuration not reloaded: the former one stays in force")
    assert isulad.get("/healthz")[0] == 200
    assert isulad.end() == 0


def test_a_wrong_configuration_is_refused_with_every_finding(isulad: Isulad) -> None:
    assert isulad.spawn(graph="relative", hosts=["tcp://1.2.3.4:1"], monitor="/no/conmon").wait(30) == 1
    said = isulad.log.read_text()
    for key in ("graph:", "hosts:", "monitor:"):
        assert key in said


def test_a_taken_metrics_port_is_told(isulad: Isulad) -> None:
    isulad.start()
    port = int((isulad.state / "isulad/health.port").read_text())
    other = isulad.spawn(
        metrics_port=port, graph=str(isulad.root / "g2"), state=str(isulad.state / "s2"), hosts=["unix:///s2.sock"]
    )
    assert other.wait(30) == 1
    assert f"metrics-port: cannot listen on 127.0.0.1:{port}" in isulad.wait_for("cannot start")["error"]


def test_memory_at_rest(isulad: Isulad) -> None:
    isulad.start()
    assert isulad.process is not None
    rollup = Path(f"/proc/{isulad.process.pid}/smaps_rollup").read_text()
    pss_kb = int(next(line.split()[1] for line in rollup.splitlines() if line.startswith("Pss:")))
    assert pss_kb < IDLE_PSS_MB * 1000

"""Our daemon on a stand: its configuration, its start, its end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc

from tests.cri_client import connect
from tests.stand.mark import Mark
from tests.stand.network import StandNetwork
from tests.stand.registry import end_process
from tests.stand.variant import KEYS, PATIENCE

PROJECT = Path(__file__).resolve().parent.parent.parent


@dataclass
class StandDaemon:
    """A daemon that can be started, killed and started again on the same folders."""

    folder: Path
    config: dict[str, Any]
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def address(self) -> str:
        return str(self.config["hosts"][0])

    @property
    def metrics_url(self) -> str:
        """The daemon picks the port and says it in a file."""
        port = (Path(self.config["state"]) / "health.port").read_text(encoding="ascii").strip()
        return f"http://127.0.0.1:{port}/metrics"

    @property
    def log(self) -> Path:
        return self.folder / "isulad.log"

    def start(self, *, seconds: float = 20, environment: Mapping[str, str] | None = None) -> None:
        """Start it and wait until it answers Version; what it said is in the error where it does not."""
        config = self.folder / "daemon.json"
        config.write_text(json.dumps(self.config, indent=2), encoding="utf-8")
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "isulad_py", "--config", str(config)],
                cwd=PROJECT,
                env={**os.environ, **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # ctrl-C in the terminal is ours to pass on, in order
            )
        try:
            self._wait_answering(seconds * PATIENCE)
        except BaseException:
            self.stop()
            raise

    def _wait_answering(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        with connect(self.address) as cri:
            while True:
                try:
                    cri.runtime.Version(cri.m.VersionRequest(), timeout=2)
                    return
                except grpc.RpcError as error:
                    ended = self.process is None or self.process.poll() is not None
                    if ended or time.monotonic() > deadline:
                        state = "ended" if ended else f"does not answer within {seconds:g} s"
                        raise OSError(f"the daemon {state}; its last words:\n{self.last_words()}") from error
                time.sleep(0.02)

    def image_command(self, *argv: str) -> list[str]:
        """`isulad image` for this daemon."""
        return [sys.executable, "-m", "isulad_py", "image", "--host", self.address, *argv]

    def image(self, *argv: str) -> tuple[int, str, str]:
        """Status, output and errors of that command."""
        command = self.image_command(*argv)
        done = subprocess.run(command, cwd=PROJECT, check=False, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout, done.stderr

    def stop(self) -> int:
        """SIGTERM, wait, and SIGKILL where that did not help; gives the exit status."""
        process, self.process = self.process, None
        return end_process(process) if process else 0

    def kill(self) -> None:
        """SIGKILL, as a crash is; containers and monitors stay."""
        process, self.process = self.process, None
        if process:
            process.kill()
            process.wait()

    def last_words(self, lines: int = 15) -> str:
        text = self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])


@contextmanager
def stand_daemon(mark: Mark, graph: Path, state: Path, network: StandNetwork, **keys: Any) -> Iterator[StandDaemon]:
    """A running daemon beside whatever else runs; `keys` are more keys of daemon.json, - written as _."""
    config: dict[str, Any] = {
        "hosts": [f"unix://{state}/isulad.sock"],
        "graph": str(graph),
        "state": str(state / "isulad"),
        "pidfile": str(state / "isulad.pid"),
        "group": "root",
        "cgroup-parent": mark.cgroup_parent,
        "cni-bin-dir": [str(network.bin_dir)],
        "cni-conf-dir": str(network.conf_dir),
        "websocket-server-listening-port": 0,
        "metrics-port": 0,
        "log-level": "INFO",
        **KEYS,
        **{name.replace("_", "-"): value for name, value in keys.items()},
    }
    daemon = StandDaemon(mark.root, config)
    daemon.start()
    try:
        yield daemon
    finally:
        daemon.stop()

"""A real registry (docker-registry) on a random loopback port, with its storage in the stand."""

from __future__ import annotations

import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.stand.mark import find_program

CONFIG = """\
version: 0.1
log: {{level: error, accesslog: {{disabled: true}}}}
storage:
  filesystem: {{rootdirectory: {storage}}}
  delete: {{enabled: true}}
http: {{addr: "127.0.0.1:{port}"}}
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def registry(folder: Path) -> Iterator[str]:
    """Serve from the folder; gives host:port. Another port is tried where someone else took ours first."""
    folder.mkdir(parents=True, exist_ok=True)
    for _ in range(5):
        port = free_port()
        config = folder / "registry.yml"
        config.write_text(CONFIG.format(storage=folder / "storage", port=port), encoding="utf-8")
        with (folder / "registry.log").open("ab") as log:
            server = subprocess.Popen(
                [find_program("docker-registry"), "serve", str(config)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # ctrl-C in the terminal is ours to pass on, in order
            )
        try:
            if _wait_served(server, port):
                yield f"127.0.0.1:{port}"
                return
        finally:
            end_process(server)
    raise OSError(f"the registry does not start: {(folder / 'registry.log').read_text(encoding='utf-8')[-500:]}")


def _wait_served(server: subprocess.Popen[bytes], port: int, seconds: float = 15) -> bool:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with direct.open(f"http://127.0.0.1:{port}/v2/", timeout=2):
                return server.poll() is None
        except (OSError, urllib.error.URLError):
            time.sleep(0.02)
    return False


def end_process(process: subprocess.Popen[bytes], grace_seconds: float = 10) -> int:
    """Terminate, wait, kill, reap; gives the exit status."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(grace_seconds)
        except subprocess.TimeoutExpired:
            process.kill()
    return process.wait()

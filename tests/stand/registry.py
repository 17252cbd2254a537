"""A real registry (docker-registry) on a random loopback port, with its storage in the stand."""

from __future__ import annotations

import http.client
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.stand.certificates import Certificates
from tests.stand.mark import find_program, run

CONFIG = """\
version: 0.1
log: {{level: error, accesslog: {{disabled: true}}}}
storage:
  filesystem: {{rootdirectory: {storage}}}
  delete: {{enabled: true}}
http: {{addr: "127.0.0.1:{port}"{tls}}}
{auth}
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def registry(
    folder: Path, *, certificates: Certificates | None = None, login: tuple[str, str] | None = None
) -> Iterator[str]:
    """Serve from the folder; gives host:port. Another port is tried where someone else took ours first.

    With certificates it speaks TLS, with a login it wants that name and password.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tls = f", tls: {{certificate: {certificates.server}, key: {certificates.server_key}}}" if certificates else ""
    auth = ""
    if login:
        passwords = folder / "htpasswd"
        passwords.write_text(run([find_program("htpasswd"), "-nbB", *login]), encoding="ascii")
        auth = f"auth: {{htpasswd: {{realm: stand, path: {passwords}}}}}"
    for _ in range(5):
        port = free_port()
        config = folder / "registry.yml"
        text = CONFIG.format(storage=folder / "storage", port=port, tls=tls, auth=auth)
        config.write_text(text, encoding="utf-8")
        with (folder / "registry.log").open("ab") as log:
            server = subprocess.Popen(
                [find_program("docker-registry"), "serve", str(config)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # ctrl-C in the terminal is ours to pass on, in order
            )
        try:
            if _wait_served(server, port, certificates):
                yield f"127.0.0.1:{port}"
                return
        finally:
            end_process(server)
    raise OSError(f"the registry does not start: {(folder / 'registry.log').read_text(encoding='utf-8')[-500:]}")


def _wait_served(
    server: subprocess.Popen[bytes], port: int, certificates: Certificates | None, seconds: float = 15
) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and server.poll() is None:
        connection = (
            http.client.HTTPSConnection("127.0.0.1", port, timeout=2, context=certificates.client_context())
            if certificates
            else http.client.HTTPConnection("127.0.0.1", port, timeout=2)
        )
        try:
            connection.request("GET", "/v2/")
            if connection.getresponse().status in {200, 401}:
                return server.poll() is None
        except (OSError, http.client.HTTPException):
            time.sleep(0.02)
        finally:
            connection.close()
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

"""Streaming requests: checked when they are made, kept under a token until the client comes to the streaming server."""

from __future__ import annotations

import secrets
from typing import Final, TypeAlias

from msgspec import Struct

from isulad_py.engine.exec import Exec
from isulad_py.engine.registry import Registry
from isulad_py.model.container import ContainerRecord
from isulad_py.model.errors import FailedPrecondition, InvalidInput, ResourceExhausted
from isulad_py.model.ids import ContainerId, PodId
from isulad_py.model.lifecycle import can_exec
from isulad_py.model.pod import PodRecord, PodState
from isulad_py.ports.clock import Clock
from isulad_py.ports.streams import StreamWishes

TOKEN_BYTES: Final = 24
"""192 bits: whoever guesses a token runs commands in a container."""
TOKEN_SECONDS: Final = 60.0
MOST_TOKENS: Final = 1000
MOST_HELD_BYTES: Final = 16 * 1024 * 1024
"""Of the commands that wait: one alone may have megabytes."""
MOST_PORTS: Final = 1024


class ExecRequest(Struct, frozen=True, kw_only=True):
    container_id: ContainerId
    cmd: tuple[str, ...]
    wishes: StreamWishes


class AttachRequest(Struct, frozen=True, kw_only=True):
    container_id: ContainerId
    wishes: StreamWishes


class PortForwardRequest(Struct, frozen=True, kw_only=True):
    pod_id: PodId
    ports: tuple[int, ...] = ()
    """For clients that do not name ports themselves (WebSocket channels); may be empty."""


SessionRequest: TypeAlias = ExecRequest | AttachRequest | PortForwardRequest


class Tokens:
    """Requests by token. Each is given out once, and only within a minute."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._held: dict[str, tuple[float, SessionRequest]] = {}
        self._bytes = 0

    def issue(self, request: SessionRequest) -> str:
        """ResourceExhausted while as many as there may be wait for their clients."""
        self._collect()
        size = _command_bytes(request)
        if len(self._held) >= MOST_TOKENS or self._bytes + size > MOST_HELD_BYTES:
            raise ResourceExhausted(
                f"{len(self._held)} streaming requests wait for their clients, with {self._bytes} bytes of commands: "
                "try again in a minute"
            )
        token = secrets.token_urlsafe(TOKEN_BYTES)
        self._held[token] = (self._clock.monotonic() + TOKEN_SECONDS, request)
        self._bytes += size
        return token

    def take(self, token: str) -> SessionRequest | None:
        """None for one that is unknown, used or too old."""
        self._collect()
        return self._drop(token) if token in self._held else None

    def _collect(self) -> None:
        """All live equally long, so that the oldest come first."""
        now = self._clock.monotonic()
        while self._held:
            token, (expires, _) = next(iter(self._held.items()))
            if expires > now:
                return
            self._drop(token)

    def _drop(self, token: str) -> SessionRequest:
        _, request = self._held.pop(token)
        self._bytes -= _command_bytes(request)
        return request

    def __len__(self) -> int:
        return len(self._held)


def _command_bytes(request: SessionRequest) -> int:
    return sum(len(word) for word in request.cmd) if isinstance(request, ExecRequest) else 0


class Sessions:
    """CRI Exec, Attach and PortForward: each answers with an address at which the streams are served."""

    def __init__(self, *, registry: Registry, exec_: Exec, tokens: Tokens, base_url: str) -> None:
        """`base_url` is that of the streaming server, without a slash at its end."""
        self._registry = registry
        self._exec = exec_
        self._tokens = tokens
        self._base_url = base_url

    def exec(self, container_id: str, cmd: tuple[str, ...], wishes: StreamWishes) -> str:
        check_wishes(wishes)
        record = self._exec.runnable(container_id, cmd)
        return self._url("exec", ExecRequest(container_id=record.id, cmd=cmd, wishes=wishes))

    def attach(self, container_id: str, wishes: StreamWishes) -> str:
        check_wishes(wishes)
        record = running_container(self._registry, container_id)
        return self._url("attach", AttachRequest(container_id=record.id, wishes=wishes))

    def port_forward(self, pod_id: str, ports: tuple[int, ...]) -> str:
        if len(ports) > MOST_PORTS:
            raise InvalidInput(f"port: {len(ports)} are more than {MOST_PORTS}")
        for port in ports:
            if not 0 < port < 65536:
                raise InvalidInput(f"port: {port} is not a port number")
        record = ready_pod(self._registry, pod_id)
        return self._url("portforward", PortForwardRequest(pod_id=record.id, ports=ports))

    def _url(self, kind: str, request: SessionRequest) -> str:
        return f"{self._base_url}/cri/{kind}/{self._tokens.issue(request)}"


def running_container(registry: Registry, container_id: str) -> ContainerRecord:
    """FailedPrecondition for one in another state, paused ones too."""
    record = registry.containers.require(container_id)
    if not can_exec(record.state):
        raise FailedPrecondition(f"container {record.id} is {record.state.value}, not running")
    return record


def ready_pod(registry: Registry, pod_id: str) -> PodRecord:
    record = registry.pods.require(pod_id)
    if record.state is not PodState.READY:
        raise FailedPrecondition(f"pod {record.id} is {record.state.value}, not ready")
    return record


def check_wishes(wishes: StreamWishes) -> None:
    """CRI ExecRequest and AttachRequest: one stream at least; a terminal has no separate stderr."""
    if wishes.terminal and wishes.stderr:
        raise InvalidInput("tty and stderr: must not both be set")
    if not (wishes.stdin or wishes.stdout or wishes.stderr):
        raise InvalidInput("stdin, stdout, stderr: at least one must be set")

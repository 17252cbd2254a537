"""A streaming server on loopback over the real engine parts and a fake runtime."""

from __future__ import annotations

import json
import ssl
from typing import Any

from isulad_py.engine.exec import Exec
from isulad_py.engine.sessions import Sessions, Tokens
from isulad_py.engine.streams import StreamOpener
from isulad_py.model.container import ContainerConfig, ContainerMetadata, ContainerRecord
from isulad_py.model.pod import PodEnvironment
from isulad_py.ports.streams import StreamWishes
from isulad_py.streaming.limits import StreamLimits
from isulad_py.streaming.server import ServerOptions, StreamServer
from tests import spdy_client
from tests.fakes.scripted_streams import ScriptedContainer, ScriptedProcess, ScriptedStreamRuntime
from tests.fakes.services import FakeEngine
from tests.spdy_client import SpdyClient

NETNS = "/run/netns/web"
ALL = StreamWishes(stdin=True, stdout=True, stderr=True)
OUTPUT = StreamWishes(stdout=True, stderr=True)
TERMINAL = StreamWishes(stdin=True, stdout=True, terminal=True)
PATIENT = StreamLimits()


class _Specs:
    async def exec_process(self, record: ContainerRecord, cmd: tuple[str, ...], *, terminal: bool) -> bytes:
        return json.dumps({"args": cmd, "terminal": terminal}).encode()

    def stdio_uid(self, record: ContainerRecord) -> int | None:
        return None


class Stand:
    """`limits` and the like may be changed before `start`."""

    def __init__(self) -> None:
        self.engine = FakeEngine()
        self.runtime = ScriptedStreamRuntime()
        self.limits = PATIENT
        self.session_limit = 128
        self.tls: ssl.SSLContext | None = None
        self.pod = self.engine.add_pod(environment=PodEnvironment(netns_path=NETNS))
        self.container = self.add_container("main")
        self.clients: list[SpdyClient] = []

    def add_container(self, name: str, **config: Any) -> ContainerRecord:
        record = self.engine.add_container(
            self.pod,
            name,
            config=ContainerConfig(metadata=ContainerMetadata(name=name), **config),
            started_at=self.engine.clock.now_ns(),
        )
        terminal = bool(config.get("tty"))
        self.runtime.containers[record.id] = ScriptedContainer(terminal=terminal)
        return record

    async def start(self) -> None:
        runtime: Any = self.runtime
        specs: Any = _Specs()
        self.tokens = Tokens(clock=self.engine.clock)
        exec_ = Exec(registry=self.engine.registry, runtime=runtime, specs=specs)
        self.opener = StreamOpener(
            registry=self.engine.registry,
            exec_=exec_,
            specs=specs,
            runtime=runtime,
            session_limit=self.session_limit,
        )
        options = ServerOptions(limits=self.limits, tls=self.tls)
        self.server = StreamServer(take=self.tokens.take, opener=self.opener, options=options)
        await self.server.start()
        self.sessions = Sessions(
            registry=self.engine.registry, exec_=exec_, tokens=self.tokens, base_url=self.server.base_url
        )

    async def close(self) -> None:
        for client in self.clients:
            await client.close()
        await self.server.close()

    def exec_url(self, *cmd: str, wishes: StreamWishes = ALL) -> str:
        return self.sessions.exec(self.container.id, cmd, wishes)

    def attach_url(self, container: ContainerRecord, wishes: StreamWishes = ALL) -> str:
        return self.sessions.attach(container.id, wishes)

    def forward_url(self, *ports: int) -> str:
        return self.sessions.port_forward(self.pod.id, ports)

    async def spdy(self, url: str, protocol: str = "v4.channel.k8s.io") -> SpdyClient:
        client = await spdy_client.connect(url, protocol)
        self.clients.append(client)
        return client

    @property
    def process(self) -> ScriptedProcess:
        """Of the last command."""
        return self.runtime.commands[-1].process

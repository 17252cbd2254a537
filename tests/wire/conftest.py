from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import uvloop

from isulad_py.wire.cri.table import cri_methods
from isulad_py.wire.interceptor import Interceptor
from isulad_py.wire.listener import UnixListener
from isulad_py.wire.server import Server
from tests.cri_client import Cri, connect_async
from tests.fakes.services import FakeEngine
from tests.fakes.tasks import TestTasks
from tests.wire.raw import RawClient


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The daemon runs on uvloop, whose transports are not asyncio's."""
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@dataclass
class SeenCalls:
    """Implements wire.interceptor.CallMetrics."""

    in_flight: int = 0
    finished: list[tuple[str, str]] = field(default_factory=list)

    def rpc_started(self, method: str) -> None:
        self.in_flight += 1

    def rpc_finished(self, method: str, code: str, seconds: float) -> None:
        self.in_flight -= 1
        self.finished.append((method, code))


@dataclass
class Served:
    """A server on a socket of its own, with the fake engine behind it."""

    engine: FakeEngine
    seen: SeenCalls
    server: Server
    tasks: TestTasks
    path: Path
    clients: list[Cri] = field(default_factory=list)
    raw_clients: list[RawClient] = field(default_factory=list)

    def connect(self, package: str = "runtime.v1") -> Cri:
        client = connect_async(f"unix://{self.path}", package)
        self.clients.append(client)
        return client

    async def connect_raw(self) -> RawClient:
        client = RawClient()
        self.raw_clients.append(client)
        return await client.connect(self.path)


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    engine, seen, tasks = FakeEngine(), SeenCalls(), TestTasks()
    answer = Interceptor(methods=cri_methods(engine.services()), metrics=seen, clock=engine.clock)
    server = Server(answer=answer, tasks=tasks)
    listener = UnixListener(str(tmp_path / "cri.sock"))
    await server.start(listener.open())
    found = Served(engine=engine, seen=seen, server=server, tasks=tasks, path=listener.path)
    yield found
    for client in found.clients:
        await client.channel.close()
    for raw in found.raw_clients:
        await raw.close()
    await server.stop(0)
    listener.remove()
    await tasks.settle()


@pytest.fixture
async def client(served: Served) -> Any:
    """A CRI client on grpcio's C core; its messages are not made by betterproto."""
    return served.connect()

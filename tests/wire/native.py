"""The native services on a socket of their own, with the real engine on fakes behind them."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isulad_py.wire.cri.table import cri_methods
from isulad_py.wire.interceptor import Interceptor
from isulad_py.wire.listener import UnixListener
from isulad_py.wire.native.services import NativeServices
from isulad_py.wire.native.table import native_methods
from isulad_py.wire.server import Server
from tests.cri_client import connect_async, service_of
from tests.fakes.images import FakeArchives
from tests.unit.engine.node import Node, World
from tests.wire.conftest import SeenCalls
from tests.wire.engine import cri_services


@dataclass
class NativeServed:
    node: Node
    world: World
    files: FakeArchives
    seen: SeenCalls
    path: Path
    channel: Any

    def service(self, package: str, name: str) -> tuple[Any, Any]:
        return service_of(self.channel, package, name)


def native_services(node: Node) -> NativeServices:
    services = node.services
    return NativeServices(images=services.images, archives=services.archives, pulls=services.pulls)


@contextlib.asynccontextmanager
async def native_served(folder: Path) -> AsyncIterator[NativeServed]:
    world, seen = World(), SeenCalls()
    async with world.daemon() as node:
        methods = {**cri_methods(cri_services(node)), **native_methods(native_services(node))}
        clock: Any = world.clock
        server = Server(answer=Interceptor(methods=methods, metrics=seen, clock=clock), tasks=node.tasks)
        listener = UnixListener(str(folder / "native.sock"))
        await server.start(listener.open())
        client = connect_async(f"unix://{listener.path}")
        try:
            yield NativeServed(node, world, world.archives, seen, listener.path, client.channel)
        finally:
            await client.channel.close()
            await server.stop(0)
            listener.remove()

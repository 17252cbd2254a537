"""/healthz, /readyz and /metrics for monitoring, on loopback.

Every connection carries one answer and lives for a bounded time; there is a bounded number of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import msgspec
from aiohttp import web

from isulad_py.host import blocking
from isulad_py.model.errors import EngineError, HostFailure
from isulad_py.telemetry.metrics import CONTENT_TYPE, Metrics, Population

ADDRESS: Final = "127.0.0.1"
CONNECTION_LIMIT: Final = 64
CONNECTION_SECONDS: Final = 30.0

Conditions = Mapping[str, str]
"""Name of a condition to what is wrong with it; empty where all is well."""


class HealthServer:
    """Answers from injected callables only: it knows no engine."""

    def __init__(
        self,
        *,
        metrics: Metrics,
        population: Callable[[], Population],
        ready: Callable[[], Awaitable[Conditions]],
        connection_limit: int = CONNECTION_LIMIT,
        connection_seconds: float = CONNECTION_SECONDS,
    ) -> None:
        self._metrics = metrics
        self._population = population
        self._ready = ready
        self._limit = connection_limit
        self._seconds = connection_seconds
        self._routes: dict[str, Callable[[], Awaitable[web.Response]]] = {
            "/healthz": self._healthz,
            "/readyz": self._readyz,
            "/metrics": self._render,
        }
        self._web = web.Server(self._answer, access_log=None)
        self._listener: asyncio.Server | None = None

    async def start(self, port: int) -> int:
        """Listens; 0 picks a port. Returns the port. HostFailure where it is taken."""
        loop = asyncio.get_running_loop()
        try:
            self._listener = await loop.create_server(self._accept, ADDRESS, port, backlog=self._limit)
        except OSError as error:
            raise HostFailure(f"metrics-port: cannot listen on {ADDRESS}:{port}: {error.strerror or error}") from error
        chosen: int = self._listener.sockets[0].getsockname()[1]
        return chosen

    async def close(self) -> None:
        """Idempotent."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
            await self._web.shutdown(1.0)

    def _accept(self) -> asyncio.Protocol:
        if len(self._web.connections) >= self._limit:
            return _Refused()
        handler = self._web()
        asyncio.get_running_loop().call_later(self._seconds, _abort, handler)
        return handler

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.method not in {"GET", "HEAD"}:
            response = web.Response(status=405, text="GET or HEAD\n")
        elif request.path not in self._routes:
            response = web.Response(status=404, text=f"one of {' '.join(self._routes)}\n")
        else:
            response = await self._routes[request.path]()
        response.force_close()
        return response

    async def _healthz(self) -> web.Response:
        """That this is answered at all is the sign: the loop runs."""
        return web.Response(text="ok\n")

    async def _readyz(self) -> web.Response:
        try:
            conditions = await self._ready()
        except EngineError as error:
            conditions = {"engine": str(error)}
        reasons = {name: reason for name, reason in conditions.items() if reason}
        body = msgspec.json.encode({"ready": not reasons, "conditions": sorted(conditions), "reasons": reasons})
        return web.Response(status=503 if reasons else 200, body=body + b"\n", content_type="application/json")

    async def _render(self) -> web.Response:
        self._metrics.refresh(self._population)
        # Thousands of series take longer to format than the loop may be held.
        text = await blocking.run(self._metrics.render)
        return web.Response(body=text, headers={"Content-Type": CONTENT_TYPE})


class _Refused(asyncio.Protocol):
    """A connection over the limit."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


def _abort(handler: web.RequestHandler) -> None:
    """Also ends a client that asks and does not read: closing alone would wait for it."""
    if handler.transport is not None:  # not by its class: uvloop's transports are not asyncio's
        handler.transport.abort()

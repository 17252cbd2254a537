"""The streaming server: one port, three paths, each good for one request with a token of CRI's Exec, Attach or
PortForward.

Whoever knows no token gets nothing but a 404. Connections that say nothing are few and short-lived, however many come.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Final

import structlog
from aiohttp import web
from msgspec import Struct

from isulad_py.engine.sessions import AttachRequest, ExecRequest, PortForwardRequest, SessionRequest
from isulad_py.engine.streams import StreamOpener
from isulad_py.model.errors import HostFailure, ResourceExhausted, Unavailable
from isulad_py.streaming.limits import StreamLimits
from isulad_py.streaming.serving import Serving
from isulad_py.streaming.upgrade import Refused
from isulad_py.telemetry.logs import context

log = structlog.get_logger(__name__)

_KINDS: Final[dict[str, type[SessionRequest]]] = {
    "exec": ExecRequest,
    "attach": AttachRequest,
    "portforward": PortForwardRequest,
}
_EVERYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}
STOP_SECONDS: Final = 3.0
"""For sessions to say goodbye when the daemon stops."""


class ServerOptions(Struct, frozen=True, kw_only=True):
    address: str = "127.0.0.1"
    port: int = 0
    """0 picks a free one."""
    tls: ssl.SSLContext | None = None
    limits: StreamLimits = StreamLimits()


class StreamServer:
    def __init__(
        self, *, take: Callable[[str], SessionRequest | None], opener: StreamOpener, options: ServerOptions
    ) -> None:
        """`take` gives a token's request out, once."""
        self._take = take
        self._opener = opener
        self._options = options
        self._stopping = asyncio.Event()
        self._serving = Serving(opener=opener, limits=options.limits, stopping=self._stopping)
        self._web = web.Server(self._answer, access_log=None, lingering_time=0)
        self._listener: asyncio.Server | None = None
        self._waiting: dict[web.RequestHandler, asyncio.TimerHandle] = {}
        """Connections without a whole request, oldest first."""
        self._sessions: set[asyncio.Future[None]] = set()
        self.port = 0

    async def start(self) -> None:
        """HostFailure where the port cannot be had."""
        options = self._options
        loop = asyncio.get_running_loop()
        try:
            self._listener = await loop.create_server(
                self._accept,
                options.address,
                options.port,
                backlog=1024,
                ssl=options.tls,
                ssl_handshake_timeout=options.limits.request_seconds if options.tls else None,
            )
        except OSError as error:
            where = f"{options.address}:{options.port}"
            message = f"websocket-server-listening-port: cannot listen on {where}: {error.strerror or error}"
            raise HostFailure(message) from error
        self.port = self._listener.sockets[0].getsockname()[1]

    @property
    def base_url(self) -> str:
        """What clients on this machine reach it by, once it has started."""
        if not self.port:
            raise Unavailable("the streaming server is not listening")
        address = _EVERYWHERE.get(self._options.address, self._options.address)
        host = f"[{address}]" if ":" in address else address
        return f"http{'s' if self._options.tls else ''}://{host}:{self.port}"

    async def close(self) -> None:
        """Ends all sessions: their clients are told so. Idempotent."""
        if self._listener is None:
            return
        self._listener.close()
        self._listener = None
        self._stopping.set()
        if self._sessions:
            await asyncio.wait(self._sessions, timeout=STOP_SECONDS)
        await self._web.shutdown(0.5)
        for timer in self._waiting.values():
            timer.cancel()
        self._waiting.clear()

    def _accept(self) -> asyncio.Protocol:
        limits = self._options.limits
        while len(self._waiting) >= limits.waiting_connections:
            self._cut_off(next(iter(self._waiting)))
        handler = self._web()
        timer = asyncio.get_running_loop().call_later(limits.request_seconds, self._cut_off, handler)
        self._waiting[handler] = timer
        return handler

    def _cut_off(self, handler: web.RequestHandler) -> None:
        self._waiting.pop(handler).cancel()
        if handler.transport is not None:
            handler.transport.abort()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            wanted, kind = self._claim(request)
        except Refused as refusal:
            return refusal.response()
        # From here on the connection's time is the session's.
        timer = self._waiting.pop(request.protocol, None)
        if timer is not None:
            timer.cancel()
        ended = asyncio.get_running_loop().create_future()
        self._sessions.add(ended)
        try:
            with self._opener.session(), context(stream=kind, **_subject(wanted)):
                return await self._serving.serve(request, wanted)
        except Refused as refusal:
            log.warning("streaming request refused", stream=kind, reason=str(refusal))
            return refusal.response()
        except ResourceExhausted as error:
            log.warning("streaming request refused", stream=kind, reason=str(error))
            return Refused(503, str(error)).response()
        finally:
            self._sessions.discard(ended)
            ended.set_result(None)

    def _claim(self, request: web.BaseRequest) -> tuple[SessionRequest, str]:
        """The request of the token in the path. Raises Refused."""
        root, _, rest = request.path.removeprefix("/").partition("/")
        kind, _, token = rest.partition("/")
        if root != "cri" or kind not in _KINDS or not token or request.method not in {"GET", "POST"}:
            raise Refused(404, "not found")
        wanted = self._take(token)
        if not isinstance(wanted, _KINDS[kind]):
            raise Refused(404, "not found")
        return wanted, kind


def _subject(wanted: SessionRequest) -> dict[str, str]:
    """What the session is about, for its log lines."""
    if isinstance(wanted, PortForwardRequest):
        return {"pod": wanted.pod_id}
    return {"container": wanted.container_id}

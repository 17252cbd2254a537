"""What is done with a streaming request, once its token has been taken: the upgrade, and the session to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, Protocol

import structlog
from aiohttp import web

from isulad_py.engine.sessions import AttachRequest, ExecRequest, PortForwardRequest, SessionRequest
from isulad_py.engine.streams import StreamOpener
from isulad_py.model.errors import DeadlineExceeded, EngineError, InvalidInput, Unavailable
from isulad_py.ports.streams import Streams
from isulad_py.streaming import channel_command, channel_forward, spdy_command, spdy_forward
from isulad_py.streaming.carrier import Carrier, SocketCarrier, TunnelCarrier
from isulad_py.streaming.channel_command import ChannelCommandClient
from isulad_py.streaming.channel_forward import ChannelForwardSession, forwarded_ports
from isulad_py.streaming.channel_link import ChannelLink
from isulad_py.streaming.channels import (
    COMMAND_CHANNELS,
    TUNNEL,
    ChannelCodec,
    Subprotocol,
    command_subprotocol,
    forward_subprotocol,
)
from isulad_py.streaming.command import CommandClient, CommandSession
from isulad_py.streaming.failures import ClientGone, ProtocolError, reason_of
from isulad_py.streaming.limits import StreamLimits
from isulad_py.streaming.spdy_command import open_spdy_client
from isulad_py.streaming.spdy_forward import SpdyForwardSession
from isulad_py.streaming.spdy_link import SpdyLink
from isulad_py.streaming.upgrade import Refused, Taken, offered_subprotocols, spdy_answer, spdy_protocol, wanted_upgrade

log = structlog.get_logger(__name__)

MESSAGE_LIMIT_BYTES: Final = 4 * 1024 * 1024
"""Of a WebSocket message, which is kept until it is whole."""


class Link(Protocol):
    """What all kinds of client connections have in common."""

    @property
    def active_at(self) -> float: ...

    async def pump(self) -> None: ...


class Serving:
    def __init__(self, *, opener: StreamOpener, limits: StreamLimits, stopping: asyncio.Event) -> None:
        """`stopping` ends all sessions."""
        self._opener = opener
        self._limits = limits
        self._stopping = stopping

    async def serve(self, request: web.BaseRequest, wanted: SessionRequest) -> web.StreamResponse:
        """Returns when the session has ended. Raises Refused where none can begin."""
        if wanted_upgrade(request) == "spdy":
            return await self._over_spdy(request, wanted)
        return await self._over_websocket(request, wanted)

    async def _over_spdy(self, request: web.BaseRequest, wanted: SessionRequest) -> web.StreamResponse:
        forwards = isinstance(wanted, PortForwardRequest)
        spoken = (spdy_forward.PROTOCOL,) if forwards else spdy_command.PROTOCOLS
        protocol = spdy_protocol(request, spoken)
        transport = request.transport
        if transport is None:
            raise Refused(400, "the connection has gone")
        request.protocol.keep_alive(False)
        carrier = SocketCarrier(transport, request.protocol.connection_lost)
        carrier.take_over(spdy_answer(protocol))
        try:
            await self._over_carrier(carrier, wanted, protocol)
        except Exception:  # a defect of ours must not be answered in HTTP
            log.exception("streaming session failed")
            carrier.abort()
        return Taken()

    async def _over_carrier(self, carrier: Carrier, wanted: SessionRequest, protocol: str) -> None:
        link = SpdyLink(carrier, self._limits)
        try:
            if isinstance(wanted, PortForwardRequest):
                await self._run(link, partial(self._forward_spdy, link, wanted))
            else:
                await self._run(link, partial(self._command_spdy, link, wanted, protocol))
        finally:
            # The transport is closed with this request, and then waits for a client that may never read.
            asyncio.get_running_loop().call_later(self._limits.linger_seconds, carrier.abort)

    async def _command_spdy(self, link: SpdyLink, wanted: ExecRequest | AttachRequest, protocol: str) -> None:
        client = await open_spdy_client(link, wanted.wishes, protocol=protocol, limits=self._limits)
        await self._command(link, client, wanted)

    async def _forward_spdy(self, link: SpdyLink, wanted: PortForwardRequest) -> None:
        session = SpdyForwardSession(
            link,
            dial=partial(self._opener.dial, wanted),
            limits=self._limits,
            interrupted=partial(self._interrupted, link),
        )
        await session.run()

    async def _over_websocket(self, request: web.BaseRequest, wanted: SessionRequest) -> web.StreamResponse:
        offered = offered_subprotocols(request)
        forwards = isinstance(wanted, PortForwardRequest)
        subprotocol = forward_subprotocol(offered) if forwards else command_subprotocol(offered)
        if subprotocol is None:
            raise Refused(400, f"none of the client's subprotocols is spoken here: {', '.join(offered)[:200]}")
        try:
            ports = _ports(request, wanted, subprotocol)
        except InvalidInput as error:
            raise Refused(400, str(error)) from error
        websocket = web.WebSocketResponse(
            protocols=(subprotocol.name,) if subprotocol.name else (),
            # Ours to do: pings are signs of life, and a close has its order.
            autoping=False,
            autoclose=False,
            timeout=1.0,
            # What inflates to more than it says is not worth the bytes that it saves on loopback.
            compress=False,
            max_msg_size=MESSAGE_LIMIT_BYTES,
            decode_text=False,
        )
        try:
            await websocket.prepare(request)
        except web.HTTPException as error:
            raise Refused(error.status, error.text or error.reason) from error
        if subprotocol.name == TUNNEL:
            await self._over_carrier(TunnelCarrier(websocket, request.transport), wanted, spdy_forward.PROTOCOL)
        elif isinstance(wanted, PortForwardRequest):
            codec = ChannelCodec(subprotocol, 2 * len(ports))
            link = ChannelLink(websocket, request.transport, codec, channel_forward.inputs(ports), self._limits)
            await self._run(link, partial(self._forward_channels, link, wanted, ports))
        else:
            codec = ChannelCodec(subprotocol, COMMAND_CHANNELS)
            link = ChannelLink(websocket, request.transport, codec, channel_command.inputs(wanted.wishes), self._limits)
            await self._run(link, partial(self._command_channels, link, wanted, subprotocol))
        return websocket

    async def _command_channels(
        self, link: ChannelLink, wanted: ExecRequest | AttachRequest, subprotocol: Subprotocol
    ) -> None:
        client = ChannelCommandClient(link, wanted.wishes, subprotocol)
        await client.greet()
        await self._command(link, client, wanted)

    async def _forward_channels(self, link: ChannelLink, wanted: PortForwardRequest, ports: tuple[int, ...]) -> None:
        session = ChannelForwardSession(
            link, ports, dial=partial(self._opener.dial, wanted), interrupted=partial(self._interrupted, link)
        )
        await session.run()

    async def _command(self, link: Link, client: CommandClient, wanted: ExecRequest | AttachRequest) -> None:
        session = CommandSession(
            client,
            limits=self._limits,
            interrupted=partial(self._interrupted, link),
            attached=isinstance(wanted, AttachRequest),
        )
        status = await session.run(partial(self._open, wanted))
        log.info("streaming session ended", status=status.status, reason=status.reason, message=status.message)

    async def _open(self, wanted: ExecRequest | AttachRequest) -> Streams:
        if isinstance(wanted, ExecRequest):
            return await self._opener.exec(wanted)
        return await self._opener.attach(wanted)

    async def _run(self, link: Link, work: Callable[[], Awaitable[None]]) -> None:
        """The session, beside the reading of the connection; neither outlives the other."""
        try:
            async with asyncio.TaskGroup() as group:
                pump = group.create_task(link.pump(), name="pump")
                await work()
                pump.cancel()
        except BaseExceptionGroup as errors:
            reason = reason_of(errors)
            if isinstance(reason, ProtocolError):
                log.warning("streaming client misbehaves", reason=str(reason))
            elif isinstance(reason, ClientGone):
                log.info("streaming client has gone")
            elif isinstance(reason, EngineError):
                log.info("streaming session ended", reason=str(reason))
            else:
                raise reason from None

    async def _interrupted(self, link: Link) -> None:
        """Raises what ends a session from outside."""
        loop = asyncio.get_running_loop()
        while True:
            idle_seconds = loop.time() - link.active_at
            if idle_seconds >= self._limits.idle_seconds:
                raise DeadlineExceeded(f"stream-idle-timeout: nothing moved for {self._limits.idle_seconds:g} s")
            try:
                async with asyncio.timeout(self._limits.idle_seconds - idle_seconds):
                    await self._stopping.wait()
                raise Unavailable("the daemon is stopping")
            except TimeoutError:
                continue


def _ports(request: web.BaseRequest, wanted: SessionRequest, subprotocol: Subprotocol) -> tuple[int, ...]:
    """The ports of a WebSocket's channels. In a tunnel, and for commands, there are none."""
    if not isinstance(wanted, PortForwardRequest) or subprotocol.name == TUNNEL:
        return ()
    return forwarded_ports(wanted.ports, request.query.getall("port", []))

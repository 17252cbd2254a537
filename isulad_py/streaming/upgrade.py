"""The HTTP side of a streaming request: what the client wants to speak, and the answer to it."""

from __future__ import annotations

from typing import Final, Literal

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from multidict import CIMultiDictProxy

SPDY: Final = "SPDY/3.1"
VERSION_HEADER: Final = "X-Stream-Protocol-Version"
ACCEPTED_HEADER: Final = "X-Accepted-Stream-Protocol-Versions"


class Refused(Exception):
    """The request is answered with a plain HTTP status."""

    def __init__(self, status: int, reason: str, *, accepted: tuple[str, ...] = ()) -> None:
        super().__init__(reason)
        self.status = status
        self.accepted = accepted

    def response(self) -> web.Response:
        answer = web.Response(status=self.status, text=f"{self}\n")
        for protocol in self.accepted:
            answer.headers.add(ACCEPTED_HEADER, protocol)
        answer.force_close()
        return answer


class Taken(web.StreamResponse):
    """For a request whose connection is no longer HTTP: there is nothing to be sent."""

    def __init__(self) -> None:
        super().__init__(status=101)
        self.force_close()

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        return None

    async def write_eof(self, data: bytes = b"") -> None:
        return None


def wanted_upgrade(request: web.BaseRequest) -> Literal["spdy", "websocket"]:
    """Raises Refused where it is neither."""
    upgrades = listed(request.headers, "Upgrade")
    if request.can_read_body or "upgrade" not in listed(request.headers, "Connection"):
        raise Refused(400, "an upgrade to SPDY/3.1 or websocket is needed")
    if "websocket" in upgrades:
        return "websocket"
    if SPDY.lower() in upgrades:
        return "spdy"
    raise Refused(400, f"an upgrade to SPDY/3.1 or websocket is needed, not to {' '.join(upgrades) or 'nothing'}")


def spdy_protocol(request: web.BaseRequest, spoken: tuple[str, ...]) -> str:
    """The first of the client's that we speak. Raises Refused; the answer then lists ours."""
    offered = [
        name.strip() for line in request.headers.getall(VERSION_HEADER, ()) for name in line.split(",") if name.strip()
    ]
    if not offered:
        raise Refused(400, f"header {VERSION_HEADER} is missing")
    chosen = next((name for name in offered if name in spoken), None)
    if chosen is None:
        raise Refused(
            403, f"none of the client's protocols is spoken here: {', '.join(offered)[:200]}", accepted=spoken
        )
    return chosen


def spdy_answer(protocol: str) -> bytes:
    lines = (
        "HTTP/1.1 101 Switching Protocols",
        "Connection: Upgrade",
        f"Upgrade: {SPDY}",
        f"{VERSION_HEADER}: {protocol}",
        "",
        "",
    )
    return "\r\n".join(lines).encode()


def offered_subprotocols(request: web.BaseRequest) -> list[str]:
    lines = request.headers.getall("Sec-WebSocket-Protocol", ())
    return [name.strip() for line in lines for name in line.split(",") if name.strip()]


def listed(headers: CIMultiDictProxy[str], name: str) -> list[str]:
    """The words of a header that may repeat and may list, in lower case."""
    return [word.strip().lower() for line in headers.getall(name, ()) for word in line.split(",") if word.strip()]

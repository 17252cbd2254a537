"""Requests to registries and their token services: redirects, patience, and the world's errors in our words."""

from __future__ import annotations

import asyncio
import contextlib
import email.utils
import os
import random
import socket
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Final, NamedTuple

import aiohttp
from msgspec import Struct
from yarl import URL

from isulad_py.host import blocking
from isulad_py.images.options import RegistryOptions, TlsFiles, hostname, is_insecure, proxy_for
from isulad_py.images.tls import TlsContexts
from isulad_py.model.errors import DataLoss, ResourceExhausted, Unavailable
from isulad_py.ports.clock import Clock

READ_BYTES: Final = 256 * 1024
"""Read from a socket ahead of us: larger means fewer turns of the loop, and more memory for each layer."""
ERROR_BYTES: Final = 64 * 1024
"""Of an answer that only explains a refusal."""
_BUSY: Final = frozenset({408, 429, 500, 502, 503, 504})
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


class NotTls(Unavailable):
    """The other end does not speak TLS."""


class Interrupted(Unavailable):
    """The connection broke before the answer was complete: the rest can be asked for."""


class Stalled(Interrupted):
    """The connection is there, but brings nothing."""


class Request(Struct, frozen=True, kw_only=True):
    url: str
    method: str = "GET"
    headers: Mapping[str, str] = {}
    own_headers: Mapping[str, str] = {}
    authorization: str = ""
    """Sent to the URL's own host only, as `own_headers`, wherever a redirect leads."""
    form: Mapping[str, str] | None = None
    verify: bool = True
    tls: TlsFiles | None = None
    """For the URL's own host, as `authorization`."""
    tries: int = 0
    """While the other end is busy; 0 for as many as the options say."""


class HttpClient:
    """One pool of connections."""

    def __init__(self, options: RegistryOptions, clock: Clock) -> None:
        self.options = options
        self._clock = clock
        self._tls = TlsContexts()
        self._tls_lock = asyncio.Lock()
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, limit_per_host=options.connections_per_host),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            read_bufsize=READ_BYTES,
            timeout=aiohttp.ClientTimeout(
                total=None, sock_connect=options.connect_seconds, sock_read=options.stall_seconds
            ),
            headers={"User-Agent": "isulad-py", "Accept-Encoding": "identity"},
            trace_configs=[_bounded_answers()],
        )

    async def close(self) -> None:
        await self._session.close()

    @contextlib.asynccontextmanager
    async def send(self, request: Request) -> AsyncIterator[aiohttp.ClientResponse]:
        """The answer, whatever its status, after redirects and patience; its body is still to be read.

        Raises Unavailable where there is none, NotTls where a URL of https leads to something else.
        """
        response = await self._patiently(request)
        try:
            yield response
        finally:
            response.release()

    async def read(self, response: aiohttp.ClientResponse, limit: int) -> bytes:
        """The whole body. Raises ResourceExhausted where it is longer than the limit, Unavailable where it breaks off
        or only drips."""
        told = response.content_length
        if told is not None and told > limit:
            raise ResourceExhausted(f"an answer of {told} bytes, where {limit} are the limit")
        parts: list[bytes] = []
        size = 0
        gauge = Gauge(self.options, self._clock)
        while part := await gauge.read(response.content.readany):
            size += len(part)
            if size > limit:
                raise ResourceExhausted(f"an answer of more than {limit} bytes")
            parts.append(part)
        return b"".join(parts)

    async def _patiently(self, request: Request) -> aiohttp.ClientResponse:
        """Waits and asks again while the other end is busy or drops the connection without an answer."""
        pause = self.options.backoff_seconds
        tries = request.tries or self.options.tries
        for attempt in range(1, tries + 1):
            last = attempt == tries
            try:
                response = await self._follow(request)
            except Stalled:
                raise  # it has had its time
            except Interrupted:
                if last:
                    raise
                wait = pause
            else:
                if response.status not in _BUSY or last:
                    return response
                wait = max(pause, retry_after(response.headers.get("Retry-After", "")))
                status = response.status
                response.release()
                if wait > self.options.backoff_limit_seconds:
                    raise Unavailable(f"HTTP {status}: asks to come back in {wait:.0f} s")
            await self._clock.sleep(wait * random.uniform(1.0, 1.2))  # noqa: S311 -- spreads load, guards nothing
            pause = min(pause * 2, self.options.backoff_limit_seconds)
        raise AssertionError("the last attempt returns or raises")

    async def _follow(self, request: Request) -> aiohttp.ClientResponse:
        with translated(self.options):
            url = URL(request.url)
            origin = url.origin()
        verify = request.verify
        for _ in range(self.options.redirects + 1):
            authorization = request.authorization if url.origin() == origin else ""
            response = await self._once(request, url, authorization, verify=verify)
            if response.status not in _REDIRECTS or request.method == "POST":
                return response
            location = response.headers.get("Location", "")
            response.release()
            target = _target(url, location)
            if url.scheme == "https" and target.scheme == "http" and verify:
                raise Unavailable(f"redirect from https to {target.origin()}, which is not secure")
            if target.origin() != url.origin():
                verify = not (self.options.skip_verify or is_insecure(_host_of(target), self.options))
            url = target
        raise Unavailable(f"more than {self.options.redirects} redirects, the last one to {url.origin()}")

    async def _once(self, request: Request, url: URL, authorization: str, *, verify: bool) -> aiohttp.ClientResponse:
        own = url.origin() == URL(request.url).origin()
        headers = {**request.headers, **request.own_headers} if own else dict(request.headers)
        if authorization:
            headers["Authorization"] = authorization
        named = request.tls if own else None
        context = await self._context(_host_of(url), named, verify=verify) if url.scheme == "https" else True
        with translated(self.options):
            async with asyncio.timeout(None) as patience:
                return await self._session.request(
                    request.method,
                    url,
                    headers=headers,
                    data=request.form,
                    allow_redirects=False,
                    ssl=context,
                    proxy=proxy_for(str(url), self.options),
                    trace_request_ctx=_Patience(patience, self.options.stall_seconds),
                )

    async def _context(self, host: str, named: TlsFiles | None, *, verify: bool) -> ssl.SSLContext:
        ca_file = self.options.ca_files.get(host) or self.options.ca_files.get(hostname(host), "")
        async with self._tls_lock:
            return await blocking.run(
                self._tls.context_for,
                host,
                verify=verify,
                certs_dir=self.options.certs_dir,
                ca_file=ca_file,
                named=named,
            )


class _Patience(NamedTuple):
    """What a request's end is set by, once it has been sent: waiting for a free connection is no fault of the host."""

    deadline: asyncio.Timeout
    seconds: float


def _bounded_answers() -> aiohttp.TraceConfig:
    """A head that only drips would reset the session's own timer with every byte."""

    async def begin(_: aiohttp.ClientSession, context: SimpleNamespace, __: object) -> None:
        patience: _Patience = context.trace_request_ctx
        patience.deadline.reschedule(asyncio.get_running_loop().time() + patience.seconds)

    trace = aiohttp.TraceConfig()
    trace.on_request_headers_sent.append(begin)
    return trace


class Gauge:
    """Notices a connection that only drips. Time in which we did not want more does not count."""

    def __init__(self, options: RegistryOptions, clock: Clock) -> None:
        self._options = options
        self._clock = clock
        self._waited = 0.0
        self._got = 0

    async def read(self, read: Callable[[], Awaitable[bytes]]) -> bytes:
        begun = self._clock.monotonic()
        with translated(self._options):
            chunk = await read()
        self._waited += self._clock.monotonic() - begun
        self._got += len(chunk)
        if self._waited >= self._options.stall_seconds:
            if self._got < self._options.stall_bytes and chunk:
                raise Stalled(f"stalled: {self._got} bytes in {self._waited:.0f} s")
            self._waited, self._got = 0.0, 0
        return chunk


@contextlib.contextmanager
def translated(options: RegistryOptions) -> Iterator[None]:
    """aiohttp's errors, and those below it."""
    try:
        yield
    except aiohttp.ClientConnectorCertificateError as error:
        raise Unavailable(f"the certificate is not trusted: {error.certificate_error}") from error
    except aiohttp.ClientSSLError as error:
        raise NotTls(f"no TLS: {_reason(error.os_error)}") from error
    except aiohttp.ConnectionTimeoutError as error:
        raise Unavailable(f"no connection within {options.connect_seconds:g} s") from error
    except (aiohttp.ServerTimeoutError, TimeoutError) as error:
        raise Stalled(f"stalled: nothing came for {options.stall_seconds:g} s") from error
    except aiohttp.ClientConnectorError as error:  # also DNS and proxies
        raise Unavailable(f"cannot connect to {error.host}:{error.port}: {_reason(error.os_error)}") from error
    except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, ConnectionError) as error:
        raise Interrupted(f"the connection broke: {_words(error)}") from error
    except (aiohttp.InvalidURL, ValueError) as error:
        raise Unavailable(f"an address that cannot be asked: {_words(error)}") from error
    except (aiohttp.ClientError, OSError) as error:
        raise Unavailable(f"no HTTP: {_words(error)}") from error


def _words(error: Exception) -> str:
    return (str(error) or type(error).__name__)[:500]


def _reason(error: OSError) -> str:
    """What the kernel, the resolver or TLS said: aiohttp's own text has addresses of objects in it."""
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.lower().replace("_", " ")
    if isinstance(error, socket.gaierror) or error.errno is None:
        return _words(error if not error.strerror else OSError(error.strerror)).lower()
    return os.strerror(error.errno).lower()


def _target(url: URL, location: str) -> URL:
    if not location:
        raise Unavailable("redirect to nowhere")
    try:
        target = url.join(URL(location))
        host = target.host
    except ValueError as error:
        raise Unavailable(f"redirect to {location[:200]!r}, which is no address") from error
    if target.scheme not in {"http", "https"} or not host:
        raise Unavailable(f"redirect to {location[:200]!r}, which is no web address")
    return target


def _host_of(url: URL) -> str:
    """host[:port], the port only where it is not the scheme's own, as hosts are named everywhere else."""
    return url.authority.rpartition("@")[2] if url.explicit_port is not None else (url.host or "")


def retry_after(text: str) -> float:
    """Seconds, of either form of the header (RFC 9110, 10.2.3); 0 where it says nothing."""
    if text.strip().isdecimal():
        return float(min(int(text[:12]), 1 << 31))
    try:
        when = email.utils.parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return 0.0
    return max(0.0, when.timestamp() - time.time())


def check_complete(response: aiohttp.ClientResponse, size: int, what: str) -> None:
    """DataLoss where the registry announces another size than the manifest."""
    told = response.content_length
    if told is not None and told != size:
        raise DataLoss(f"{what}: the registry sends {told} bytes, the manifest says {size}")

"""One image's repository, wherever it is served: mirrors in order, then the registry itself (distribution spec)."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from typing import Final, TypeVar

import aiohttp
import msgspec
from msgspec import Struct
from yarl import URL

from isulad_py.images.auth import Authenticator, Scope
from isulad_py.images.challenge import parse_challenges
from isulad_py.images.credentials import Login
from isulad_py.images.http import ERROR_BYTES, HttpClient, NotTls, Request, check_complete
from isulad_py.images.manifest import ACCEPT, MANIFEST_LIMIT, Descriptor, digest_of
from isulad_py.images.options import Endpoint
from isulad_py.model.errors import (
    DataLoss,
    EngineError,
    InvalidInput,
    NotFound,
    PermissionDenied,
    Unauthenticated,
    Unavailable,
)
from isulad_py.model.ids import Digest
from isulad_py.model.reference import Reference, check_digest

T = TypeVar("T")
_NAME_INVALID: Final = "NAME_INVALID"
MIRROR_TRIES: Final = 2
"""Of a request to a busy mirror: there is somebody else to ask."""
_JSON_HEADERS: Final = {"Accept": ", ".join(ACCEPT)}


class Document(Struct, frozen=True, kw_only=True):
    """A manifest or index as it came, verified where it was asked for by digest."""

    body: bytes
    media_type: str
    digest: Digest


class PlainHosts:
    """Hosts that were found not to speak TLS, so that each pull need not find out again; bounded."""

    def __init__(self) -> None:
        self._hosts: dict[str, None] = {}

    def __contains__(self, host: str) -> bool:
        return host in self._hosts

    def add(self, host: str) -> None:
        while len(self._hosts) >= 256:
            del self._hosts[next(iter(self._hosts))]
        self._hosts[host] = None

    def discard(self, host: str) -> None:
        self._hosts.pop(host, None)


class Repository:
    """Every error names the registry, the image and the step."""

    def __init__(
        self,
        reference: Reference,
        endpoints: Iterable[Endpoint],
        *,
        http: HttpClient,
        auth: Authenticator,
        login_for: Callable[[Endpoint], Login],
        plain_hosts: PlainHosts,
    ) -> None:
        self.reference = reference
        self._endpoints = list(endpoints)
        self._http = http
        self._auth = auth
        self._login_for = login_for
        self._plain_hosts = plain_hosts

    async def head(self) -> Digest | None:
        """The digest that the reference has now; None where the registry does not tell. It costs a registry less than
        a manifest, and of the pulls that some of them count, nothing."""

        async def ask(endpoint: Endpoint) -> Digest | None:
            path = f"manifests/{self.reference.selector}"
            async with self.open(endpoint, path, method="HEAD", headers=_JSON_HEADERS, tries=1) as response:
                return _told_digest(response)

        return await self.each("resolve", ask, by_tag=not self.reference.digest)

    async def manifest(self, selector: str) -> Document:
        """By tag or digest. Raises DataLoss where the registry sends another document than it says or was asked for."""

        async def ask(endpoint: Endpoint) -> Document:
            async with self.open(endpoint, f"manifests/{selector}", headers=_JSON_HEADERS) as response:
                media_type = response.headers.get("Content-Type", "")
                if media_type.startswith("text/html"):
                    raise Unavailable("a web page instead of a manifest: no registry answers there")
                body = await self._http.read(response, MANIFEST_LIMIT)
                wanted = Digest(selector) if ":" in selector else _told_digest(response)
            digest = digest_of(body, wanted or "sha256")
            if wanted and digest != wanted:
                raise DataLoss(f"manifest {wanted} came with digest {digest}")
            return Document(body=body, media_type=media_type, digest=digest)

        return await self.each("resolve", ask, by_tag=":" not in selector)

    async def blob(self, descriptor: Descriptor, limit: int, step: str) -> bytes:
        """A small blob, whole and verified."""

        async def ask(endpoint: Endpoint) -> bytes:
            if descriptor.size > limit:
                raise DataLoss(f"blob {descriptor.digest} of {descriptor.size} bytes, where {limit} are the limit")
            async with self.open(endpoint, f"blobs/{descriptor.digest}") as response:
                check_complete(response, descriptor.size, f"blob {descriptor.digest}")
                body = await self._http.read(response, limit)
            found = digest_of(body, descriptor.digest)
            if found != descriptor.digest:
                raise DataLoss(f"blob {descriptor.digest} came with digest {found} ({len(body)} bytes)")
            return body

        return await self.each(step, ask)

    async def each(self, step: str, ask: Callable[[Endpoint], Awaitable[T]], *, by_tag: bool = False) -> T:
        """The first endpoint's answer that is none of our errors; that endpoint goes first from now on. `by_tag`: of
        those that may say what a tag stands for."""
        failures: list[EngineError] = []
        for endpoint in tuple(self._endpoints):
            if self._skips(endpoint, failures) or (by_tag and not endpoint.resolves):
                continue
            try:
                answer = await ask(endpoint)
            except EngineError as error:
                if endpoint.instead_of_tls:
                    if isinstance(error, Unavailable):
                        self._plain_hosts.discard(endpoint.host)
                    elif failures and isinstance(failures[-1].__cause__, NotTls):
                        failures.pop()  # that it does not speak TLS explains nothing, since it speaks
                failures.append(self.named(error, endpoint, step))
                continue
            if endpoint.instead_of_tls:
                self._plain_hosts.add(endpoint.host)
            self._endpoints = [endpoint, *(other for other in self._endpoints if other is not endpoint)]
            return answer
        raise _most_telling(failures)

    def _skips(self, endpoint: Endpoint, failures: list[EngineError]) -> bool:
        """Of a host's two faces, TLS is asked first, and plain HTTP where TLS was not understood."""
        known_plain = endpoint.host in self._plain_hosts
        if endpoint.instead_of_tls:
            return not known_plain and not (failures and isinstance(failures[-1].__cause__, NotTls))
        return known_plain and any(other.instead_of_tls and other.host == endpoint.host for other in self._endpoints)

    @contextlib.contextmanager
    def naming(self, step: str) -> Iterator[None]:
        """Names the registry that answered last, the image and the step in an error about what it said."""
        try:
            yield
        except EngineError as error:
            raise self.named(error, self._endpoints[0], step) from error

    def named(self, error: EngineError, endpoint: Endpoint, step: str) -> EngineError:
        named = _public(error)(f"registry {endpoint.host}: image {self.reference}: {step}: {error.message}")
        named.__cause__ = error
        return named

    @contextlib.asynccontextmanager
    async def open(
        self,
        endpoint: Endpoint,
        path: str,
        *,
        method: str = "GET",
        headers: dict[str, str] | None = None,
        tries: int = 0,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """A good answer (200 or 206), with whatever authorization it takes."""
        scope = Scope(endpoint=endpoint, repository=self.reference.path)
        login = self._login_for(endpoint)
        authorization = self._auth.known(scope, login)
        url = f"{endpoint.base}{endpoint.api}/{self.reference.path}/{path}"
        if endpoint.mirror:
            url += f"?ns={self.reference.host}"  # whose image it is, for a mirror of several (as containerd asks)
        answers = 0
        while True:
            request = Request(
                method=method,
                url=url,
                headers=headers or {},
                own_headers=dict(endpoint.headers),
                authorization=authorization,
                verify=endpoint.verify,
                tls=endpoint.tls,
                tries=tries or (min(MIRROR_TRIES, self._http.options.tries) if endpoint.mirror else 0),
            )
            async with self._http.send(request) as response:
                if response.status in {200, 206}:
                    yield response
                    return
                if response.status != 401 or response.url.origin() != URL(endpoint.base).origin():
                    await self._refuse(response)
                challenges = parse_challenges(response.headers.getall("WWW-Authenticate", []))
            self._auth.forget(scope, login)
            if answers:
                raise Unauthenticated(
                    "the image needs credentials, or does not exist"
                    if login.anonymous
                    else "the credentials are not accepted (HTTP 401)"
                )
            authorization = await self._auth.answer(challenges, scope, login)
            answers += 1

    async def _refuse(self, response: aiohttp.ClientResponse) -> None:
        """Raises what the status means."""
        words = ""
        if response.headers.get("Content-Type", "").startswith("application/json"):
            with contextlib.suppress(EngineError):
                words = _error_words(await self._http.read(response, ERROR_BYTES))
        message = f"HTTP {response.status}{words}"
        match response.status:
            case 401:
                raise Unauthenticated(f"{message} from {response.url.host}")
            case 403:
                raise PermissionDenied(message)
            case 404 | 410:
                raise NotFound(message)
            case 400 if _NAME_INVALID in words:
                raise InvalidInput(message)
            case _:
                raise Unavailable(message)


class _Error(Struct):
    code: str = ""
    message: str = ""


class _Errors(Struct):
    errors: list[_Error] = []


def _error_words(body: bytes) -> str:
    """The registry's own (distribution spec, error codes)."""
    with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
        for error in msgspec.json.decode(body, type=_Errors).errors:
            text = f"{error.code}: {error.message}" if error.message else error.code
            return " " + "".join(letter for letter in text[:300] if letter.isprintable())
    return ""


def _told_digest(response: aiohttp.ClientResponse) -> Digest | None:
    try:
        return check_digest(response.headers.get("Docker-Content-Digest", ""), field="Docker-Content-Digest")
    except InvalidInput:
        return None


def _public(error: EngineError) -> type[EngineError]:
    """The class of model.errors that a class of ours stands for."""
    return next(kind for kind in type(error).__mro__ if kind.__module__ == EngineError.__module__)


def _most_telling(failures: list[EngineError]) -> EngineError:
    """The registry's own answer counts, except that one that says something counts more than one that is away."""
    last = failures[-1]
    if isinstance(last, Unavailable):
        last = next((error for error in failures if not isinstance(error, Unavailable)), last)
    others = [error.message for error in failures if error is not last]
    if not others:
        return last
    telling = _public(last)(f"{last.message}; also: {'; '.join(others)}"[:4000])
    telling.__cause__ = last.__cause__
    return telling

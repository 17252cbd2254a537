"""Authorization for registries: Basic, and Bearer tokens with their cache (distribution spec, token authentication)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from yarl import URL

from isulad_py.images.challenge import Challenge
from isulad_py.images.credentials import Login
from isulad_py.images.http import HttpClient, Request
from isulad_py.images.options import Endpoint
from isulad_py.model.errors import DataLoss, PermissionDenied, Unauthenticated, Unavailable
from isulad_py.ports.clock import Clock

TOKEN_LIMIT: Final = 256 * 1024
CACHED_TOKENS: Final = 256
SHORTEST_SECONDS: Final = 60.0
"""A token lives at least so long, whatever its service says (distribution spec)."""
MARGIN_SECONDS: Final = 10.0
CLIENT_ID: Final = "isulad-py"


class Scope(Struct, frozen=True, kw_only=True):
    """What is to be read, and where."""

    endpoint: Endpoint
    repository: str

    @property
    def text(self) -> str:
        return f"repository:{self.repository}:pull"


class _Token(Struct, kw_only=True):
    token: str | None = None
    access_token: str | None = None
    expires_in: float | None = None


class _Known(Struct, frozen=True):
    header: str
    until: float
    """Monotonic seconds."""


class Authenticator:
    """Headers by endpoint, repository and login, bounded, until they expire."""

    def __init__(self, http: HttpClient, clock: Clock) -> None:
        self._http = http
        self._clock = clock
        self._known: dict[tuple[str, str, str], _Known] = {}

    def known(self, scope: Scope, login: Login) -> str:
        """The header that was good before; empty where none is known."""
        if login.registry_token:
            return f"Bearer {login.registry_token}"
        entry = self._known.get(_key(scope, login))
        if entry is None or entry.until <= self._clock.monotonic():
            return ""
        return entry.header

    def forget(self, scope: Scope, login: Login) -> None:
        self._known.pop(_key(scope, login), None)

    async def answer(self, challenges: Sequence[Challenge], scope: Scope, login: Login) -> str:
        """The header that answers. Raises Unauthenticated where the login is missing or wrong, PermissionDenied or
        Unavailable as the token service says."""
        by_scheme = {challenge.scheme: challenge for challenge in reversed(challenges)}
        if login.registry_token:
            raise Unauthenticated("the registry token is not accepted")
        if "bearer" in by_scheme:
            header, seconds = await self._fetch_token(by_scheme["bearer"], scope, login)
        elif "basic" in by_scheme:
            header, seconds = login.basic, float("inf")
            if not header:
                raise Unauthenticated("the registry wants a name and a password")
        else:
            schemes = ", ".join(sorted(by_scheme))[:200] or "no scheme at all"
            raise Unauthenticated(f"the registry wants authentication by {schemes}, which is not known here")
        while len(self._known) >= CACHED_TOKENS:
            del self._known[next(iter(self._known))]
        self._known[_key(scope, login)] = _Known(header, self._clock.monotonic() + seconds)
        return header

    async def _fetch_token(self, challenge: Challenge, scope: Scope, login: Login) -> tuple[str, float]:
        realm = challenge.parameters.get("realm", "")
        _check_realm(realm, scope.endpoint)
        query = {"scope": challenge.parameters.get("scope") or scope.text}
        if service := challenge.parameters.get("service"):
            query["service"] = service
        own = URL(realm).origin() == URL(scope.endpoint.base).origin()
        tls = scope.endpoint.tls if own else None
        if login.identity_token:
            form = {**query, "grant_type": "refresh_token", "client_id": CLIENT_ID}
            form["refresh_token"] = login.identity_token
            request = Request(method="POST", url=realm, form=form, verify=scope.endpoint.verify, tls=tls)
        else:
            if login.username:
                query["account"] = login.username
            url = str(URL(realm).update_query(query))
            request = Request(url=url, authorization=login.basic, verify=scope.endpoint.verify, tls=tls)
        async with self._http.send(request) as response:
            body = await self._http.read(response, TOKEN_LIMIT)
            _check_status(response.status, urlsplit(realm).netloc, login)
        return _read_token(body)


def _read_token(body: bytes) -> tuple[str, float]:
    try:
        answer = msgspec.json.decode(body, type=_Token)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DataLoss(f"token service: its answer cannot be read: {error}") from error
    token = answer.token or answer.access_token
    if not token or not token.isascii() or not token.isprintable():
        raise DataLoss("token service: its answer holds no token")
    return f"Bearer {token}", max(SHORTEST_SECONDS, answer.expires_in or 0) - MARGIN_SECONDS


def _check_realm(realm: str, endpoint: Endpoint) -> None:
    """A registry that we know by its certificate cannot make us tell secrets without one."""
    try:
        parts = urlsplit(realm)
        URL(realm)
    except ValueError as error:
        raise Unavailable(f"token service: {realm[:200]!r} is no address") from error
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise Unavailable(f"token service: {realm[:200]!r} is no web address")
    if parts.scheme == "http" and not endpoint.plain and endpoint.verify:
        raise Unavailable(f"token service: {parts.netloc} is not secure, the registry is")


def _check_status(status: int, service: str, login: Login) -> None:
    if status == 200:
        return
    if status in {400, 401} and not login.anonymous:
        raise Unauthenticated(f"token service {service}: the credentials are not accepted (HTTP {status})")
    if status == 401:
        raise Unauthenticated(f"token service {service}: wants credentials (HTTP 401)")
    if status == 403:
        raise PermissionDenied(f"token service {service}: access is denied (HTTP 403)")
    raise Unavailable(f"token service {service}: HTTP {status}")


def _key(scope: Scope, login: Login) -> tuple[str, str, str]:
    return scope.endpoint.base, scope.repository, login.fingerprint

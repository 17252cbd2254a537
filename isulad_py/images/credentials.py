"""PURE: whom a registry is told that we are: CRI's AuthConfig and docker's config.json in one form."""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Final

import msgspec
from msgspec import Struct, field

from isulad_py.model.errors import FailedPrecondition, InvalidInput
from isulad_py.model.image import Credentials

_DOCKER_NAMES: Final = frozenset({"docker.io", "index.docker.io", "registry-1.docker.io", "registry.docker.io"})


class Login(Struct, frozen=True, kw_only=True):
    """One of: name and password, an identity token (to be exchanged), a registry token (to be sent as it is)."""

    username: str = ""
    password: str = ""
    identity_token: str = ""
    registry_token: str = ""

    def __repr__(self) -> str:
        return "Login(...)"

    @property
    def anonymous(self) -> bool:
        return not (self.username or self.password or self.identity_token or self.registry_token)

    @property
    def basic(self) -> str:
        """The value of an Authorization header; empty without a name and password."""
        if not (self.username or self.password):
            return ""
        return "Basic " + base64.b64encode(f"{self.username}:{self.password}".encode()).decode()

    @property
    def fingerprint(self) -> str:
        """Tells logins apart in a cache's key without keeping them there."""
        text = "\0".join((self.username, self.password, self.identity_token, self.registry_token))
        return hashlib.sha256(text.encode()).hexdigest()


ANONYMOUS: Final = Login()


def login_of(credentials: Credentials | None) -> Login:
    """The login that CRI's AuthConfig means; name and password before `auth`, as in containerd. InvalidInput where
    `auth` cannot be read."""
    if credentials is None:
        return ANONYMOUS
    if not credentials.registry_token.isascii() or not all(map(str.isprintable, credentials.registry_token)):
        raise InvalidInput("auth.registry_token: not a token")
    username, password = credentials.username, credentials.password
    if not username and not credentials.identity_token and not credentials.registry_token and credentials.auth:
        username, password = decode_auth(credentials.auth)
    return Login(
        username=username,
        password=password,
        identity_token=credentials.identity_token,
        registry_token=credentials.registry_token,
    )


def decode_auth(text: str) -> tuple[str, str]:
    """Name and password from base64 of `name:password`."""
    try:
        decoded = base64.b64decode(text, validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise InvalidInput("auth.auth: not base64 of name:password") from error
    username, colon, password = decoded.partition(":")
    if not colon:
        raise InvalidInput("auth.auth: no colon between name and password")
    return username, password.rstrip("\0")


def serves(server_address: str, host: str) -> bool:
    """Whether credentials for that address (a host, or a URL as docker writes it) may be sent to `host`."""
    name = server_address.partition("://")[2] or server_address
    name = name.partition("/")[0].lower()
    host = host.lower()
    return name == host or (name in _DOCKER_NAMES and host in _DOCKER_NAMES)


class _Entry(Struct, kw_only=True, rename={"identity_token": "identitytoken", "registry_token": "registrytoken"}):
    auth: str = ""
    username: str = ""
    password: str = ""
    identity_token: str = ""
    registry_token: str = ""


class _File(Struct, kw_only=True):
    auths: dict[str, _Entry] = field(default_factory=dict)


def parse_auth_file(data: bytes, host: str, path: str = "") -> Login:
    """The login for a repository in docker's config.json or containers-auth.json: of the entries for its host the one
    with the longest path that begins its own; anonymous where there is none. FailedPrecondition for another file."""
    try:
        entries = msgspec.json.decode(data, type=_File).auths
        best = max(entries, key=lambda address: _fits(address, host, path), default="")
        if not best or not _fits(best, host, path):
            return ANONYMOUS
        entry = entries[best]
        return login_of(
            Credentials(
                username=entry.username,
                password=entry.password,
                auth=entry.auth,
                identity_token=entry.identity_token,
                registry_token=entry.registry_token,
            )
        )
    except (msgspec.DecodeError, UnicodeDecodeError, InvalidInput) as error:
        raise FailedPrecondition(f"the file of registry credentials: {error}") from error


def _fits(address: str, host: str, path: str) -> int:
    """0 where the entry is for something else, more for each part of its path (containers-auth.json(5)). docker's own
    addresses end in the version of an interface, which is no path."""
    if not serves(address, host):
        return 0
    name = address.partition("://")[2] or address
    parts = [part for part in name.split("/")[1:] if part]
    if parts in (["v1"], ["v2"]):
        parts = []
    return 1 + len(parts) if path.split("/")[: len(parts)] == parts else 0

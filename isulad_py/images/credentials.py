"""PURE: whom a registry is told that we are: CRI's AuthConfig and docker's config.json in one form."""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Final

import msgspec
from msgspec import Struct, field

from isulad_py.model.errors import InvalidInput
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


def parse_auth_file(data: bytes, host: str) -> Login:
    """The login for `host` of docker's config.json; anonymous where it has none. InvalidInput for another file."""
    try:
        entries = msgspec.json.decode(data, type=_File).auths
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"the file of registry credentials: {error}") from error
    for address, entry in entries.items():
        if serves(address, host):
            return login_of(
                Credentials(
                    username=entry.username,
                    password=entry.password,
                    auth=entry.auth,
                    identity_token=entry.identity_token,
                    registry_token=entry.registry_token,
                )
            )
    return ANONYMOUS

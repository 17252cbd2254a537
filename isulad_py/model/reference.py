"""Image references, as docker and containerd normalise them (distribution's reference grammar)."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from isulad_py.model.errors import InvalidInput
from isulad_py.model.ids import Digest

FIELD: Final = "image.image"
"""CRI's name of the field that carries a reference."""
DEFAULT_HOST: Final = "docker.io"
DEFAULT_TAG: Final = "latest"
NAME_LIMIT: Final = 255
"""Of `host/path` together (distribution, reference grammar)."""
REFERENCE_LIMIT: Final = 1024
"""A name, a tag and the longest digest fit; what is longer is refused before any pattern runs over it."""

PORT_MAX: Final = 65535

_HOST_PART: Final = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_HOST: Final = re.compile(rf"(?:{_HOST_PART}(?:\.{_HOST_PART})*|\[[0-9a-fA-F:]+\])(?::[0-9]{{1,5}})?")
_PATH_PART: Final = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*")
_TAG: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_HEX: Final = re.compile(r"[0-9a-f]+")
_IMAGE_ID: Final = re.compile(r"[0-9a-f]{64}")
_DIGEST_HEX: Final = {"sha256": 64, "sha384": 96, "sha512": 128}
DIGEST_ALGORITHMS: Final = frozenset(_DIGEST_HEX)


class Reference(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`host/path[:tag][@digest]`, normalised: `busybox` is `docker.io/library/busybox:latest`."""

    host: str
    path: str
    tag: str = ""
    digest: Digest = Digest("")

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag else ""
        digest = f"@{self.digest}" if self.digest else ""
        return f"{self.repository}{tag}{digest}"

    @property
    def repository(self) -> str:
        """`host/path`."""
        return f"{self.host}/{self.path}"

    @property
    def repo_tag(self) -> str:
        """`host/path:tag`, or empty where there is no tag."""
        return f"{self.repository}:{self.tag}" if self.tag else ""

    @property
    def repo_digest(self) -> str:
        """`host/path@digest`, or empty where there is no digest."""
        return f"{self.repository}@{self.digest}" if self.digest else ""

    @property
    def selector(self) -> str:
        """What a registry is asked for: the digest where there is one, else the tag (distribution spec, pulling
        manifests). A tag beside a digest is only a name for people."""
        return self.digest or self.tag

    def at(self, digest: Digest) -> Reference:
        """The same repository by digest."""
        return replace(self, tag="", digest=digest)


def parse(text: str, *, field: str = FIELD) -> Reference:
    """Parses and normalises a reference. Raises InvalidInput naming `field`.

    Without tag and digest the tag is `latest`; with a digest alone there is no tag. An image id is not a reference
    (64 hexadecimal characters are refused as a name, as docker does): the caller looks for ids first.
    """
    if not text:
        raise InvalidInput(f"{field} is empty")
    if len(text) > REFERENCE_LIMIT:
        raise InvalidInput(f"{field} is longer than {REFERENCE_LIMIT} characters")
    if "://" in text:
        raise InvalidInput(f"{field} {text!r} has a scheme: write it as host/path:tag")
    if _IMAGE_ID.fullmatch(text.removeprefix("sha256:")):
        raise InvalidInput(f"{field} {text!r} is an image id, not a name")
    name, at, digest = text.partition("@")
    if at:
        check_digest(digest, field=field)
    name, tag = _split_tag(name)
    if tag is not None and not _TAG.fullmatch(tag):
        raise InvalidInput(f"{field} {text!r}: {tag!r} is not a tag")
    if _IMAGE_ID.fullmatch(name):
        raise InvalidInput(f"{field} {text!r}: 64 hexadecimal characters are an image id, not a name")
    host, path = _split_host(name)
    _check_name(host, path, text, field)
    if tag is None:
        tag = "" if at else DEFAULT_TAG
    return Reference(host=host, path=path, tag=tag, digest=Digest(digest))


def check_digest(text: str, *, field: str) -> Digest:
    """`text` as a digest that can be verified here. Raises InvalidInput naming `field`."""
    algorithm, _, value = text.partition(":")
    length = _DIGEST_HEX.get(algorithm)
    if length is None:
        raise InvalidInput(f"{field}: {text[:200]!r} is not a digest (sha256, sha384 or sha512, then the value in hex)")
    if len(value) != length or not _HEX.fullmatch(value):
        raise InvalidInput(f"{field}: {algorithm} digest {text[:200]!r} needs {length} lower-case hex characters")
    return Digest(text)


def _split_tag(name: str) -> tuple[str, str | None]:
    """A colon after the last slash begins the tag; before it, it belongs to the host's port."""
    slash = name.rfind("/")
    colon = name.rfind(":")
    return (name[:colon], name[colon + 1 :]) if colon > slash else (name, None)


def _split_host(name: str) -> tuple[str, str]:
    """The first part is a host where it has a dot, a colon or an upper-case letter, or is `localhost`."""
    first, slash, rest = name.partition("/")
    if not slash or not (first == "localhost" or "." in first or ":" in first or first.lower() != first):
        host, path = DEFAULT_HOST, name
    else:
        host, path = first, rest
    if host == "index.docker.io":
        host = DEFAULT_HOST
    if host == DEFAULT_HOST and "/" not in path:
        path = f"library/{path}"
    return host, path


def _check_name(host: str, path: str, text: str, field: str) -> None:
    if not _HOST.fullmatch(host) or int(host.rpartition("]")[2].partition(":")[2] or 0) > PORT_MAX:
        raise InvalidInput(f"{field} {text!r}: {host!r} is not a host")
    parts = path.split("/")
    if not all(map(_PATH_PART.fullmatch, parts)):
        hint = "must be lower-case" if path.lower() != path else "is not a repository path"
        raise InvalidInput(f"{field} {text!r}: {path!r} {hint}")
    if len(host) + 1 + len(path) > NAME_LIMIT:
        raise InvalidInput(f"{field}: the name {text[:80]!r}... is longer than {NAME_LIMIT} characters")


def familiar(name: str) -> str:
    """A normalised name as people write it: docker's own host and library go without saying."""
    short = name.removeprefix(f"{DEFAULT_HOST}/")
    return short.removeprefix("library/") if short != name else name

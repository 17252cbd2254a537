"""PURE: what a registry says in WWW-Authenticate (RFC 9110, 11.6.1; distribution spec, token authentication)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct, field

_LIMIT: Final = 8192
_TOKEN: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"  # noqa: S105 -- a grammar
_PARAMETER: Final = re.compile(rf'\s*({_TOKEN})\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))\s*(?:,|$)')
_SCHEME: Final = re.compile(rf"[\s,]*({_TOKEN})(?=\s|,|$)")
_ESCAPE: Final = re.compile(r"\\(.)")


class Challenge(Struct, frozen=True, kw_only=True):
    scheme: str
    """In lower case: basic, bearer."""
    parameters: dict[str, str] = field(default_factory=dict)


def parse_challenges(headers: Sequence[str]) -> list[Challenge]:
    """All challenges of all such headers, in order; what cannot be read is left out."""
    found: list[Challenge] = []
    for header in headers:
        text = header[:_LIMIT]
        at = 0
        while match := _SCHEME.match(text, at):
            at = match.end()
            parameters: dict[str, str] = {}
            while parameter := _PARAMETER.match(text, at):
                name, quoted, plain = parameter.groups()
                parameters[name.lower()] = plain if plain is not None else _ESCAPE.sub(r"\1", quoted)
                at = parameter.end()
            found.append(Challenge(scheme=match[1].lower(), parameters=parameters))
    return found

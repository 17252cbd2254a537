"""Which images may be used here, as containers-policy.json(5) says: accept and reject, by default and by scope.

Requirements that need signatures (signedBy, sigstoreSigned) are read, and refused where they would decide: an image is
never let in because its signature could not be looked at.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
from msgspec import Struct

from isulad_py.host import blocking, files
from isulad_py.model.errors import EngineError, FailedPrecondition, PermissionDenied, Unsupported
from isulad_py.model.ids import Digest
from isulad_py.model.reference import Reference

POLICY_LIMIT: Final = 1024 * 1024
"""Bytes of the file."""
_ACCEPT: Final = "insecureAcceptAnything"
_REJECT: Final = "reject"
_SIGNED: Final = frozenset({"signedBy", "signedBaseLayer", "sigstoreSigned"})


async def read_policy(path: str) -> Policy | None:
    """None where no file is named: everything is let in. A policy that cannot be read lets nothing in:
    FailedPrecondition."""
    if not path:
        return None
    try:
        return parse_policy(await blocking.run(files.read_limited, path, POLICY_LIMIT))
    except EngineError as error:
        words = error.message.removeprefix("signature policy: ")
        raise FailedPrecondition(f"signature policy: {words}") from error


class Requirement(Struct, frozen=True, kw_only=True):
    type: str


class Policy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    default: tuple[Requirement, ...]
    transports: dict[str, dict[str, tuple[Requirement, ...]]] = {}


def parse_policy(body: bytes) -> Policy:
    """Raises FailedPrecondition for what is no policy: it is the administrator's to mend, and nothing is let in."""
    try:
        policy = msgspec.json.decode(body, type=Policy)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FailedPrecondition(f"signature policy: {error}") from error
    for place, requirements in _all(policy):
        if not requirements:
            raise FailedPrecondition(f"signature policy: {place}: no requirement at all")
        for requirement in requirements:
            if requirement.type not in {_ACCEPT, _REJECT, *_SIGNED}:
                raise FailedPrecondition(f"signature policy: {place}: unknown type {requirement.type[:100]!r}")
    return policy


def _all(policy: Policy) -> Iterator[tuple[str, tuple[Requirement, ...]]]:
    yield "default", policy.default
    for transport, scopes in policy.transports.items():
        for scope, requirements in scopes.items():
            yield f"transports.{transport[:100]}.{scope[:300]!r}", requirements


def admit(policy: Policy, reference: Reference, digest: Digest) -> None:
    """Returns where the image may be used. PermissionDenied where it may not, Unsupported where a signature would have
    to be looked at; both name the scope that decides.

    All requirements of the most specific scope have to be met; less specific ones do not count.
    """
    _decide(policy, "docker", scopes_of(reference, digest))


def admit_file(policy: Policy, transport: str, path: str) -> None:
    """As `admit`, for what comes out of a file or directory: `docker-archive`, `oci-archive`, `oci` or `tarball`. Its
    scopes are the absolute path, and the directories that it is in."""
    parts = posixpath.normpath(path).split("/")
    _decide(policy, transport, ["/".join(parts[:count]) for count in range(len(parts), 0, -1)])


def _decide(policy: Policy, transport: str, wanted: Iterable[str]) -> None:
    scopes = policy.transports.get(transport, {})
    place, requirements = "default", policy.default
    for scope in wanted:
        if scope in scopes:
            place, requirements = f"transports.{transport}.{scope!r}", scopes[scope]
            break
    types = [requirement.type for requirement in requirements]
    if _REJECT in types:
        raise PermissionDenied(f"the signature policy rejects it ({place})")
    for name in types:
        if name != _ACCEPT:
            raise Unsupported(f"the signature policy wants {name} ({place}), which cannot be verified here")


def scopes_of(reference: Reference, digest: Digest) -> Iterator[str]:
    """Of the transport `docker`, the most specific first: image, repository, its parents, host, wildcards, all."""
    if reference.digest or not reference.tag:
        yield reference.at(reference.digest or digest).repo_digest
    else:
        yield reference.repo_tag
    parts = reference.repository.split("/")
    for count in range(len(parts), 0, -1):
        yield "/".join(parts[:count])
    labels = reference.host.split(".")
    for count in range(1, len(labels)):
        yield "*." + ".".join(labels[count:])
    yield ""

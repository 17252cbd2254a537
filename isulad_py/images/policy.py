"""PURE: which images may be used here, as containers-policy.json(5) says: accept and reject, by default and by scope.

Requirements that need signatures (signedBy, sigstoreSigned) are read, and refused where they would decide: an image is
never let in because its signature could not be looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec import Struct

from isulad_py.model.errors import FailedPrecondition, PermissionDenied, Unsupported
from isulad_py.model.ids import Digest
from isulad_py.model.reference import Reference

POLICY_LIMIT: Final = 1024 * 1024
_ACCEPT: Final = "insecureAcceptAnything"
_REJECT: Final = "reject"
_SIGNED: Final = frozenset({"signedBy", "signedBaseLayer", "sigstoreSigned"})


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
    scopes = policy.transports.get("docker", {})
    place, requirements = "default", policy.default
    for scope in scopes_of(reference, digest):
        if scope in scopes:
            place, requirements = f"transports.docker.{scope!r}", scopes[scope]
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

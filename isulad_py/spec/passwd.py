"""Users and groups of an image: a tolerant parser of passwd(5) and group(5), and the rules of CRI on top of it.

The files are the image author's, so nothing in them is trusted: malformed lines are passed over. Where CRI leaves
something open, containerd's behaviour is followed: a uid that passwd does not know runs with gid 0, names that look
like numbers are ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

from msgspec import Struct

from isulad_py.model.container import Identity
from isulad_py.model.errors import EngineError, FailedPrecondition, InvalidInput
from isulad_py.model.identity import ResolvedUser
from isulad_py.model.security import ContainerSecurity, GroupsPolicy

MAX_ID: Final = (1 << 31) - 1
"""As the OCI runtimes have it; the kernel would take one bit more."""
MAX_GROUPS: Final = 65536
"""setgroups(2) takes no more."""

_Entry = TypeVar("_Entry")


class PasswdEntry(Struct, frozen=True):
    name: str
    uid: int
    gid: int
    home: str


class GroupEntry(Struct, frozen=True):
    name: str
    gid: int
    members: tuple[str, ...]


def parse_passwd(text: bytes) -> Iterator[PasswdEntry]:
    """Entries in their order; the first of a name or uid counts."""
    for fields in _lines(text):
        if len(fields) >= 4:
            uid, gid = _number(fields[2]), _number(fields[3])
            if uid is not None and gid is not None:
                yield PasswdEntry(fields[0], uid, gid, fields[5] if len(fields) > 5 else "")


def parse_group(text: bytes) -> Iterator[GroupEntry]:
    for fields in _lines(text):
        if len(fields) >= 3:
            gid = _number(fields[2])
            if gid is not None:
                members = fields[3].split(",") if len(fields) > 3 else []
                yield GroupEntry(fields[0], gid, tuple(member for member in members if member))


def _lines(text: bytes) -> Iterator[list[str]]:
    for line in text.decode(errors="replace").split("\n"):
        stripped = line.strip()
        if stripped and stripped[0] not in "#+-" and "\0" not in stripped:
            yield [field.strip() for field in stripped.split(":")]


def _number(text: str) -> int | None:
    """An id, or None: only digits, within range."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 10):
        return None
    number = int(text)
    return number if number <= MAX_ID else None


class _Wanted(Struct, frozen=True, kw_only=True):
    user: str = ""
    group: str = ""
    field: str = ""
    """Whose words these are, for the messages."""
    error: type[EngineError] = InvalidInput


def wanted(image_user: str, security: ContainerSecurity) -> _Wanted:
    """Which user and group count, as text; empty is root. Raises InvalidInput naming the field."""
    uid, gid = security.run_as_user, security.run_as_group
    for field, number in (("run_as_user", uid), ("run_as_group", gid)):
        if number is not None and not 0 <= number <= MAX_ID:
            raise InvalidInput(f"security_context.{field}: {number} is not within 0 to {MAX_ID}")
    text = security.run_as_username or ("" if uid is None else str(uid))
    if not text:
        if gid is not None:
            raise InvalidInput("security_context.run_as_group: needs run_as_user or run_as_username")
        return _split(image_user, "user of the image", FailedPrecondition)
    chosen = _split(text, "security_context.run_as_username", InvalidInput)
    if gid is None:
        return chosen
    return _Wanted(user=chosen.user, group=str(gid), field=chosen.field, error=chosen.error)


def _split(text: str, field: str, error: type[EngineError]) -> _Wanted:
    """`user`, `uid`, `user:group`, `uid:gid` and mixtures (OCI image spec, config.md, User)."""
    user, _, group = text.partition(":")
    if ":" in group or "\0" in text or "\n" in text:
        raise error(f"{field}: {text!r} is not a user with or without a group")
    return _Wanted(user=user, group=group, field=field, error=error)


def resolve(image_user: str, security: ContainerSecurity, *, passwd: bytes, group: bytes) -> ResolvedUser:
    """The user of a container, from the content of its image's files (empty where there are none)."""
    want = wanted(image_user, security)
    uid = _number(want.user) if want.user else 0
    users = parse_passwd(passwd)
    entry = _first(users, lambda user: user.name == want.user if uid is None else user.uid == uid)
    if uid is None:
        if entry is None:
            raise want.error(f"{want.field}: no user {want.user!r} in etc/passwd of the image")
        uid = entry.uid
    groups = list(parse_group(group))
    gid = _group_id(want, groups) if want.group else (entry.gid if entry else 0)
    return ResolvedUser(
        identity=Identity(uid=uid, gid=gid, supplemental_groups=_supplemental(gid, entry, groups, security)),
        username=entry.name if entry else "",
        home=entry.home if entry else "",
    )


def _group_id(want: _Wanted, groups: Sequence[GroupEntry]) -> int:
    number = _number(want.group)
    if number is not None:
        return number
    found = _first(iter(groups), lambda entry: entry.name == want.group)
    if found is None:
        raise want.error(f"{want.field}: no group {want.group!r} in etc/group of the image")
    return found.gid


def _supplemental(
    gid: int, user: PasswdEntry | None, groups: Sequence[GroupEntry], security: ContainerSecurity
) -> tuple[int, ...]:
    """CRI SupplementalGroupsPolicy: Merge adds the user's memberships in the image, Strict does not."""
    chosen = {gid}
    for number in security.supplemental_groups:
        if not 0 <= number <= MAX_ID:
            raise InvalidInput(f"security_context.supplemental_groups: {number} is not within 0 to {MAX_ID}")
        chosen.add(number)
    if user is not None and security.groups_policy is GroupsPolicy.MERGE:
        chosen.update(entry.gid for entry in groups if user.name in entry.members)
    if len(chosen) > MAX_GROUPS:
        raise InvalidInput(f"security_context.supplemental_groups: more than {MAX_GROUPS} groups")
    return tuple(sorted(chosen))


def _first(entries: Iterator[_Entry], fits: Callable[[_Entry], bool]) -> _Entry | None:
    return next((entry for entry in entries if fits(entry)), None)

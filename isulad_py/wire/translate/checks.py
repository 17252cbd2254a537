"""What is asked of every value that comes in.

Each refusal is InvalidInput, or Unsupported where nothing here can do it, with the field in CRI's dotted form, such as
`config.metadata.name`.
"""

from __future__ import annotations

import enum
import ipaddress
import mmap
import posixpath
from collections.abc import Iterable, Sequence, Sized
from typing import Final, TypeVar

from isulad_py.model.errors import InvalidInput, Unsupported

E = TypeVar("E", bound=enum.IntEnum)

PORT_MAX: Final = 65535
ID_MAX: Final = 2**31 - 1
"""Of users and groups, as in runc and containerd."""
TEXT_MAX: Final = 4095
"""Bytes of a path (PATH_MAX, without its NUL), and of any name: nothing that has a use is longer."""
FILE_NAME_MAX: Final = 255
"""Bytes of each part of a path (NAME_MAX)."""
LIST_MAX: Final = 4096
"""Entries of a list, where nothing says less: most of them take the kernel or a program a step each."""
KEYED_BYTES: Final = 512 * 1024
"""Of labels, or annotations, together: twice what Kubernetes lets an object have. Every list repeats them, and an
answer that is too long for a client would hide all pods from it."""
ARGUMENT_MAX: Final = 32 * mmap.PAGESIZE - 1
"""Bytes of one argument or variable (execve(2), MAX_ARG_STRLEN, without its NUL)."""
ARGUMENTS_MAX: Final = 6 * 1024 * 1024
"""Bytes of all of them with their pointers, however large a program's stack may be (execve(2))."""
_POINTER: Final = 8
_CONTROL: Final = frozenset(map(chr, (*range(32), 127)))


def member(kind: type[E], value: int, field: str) -> E:
    """The value of an enumeration; protobuf itself lets any number through."""
    try:
        return kind(int(value))
    except ValueError:
        raise InvalidInput(f"{field}: {int(value)} is not a value of {kind.__name__}") from None


def at_least(lowest: int, value: int, field: str) -> int:
    if value < lowest:
        raise InvalidInput(f"{field}: {value} is less than {lowest}")
    return value


def user_or_group(value: int, field: str) -> int:
    if not 0 <= value <= ID_MAX:
        raise InvalidInput(f"{field}: {value} is not within 0 to {ID_MAX}")
    return value


def at_most(most: int, values: Sized, field: str) -> None:
    if len(values) > most:
        raise InvalidInput(f"{field}: {len(values)} are more than {most}")


def port(value: int, field: str) -> int:
    if not 0 <= value <= PORT_MAX:
        raise InvalidInput(f"{field}: {value} is not a port")
    return value


def name(value: str, field: str) -> str:
    """Text for one line: without NUL, newline and other control characters, and not without end. May be empty."""
    if len(value.encode(errors="replace")) > TEXT_MAX:
        raise InvalidInput(f"{field} is longer than {TEXT_MAX} bytes")
    if not _CONTROL.isdisjoint(value):
        raise InvalidInput(f"{field} has control characters: {value[:80]!r}")
    return value


def required_name(value: str, field: str) -> str:
    if not value:
        raise InvalidInput(f"{field} is empty")
    return name(value, field)


def no_nul(value: str, field: str) -> str:
    """Text that a system call will get: NUL would cut it short. The value is not repeated: it can be a secret."""
    if "\0" in value:
        raise InvalidInput(f"{field} has a NUL character")
    return value


def argument(value: str, field: str) -> str:
    """Text that a program can be given."""
    if len(value.encode(errors="replace")) > ARGUMENT_MAX:
        raise InvalidInput(f"{field} is longer than {ARGUMENT_MAX} bytes, which no program can be given")
    return no_nul(value, field)


def arguments(values: Iterable[str], field: str) -> tuple[str, ...]:
    return tuple(argument(value, f"{field}[{index}]") for index, value in enumerate(values))


def fit_together(values: Iterable[str], field: str) -> None:
    """All that a program is to be given at once; `field` names the lists."""
    if sum(len(value.encode(errors="replace")) + 1 + _POINTER for value in values) > ARGUMENTS_MAX:
        raise InvalidInput(f"{field}: more than {ARGUMENTS_MAX} bytes together, which no program can be given")


def names(values: Sequence[str], field: str, *, most: int = LIST_MAX) -> tuple[str, ...]:
    at_most(most, values, field)
    return tuple(name(value, f"{field}[{index}]") for index, value in enumerate(values))


def keyed(values: dict[str, str], field: str) -> dict[str, str]:
    """Labels or annotations: a value may have any lines."""
    for key, value in values.items():
        no_nul(value, f"{field}[{name(key, f'{field}: a key')}]")
    if sum(len(text.encode(errors="replace")) for pair in values.items() for text in pair) > KEYED_BYTES:
        raise InvalidInput(f"{field}: more than {KEYED_BYTES} bytes together")
    return values


def path(value: str, field: str) -> str:
    """Text that may be a path to the kernel. May be empty."""
    for part in name(value, field).split("/"):
        if len(part.encode(errors="replace")) > FILE_NAME_MAX:
            raise InvalidInput(f"{field}: {part[:80]!r} goes on beyond {FILE_NAME_MAX} bytes")
    return value


def absolute(value: str, field: str) -> str:
    """An absolute path."""
    path(required_name(value, field), field)
    if not value.startswith("/"):
        raise InvalidInput(f"{field}: {value!r} is not an absolute path")
    return value


def absolute_or_empty(value: str, field: str) -> str:
    return absolute(value, field) if value else ""


def straight(value: str, field: str) -> str:
    """An absolute path that climbs nowhere: of what a container sees, or what is made on the host."""
    if ".." in absolute(value, field).split("/"):
        raise InvalidInput(f"{field}: {value!r} has a part that climbs")
    return value


def straight_or_empty(value: str, field: str) -> str:
    return straight(value, field) if value else ""


def inside(value: str, field: str) -> str:
    """A relative path that does not climb out of where it starts. May be empty."""
    path(value, field)
    if value.startswith("/"):
        raise InvalidInput(f"{field}: {value!r} is not a relative path")
    if ".." in value.split("/"):
        raise InvalidInput(f"{field}: {value!r} climbs out of its directory")
    return posixpath.normpath(value) if value else ""


def address(value: str, field: str) -> str:
    """An IP address, or empty."""
    if value:
        try:
            ipaddress.ip_address(value)
        except ValueError:
            raise InvalidInput(f"{field}: {value[:80]!r} is not an IP address") from None
    return value


def cidrs(value: str, field: str) -> str:
    """One network, or two of different families with a comma between."""
    try:
        families = [ipaddress.ip_network(part, strict=False).version for part in value.split(",")]
    except ValueError:
        families = []
    if not families or len(set(families)) != len(families):
        raise InvalidInput(f"{field}: {value[:80]!r} is not a network, or one of each family with a comma between")
    return value


def unsupported(value: object, field: str) -> None:
    """A field that nothing here honours is refused with its name where it says anything, rather than passed over."""
    if value:
        raise Unsupported(f"{field} is not supported")

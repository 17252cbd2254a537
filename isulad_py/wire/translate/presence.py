"""Presence: an absent message is not an empty one.

It carries meaning in CRI (`run_as_user {}` is uid 0, `seccomp {}` is the default profile), and betterproto reads an
absent message as an empty one. This is the only place that asks, or says, which of the two it is.
"""

from __future__ import annotations

from typing import TypeVar, cast

import betterproto

from isulad_py.model.errors import InvalidInput

M = TypeVar("M", bound=betterproto.Message)


def given(message: M) -> bool:
    """Whether the client sent this message, empty or not."""
    return betterproto.serialized_on_wire(message)


def required(message: M, field: str) -> M:
    """`message`, which the client must have sent; else InvalidInput naming `field`."""
    if not given(message):
        raise InvalidInput(f"{field} is missing")
    return message


def or_absent(message: M | None) -> M:
    """For a field of a message that goes out: None leaves it out, which the generated types do not say."""
    return cast("M", message)

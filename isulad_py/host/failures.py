"""The kernel's errors in our words: the one mapping for everything in `host`."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator
from typing import Final

from isulad_py.model.errors import EngineError, HostFailure, ResourceExhausted

EXHAUSTED: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN})


def translate(step: str, error: OSError) -> EngineError:
    """The error to raise `from` this one: ResourceExhausted where a limit is reached, else HostFailure."""
    where = f" {error.filename}" if error.filename else ""
    target = f" -> {error.filename2}" if error.filename2 else ""
    reason = (error.strerror or str(error)).lower()
    kind = ResourceExhausted if error.errno in EXHAUSTED else HostFailure
    return kind(f"{step}{where}{target}: {reason}")


@contextlib.contextmanager
def translated(step: str) -> Iterator[None]:
    """Names the step in whatever the kernel refuses inside."""
    try:
        yield
    except OSError as error:
        raise translate(step, error) from error

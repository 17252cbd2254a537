"""Sudden death at a chosen moment, for tests of recovery. Set by ISULAD_FAILPOINT; read in `bootstrap` only.

`records:3:before` and `records:3:after` kill the process (SIGKILL) right before or after the third commit of a record.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping

from isulad_py.model.errors import InvalidInput

VARIABLE = "ISULAD_FAILPOINT"


def record_failpoint(environment: Mapping[str, str]) -> Callable[[str, str, str], None] | None:
    """What `storage.records` calls around each commit, or None. Raises InvalidInput for one that is not understood."""
    text = environment.get(VARIABLE, "")
    if not text:
        return None
    room, _, rest = text.partition(":")
    number, _, moment = rest.partition(":")
    if room != "records" or not number.isdigit() or moment not in {"", "before", "after"}:
        raise InvalidInput(f"{VARIABLE}: {text!r} is not records:N:before or records:N:after")
    return _Countdown(int(number), moment or "after")


class _Countdown:
    def __init__(self, left: int, moment: str) -> None:
        self._left = left
        self._moment = moment

    def __call__(self, moment: str, kind: str, key: str) -> None:
        if moment != self._moment:
            return
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

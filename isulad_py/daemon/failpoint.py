"""Sudden death at a chosen moment, for tests of recovery. Set by ISULAD_FAILPOINT; read in `bootstrap` only.

`records:3:before` and `records:3:after` kill the process (SIGKILL) right before or after the third commit of a record,
`layers:3:after` after the third step by which a layer's directory comes to be, or becomes visible.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping

from isulad_py.model.errors import InvalidInput

VARIABLE = "ISULAD_FAILPOINT"


ROOMS = {"records": ("before", "after"), "layers": ("after",)}


def failpoint_in(room: str, environment: Mapping[str, str]) -> Callable[[str, str, str], None] | None:
    """What `storage.records` calls around each commit and `storage.layer_disk` after each step; None where not meant.
    Raises InvalidInput for one that is not understood."""
    text = environment.get(VARIABLE, "")
    if not text:
        return None
    meant, _, rest = text.partition(":")
    number, _, moment = rest.partition(":")
    if not number.isdigit() or (moment or "after") not in ROOMS.get(meant, ()):
        raise InvalidInput(f"{VARIABLE}: {text!r} is not records:N:before, records:N:after or layers:N:after")
    return _Countdown(int(number), moment or "after") if meant == room else None


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

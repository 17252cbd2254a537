"""Throw-away threads: for work that changes what belongs to a thread (namespaces, working directory).

Such a thread must die with its work: one that went back to a pool would carry the change into somebody else's call.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def run_in_fresh_thread(work: Callable[[], T], *, name: str) -> T:
    """Calls `work` in a new operating-system thread, waits for its end, and gives its result or raises its error.

    Blocks: callers on the loop come through `host.blocking`, which also bounds how many there are.
    """
    results: list[T] = []
    errors: list[BaseException] = []

    def body() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=body, name=name, daemon=True)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]

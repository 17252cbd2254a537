"""Blocking work off the loop, in a bounded set of threads."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_threads = ThreadPoolExecutor(max_workers=16, thread_name_prefix="blocking")
"""One set for the process: its only state is idle threads."""
_apart = ThreadPoolExecutor(max_workers=16, thread_name_prefix="apart")


async def run(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Calls `work` in a thread. A cancelled caller does not stop it: the work must be short or idempotent."""
    return await asyncio.get_running_loop().run_in_executor(_threads, functools.partial(work, *args, **kwargs))


async def run_apart(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """As `run`, for a look at paths that are not ours: one on a dead network file system hangs, and only others
    of this kind may have to wait for its thread."""
    return await asyncio.get_running_loop().run_in_executor(_apart, functools.partial(work, *args, **kwargs))


async def run_to_end(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """As `run`, for work that must not go on behind the back of whoever undoes it: a caller that is cancelled gets its
    cancellation once `work` has ended, whose outcome is then dropped."""
    future = asyncio.get_running_loop().run_in_executor(_threads, functools.partial(work, *args, **kwargs))
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        future.exception()
        raise cancelled
    return future.result()

"""Start, serve, stop: signals, signs of life, the owner of background tasks, and the order in which all is closed."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

import structlog
from msgspec import Struct

from isulad_py.daemon.systemd import Notifier
from isulad_py.host.tasks import TaskOwner

log = structlog.get_logger(__name__)

CLOSE_SECONDS: Final = 5.0


class Serving(Struct, frozen=True, kw_only=True):
    """What `assemble` gives back once all is up."""

    status: str
    """One line for the service manager."""
    reload: Callable[[], None]
    settle: Callable[[], None] = lambda: None
    """Called once, right before READY."""


class Lifecycle:
    """What the object graph needs of the running daemon: an owner for its tasks, a place for its closing steps."""

    def __init__(self, *, stack: AsyncExitStack, on_task_failure: Callable[[str], None] = lambda name: None) -> None:
        self._stack = stack
        self._stop = asyncio.Event()
        self._on_task_failure = on_task_failure
        self.exit_code = 0
        self.reason = ""
        self.essential = TaskOwner(on_failure=self._essential_died)
        """Of tasks without which the daemon is useless: one that dies of an error stops it, and a service manager
        starts it again; containers live on."""
        self.background = TaskOwner(on_failure=self._background_died)
        """Of work on behalf of one pod, container or request: its death is logged and counted, the daemon goes on."""
        self._starting: asyncio.Task[Serving] | None = None
        # A graph whose tasks use what it closes registers these closings once more, in the right place.
        self.on_close("background tasks", self.background.close)
        self.on_close("essential tasks", self.essential.close)

    def _essential_died(self, name: str, error: BaseException) -> None:
        self._on_task_failure(name)
        log.critical("essential task died", task=name, exc_info=error)
        self.stop(f"task {name} died: {error!r}", exit_code=1)

    def _background_died(self, name: str, error: BaseException) -> None:
        self._on_task_failure(name)
        log.error("background task died", task=name, exc_info=error)

    def stop(self, reason: str, *, exit_code: int = 0) -> None:
        """The first reason counts."""
        if self._stop.is_set():
            log.info("already stopping", reason=reason)
            return
        self.reason, self.exit_code = reason, exit_code
        self._stop.set()
        if self._starting is not None:
            self._starting.cancel()

    def cancel_on_stop(self, starting: asyncio.Task[Serving]) -> None:
        """A start that has ended takes no harm."""
        self._starting = starting
        if self._stop.is_set():
            starting.cancel()

    async def stopped(self) -> None:
        await self._stop.wait()

    def on_close(self, name: str, close: Callable[[], Awaitable[None] | None], seconds: float = CLOSE_SECONDS) -> None:
        """Registers the undo of a step of the start. Steps are closed newest first; one that fails or takes longer
        than `seconds` is logged and does not keep the others from being closed."""

        async def bounded() -> None:
            try:
                async with asyncio.timeout(seconds):
                    waiting = close()
                    if waiting is not None:
                        await waiting
            except TimeoutError:
                log.error("closing takes too long", step=name, seconds=seconds)
            except Exception:
                log.exception("closing failed", step=name)

        self._stack.push_async_callback(bounded)


Assemble = Callable[[Lifecycle], Awaitable[Serving]]


async def run(assemble: Assemble, *, notifier: Notifier, on_task_failure: Callable[[str], None]) -> int:
    """Serves until a signal or a dead essential task; returns the exit status. What `assemble` raises is raised, after
    everything it had started is closed."""
    stack = AsyncExitStack()
    lifecycle = Lifecycle(stack=stack, on_task_failure=on_task_failure)
    # Signals outside: while the stack is closed they are still taken, so that a second one does not cut it short.
    async with _signals(lifecycle) as reload_wanted, stack:
        serving = await _unless_stopped(assemble, lifecycle)
        if serving is not None:
            serving.settle()
            notifier.ready(serving.status)
            log.info("ready", status=serving.status)
            await _serve(lifecycle, serving, notifier, reload_wanted)
        notifier.stopping(lifecycle.reason)
        log.info("stopping", reason=lifecycle.reason)
    log.info("stopped", reason=lifecycle.reason)
    return lifecycle.exit_code


@asynccontextmanager
async def _signals(lifecycle: Lifecycle) -> AsyncIterator[asyncio.Event]:
    """The event is set by SIGHUP."""
    loop = asyncio.get_running_loop()
    reload_wanted = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, lifecycle.stop, number.name)
    loop.add_signal_handler(signal.SIGHUP, reload_wanted.set)
    try:
        yield reload_wanted
    finally:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.remove_signal_handler(number)


async def _unless_stopped(assemble: Assemble, lifecycle: Lifecycle) -> Serving | None:
    """A start during which a signal comes is cancelled; None then."""
    starting = asyncio.get_running_loop().create_task(_start(assemble, lifecycle), name="start")
    lifecycle.cancel_on_stop(starting)
    try:
        return await starting
    except asyncio.CancelledError:
        if lifecycle.reason and starting.done():
            return None
        raise


async def _start(assemble: Assemble, lifecycle: Lifecycle) -> Serving:
    return await assemble(lifecycle)


async def _serve(lifecycle: Lifecycle, serving: Serving, notifier: Notifier, reload_wanted: asyncio.Event) -> None:
    """Returns when the daemon is to stop."""
    lifecycle.essential.start(_reload_on_demand(serving, notifier, reload_wanted), name="reload")
    if notifier.watchdog_seconds:
        lifecycle.essential.start(_show_life(notifier), name="watchdog")
    await lifecycle.stopped()


async def _reload_on_demand(serving: Serving, notifier: Notifier, wanted: asyncio.Event) -> None:
    while True:
        await wanted.wait()
        wanted.clear()
        notifier.reloading()
        try:
            serving.reload()
        except Exception:
            log.exception("reload failed: the former configuration stays in force")
        notifier.ready(serving.status)


async def _show_life(notifier: Notifier) -> None:
    """From the loop itself, so that a loop that hangs is noticed. A third of the interval: two may be missed."""
    while True:
        notifier.alive()
        await asyncio.sleep(notifier.watchdog_seconds / 3)

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable

import pytest

from isulad_py.daemon.lifecycle import Lifecycle, Serving, run
from isulad_py.daemon.systemd import Notifier


class Told(Notifier):
    """Remembers what it was told."""

    def __init__(self, watchdog_seconds: float = 0.0) -> None:
        super().__init__(watchdog_seconds=watchdog_seconds)
        self.words: list[str] = []
        self.on: dict[str, Callable[[], None]] = {}

    def _hear(self, word: str) -> None:
        self.words.append(word)
        self.on.get(word, lambda: None)()

    def ready(self, status: str) -> None:
        self._hear("ready")

    def reloading(self) -> None:
        self._hear("reloading")

    def stopping(self, reason: str) -> None:
        self._hear(f"stopping {reason}")

    def alive(self) -> None:
        self._hear("alive")


def serving(reload: Callable[[], None] = lambda: None) -> Serving:
    return Serving(status="up", reload=reload)


async def daemon(
    notifier: Told, assemble: Callable[[Lifecycle], Serving] = lambda _: serving(), failed: list[str] | None = None
) -> int:
    async def start(lifecycle: Lifecycle) -> Serving:
        return assemble(lifecycle)

    return await run(start, notifier=notifier, on_task_failure=(failed if failed is not None else []).append)


def signal_self(number: int) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_gracefully_and_newest_first(number: signal.Signals) -> None:
    told, closed = Told(), []
    told.on["ready"] = lambda: signal_self(number)

    def assemble(lifecycle: Lifecycle) -> Serving:
        lifecycle.on_close("first", lambda: closed.append("first"))
        lifecycle.on_close("second", lambda: closed.append("second"))
        return serving()

    assert await daemon(told, assemble) == 0
    assert told.words == ["ready", f"stopping {number.name}"]
    assert closed == ["second", "first"]


async def test_a_closing_step_that_hangs_or_fails_does_not_keep_the_others_from_closing() -> None:
    told, closed = Told(), []
    told.on["ready"] = lambda: signal_self(signal.SIGTERM)

    async def hang() -> None:
        await asyncio.Event().wait()

    async def fail() -> None:
        raise OSError("broken")

    def assemble(lifecycle: Lifecycle) -> Serving:
        lifecycle.on_close("last", lambda: closed.append("last"))
        lifecycle.on_close("hanging", hang, 0.01)
        lifecycle.on_close("failing", fail)
        return serving()

    assert await daemon(told, assemble) == 0
    assert closed == ["last"]


async def test_a_second_signal_does_not_cut_the_closing_short() -> None:
    told, closed = Told(), []
    told.on["ready"] = lambda: signal_self(signal.SIGTERM)

    async def again() -> None:
        signal_self(signal.SIGTERM)
        for _ in range(5):
            await asyncio.sleep(0)
        closed.append("again")

    def assemble(lifecycle: Lifecycle) -> Serving:
        lifecycle.on_close("again", again)
        return serving()

    assert await daemon(told, assemble) == 0
    assert closed == ["again"]


async def test_a_dead_essential_task_stops_the_daemon_with_its_reason() -> None:
    told = Told()
    failed: list[str] = []

    async def die() -> None:
        raise OSError("watch lost")

    def assemble(lifecycle: Lifecycle) -> Serving:
        lifecycle.essential.start(die(), name="watch")
        return serving()

    assert await daemon(told, assemble, failed) == 1
    assert failed == ["watch"]
    assert "watch lost" in told.words[-1]


async def test_a_dead_background_task_is_reported_only() -> None:
    told = Told()
    failed: list[str] = []
    died = asyncio.Event()

    async def die() -> None:
        died.set()
        raise OSError("one request")

    async def stop_after(lifecycle: Lifecycle) -> None:
        await died.wait()
        await asyncio.sleep(0)
        lifecycle.stop("test")

    def assemble(lifecycle: Lifecycle) -> Serving:
        lifecycle.background.start(die(), name="exec-1")
        lifecycle.essential.start(stop_after(lifecycle), name="stop")
        return serving()

    assert await daemon(told, assemble, failed) == 0
    assert failed == ["exec-1"]
    assert told.words[-1] == "stopping test"


async def test_tasks_are_ended_and_awaited() -> None:
    told, ended = Told(), []
    told.on["ready"] = lambda: signal_self(signal.SIGTERM)

    async def forever(lifecycle: Lifecycle) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("background")

    def assemble(lifecycle: Lifecycle) -> Serving:
        lifecycle.background.start(forever(lifecycle), name="forever")
        return serving()

    async def settle(lifecycle: Lifecycle) -> Serving:
        made = assemble(lifecycle)
        await asyncio.sleep(0)
        return made

    assert await run(settle, notifier=told, on_task_failure=lambda name: None) == 0
    assert ended == ["background"]


async def test_a_signal_during_the_start_undoes_it() -> None:
    told, closed = Told(), []

    async def assemble(lifecycle: Lifecycle) -> Serving:
        lifecycle.on_close("first step", lambda: closed.append("first step"))
        signal_self(signal.SIGTERM)
        await asyncio.Event().wait()
        raise AssertionError("never reached")

    assert await run(assemble, notifier=told, on_task_failure=lambda name: None) == 0
    assert closed == ["first step"]
    assert told.words == ["stopping SIGTERM"]


async def test_a_start_that_fails_undoes_what_it_did() -> None:
    closed: list[str] = []

    def assemble(lifecycle: Lifecycle) -> Serving:
        lifecycle.on_close("first step", lambda: closed.append("first step"))
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        await daemon(Told(), assemble)
    assert closed == ["first step"]


async def test_hangup_reloads_and_a_failing_reload_is_survived() -> None:
    told, reloads = Told(), []

    def reload() -> None:
        reloads.append(1)
        if len(reloads) == 1:
            raise OSError("unreadable")

    def after_ready() -> None:
        number = {1: signal.SIGHUP, 2: signal.SIGHUP, 3: signal.SIGTERM}[told.words.count("ready")]
        signal_self(number)

    told.on["ready"] = after_ready
    assert await daemon(told, lambda _: serving(reload)) == 0
    assert told.words == ["ready", "reloading", "ready", "reloading", "ready", "stopping SIGTERM"]
    assert len(reloads) == 2


async def test_signs_of_life_come_while_it_serves() -> None:
    told = Told(watchdog_seconds=0.003)

    def third() -> None:
        if told.words.count("alive") == 3:
            signal_self(signal.SIGTERM)

    told.on["alive"] = third
    assert await daemon(told) == 0
    assert told.words.count("alive") >= 3

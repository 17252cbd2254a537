from __future__ import annotations

import asyncio

from isulad_py.telemetry.loop_lag import LoopLag


async def test_lateness_is_observed_until_it_is_stopped() -> None:
    seen: list[float] = []
    enough = asyncio.Event()

    def observe(seconds: float) -> None:
        seen.append(seconds)
        if len(seen) == 3:
            enough.set()

    lag = LoopLag(observe, interval_seconds=0.001)
    lag.start()
    await enough.wait()
    lag.stop()
    lag.stop()
    assert all(seconds >= 0 for seconds in seen)

from __future__ import annotations

from isulad_py.host.clock import SystemClock


def test_no_moment_comes_twice() -> None:
    clock = SystemClock()
    moments = [clock.now_ns() for _ in range(1000)]
    assert moments == sorted(set(moments))


async def test_monotonic_time_does_not_run_back() -> None:
    clock = SystemClock()
    before = clock.monotonic()
    await clock.sleep(0)
    assert clock.monotonic() >= before

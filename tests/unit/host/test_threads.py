from __future__ import annotations

import threading

import pytest

from isulad_py.host import threads


def test_the_result_comes_from_a_thread_that_has_ended() -> None:
    worker = threads.run_in_fresh_thread(threading.current_thread, name="once")
    assert worker is not threading.current_thread()
    assert not worker.is_alive()


def test_an_error_is_the_callers() -> None:
    def fail() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        threads.run_in_fresh_thread(fail, name="once")

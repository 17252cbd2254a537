from __future__ import annotations

import os
import signal

import pytest

from isulad_py.daemon.failpoint import VARIABLE, record_failpoint
from isulad_py.model.errors import InvalidInput


def test_none_is_the_rule() -> None:
    assert record_failpoint({}) is None
    assert record_failpoint({VARIABLE: ""}) is None


@pytest.mark.parametrize("text", ["records", "records:x", "records:1:during", "pods:1"])
def test_what_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match=VARIABLE):
        record_failpoint({VARIABLE: text})


@pytest.mark.parametrize(("text", "ended"), [("records:2:before", True), ("records:2", False), ("records:1", True)])
def test_death_at_the_chosen_commit(text: str, ended: bool) -> None:
    pid = os.fork()
    if pid == 0:
        failpoint = record_failpoint({VARIABLE: text})
        assert failpoint is not None
        for moment in ("before", "after", "before"):
            failpoint(moment, "pod", "key")
        os._exit(7)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == (-signal.SIGKILL if ended else 7)

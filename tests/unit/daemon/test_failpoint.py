from __future__ import annotations

import os
import signal

import pytest

from isulad_py.daemon.failpoint import VARIABLE, failpoint_in
from isulad_py.model.errors import InvalidInput


def test_none_is_the_rule() -> None:
    assert failpoint_in("records", {}) is None
    assert failpoint_in("records", {VARIABLE: ""}) is None
    assert failpoint_in("records", {VARIABLE: "layers:1"}) is None
    assert failpoint_in("layers", {VARIABLE: "records:1:before"}) is None


@pytest.mark.parametrize("text", ["records", "records:x", "records:1:during", "pods:1", "layers:1:before"])
def test_what_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match=VARIABLE):
        failpoint_in("records", {VARIABLE: text})


@pytest.mark.parametrize(
    ("text", "ended"), [("records:2:before", True), ("records:2", False), ("records:1", True), ("layers:1", True)]
)
def test_death_at_the_chosen_commit(text: str, ended: bool) -> None:
    pid = os.fork()
    if pid == 0:
        failpoint = failpoint_in(text.partition(":")[0], {VARIABLE: text})
        assert failpoint is not None
        for moment in ("before", "after", "before"):
            failpoint(moment, "pod", "key")
        os._exit(7)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == (-signal.SIGKILL if ended else 7)

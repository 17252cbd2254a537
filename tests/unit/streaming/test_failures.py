from __future__ import annotations

import pytest

from isulad_py.model.errors import DeadlineExceeded
from isulad_py.streaming.failures import ClientGone, ProtocolError, reason_of


def group(*errors: Exception) -> ExceptionGroup[Exception]:
    return ExceptionGroup("several", list(errors))


def test_the_reason_that_the_others_follow_from() -> None:
    protocol, gone, idle = ProtocolError("bad frame"), ClientGone("left"), DeadlineExceeded("idle")
    assert reason_of(group(gone, group(protocol), idle)) is protocol
    assert reason_of(group(idle, group(group(gone)))) is gone
    assert reason_of(group(idle)) is idle


@pytest.mark.parametrize("others", [(), (ClientGone("left"),)])
def test_a_defect_is_never_hidden(others: tuple[Exception, ...]) -> None:
    errors = group(ValueError("defect"), *others)
    assert reason_of(errors) is errors

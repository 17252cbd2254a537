from __future__ import annotations

import json
from typing import Any

from isulad_py.model.errors import HostFailure
from isulad_py.streaming.status import Status, as_bytes, exited, failed, succeeded


def document(status: Status) -> Any:
    return json.loads(as_bytes(status, detailed=True))


def test_success() -> None:
    assert document(succeeded()) == document(exited(0)) == {"metadata": {}, "status": "Success"}
    assert as_bytes(succeeded(), detailed=False) == b""


def test_an_exit_code_is_a_cause() -> None:
    """As clients look for it: a decimal of eight bits."""
    status = document(exited(137))
    assert (status["status"], status["reason"]) == ("Failure", "NonZeroExitCode")
    assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "137"}]
    assert as_bytes(exited(137), detailed=False) == b"command terminated with exit code 137"


def test_a_failure_of_ours() -> None:
    status = document(failed(HostFailure("exec: no such file")))
    assert (status["reason"], status["message"], status["code"]) == ("InternalError", "exec: no such file", 500)
    assert as_bytes(failed(HostFailure("why")), detailed=False) == b"why"

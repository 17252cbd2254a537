from __future__ import annotations

import pytest
from grpclib.const import Status

from isulad_py.model import errors
from isulad_py.wire.status import TABLE, Outcome, engine_error, outcome_of


def test_every_error_has_a_status_and_none_is_unknown() -> None:
    assert set(TABLE) == set(errors.EngineError.__subclasses__())
    assert Status.UNKNOWN not in TABLE.values()


class Narrower(errors.NotFound):
    pass


def test_a_narrower_error_has_the_status_of_its_kind() -> None:
    assert outcome_of(Narrower("x")) == Outcome(Status.NOT_FOUND, "x")


def test_groups() -> None:
    first, second = errors.NotFound("a"), errors.Aborted("b")
    assert engine_error(first) is first
    assert engine_error(ExceptionGroup("g", [ExceptionGroup("h", [first]), second])) is first
    assert engine_error(ExceptionGroup("g", [first, ValueError()])) is None
    assert engine_error(ValueError()) is None


@pytest.mark.parametrize("kind", TABLE)
def test_the_words_are_the_errors_own(kind: type[errors.EngineError]) -> None:
    assert outcome_of(kind("step: words")).message == "step: words"

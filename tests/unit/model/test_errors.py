from __future__ import annotations

import pytest

from isulad_py.model.errors import EngineError, HostFailure, NotFound


def test_the_base_is_not_raised() -> None:
    with pytest.raises(TypeError, match="abstract"):
        EngineError("something went wrong")


def test_what_failed_while_undoing_follows_the_cause() -> None:
    error = HostFailure("mount: no space")
    assert str(error) == "mount: no space"
    error.cleanup += [NotFound("pod x"), OSError()]
    assert str(error) == "mount: no space; and while undoing: pod x; OSError"


def test_kinds_can_be_told_apart() -> None:
    kinds = EngineError.__subclasses__()
    assert len(kinds) <= 14
    assert all(kind.__doc__ for kind in kinds)

from __future__ import annotations

import errno

import pytest

from isulad_py.host.failures import translate, translated
from isulad_py.model.errors import HostFailure, ResourceExhausted


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM])
def test_limits_of_the_machine_are_resource_exhausted(number: int) -> None:
    assert isinstance(translate("write", OSError(number, "Full")), ResourceExhausted)


def test_step_path_and_the_kernels_words_are_in_the_message() -> None:
    error = translate("rename", OSError(errno.EPERM, "Operation not permitted", "/a", None, "/b"))
    assert isinstance(error, HostFailure)
    assert str(error) == "rename /a -> /b: operation not permitted"


def test_the_cause_is_kept() -> None:
    cause = OSError(errno.EIO, "Input/output error")
    with pytest.raises(HostFailure, match="read it: input/output error") as caught, translated("read it"):
        raise cause
    assert caught.value.__cause__ is cause

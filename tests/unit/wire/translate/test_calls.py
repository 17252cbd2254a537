from __future__ import annotations

from mmap import PAGESIZE

import pytest

from isulad_py.model.errors import InvalidInput
from isulad_py.ports.runtime import ExecResult
from isulad_py.wire.translate import calls

LIMIT = calls.OUTPUT_BYTES


def test_ids() -> None:
    assert calls.pod_id("abc") == calls.container_id("abc") == "abc"
    with pytest.raises(InvalidInput, match=r"^pod_sandbox_id is empty"):
        calls.pod_id("")
    with pytest.raises(InvalidInput, match=r"^container_id has control characters"):
        calls.container_id("a\n")


def test_commands() -> None:
    assert calls.command(["sh", ""]) == ("sh", "")
    for empty in ([], [""], ["", "a"]):
        with pytest.raises(InvalidInput, match=r"^cmd is empty"):
            calls.command(empty)
    with pytest.raises(InvalidInput, match=r"^cmd\[1\] has a NUL"):
        calls.command(["a", "b\0"])
    with pytest.raises(InvalidInput, match=r"^cmd\[1\] is longer than \d+ bytes"):
        calls.command(["a", "b" * 32 * PAGESIZE])
    with pytest.raises(InvalidInput, match=r"^cmd: more than 6291456 bytes together"):
        calls.command(["b" * 100_000] * 63)


@pytest.mark.parametrize(
    ("out", "err", "kept_out", "kept_err"),
    [
        (5, 7, 5, 7),
        (LIMIT, 0, LIMIT, 0),
        (LIMIT + 9, 10, LIMIT - 10, 10),
        (10, LIMIT + 9, 10, LIMIT - 10),
        (LIMIT, LIMIT, LIMIT // 2, LIMIT // 2),
    ],
)
def test_output_fits_one_answer(out: int, err: int, kept_out: int, kept_err: int) -> None:
    answer = calls.exec_answer(ExecResult(exit_code=1, stdout=b"o" * out, stderr=b"e" * err))
    assert (len(answer.stdout), len(answer.stderr), answer.exit_code) == (kept_out, kept_err, 1)

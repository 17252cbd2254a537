"""What single calls carry beside configurations: ids, commands and their output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from isulad_py.api.runtime import v1 as cri
from isulad_py.model.errors import InvalidInput
from isulad_py.ports.runtime import ExecResult
from isulad_py.ports.streams import StreamWishes
from isulad_py.wire.translate import checks

OUTPUT_BYTES: Final = 16 * 1024 * 1024 - 1024
"""Both streams together: the most that fits an answer that a kubelet takes."""


def pod_id(value: str) -> str:
    """An id or the beginning of one."""
    return checks.required_name(value, "pod_sandbox_id")


def container_id(value: str) -> str:
    """An id or the beginning of one."""
    return checks.required_name(value, "container_id")


def command(words: Sequence[str]) -> tuple[str, ...]:
    if not words or not words[0]:
        raise InvalidInput("cmd is empty")
    checks.fit_together(words, "cmd")
    return checks.arguments(words, "cmd")


def wishes(request: cri.ExecRequest | cri.AttachRequest) -> StreamWishes:
    return StreamWishes(stdin=request.stdin, stdout=request.stdout, stderr=request.stderr, terminal=request.tty)


def exec_answer(result: ExecResult) -> cri.ExecSyncResponse:
    """Where both streams together are too long for one answer, each gives up what is over its half."""
    stdout, stderr = result.stdout, result.stderr
    if len(stdout) + len(stderr) > OUTPUT_BYTES:
        stderr = stderr[: max(OUTPUT_BYTES // 2, OUTPUT_BYTES - len(stdout))]
        stdout = stdout[: OUTPUT_BYTES - len(stderr)]
    return cri.ExecSyncResponse(stdout=stdout, stderr=stderr, exit_code=result.exit_code)

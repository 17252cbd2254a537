"""How a command ended, as its client is told: a metav1.Status of Kubernetes, or a sentence for clients before v4.

Pure.
"""

from __future__ import annotations

from msgspec import Struct, json

from isulad_py.model.errors import EngineError


class Cause(Struct, frozen=True):
    reason: str
    message: str


class Details(Struct, frozen=True):
    causes: tuple[Cause, ...]


class Status(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The fields of metav1.Status that remote commands use."""

    metadata: dict[str, str] | None = None
    status: str
    message: str = ""
    reason: str = ""
    details: Details | None = None
    code: int = 0
    """As of HTTP."""


def succeeded() -> Status:
    return Status(metadata={}, status="Success")


def exited(code: int) -> Status:
    """Of a command: its exit code, or 128+n for a signal."""
    if code == 0:
        return succeeded()
    return Status(
        metadata={},
        status="Failure",
        message=f"command terminated with exit code {code}",
        reason="NonZeroExitCode",
        details=Details((Cause("ExitCode", str(code)),)),
    )


def failed(error: EngineError) -> Status:
    """The command could not be started, or its streams broke."""
    return Status(
        metadata={},
        status="Failure",
        message=error.message,
        reason="InternalError",
        details=Details((Cause("", error.message),)),
        code=500,
    )


def as_bytes(status: Status, *, detailed: bool) -> bytes:
    """What goes onto the error channel. Without details nothing is said of success."""
    if detailed:
        return json.encode(status)
    return status.message.encode()

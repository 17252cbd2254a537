"""Errors, named by what the caller may do next; `wire` owns the one table to gRPC status.

Adapters translate foreign exceptions into these at their edge, with `from`, so that the cause is kept.
"""

from __future__ import annotations


class EngineError(Exception):
    """Base of all; never raised itself. The message names the field or the step."""

    def __init__(self, message: str) -> None:
        if type(self) is EngineError:
            raise TypeError("EngineError is abstract: raise what the caller can act on")
        super().__init__(message)
        self.cleanup: list[BaseException] = []
        """What failed while undoing after this error; reported after the cause."""

    @property
    def message(self) -> str:
        text = str(self.args[0]) if self.args else type(self).__name__
        if self.cleanup:
            text += "; and while undoing: " + "; ".join(str(c) or type(c).__name__ for c in self.cleanup)
        return text

    def __str__(self) -> str:
        return self.message


class InvalidInput(EngineError):
    """The request itself is wrong; the same request will never succeed."""


class NotFound(EngineError):
    """The named object does not exist."""


class AlreadyExists(EngineError):
    """The name is taken; the message names the holder."""


class FailedPrecondition(EngineError):
    """Not in the present state; other calls must come first."""


class Unavailable(EngineError):
    """A part of the world is away (registry, network, daemon stopping); trying again may help."""


class DeadlineExceeded(EngineError):
    """The deadline passed; what was begun has been ended."""


class ResourceExhausted(EngineError):
    """A limit of ours or of the machine is reached: disk full, too many sessions, answer too large."""


class PermissionDenied(EngineError):
    """Credentials or policy do not allow this."""


class Unauthenticated(EngineError):
    """Credentials are missing or wrong."""


class Unsupported(EngineError):
    """This engine, runtime or kernel cannot do that; the message names the field or the call."""


class Aborted(EngineError):
    """Another call took the object away meanwhile; ask for its state before trying again."""


class HostFailure(EngineError):
    """The runtime, a plugin or the kernel refused a valid request; its own words are in the message."""


class DataLoss(EngineError):
    """Stored or transferred bytes are not what they must be (digest, record)."""

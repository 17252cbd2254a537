"""The one table from errors to gRPC statuses. Servicers and services never name a status."""

from __future__ import annotations

from typing import Final

from grpclib.const import Status
from msgspec import Struct

from isulad_py.model import errors

MESSAGE_BYTES: Final = 4096
"""The message travels in a trailer, and clients bound those: 8 KiB for the C core, all trailers together."""

TABLE: Final[dict[type[errors.EngineError], Status]] = {
    errors.InvalidInput: Status.INVALID_ARGUMENT,
    errors.NotFound: Status.NOT_FOUND,
    errors.AlreadyExists: Status.ALREADY_EXISTS,
    errors.FailedPrecondition: Status.FAILED_PRECONDITION,
    errors.Unavailable: Status.UNAVAILABLE,
    errors.DeadlineExceeded: Status.DEADLINE_EXCEEDED,
    errors.ResourceExhausted: Status.RESOURCE_EXHAUSTED,
    errors.PermissionDenied: Status.PERMISSION_DENIED,
    errors.Unauthenticated: Status.UNAUTHENTICATED,
    errors.Unsupported: Status.UNIMPLEMENTED,
    errors.Aborted: Status.ABORTED,
    errors.HostFailure: Status.INTERNAL,
    errors.DataLoss: Status.DATA_LOSS,
}


class Outcome(Struct, frozen=True):
    """How a call ended, as its client is told."""

    status: Status
    message: str = ""


OK: Final = Outcome(Status.OK)


def outcome_of(error: errors.EngineError) -> Outcome:
    """The status of the nearest class in the table, with the error's own words."""
    for kind in type(error).__mro__:
        if kind in TABLE:
            return Outcome(TABLE[kind], error.message)
    return Outcome(Status.INTERNAL, error.message)


def engine_error(error: BaseException) -> errors.EngineError | None:
    """The error of ours in `error`: itself, or the first in a group of a TaskGroup that holds nothing else."""
    if isinstance(error, errors.EngineError):
        return error
    if isinstance(error, BaseExceptionGroup):
        _, foreign = error.split(errors.EngineError)
        if foreign is None:
            inner: BaseException = error
            while isinstance(inner, BaseExceptionGroup):
                inner = inner.exceptions[0]
            return inner if isinstance(inner, errors.EngineError) else None
    return None

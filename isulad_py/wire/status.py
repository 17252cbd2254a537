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


ISULAD_INPUT, ISULAD_EXEC, ISULAD_INTERNAL = 4, 5, 6
"""Classes of errors in iSulad's answers (`cc`): wrong input, an operation that failed, the daemon's own fault."""
ISULAD_CLASSES: Final[dict[Status, int]] = {
    Status.INVALID_ARGUMENT: ISULAD_INPUT,
    Status.INTERNAL: ISULAD_INTERNAL,
    Status.DATA_LOSS: ISULAD_INTERNAL,
}


def isulad_class(outcome: Outcome) -> int:
    return ISULAD_CLASSES.get(outcome.status, ISULAD_EXEC)


def shown_by_isula(outcome: Outcome) -> Outcome:
    """The same words under a status whose words `isula` shows. For all but UNKNOWN, PERMISSION_DENIED and INTERNAL it
    says that there is no daemon."""
    return outcome if outcome.status is Status.PERMISSION_DENIED else Outcome(Status.INTERNAL, outcome.message)


def error_of(status: Status, message: str) -> errors.EngineError:
    """The way back, for who asks a daemon: HostFailure for a status that the table does not have."""
    kind = next((kind for kind, known in TABLE.items() if known is status), errors.HostFailure)
    return kind(message or status.name)


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

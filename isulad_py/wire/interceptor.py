"""The one wrapper of every method: request id, time, metrics, log, and error to status."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final, Protocol

import betterproto
import structlog
from grpclib.const import Status

from isulad_py.model.errors import EngineError, Unsupported
from isulad_py.ports.clock import Clock
from isulad_py.telemetry.logs import context
from isulad_py.wire import codec
from isulad_py.wire.call import Call, ClientGone, Ending
from isulad_py.wire.methods import Method
from isulad_py.wire.status import OK, Outcome, engine_error, outcome_of

log = structlog.get_logger(__name__)

ENDINGS: Final[Mapping[Ending, Outcome]] = {
    Ending.CLIENT: Outcome(Status.CANCELLED, Ending.CLIENT.value),
    Ending.DEADLINE: Outcome(Status.DEADLINE_EXCEEDED, Ending.DEADLINE.value),
    Ending.STOPPING: Outcome(Status.UNAVAILABLE, Ending.STOPPING.value),
}
SUBJECTS: Final = ("pod_sandbox_id", "container_id", "image", "file", "path")
OURS: Final = frozenset({Status.INTERNAL, Status.DATA_LOSS})
"""Not the client's doing: someone should look."""


class CallMetrics(Protocol):
    def rpc_started(self, method: str) -> None: ...

    def rpc_finished(self, method: str, code: str, seconds: float) -> None: ...


class Interceptor:
    """Serves calls by a table of methods. No error of any kind reaches the client as UNKNOWN, or ends the server."""

    def __init__(self, *, methods: Mapping[str, Method], metrics: CallMetrics, clock: Clock) -> None:
        self._methods = methods
        self._metrics = metrics
        self._clock = clock

    async def __call__(self, call: Call) -> None:
        method = self._methods.get(call.path)
        if method is None:
            await call.finish(Status.UNIMPLEMENTED, f"unknown method {call.path[:200]}")
            return
        started = self._clock.monotonic()
        outcome = ENDINGS[Ending.CLIENT]
        self._metrics.rpc_started(method.name)
        try:
            with context(request=call.id, method=method.short_name):
                outcome = await self._serve(call, method)
                told = await _tell(call, method, outcome)
                await call.finish(told.status, told.message)
        finally:
            self._metrics.rpc_finished(method.name, outcome.status.name, self._clock.monotonic() - started)

    async def _serve(self, call: Call, method: Method) -> Outcome:
        started = self._clock.monotonic()
        subject: dict[str, str] = {}
        try:
            if call.ending is None:
                await self._answer(call, method, subject)
                outcome = OK
            else:
                outcome = ENDINGS[call.ending]
        except asyncio.CancelledError:
            outcome = _cancelled(call)
        except ClientGone:
            outcome = ENDINGS[Ending.CLIENT]
        except Exception as error:  # whatever a handler raises, its client gets a status
            known = engine_error(error)
            if known is None:
                log.exception("unexpected error")
            outcome = _failed(call, known)
        milliseconds = round((self._clock.monotonic() - started) * 1000, 1)
        log_outcome(method, outcome, {"milliseconds": milliseconds, **subject})
        return outcome

    async def _answer(self, call: Call, method: Method, subject: dict[str, str]) -> None:
        request = await codec.decode(await call.receive(), method.request)
        subject.update(subject_of(request))
        if method.unary is not None:
            await call.send(codec.encode(await method.unary(request)))
        elif method.streaming is not None:
            call.endless = method.endless
            with method.streaming(request) as answers:
                await call.begin()
                async for answer in answers:
                    await call.send(codec.encode(answer))
        else:
            raise Unsupported(f"{method.short_name} is not implemented")


async def _tell(call: Call, method: Method, outcome: Outcome) -> Outcome:
    """With which status the call ends, after an answer that tells of the error where the method has such. Log and
    metrics know the error as it is."""
    if method.refused is None or outcome.status is Status.OK or call.ending is not None:
        return outcome
    told = method.refused(outcome)
    if isinstance(told, Outcome):
        return told
    try:
        await call.send(codec.encode(told))
    except ClientGone:
        return outcome
    return OK


def _cancelled(call: Call) -> Outcome:
    """The end of a call that was cancelled as such; any other cancellation goes on to where it came from."""
    task = asyncio.current_task()
    if call.ending is None or task is None:
        raise asyncio.CancelledError
    task.uncancel()
    return ENDINGS[call.ending]


def _failed(call: Call, error: EngineError | None) -> Outcome:
    """`error` is None for one that is not ours; the log has it, under the call's id."""
    if call.ending is not None:
        return ENDINGS[call.ending]
    if error is None:
        return Outcome(Status.INTERNAL, f"internal error; the daemon's log tells more under request {call.id}")
    return outcome_of(error)


def subject_of(request: betterproto.Message) -> dict[str, str]:
    """What the call is about, for the log: ids, names of images and of archives, never a configuration."""
    found = {name: value for name in SUBJECTS if isinstance(value := getattr(request, name, None), str) and value}
    image = getattr(request, "image", None)
    if isinstance(image, betterproto.Message) and (named := getattr(image, "image", "")):
        found["image"] = named
    return found


def log_outcome(method: Method, outcome: Outcome, values: dict[str, object]) -> None:
    if outcome.status is Status.OK:
        (log.debug if method.polled else log.info)("call", **values)
    elif outcome.status in OURS:
        log.warning("call failed", code=outcome.status.name, error=outcome.message, **values)
    else:
        log.info("call refused", code=outcome.status.name, error=outcome.message, **values)

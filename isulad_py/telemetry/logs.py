"""Structured logs: an event, key-values, and the ids of the context, as JSON or console lines.

Rooms log with `structlog.get_logger(__name__)`; `configure` (called once, by the daemon) says where that goes. Levels
are iSulad's. The level is checked before anything is put together, and can be changed while the daemon runs.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

import msgspec
from msgspec import Struct

from isulad_py.telemetry.log_writer import LogWriter


@contextmanager
def _without(module: str) -> Iterator[None]:
    """structlog imports rich wherever it finds it, for tracebacks that we do not print: 4 MB of memory."""
    absent = sys.modules.setdefault(module, None)  # type: ignore[arg-type]  # None is Python's mark for "not there"
    try:
        yield
    finally:
        if absent is None:
            del sys.modules[module]


with _without("rich"):
    import structlog

LEVELS: Final[Mapping[str, int]] = {
    "TRACE": 5,
    "DEBUG": 10,
    "INFO": 20,
    "NOTICE": 25,
    "WARN": 30,
    "ERROR": 40,
    "CRIT": 50,
    "ALERT": 55,
    "FATAL": 60,
}
VALUE_CHARS: Final = 8192
"""A longer value (a plugin's output, a request) is cut: one line stays one line's size."""

EventDict = structlog.typing.EventDict


class LevelSwitch:
    """The level in force; below it nothing is even put together."""

    def __init__(self) -> None:
        self.value = LEVELS["INFO"]

    def set(self, name: str) -> None:
        """Takes a name of `LEVELS` in any case; raises KeyError."""
        self.value = LEVELS[name.upper()]


_level = LevelSwitch()


class Log(structlog.BoundLoggerBase):
    """The logger that `structlog.get_logger` returns once `configure` has run."""

    def trace(self, event: str, **values: object) -> None:
        if _level.value <= 5:
            self._proxy_to_logger("trace", event, **values)

    def debug(self, event: str, **values: object) -> None:
        if _level.value <= 10:
            self._proxy_to_logger("debug", event, **values)

    def info(self, event: str, **values: object) -> None:
        if _level.value <= 20:
            self._proxy_to_logger("info", event, **values)

    def notice(self, event: str, **values: object) -> None:
        if _level.value <= 25:
            self._proxy_to_logger("notice", event, **values)

    def warning(self, event: str, **values: object) -> None:
        if _level.value <= 30:
            self._proxy_to_logger("warn", event, **values)

    def error(self, event: str, **values: object) -> None:
        if _level.value <= 40:
            self._proxy_to_logger("error", event, **values)

    def exception(self, event: str, **values: object) -> None:
        """An error with the traceback of the exception that is being handled."""
        values.setdefault("exc_info", True)
        self.error(event, **values)

    def critical(self, event: str, **values: object) -> None:
        if _level.value <= 50:
            self._proxy_to_logger("crit", event, **values)


class _Output:
    """What structlog wraps: every level's method writes the line."""

    def __init__(self, write: Callable[[bytes], None], name: str = "") -> None:
        self.name = name
        self.trace = self.debug = self.info = self.notice = self.warn = self.error = self.crit = write


class LogSettings(Struct, frozen=True, kw_only=True):
    level: str = "INFO"
    """A name of `LEVELS`."""
    console: bool = False
    """Lines for people; else JSON."""
    colours: bool = False


def configure(settings: LogSettings, writer: LogWriter) -> LevelSwitch:
    """Sends everything, the standard library's own loggers included, to `writer`. Returns the switch of the level."""
    _level.set(settings.level)
    structlog.configure(
        processors=_processors(settings),
        wrapper_class=Log,
        logger_factory=lambda name="", *_: _Output(writer.write, name),
        cache_logger_on_first_use=True,
    )
    logging.captureWarnings(True)
    logging.basicConfig(handlers=[_StandardHandler()], level=logging.WARNING, force=True)
    return _level


@contextmanager
def warnings_to(write: Callable[[bytes], None]) -> Iterator[None]:
    """For a command that a person runs: warnings and worse, as lines for people; the rest is not said. Puts back what
    was configured before."""
    former, level = structlog.get_config(), _level.value
    _level.set("WARN")
    structlog.configure(
        processors=_processors(LogSettings(console=True)),
        wrapper_class=Log,
        logger_factory=lambda name="", *_: _Output(write, name),
        cache_logger_on_first_use=False,
    )
    try:
        yield
    finally:
        structlog.configure(**former)
        _level.value = level


def context(**ids: str) -> AbstractContextManager[Any]:
    """Adds `ids` (request, pod, container) to every line logged inside, in this task and those it starts."""
    return structlog.contextvars.bound_contextvars(**ids)


def _processors(settings: LogSettings) -> list[structlog.typing.Processor]:
    head: list[structlog.typing.Processor] = [structlog.contextvars.merge_contextvars, _add_frame]
    if settings.console:
        renderer = structlog.dev.ConsoleRenderer(colors=settings.colours, sort_keys=False)
        return [*head, _plain_exception, renderer, _encode]
    return [*head, _plain_exception, _json]


def _add_frame(logger: _Output, method: str, event: EventDict) -> EventDict:
    """Time, level and logger; the event first, so that a line can be read without a program."""
    now = time.time()
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1e6):06d}Z"
    framed: dict[str, Any] = {"timestamp": stamp, "level": method, "event": event.pop("event", "")}
    framed.update(event)
    framed["logger"] = logger.name.removeprefix("isulad_py.")
    return framed


def _plain_exception(_logger: object, _method: str, event: EventDict) -> EventDict:
    if event.get("exc_info"):
        event = structlog.processors.format_exc_info(_logger, _method, event)
    event.pop("exc_info", None)
    return event


def _cut(value: object) -> object:
    """Values as they may stand in a line."""
    if isinstance(value, str):
        return value if len(value) <= VALUE_CHARS else f"{value[:VALUE_CHARS]}…"
    if value is None or isinstance(value, int | float):
        return value
    return _cut(str(value) or repr(value))


def _json(_logger: object, _method: str, event: EventDict) -> bytes:
    line = {key: _cut(value) for key, value in event.items()}
    try:
        return msgspec.json.encode(line) + b"\n"
    except UnicodeEncodeError:  # a path with bytes that are no text
        return msgspec.json.encode({k: str(v).encode(errors="replace").decode() for k, v in line.items()}) + b"\n"


def _encode(_logger: object, _method: str, line: object) -> bytes:
    return str(line).encode(errors="replace") + b"\n"


class _StandardHandler(logging.Handler):
    """Lines of libraries (asyncio, aiohttp, warnings) take the same way."""

    def emit(self, record: logging.LogRecord) -> None:
        log = structlog.get_logger(record.name)
        if record.levelno >= _level.value:
            write = log.error if record.levelno >= logging.ERROR else log.warning
            write(record.getMessage(), exc_info=record.exc_info)

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from isulad_py.telemetry import logs
from isulad_py.telemetry.log_writer import LogWriter
from isulad_py.telemetry.logs import LogSettings, configure, context, warnings_to


class Lines:
    """A sink that keeps what it gets."""

    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes) -> None:
        self.data += data

    def close(self) -> None:
        pass


class Logged:
    def __init__(self, settings: LogSettings) -> None:
        self.sink = Lines()
        self.writer = LogWriter(self.sink)
        self.level = configure(settings, self.writer)
        self.log: logs.Log = structlog.get_logger("isulad_py.engine.pods")

    def text(self) -> str:
        self.writer.close()
        return self.sink.data.decode()

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text().splitlines()]


@pytest.fixture
def restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    structlog.reset_defaults()
    logging.captureWarnings(False)
    root.handlers[:] = handlers
    root.setLevel(level)


pytestmark = pytest.mark.usefixtures("restored")


def test_a_line_has_time_level_event_values_and_logger() -> None:
    logged = Logged(LogSettings())
    logged.log.info("pod is ready", pod="abc", seconds=0.5, error=ValueError("bad"), nothing=None)
    (line,) = logged.lines()
    assert list(line) == ["timestamp", "level", "event", "pod", "seconds", "error", "nothing", "logger"]
    assert line["timestamp"].endswith("Z")
    del line["timestamp"]
    assert line == {
        "level": "info",
        "event": "pod is ready",
        "pod": "abc",
        "seconds": 0.5,
        "error": "bad",
        "nothing": None,
        "logger": "engine.pods",
    }


def test_ids_come_from_the_context() -> None:
    logged = Logged(LogSettings())
    with context(request="r1", pod="p1"):
        logged.log.warning("slow")
    logged.log.warning("none")
    first, second = logged.lines()
    assert (first["request"], first["pod"]) == ("r1", "p1")
    assert "request" not in second


def test_the_level_can_be_changed_while_running() -> None:
    logged = Logged(LogSettings(level="ERROR"))
    logged.log.info("unseen")
    logged.level.set("debug")
    for write in (logged.log.trace, logged.log.debug, logged.log.notice, logged.log.critical):
        write(write.__name__)
    assert [line["level"] for line in logged.lines()] == ["debug", "notice", "crit"]
    with pytest.raises(KeyError):
        logged.level.set("loud")


def test_an_exception_brings_its_traceback() -> None:
    logged = Logged(LogSettings())
    try:
        raise OSError("no space")
    except OSError:
        logged.log.exception("write failed")
    (line,) = logged.lines()
    assert line["level"] == "error"
    assert "OSError: no space" in line["exception"]
    assert "exc_info" not in line


def test_long_and_broken_values_do_not_break_the_line() -> None:
    logged = Logged(LogSettings())
    logged.log.info("odd", long="x" * 100_000, path="\udcff/file", data=b"\0\xff", table={"a": [1]})
    (line,) = logged.lines()
    assert len(line["long"]) == logs.VALUE_CHARS + 1
    assert line["path"] == "?/file"


def test_lines_of_libraries_take_the_same_way() -> None:
    logged = Logged(LogSettings())
    logging.getLogger("asyncio").warning("slow %s", "callback")
    logging.getLogger("asyncio").info("unseen")
    (line,) = logged.lines()
    assert (line["event"], line["logger"], line["level"]) == ("slow callback", "asyncio", "warn")


def test_console_lines() -> None:
    logged = Logged(LogSettings(console=True))
    logged.log.info("pod is ready", pod="abc")
    text = logged.text()
    assert "pod is ready" in text
    assert "pod=abc" in text
    assert text.count("\n") == 1


def test_a_command_says_warnings_only_and_leaves_all_as_it_was() -> None:
    before = structlog.get_config()
    lines: list[bytes] = []
    with warnings_to(lines.append):
        log = structlog.get_logger("isulad_py.engine.images")
        log.info("image pulled", image="app:1")
        log.warning("layers stay", images=["x"])
    assert len(lines) == 1
    assert b"layers stay" in lines[0]
    assert b"images=['x']" in lines[0]
    assert structlog.get_config() == before

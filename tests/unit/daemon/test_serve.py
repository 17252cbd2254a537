from __future__ import annotations

import io
import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from isulad_py.config.schema import Config
from isulad_py.daemon.serve import serve, start_logs
from isulad_py.daemon.state_lock import StateLock


@pytest.fixture
def restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    structlog.reset_defaults()
    logging.captureWarnings(False)
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.mark.usefixtures("restored")
def test_the_file_driver_writes_json_below_the_graph_root(tmp_path: Path) -> None:
    writer, _ = start_logs(Config(log_driver="file", graph=str(tmp_path / "graph")))
    structlog.get_logger("x").info("hello")
    writer.close()
    line = json.loads((tmp_path / "graph/isulad.log").read_text())
    assert (line["event"], line["logger"]) == ("hello", "x")


@pytest.mark.usefixtures("restored")
def test_console_lines_where_asked_for(capfd: pytest.CaptureFixture[str]) -> None:
    writer, _ = start_logs(Config(log_driver="stdout", log_format="console"))
    structlog.get_logger("x").info("hello")
    writer.close()
    assert "hello" in capfd.readouterr().out


@pytest.mark.root
def test_a_second_daemon_on_the_same_state_is_refused(tmp_path: Path) -> None:
    graph, state, pid_file = (str(tmp_path / name) for name in ("graph", "state", "pid"))
    config = Config(graph=graph, state=state, pidfile=pid_file)
    lock = StateLock.acquire(graph=graph, state=state, pid_file=pid_file)
    err = io.StringIO()
    try:
        assert serve(config, read=lambda: (config, ()), err=err) == 1
    finally:
        lock.release()
    assert f"pid {os.getpid()}" in err.getvalue()

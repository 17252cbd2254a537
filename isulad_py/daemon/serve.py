"""From a valid configuration to a running loop: what must happen before anything asynchronous, and after it."""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path
from typing import TextIO

import structlog
import uvloop

from isulad_py import __version__
from isulad_py.config.log_options import log_options
from isulad_py.config.schema import Config
from isulad_py.daemon.lifecycle import Lifecycle, Serving, run
from isulad_py.daemon.reloading import Read
from isulad_py.daemon.state_lock import StateLock
from isulad_py.daemon.systemd import Notifier, inherited_sockets
from isulad_py.host.limits import raise_open_files
from isulad_py.host.memory import tune_allocator
from isulad_py.host.priority import prefer_this_process
from isulad_py.model.errors import EngineError
from isulad_py.telemetry.log_writer import FileSink, LogWriter, Sink, StreamSink
from isulad_py.telemetry.logs import LevelSwitch, LogSettings, configure
from isulad_py.telemetry.metrics import Metrics

log = structlog.get_logger(__name__)


def serve(config: Config, *, read: Read, err: TextIO) -> int:
    """Runs the daemon to its end; returns the exit status."""
    if os.geteuid() != 0:
        print("isulad: must run as root: namespaces, mounts and cgroups are made here", file=err)
        return 1
    prefer_this_process()  # before the first thread
    with contextlib.ExitStack() as stack:
        try:
            lock = StateLock.acquire(graph=config.graph, state=config.state, pid_file=config.pidfile)
            stack.callback(lock.release)
            writer, level = start_logs(config)
        except (EngineError, OSError) as error:
            print(f"isulad: {error}", file=err)
            return 1
        stack.callback(writer.close)
        return _run(config, read, level)


def _run(config: Config, read: Read, level: LevelSwitch) -> int:
    # Whoever starts us by hand: files for containers must be readable there, and no mount may be held busy by a folder.
    os.umask(0o022)
    os.chdir("/")
    tune_allocator()
    open_files = raise_open_files()
    notifier = Notifier.from_environment(os.environ)
    log.info("starting", version=__version__, pid=os.getpid(), graph=config.graph, open_files=open_files)
    metrics = Metrics(version=__version__)

    async def assemble(lifecycle: Lifecycle) -> Serving:
        from isulad_py.daemon.bootstrap import Start, assemble_daemon

        sockets = inherited_sockets(os.environ)
        start = Start(config=config, read=read, level=level, metrics=metrics, sockets=sockets, environment=os.environ)
        return await assemble_daemon(start, lifecycle)

    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(run(assemble, notifier=notifier, on_task_failure=metrics.task_failed))
    except EngineError as error:
        log.critical("cannot start", error=error)
    except Exception:
        log.critical("cannot start", exc_info=True)
    return 1


def start_logs(config: Config) -> tuple[LogWriter, LevelSwitch]:
    """Raises OSError when the log file cannot be opened."""
    sink: Sink
    if config.log_driver == "file":
        options = log_options(config)
        Path(options.path).parent.mkdir(parents=True, exist_ok=True)
        sink = FileSink(options.path, mode=options.mode, files=options.files, size_bytes=options.size_bytes)
    else:
        sink = StreamSink(1 if config.log_driver == "stdout" else 2)
    terminal = config.log_driver != "file" and os.isatty(1 if config.log_driver == "stdout" else 2)
    console = config.log_format == "console" or (config.log_format == "auto" and terminal)
    writer = LogWriter(sink)
    settings = LogSettings(level=config.log_level.upper(), console=console, colours=console and terminal)
    return writer, configure(settings, writer)

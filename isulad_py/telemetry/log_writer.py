"""Log lines leave through a thread, so that a full pipe or a slow disk never holds the loop."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
from pathlib import Path
from typing import Final, Protocol

QUEUE_LINES: Final = 10_000
BATCH_LINES: Final = 256


class Sink(Protocol):
    """Where lines end up; called in the writer's thread only."""

    def write(self, data: bytes) -> None: ...

    def close(self) -> None: ...


class StreamSink:
    """A descriptor that belongs to someone else: standard error or output."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]

    def close(self) -> None:
        """Leaves the descriptor open."""


class FileSink:
    """A file that is put aside as .1, .2 and so on when it is full."""

    def __init__(self, path: str, *, mode: int, files: int, size_bytes: int) -> None:
        self._path = path
        self._mode = mode
        self._files = files
        self._limit = size_bytes
        self._fd = self._open()

    def _open(self) -> int:
        fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, self._mode)
        os.fchmod(fd, self._mode)
        self._size = os.fstat(fd).st_size
        return fd

    def write(self, data: bytes) -> None:
        if self._fd < 0:
            self._fd = self._open()
        if self._size and self._size + len(data) > self._limit:
            self._rotate()
        self._size += os.write(self._fd, data)

    def _rotate(self) -> None:
        os.close(self._fd)
        self._fd = -1  # should opening fail below, this number soon is another file's
        names = [self._path, *(f"{self._path}.{number}" for number in range(1, self._files))]
        for older, newer in zip(names[:0:-1], names[-2::-1], strict=True):
            with contextlib.suppress(FileNotFoundError):
                Path(newer).replace(older)
        if len(names) == 1:
            Path(self._path).unlink(missing_ok=True)
        self._fd = self._open()

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)


class LogWriter:
    """Takes lines from any thread without waiting; beyond the queue's bound they are counted and dropped."""

    def __init__(self, sink: Sink, *, queue_lines: int = QUEUE_LINES) -> None:
        self._sink = sink
        self._limit = queue_lines
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._dropped = 0
        # A daemon thread: a sink that never returns must not keep the process from ending.
        self._thread = threading.Thread(target=self._run, name="log-writer", daemon=True)
        self._thread.start()

    def write(self, line: bytes) -> None:
        if self._lines.qsize() >= self._limit:
            self._dropped += 1
        else:
            self._lines.put(line)

    def close(self, timeout_seconds: float = 2.0) -> None:
        """Waits, but not for ever, until all lines are out."""
        self._lines.put(None)
        self._thread.join(timeout_seconds)

    def _run(self) -> None:
        more = True
        while more:
            batch, more = self._take()
            if self._dropped:
                count, self._dropped = self._dropped, 0
                batch.append(b'{"level":"warn","event":"log lines dropped","count":%d}\n' % count)
            with contextlib.suppress(OSError):  # nowhere left to report it: a closed pipe, a full disk
                self._sink.write(b"".join(batch))
        self._sink.close()

    def _take(self) -> tuple[list[bytes], bool]:
        """What is there, at least one line; false when it was the last."""
        batch: list[bytes] = []
        line = self._lines.get()
        while line is not None:
            batch.append(line)
            if len(batch) >= BATCH_LINES:
                return batch, True
            try:
                line = self._lines.get_nowait()
            except queue.Empty:
                return batch, True
        return batch, False

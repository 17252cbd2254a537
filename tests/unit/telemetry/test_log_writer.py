from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

import pytest

from isulad_py.telemetry.log_writer import FileSink, LogWriter, StreamSink


class Blocked:
    """A sink whose first write waits until it is let go."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.go = threading.Event()
        self.data = b""

    def write(self, data: bytes) -> None:
        self.entered.set()
        self.go.wait(10)
        self.data += data

    def close(self) -> None:
        pass


def test_a_stuck_sink_holds_nobody_and_what_is_dropped_is_counted() -> None:
    sink = Blocked()
    writer = LogWriter(sink, queue_lines=5)
    writer.write(b"first\n")
    assert sink.entered.wait(10)
    for number in range(8):
        writer.write(b"%d\n" % number)
    sink.go.set()
    writer.close()
    assert sink.data.startswith(b"first\n0\n1\n2\n3\n4\n")
    assert b'"event":"log lines dropped","count":3' in sink.data


def test_close_does_not_wait_for_ever() -> None:
    sink = Blocked()
    writer = LogWriter(sink)
    writer.write(b"x\n")
    writer.close(timeout_seconds=0.01)
    sink.go.set()


def test_a_closed_pipe_is_survived() -> None:
    reader, end = os.pipe()
    os.close(reader)
    writer = LogWriter(StreamSink(end))
    writer.write(b"x\n")
    writer.close()
    os.close(end)


def test_a_stream_gets_every_byte_and_stays_open() -> None:
    reader, end = os.pipe()
    writer = LogWriter(StreamSink(end))
    writer.write(b"one\n")
    writer.write(b"two\n")
    writer.close()
    os.close(end)
    assert os.read(reader, 100) == b"one\ntwo\n"
    os.close(reader)


def test_files_are_put_aside_and_only_so_many_kept(tmp_path: Path) -> None:
    path = tmp_path / "isulad.log"
    sink = FileSink(str(path), mode=0o640, files=3, size_bytes=10)
    for number in range(5):
        sink.write(b"line %d.\n" % number)
    sink.close()
    assert path.stat().st_mode & 0o777 == 0o640
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == {
        "isulad.log": b"line 4.\n",
        "isulad.log.1": b"line 3.\n",
        "isulad.log.2": b"line 2.\n",
    }


def test_a_single_file_starts_anew(tmp_path: Path) -> None:
    path = tmp_path / "isulad.log"
    sink = FileSink(str(path), mode=0o600, files=1, size_bytes=10)
    sink.write(b"12345678\n")
    sink.write(b"next\n")
    sink.close()
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [b"next\n"]


def test_a_former_files_size_counts(tmp_path: Path) -> None:
    path = tmp_path / "isulad.log"
    path.write_bytes(b"12345678\n")
    sink = FileSink(str(path), mode=0o600, files=2, size_bytes=10)
    sink.write(b"new\n")
    sink.close()
    assert path.read_bytes() == b"new\n"


def test_a_lost_directory_is_survived(tmp_path: Path) -> None:
    directory = tmp_path / "logs"
    directory.mkdir()
    sink = FileSink(str(directory / "isulad.log"), mode=0o600, files=2, size_bytes=10)
    sink.write(b"12345678\n")
    shutil.rmtree(directory)
    for _ in range(2):
        with pytest.raises(FileNotFoundError):
            sink.write(b"lost lines\n")
    directory.mkdir()
    sink.write(b"back\n")
    sink.close()
    assert (directory / "isulad.log").read_bytes() == b"back\n"

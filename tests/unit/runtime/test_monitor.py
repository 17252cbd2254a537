"""conmon's command line, and what it reports."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

from isulad_py.model.errors import HostFailure
from isulad_py.model.ids import ContainerId
from isulad_py.ports.runtime import Launch
from isulad_py.runtime import monitor

FILES = monitor.Files(bundle="/b", pid_file="/b/pid", monitor_pid_file="/b/monitor.pid", log="k8s-file:/l")


def arguments(**changes: object) -> list[str]:
    fields: dict[str, object] = {"id": ContainerId("c"), "handler": "runc", "spec": b""}
    return monitor.arguments(Launch(**{**fields, **changes}), FILES, ["/runc", "--root", "/r"])  # type: ignore[arg-type]


def test_what_every_monitor_is_told() -> None:
    assert arguments() == [
        "--cid", "c",
        "--cuuid", "c",
        "--runtime", "/runc",
        "--runtime-arg=--root",
        "--runtime-arg=/r",
        "--bundle", "/b",
        "--persist-dir", "/b",
        "--container-pidfile", "/b/pid",
        "--conmon-pidfile", "/b/monitor.pid",
        "--log-path", "k8s-file:/l",
        "--full-attach",
        "--no-sync-log",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "extra"),
    [
        ({"terminal": True}, ["--terminal"]),
        ({"terminal": True, "stdin": True}, ["--terminal"]),
        ({"stdin": True}, ["--stdin", "--leave-stdin-open"]),
        ({"stdin": True, "stdin_once": True}, ["--stdin"]),
        ({"stdin_once": True}, []),
        ({"restore": "/images", "stdin": True}, ["--stdin", "--leave-stdin-open", "--restore", "/images"]),
    ],
)
def test_stdin_and_terminal(asked: dict[str, bool], extra: list[str]) -> None:
    assert arguments(**asked)[len(arguments()) :] == extra


def test_a_report_names_the_first_process() -> None:
    assert monitor.parse_report(b'{"pid": 1234}') == 1234


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            b'{"pid": -1, "message": "{\\"level\\":\\"error\\",\\"msg\\":\\"no such file\\"}\\n"}',
            "create: no such file",
        ),
        (b'{"pid": -1, "message": "plain words\\n"}', "create: plain words"),
        (b'{"pid": -1}', "create: the runtime failed without a word"),
        (b'{"pid": 0}', "without a word"),
        (b'{"pid": "x"}', "the monitor reported"),
        (b"\xff\xfe", "the monitor reported"),
        (b"[]", "the monitor reported"),
    ],
)
def test_a_report_of_failure_has_the_runtimes_words(line: bytes, words: str) -> None:
    with pytest.raises(HostFailure, match=words):
        monitor.parse_report(line)


def test_the_gate_fails_when_this_daemon_dies_before_it_is_opened() -> None:
    with contextlib.ExitStack() as ours, contextlib.ExitStack() as monitors:
        gate, theirs = monitor._gate(ours, monitors)
        gate.close()
        with pytest.raises(ConnectionResetError):
            os.read(theirs, 1)


PROGRAM = """#!/usr/bin/env python3
import os, sys
sync, gate = int(os.environ["_OCI_SYNCPIPE"]), int(os.environ["_OCI_STARTPIPE"])
word = "opened" if os.read(gate, 1) == b"\\0" else "lost"
open("placed", "w").write(word)
{body}
"""


async def start(folder: Path, body: str) -> int:
    program = folder / "monitor"
    program.write_text(PROGRAM.format(body=body))
    program.chmod(0o755)
    placed: list[int] = []

    async def place(pid: int) -> None:
        placed.append(pid)
        assert not (folder / "placed").exists()

    try:
        return await monitor.start([str(program)], bundle=str(folder), place=place)
    finally:
        assert len(placed) == 1
        assert (folder / "placed").read_text() == "opened"


async def test_a_monitor_is_placed_before_it_does_anything(tmp_path: Path) -> None:
    assert await start(tmp_path, """os.write(sync, b'{"pid": 7}\\n')""") == 7


async def test_a_report_may_come_in_pieces(tmp_path: Path) -> None:
    assert await start(tmp_path, """os.write(sync, b'{"pid"'); os.sched_yield(); os.write(sync, b': 7}\\n')""") == 7


async def test_a_monitor_that_ends_without_a_report(tmp_path: Path) -> None:
    with pytest.raises(HostFailure, match=r"without a report \(exit status 3\): wrong option"):
        await start(tmp_path, "sys.stderr.write('wrong option\\n'); sys.exit(3)")


async def test_a_monitor_that_does_not_exist(tmp_path: Path) -> None:
    async def place(_: int) -> None:
        raise AssertionError

    with pytest.raises(HostFailure, match="no such program"):
        await monitor.start([str(tmp_path / "nothing")], bundle=str(tmp_path), place=place)

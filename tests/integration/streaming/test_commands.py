"""exec and attach through a real daemon, runc and conmon, over both transports."""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
import tarfile
from typing import Any

import pytest

from tests.integration.streaming.sides import RESIZE, STDERR, STDIN, STDOUT, Transport, outcome
from tests.stand.node import Node

pytestmark = pytest.mark.root


def exec_url(node: Node, container_id: str, *command: str, **wishes: bool) -> str:
    wishes = wishes or {"stdout": True, "stderr": True}
    return str(node.call("Exec", node.m.ExecRequest(container_id=container_id, cmd=list(command), **wishes)).url)


def attach_url(node: Node, container_id: str, **wishes: bool) -> str:
    return str(node.call("Attach", node.m.AttachRequest(container_id=container_id, **wishes)).url)


def running(node: Node, container_id: str, command: str) -> bool:
    """The bracket keeps the search from finding itself."""
    answer = node.exec(container_id, "sh", "-c", f"ps | grep -q '[{command[0]}]{command[1:]}'")
    return bool(answer.exit_code == 0)


def code_of(status: Any) -> int:
    return int(status["details"]["causes"][0]["message"]) if status["status"] == "Failure" else 0


async def test_output_and_exit_code(node: Node, container: str, transport: Transport) -> None:
    url = exec_url(node, container, "sh", "-c", "printf 'out\\000\\377'; echo err >&2; exit 7")
    async with transport(url, STDOUT, STDERR) as side:
        stdout, stderr, status = await outcome(side)
    assert (stdout, stderr) == (b"out\0\xff", b"err\n")
    assert (status["reason"], code_of(status)) == ("NonZeroExitCode", 7)


async def test_a_death_by_signal(node: Node, container: str, transport: Transport) -> None:
    async with transport(exec_url(node, container, "sh", "-c", "kill -9 $$"), STDOUT, STDERR) as side:
        assert code_of((await outcome(side))[2]) == 137


async def test_a_command_that_is_not_there(node: Node, container: str, transport: Transport) -> None:
    async with transport(exec_url(node, container, "nonesuch"), STDOUT, STDERR) as side:
        status = (await outcome(side))[2]
    assert (status["status"], status["reason"]) == ("Failure", "InternalError")
    assert "nonesuch" in status["message"]
    assert "not found" in status["message"]


async def test_much_goes_in_and_comes_back(node: Node, container: str, transport: Transport) -> None:
    data = os.urandom(1_000_000) * 50
    url = exec_url(node, container, "cat", stdin=True, stdout=True)
    async with transport(url, STDIN, STDOUT) as side:
        stdout, _, status = await outcome(side, data)
    assert hashlib.sha256(stdout).digest() == hashlib.sha256(data).digest()
    assert code_of(status) == 0


async def test_nothing_is_lost_at_the_end(node: Node, container: str, transport: Transport) -> None:
    script = "dd if=/dev/zero bs=1000000 count=5 2>/dev/null; echo done >&2; exit 3"
    for _ in range(5):
        async with transport(exec_url(node, container, "sh", "-c", script), STDOUT, STDERR) as side:
            stdout, stderr, status = await outcome(side)
        assert (len(stdout), stderr, code_of(status)) == (5_000_000, b"done\n", 3)


async def test_files_as_kubectl_copies_them(node: Node, container: str, transport: Transport) -> None:
    files = {f"tree/{number}": os.urandom(10_000 * number) for number in range(20)}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    url = exec_url(node, container, "tar", "xf", "-", "-C", "/tmp", stdin=True, stdout=True, stderr=True)
    async with transport(url, STDIN, STDOUT, STDERR) as side:
        assert code_of((await outcome(side, packed.getvalue()))[2]) == 0
    async with transport(exec_url(node, container, "tar", "cf", "-", "-C", "/tmp", "tree"), STDOUT, STDERR) as side:
        stdout, _, _ = await outcome(side)
    with tarfile.open(fileobj=io.BytesIO(stdout)) as archive:
        found = {member.name: archive.extractfile(member) for member in archive if member.isfile()}
        assert {name: file.read() for name, file in found.items() if file} == files


async def test_a_terminal(node: Node, container: str, transport: Transport) -> None:
    url = exec_url(node, container, "sh", stdin=True, stdout=True, tty=True)
    async with transport(url, STDIN, STDOUT, RESIZE) as side:
        await side.send(RESIZE, b'{"Width":101,"Height":31}')
        await side.send(STDIN, b"while [ \"$(stty size)\" != '31 101' ]; do sleep 0.05; done; echo si''zed\n")
        await side.read_until(STDOUT, b"sized")
        await side.send(STDIN, b"tty; exit 5\n")
        stdout, _, status = await outcome(side)
    assert b"/dev/" in stdout
    assert code_of(status) == 5


async def test_a_client_that_leaves_ends_the_whole_tree(node: Node, container: str, transport: Transport) -> None:
    url = exec_url(node, container, "sh", "-c", "sleep 4242 & sleep 4242; true")
    async with transport(url, STDOUT, STDERR):
        node.wait(lambda: running(node, container, "sleep 4242"))
    node.wait(lambda: not running(node, container, "sleep 4242"))


async def test_a_child_that_is_left_does_not_hold_the_client(node: Node, container: str, transport: Transport) -> None:
    async with transport(exec_url(node, container, "sh", "-c", "sleep 4343 & echo left"), STDOUT, STDERR) as side:
        stdout, _, status = await outcome(side)
    assert (stdout, code_of(status)) == (b"left\n", 0)


async def test_fifty_sessions_at_once(node: Node, container: str, transport: Transport) -> None:
    async def one(number: int) -> None:
        text = f"session {number}\n".encode() * 1000
        url = exec_url(node, container, "sh", "-c", f"cat; exit {number}", stdin=True, stdout=True)
        async with transport(url, STDIN, STDOUT) as side:
            stdout, _, status = await outcome(side, text)
        assert (stdout, code_of(status)) == (text, number)

    await asyncio.gather(*(one(number) for number in range(50)))


async def test_attached_clients_see_the_same_and_leave_without_harm(node: Node, transport: Transport) -> None:
    container = node.run_container(node.run_pod(), "sh", "-c", "while read l; do echo got $l; done", stdin=True)
    wishes = {"stdin": True, "stdout": True, "stderr": True}
    async with transport(attach_url(node, container, **wishes), STDIN, STDOUT, STDERR) as first:
        async with transport(attach_url(node, container, **wishes), STDIN, STDOUT, STDERR) as second:
            await settled(first, second)
            await second.send(STDIN, b"from the second\n")
            for side in (first, second):
                await side.read_until(STDOUT, b"got from the second")
            await second.end_input()
        await first.send(STDIN, b"from the first\n")
        await first.read_until(STDOUT, b"got from the first")
    assert node.status(container).state == node.m.CONTAINER_RUNNING


async def settled(*sides: Any) -> None:
    """Attaching is over when the client's own line comes back."""
    for number, side in enumerate(sides):
        await side.send(STDIN, f"hello {number}\n".encode())
        await side.read_until(STDOUT, f"got hello {number}".encode())


async def test_the_end_of_input_ends_a_container_made_for_one_session(node: Node, transport: Transport) -> None:
    container = node.run_container(node.run_pod(), "sh", "-c", "cat; exit 4", stdin=True, stdin_once=True)
    async with transport(attach_url(node, container, stdin=True, stdout=True), STDIN, STDOUT) as side:
        stdout, _, status = await outcome(side, b"all of it\n" * 1000)
    assert (stdout, status["status"]) == (b"all of it\n" * 1000, "Success")
    assert node.wait_exit(container).exit_code == 4


async def test_attached_to_a_terminal(node: Node, transport: Transport) -> None:
    script = "while [ \"$(stty size)\" != '31 101' ]; do sleep 0.05; done; echo si''zed; read x; exit 2"
    container = node.run_container(node.run_pod(), "sh", "-c", script, stdin=True, tty=True)
    url = attach_url(node, container, stdin=True, stdout=True, tty=True)
    async with transport(url, STDIN, STDOUT, RESIZE) as side:
        await side.send(RESIZE, b'{"Width":101,"Height":31}')
        await side.read_until(STDOUT, b"sized")
        await side.send(STDIN, b"\n")
        assert (await outcome(side))[2]["status"] == "Success"
    assert node.wait_exit(container).exit_code == 2


async def test_a_client_that_reads_nothing_does_not_hold_the_container(node: Node, transport: Transport) -> None:
    script = "read x; dd if=/dev/zero bs=65536 count=800 2>/dev/null; exit 6"
    container = node.run_container(node.run_pod(), "sh", "-c", script, stdin=True)
    async with transport(attach_url(node, container, stdin=True, stdout=True), STDIN, STDOUT) as side:
        side.stop_reading()
        await side.send(STDIN, b"\n")
        assert (await asyncio.to_thread(node.wait_exit, container)).exit_code == 6

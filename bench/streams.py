"""The phase of streams: exec and port-forward beside a pipe through `runc exec` and a connection to the pod.

What is sent is zeros, counted by `dd` where it arrives. A rate begins after the command's first byte, so that starting
it does not count, and ends with the last byte or, of input, with the status that says that all was read.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path

from bench.clock import Samples
from bench.engine import Engine, EnginePod, WrongAnswer
from bench.floors import FloorPod
from bench.phases import FLOOR, Bench
from bench.stream_client import (
    CHUNK_BYTES,
    ChannelClient,
    Incoming,
    PlainClient,
    SpdyClient,
    StreamClient,
)
from bench.stream_report import FIRST_BYTE
from tests.stand.ending import uninterrupted

BLOCK_BYTES = 64 * 1024
OUT_PORT, IN_PORT = 7001, 7002
IN = "echo; exec dd of=/dev/null bs=64k iflag=fullblock 2>&1"
SERVE = 'nc -ll -p 7001 -e sh -c "$0" & nc -ll -p 7002 -e sh -c "$1" & echo; wait'
COMMANDS: dict[str, Callable[[str], StreamClient]] = {"SPDY": SpdyClient.command, "WebSocket": ChannelClient.command}

Measure = Callable[[], float]


def out_command(size: int) -> str:
    return f"echo; exec dd if=/dev/zero bs=64k count={size // BLOCK_BYTES} 2>/dev/null"


def check_records(said: bytes, size: int) -> None:
    """What `dd` says of whole blocks."""
    if f"{size // BLOCK_BYTES}+0 records in".encode() not in said:
        raise WrongAnswer(f"of {size} bytes did not all arrive: {said.decode(errors='replace').strip()}")


def rate(size: int, seconds: float) -> float:
    return size / seconds / 1e6


# Raw


def pipe_out(command: list[str], size: int) -> float:
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdout is not None
        source, buffer, count = process.stdout.fileno(), bytearray(1 << 20), 0
        os.read(source, 1)
        began = time.perf_counter()
        while got := os.readv(source, [buffer]):
            count += got
        took = time.perf_counter() - began
    if count != size:
        raise WrongAnswer(f"{count} bytes came through the pipe, of {size}")
    return rate(size, took)


def pipe_in(command: list[str], size: int) -> float:
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.read(1)
        block = bytes(8 * CHUNK_BYTES)
        began = time.perf_counter()
        for _ in range(size // len(block)):
            process.stdin.write(block)
        process.stdin.close()
        said = process.stdout.read()
        process.wait()
        took = time.perf_counter() - began
    check_records(said, size)
    return rate(size, took)


def pipe_first_byte(command: list[str]) -> float:
    began = time.perf_counter()
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdout is not None
        process.stdout.read(1)
        return (time.perf_counter() - began) * 1000


# Through a client


def pump_until(client: StreamClient, condition: Callable[[], bool]) -> None:
    while not condition():
        client.pump()


def rate_out(client: StreamClient, name: str, size: int) -> float:
    """After the first byte, which is the command's newline."""
    received = client.received[name]
    pump_until(client, lambda: received.count > 0)
    began = time.perf_counter()
    while received.count <= size:
        client.pump()
    return rate(size, time.perf_counter() - began)


def rate_in(client: StreamClient, source: str, answer: str, size: int, ended: Callable[[], bool]) -> float:
    pump_until(client, lambda: client.received[answer].count > 0)
    batch = client.frame(source, bytes(CHUNK_BYTES)) * 8
    began = time.perf_counter()
    for _ in range(size // (8 * CHUNK_BYTES)):
        client.transmit(batch)
    client.end_input(source)
    pump_until(client, ended)
    took = time.perf_counter() - began
    check_records(client.received[answer].head, size)
    return rate(size, took)


def has_status(client: StreamClient) -> bool:
    """Whether the whole metav1.Status has come; raises WrongAnswer where it is none of success."""
    said = client.received["error"].head
    try:
        status = json.loads(said) if said else None
    except ValueError:
        return False
    if status is not None and status.get("status") != "Success":
        raise WrongAnswer(f"the command ends with {said.decode(errors='replace')}")
    return status is not None


def exec_out(pod: EnginePod, connect: Callable[[str], StreamClient], size: int) -> float:
    with closing(connect(pod.exec_url("sh", "-c", out_command(size)))) as client:
        found = rate_out(client, "stdout", size)
        pump_until(client, partial(has_status, client))
        return found


def exec_in(pod: EnginePod, connect: Callable[[str], StreamClient], size: int) -> float:
    with closing(connect(pod.exec_url("sh", "-c", IN))) as client:
        return rate_in(client, "stdin", "stdout", size, partial(has_status, client))


def exec_first_byte(pod: EnginePod, connect: Callable[[str], StreamClient]) -> float:
    """From the request for a URL on."""
    began = time.perf_counter()
    with closing(connect(pod.exec_url("echo"))) as client:
        pump_until(client, lambda: client.received["stdout"].count > 0)
        took = (time.perf_counter() - began) * 1000
        pump_until(client, partial(has_status, client))
        return took


def connection_out(connect: Callable[[], StreamClient], size: int) -> float:
    with closing(connect()) as client:
        return rate_out(client, "data", size)


def connection_in(connect: Callable[[], StreamClient], size: int) -> float:
    with closing(connect()) as client:
        return rate_in(client, "data", "data", size, lambda: client.received["data"].ended)


# The client alone


def alone_out(name: str, frames: Path, size: int) -> float:
    """It receives what `cat` sends."""
    ours, theirs = socket.socketpair()
    client: StreamClient
    if name == "SPDY":
        client = spdy = SpdyClient(ours, Incoming(ours))
        spdy.register("stdout")
        frame = client.frame("stdout", bytes(BLOCK_BYTES))
    else:
        client = ChannelClient(ours, Incoming(ours))
        length = BLOCK_BYTES + 1
        frame = bytes((0x82, 127)) + length.to_bytes(8, "big") + b"\1" + bytes(BLOCK_BYTES)
    frames.write_bytes(frame * (size // BLOCK_BYTES + 1))
    with subprocess.Popen(["cat", str(frames)], stdin=subprocess.DEVNULL, stdout=theirs.fileno()), closing(client):
        theirs.close()
        found = rate_out(client, "stdout", size)
    frames.unlink()
    return found


def alone_in(size: int) -> float:
    """It sends to `dd`; masked frames, but those are made once."""
    ours, theirs = socket.socketpair()
    client = ChannelClient(ours, Incoming(ours))
    batch = client.frame("stdin", bytes(CHUNK_BYTES)) * 8
    quiet = subprocess.DEVNULL
    with subprocess.Popen(
        ["dd", "of=/dev/null", "bs=64k"], stdin=theirs.fileno(), stdout=quiet, stderr=quiet
    ) as process:
        theirs.close()
        began = time.perf_counter()
        for _ in range(size // (8 * CHUNK_BYTES)):
            client.transmit(batch)
        client.close()
        process.wait()
        return rate(size, time.perf_counter() - began)


# The phase


@contextmanager
def served_raw(pod: FloorPod, size: int) -> Iterator[None]:
    """The servers to connect to, in the floor's pod."""
    command = pod.exec_command("sh", "-c", SERVE, out_command(size), IN)
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdout is not None
        try:
            process.stdout.read(1)
            wait_listening(pod.address)
            yield
        finally:
            process.kill()  # what it runs goes with the pod; asked to end, runc would wait for that


@contextmanager
def served(pod: EnginePod, size: int) -> Iterator[None]:
    """The same in an engine's pod, as an exec session that stays."""
    with closing(SpdyClient.command(pod.exec_url("sh", "-c", SERVE, out_command(size), IN))) as client:
        pump_until(client, lambda: client.received["stdout"].count > 0)
        wait_listening(pod.address())
        yield


def wait_listening(address: str) -> None:
    deadline = time.monotonic() + 5
    for port in (OUT_PORT, IN_PORT):
        while True:
            try:
                socket.create_connection((address, port), timeout=1).close()
                break
            except OSError as error:
                if time.monotonic() > deadline:
                    raise WrongAnswer(f"nobody listens at {address}:{port}: {error}") from error
            time.sleep(0.02)


def raw_measures(pod: FloorPod, folder: Path, size: int) -> dict[str, Measure]:
    frames = folder / "frames"
    return {
        "exec out": partial(pipe_out, pod.exec_command("sh", "-c", out_command(size)), size),
        "exec in": partial(pipe_in, pod.exec_command("sh", "-c", IN), size),
        "connection out": partial(connection_out, partial(PlainClient, pod.address, OUT_PORT), size),
        "connection in": partial(connection_in, partial(PlainClient, pod.address, IN_PORT), size),
        "client alone: out, SPDY": partial(alone_out, "SPDY", frames, size),
        "client alone: out, WebSocket": partial(alone_out, "WebSocket", frames, size),
        "client alone: in": partial(alone_in, size),
    }


def engine_measures(pod: EnginePod, size: int) -> dict[str, Measure]:
    found: dict[str, Measure] = {}
    for name, connect in COMMANDS.items():
        found[f"exec out, {name}"] = partial(exec_out, pod, connect, size)
        found[f"exec in, {name}"] = partial(exec_in, pod, connect, size)
    forwards = {port: partial(_forwarded, pod, port) for port in (OUT_PORT, IN_PORT)}
    found["port-forward out"] = partial(connection_out, forwards[OUT_PORT], size)
    found["port-forward in"] = partial(connection_in, forwards[IN_PORT], size)
    return found


def _forwarded(pod: EnginePod, port: int) -> StreamClient:
    return SpdyClient.forward(pod.forward_url(port), port)


def measure_streams(bench: Bench, folder: Path) -> None:
    """Raw ways and engines in turns; in each round another one begins."""
    size = bench.amounts.stream_bytes
    for name in (FLOOR, *(engine.name for engine in bench.engines)):
        bench.results.rates[name], bench.results.first_bytes[name] = Samples(), Samples()
    if not bench.time_for("streams", 20 + 15 * len(bench.engines)):
        return
    floor = FloorPod(bench.place, f"{bench.options.word}x")
    try:
        with ExitStack() as stack:
            with uninterrupted():
                floor.up(Samples())
            stack.enter_context(served_raw(floor, size))
            pods: dict[str, EnginePod] = {}
            for engine in bench.engines:
                with engine.noted("streams"):
                    pod = EnginePod(engine, bench.options, "x")
                    pod.up(Samples())
                    stack.enter_context(served(pod, size))
                    pods[engine.name] = pod
            _rounds(bench, floor, pods, folder)
        for engine in bench.engines:
            if engine.name in pods:  # what has failed is cleared at the end of the run
                with engine.noted("streams"):
                    pods[engine.name].down(Samples())
        with uninterrupted():
            floor.down(Samples())
    except BaseException:
        floor.clear()
        raise


def _rounds(bench: Bench, floor: FloorPod, pods: Mapping[str, EnginePod], folder: Path) -> None:
    size = bench.amounts.stream_bytes
    turns: list[Callable[[int], None]] = [partial(_raw_turn, bench, floor, raw_measures(floor, folder, size))]
    turns += [
        partial(_engine_turn, bench, engine, pods[engine.name], engine_measures(pods[engine.name], size))
        for engine in bench.engines
        if engine.name in pods
    ]
    with bench.loop_watched(*bench.engines):
        for turn in range(max(bench.amounts.stream_rounds, bench.amounts.first_bytes)):
            if not bench.time_for(f"streams from {turn}", 8):
                return
            shift = turn % len(turns)
            for run in turns[shift:] + turns[:shift]:
                run(turn)


def _raw_turn(bench: Bench, floor: FloorPod, measures: Mapping[str, Measure], turn: int) -> None:
    bench.results.first_bytes[FLOOR].add(FIRST_BYTE, pipe_first_byte(floor.exec_command("echo")))
    if turn < bench.amounts.stream_rounds:
        for step, measure in measures.items():
            bench.results.rates[FLOOR].add(step, measure())


def _engine_turn(bench: Bench, engine: Engine, pod: EnginePod, measures: Mapping[str, Measure], turn: int) -> None:
    for name, connect in COMMANDS.items():
        with engine.noted(f"first byte, {name}"):
            bench.results.first_bytes[engine.name].add(f"first byte, {name}", exec_first_byte(pod, connect))
    if turn < bench.amounts.stream_rounds:
        for step, measure in measures.items():
            with engine.noted(step):
                bench.results.rates[engine.name].add(step, measure())

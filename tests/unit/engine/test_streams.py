from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from isulad_py.engine.sessions import AttachRequest, ExecRequest, PortForwardRequest
from isulad_py.engine.streams import StreamOpener, own_wishes
from isulad_py.model.errors import FailedPrecondition, NotFound, ResourceExhausted, Unavailable
from isulad_py.model.security import NamespaceMode, NamespaceOptions, PodSecurity
from isulad_py.ports.streams import StreamWishes
from tests.fakes.scripted_streams import ScriptedConnection, ScriptedContainer, ScriptedStreamRuntime
from tests.unit.engine.node import Node, World

ALL = StreamWishes(stdin=True, stdout=True, stderr=True)


@pytest.fixture
def runtime() -> ScriptedStreamRuntime:
    return ScriptedStreamRuntime()


@pytest.fixture
async def node(world: World, runtime: ScriptedStreamRuntime) -> AsyncIterator[Node]:
    world.streams = runtime
    async with world.daemon(stream_session_limit=2) as node:
        await node.pull()
        yield node


@pytest.fixture
def opener(node: Node) -> StreamOpener:
    return node.services.opener


def test_only_so_many_sessions(opener: StreamOpener) -> None:
    with opener.session(), opener.session():
        assert opener.sessions == 2
        with pytest.raises(ResourceExhausted, match="stream-session-limit"), opener.session():
            pass
    with opener.session():
        assert opener.sessions == 1


async def test_a_command_runs_as_the_container_does(
    node: Node, opener: StreamOpener, runtime: ScriptedStreamRuntime
) -> None:
    container_id = await node.run_container(await node.run_pod(), envs=(("A", "1"),))
    for terminal in (False, True):
        wishes = StreamWishes(stdout=True, terminal=terminal)
        streams = await opener.exec(ExecRequest(container_id=container_id, cmd=("echo", "x"), wishes=wishes))
        assert streams.stdout
        assert await streams.stdout.read(100) == b"x\n"
        assert await streams.wait() == 0
        await streams.close()
    command = runtime.documents[-1]
    assert (command.id, command.handler) == (container_id, "runc")
    process = json.loads(command.process)
    assert process["args"] == ["echo", "x"]
    assert process["terminal"] is True
    assert "A=1" in process["env"]


async def test_attach_follows_how_the_container_was_made(
    node: Node, opener: StreamOpener, runtime: ScriptedStreamRuntime
) -> None:
    pod_id = await node.run_pod()
    expected = {
        (): StreamWishes(stdout=True, stderr=True),
        ("stdin",): ALL,
        ("stdin", "tty"): StreamWishes(stdin=True, stdout=True, terminal=True),
    }
    for number, (made_with, wishes) in enumerate(expected.items()):
        config: Any = dict.fromkeys(made_with, True)
        container_id = await node.run_container(pod_id, name=f"c{number}", **config)
        record = node.services.registry.containers[container_id]
        assert own_wishes(record, ALL) == wishes
        runtime.containers[container_id] = container = ScriptedContainer()
        streams = await opener.attach(AttachRequest(container_id=container_id, wishes=ALL))
        assert container.attached[0].wishes == wishes
        assert (streams.stdin is not None, streams.stderr is not None) == (wishes.stdin, wishes.stderr)
        await streams.resize(1, 2)
        await container.end(3)
        assert await streams.wait() == 3
        await streams.close()
        assert container.attached == []


@pytest.mark.parametrize("once", [True, False])
async def test_whose_end_of_input_it_is(
    node: Node, opener: StreamOpener, runtime: ScriptedStreamRuntime, *, once: bool
) -> None:
    container_id = await node.run_container(await node.run_pod(), stdin=True, stdin_once=once)
    runtime.containers[container_id] = container = ScriptedContainer()
    streams = await opener.attach(AttachRequest(container_id=container_id, wishes=ALL))
    assert streams.stdin
    await streams.stdin.write(b"x")
    await streams.stdin.close()
    assert await container.stdin.read(10) == b"x"
    assert container.stdin.ended is once


async def test_into_the_pods_network(node: Node, opener: StreamOpener, runtime: ScriptedStreamRuntime) -> None:
    async def serve(connection: ScriptedConnection) -> None:
        await connection.peer_sink.write(b"hello")
        await connection.closed.wait()

    host = PodSecurity(namespaces=NamespaceOptions(network=NamespaceMode.NODE))
    for name, security in (("own", PodSecurity()), ("host", host)):
        pod_id = await node.run_pod(name, security=security)
        path = node.services.registry.pods[pod_id].environment.netns_path
        assert bool(path) == (name == "own")
        runtime.listeners[path, 80] = serve
        request = PortForwardRequest(pod_id=pod_id)
        connection = await opener.dial(request, 80)
        assert await connection.source.read(100) == b"hello"
        await connection.close()
        with pytest.raises(Unavailable, match="81"):
            await opener.dial(request, 81)


async def test_what_has_changed_since_the_token(node: Node, opener: StreamOpener) -> None:
    pod_id = await node.run_pod()
    container_id = await node.run_container(pod_id)
    await node.services.pods.stop(pod_id)
    exec_request = ExecRequest(container_id=container_id, cmd=("true",), wishes=ALL)
    attach_request = AttachRequest(container_id=container_id, wishes=ALL)
    forward_request = PortForwardRequest(pod_id=pod_id)
    calls = (
        lambda: opener.exec(exec_request),
        lambda: opener.attach(attach_request),
        lambda: opener.dial(forward_request, 80),
    )
    for call in calls:
        with pytest.raises(FailedPrecondition):
            await call()
    await node.services.pods.remove(pod_id)
    await asyncio.sleep(0)
    for call in calls:
        with pytest.raises(NotFound):
            await call()

from __future__ import annotations

import re

import pytest

from isulad_py.engine.sessions import (
    MOST_HELD_BYTES,
    MOST_PORTS,
    MOST_TOKENS,
    AttachRequest,
    ExecRequest,
    PortForwardRequest,
    Sessions,
    Tokens,
)
from isulad_py.model.errors import FailedPrecondition, InvalidInput, NotFound, ResourceExhausted
from isulad_py.ports.streams import StreamWishes
from tests.fakes.clock import FakeClock
from tests.unit.engine.node import Node, World

OUTPUT = StreamWishes(stdout=True, stderr=True)


class Stand:
    def __init__(self, node: Node, clock: FakeClock) -> None:
        self.tokens = Tokens(clock=clock)
        self.sessions = Sessions(
            registry=node.services.registry,
            exec_=node.services.exec,
            tokens=self.tokens,
            base_url="http://127.0.0.1:10350",
        )

    def taken(self, url: str) -> object:
        return self.tokens.take(url.rpartition("/")[2])


@pytest.fixture
def stand(node: Node, world: World) -> Stand:
    return Stand(node, world.clock)


async def test_an_address_for_each_kind(stand: Stand, node: Node) -> None:
    pod_id = await node.run_pod()
    container_id = await node.run_container(pod_id)
    urls = (
        stand.sessions.exec(container_id[:12], ("ls", "-l"), OUTPUT),
        stand.sessions.attach(container_id[:12], OUTPUT),
        stand.sessions.port_forward(pod_id[:12], (80,)),
    )
    for kind, url in zip(("exec", "attach", "portforward"), urls, strict=True):
        assert re.fullmatch(rf"http://127\.0\.0\.1:10350/cri/{kind}/[\w-]{{32}}", url)
    assert [stand.taken(url) for url in urls] == [
        ExecRequest(container_id=container_id, cmd=("ls", "-l"), wishes=OUTPUT),
        AttachRequest(container_id=container_id, wishes=OUTPUT),
        PortForwardRequest(pod_id=pod_id, ports=(80,)),
    ]


async def test_a_token_is_given_out_once_and_within_a_minute(stand: Stand, node: Node, world: World) -> None:
    pod_id = await node.run_pod()
    first, second = (stand.sessions.port_forward(pod_id, ()) for _ in range(2))
    assert first != second
    assert stand.taken(first) is not None
    assert stand.taken(first) is None
    world.clock.advance(59.9)
    third = stand.sessions.port_forward(pod_id, ())
    world.clock.advance(0.1)
    assert stand.taken(second) is None
    assert len(stand.tokens) == 1, "what has expired is collected"
    assert stand.taken(third) is not None
    assert stand.tokens.take("") is None


async def test_so_many_and_no_more(stand: Stand, node: Node, world: World) -> None:
    pod_id = await node.run_pod()
    for _ in range(MOST_TOKENS):
        stand.sessions.port_forward(pod_id, ())
    with pytest.raises(ResourceExhausted, match="1000"):
        stand.sessions.port_forward(pod_id, ())
    world.clock.advance(60)
    stand.sessions.port_forward(pod_id, ())


async def test_long_commands_do_not_pile_up(stand: Stand, node: Node, world: World) -> None:
    container_id = await node.run_container(await node.run_pod())
    words = ("x" * (MOST_HELD_BYTES // 2),)
    first, _ = (stand.sessions.exec(container_id, words, OUTPUT) for _ in range(2))
    with pytest.raises(ResourceExhausted, match="2 streaming requests wait for their clients, with 16777216 bytes"):
        stand.sessions.exec(container_id, ("true",), OUTPUT)
    stand.sessions.attach(container_id, OUTPUT)
    assert stand.taken(first) is not None
    stand.sessions.exec(container_id, words, OUTPUT)
    world.clock.advance(60)
    for _ in range(2):
        stand.sessions.exec(container_id, words, OUTPUT)


async def test_wrong_requests(stand: Stand, node: Node) -> None:
    pod_id = await node.run_pod()
    container_id = await node.run_container(pod_id)
    both = StreamWishes(stdout=True, stderr=True, terminal=True)
    for wishes, reason in ((both, "tty and stderr"), (StreamWishes(terminal=True), "at least one")):
        with pytest.raises(InvalidInput, match=reason):
            stand.sessions.exec(container_id, ("true",), wishes)
        with pytest.raises(InvalidInput, match=reason):
            stand.sessions.attach(container_id, wishes)
    with pytest.raises(InvalidInput, match="cmd"):
        stand.sessions.exec(container_id, (), OUTPUT)
    for port in (0, -1, 65536):
        with pytest.raises(InvalidInput, match="port"):
            stand.sessions.port_forward(pod_id, (80, port))
    with pytest.raises(InvalidInput, match="port: 1025 are more than 1024"):
        stand.sessions.port_forward(pod_id, (80,) * (MOST_PORTS + 1))
    with pytest.raises(NotFound):
        stand.sessions.exec("unknown", ("true",), OUTPUT)
    with pytest.raises(NotFound):
        stand.sessions.attach("unknown", OUTPUT)
    with pytest.raises(NotFound):
        stand.sessions.port_forward("unknown", ())
    assert len(stand.tokens) == 0


async def test_only_what_runs(stand: Stand, node: Node) -> None:
    pod_id = await node.run_pod()
    container_id = await node.create(pod_id)
    with pytest.raises(FailedPrecondition, match="created, not running"):
        stand.sessions.exec(container_id, ("true",), OUTPUT)
    with pytest.raises(FailedPrecondition, match="created, not running"):
        stand.sessions.attach(container_id, OUTPUT)
    await node.services.pods.stop(pod_id)
    with pytest.raises(FailedPrecondition, match="not ready"):
        stand.sessions.port_forward(pod_id, ())

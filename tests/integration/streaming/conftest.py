"""One node for all tests of this folder; each test must leave it without pods, and without sessions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.streaming.sides import TRANSPORTS, Transport
from tests.stand.node import Node, stand_node


@pytest.fixture(scope="session")
def shared_node() -> Iterator[Node]:
    with stand_node("str") as node:
        node.pull()
        yield node


@pytest.fixture
def node(shared_node: Node) -> Iterator[Node]:
    yield shared_node
    shared_node.clear_pods()
    assert shared_node.left_of_pods() == []


@pytest.fixture(params=sorted(TRANSPORTS))
def transport(request: pytest.FixtureRequest) -> Transport:
    return TRANSPORTS[request.param]


@pytest.fixture
def container(node: Node) -> str:
    """A running one, whose program ends at SIGTERM."""
    script = "trap 'exit 0' TERM; while :; do sleep 1000 & wait $!; done"
    return node.run_container(node.run_pod(), "sh", "-c", script)

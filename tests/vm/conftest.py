"""One node for all tests of a file, as `tests/integration/node` has it; each test must leave it without pods."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.stand.node import Node, stand_node


@pytest.fixture(scope="module")
def shared_node() -> Iterator[Node]:
    with stand_node("vm") as node:
        node.pull()
        yield node


@pytest.fixture
def node(shared_node: Node) -> Iterator[Node]:
    yield shared_node
    shared_node.clear_pods()
    assert shared_node.left_of_pods() == []

"""One node for all tests of this folder; each test must leave it without pods."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.stand.node import Node, stand_node
from tests.stand.runtimes import RUNTIMES, program

WITH_EACH_RUNTIME = {
    "test_life.py",
    "test_kubelet_requests.py",
    "test_mounts.py",
    "test_user_namespaces.py",
    "test_ways_to_die.py",
}
"""The others ask what no runtime has a say in."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "shared_node" in metafunc.fixturenames:
        names = RUNTIMES if metafunc.definition.path.name in WITH_EACH_RUNTIME else RUNTIMES[:1]
        metafunc.parametrize("shared_node", names, indirect=True, scope="session")


@pytest.fixture(scope="session")
def shared_node(request: pytest.FixtureRequest) -> Iterator[Node]:
    name = request.param
    with stand_node("int", default_runtime=name, runtimes={name: {"path": program(name)}}) as node:
        node.pull()
        yield node


@pytest.fixture
def node(shared_node: Node) -> Iterator[Node]:
    yield shared_node
    shared_node.clear_pods()
    assert shared_node.left_of_pods() == []

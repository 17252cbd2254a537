"""kill -9 at every step by which layers come to be: nothing is half-visible, and the next pull makes it whole."""

from __future__ import annotations

from collections.abc import Iterator

import grpc
import pytest

from tests.images import File, make_image, push, tar_layer
from tests.stand.node import Node, stand_node

pytestmark = [pytest.mark.root, pytest.mark.timeout(600)]

MOST_STEPS = 60
LAYERS = 2


@pytest.fixture
def node() -> Iterator[Node]:
    with stand_node("pulldeath") as node:
        yield node


def restart(node: Node, failpoint: str = "") -> None:
    if node.daemon.process is not None:
        node.daemon.kill()
    node.reconnect()
    node.daemon.start(environment={"ISULAD_FAILPOINT": failpoint})


def content(number: int) -> bytes:
    return bytes([65 + number]) * 300_000


def check_layers(node: Node) -> None:
    """Whoever sees a layer sees all of it, by either name."""
    overlay = node.graph / "overlay"
    layers = sorted((overlay / "layers").iterdir())
    for layer in layers:
        assert (layer / "meta.json").is_file()
        [file] = [path for path in (layer / "diff").rglob("*") if path.is_file()]
        assert file.read_bytes() == content(int(file.name))
    links = [link.resolve() for link in (overlay / "l").iterdir()]
    assert sorted(links) == [layer / "diff" for layer in layers]
    assert all((staged / "meta.json").is_file() for staged in (overlay / "ingest").iterdir())
    assert not any((overlay / "aside").iterdir())


def images(node: Node, name: str) -> list[str]:
    listed = node.call("ListImages", node.m.ListImagesRequest()).images
    return [image.id for image in listed if name in image.repo_tags]


def test_death_at_every_step_of_a_pull(node: Node) -> None:
    blank = sorted((node.graph / "overlay" / "layers").iterdir())
    for number in range(1, MOST_STEPS):
        # Of its own each time: what an earlier death left is not to shorten this pull.
        layers = [tar_layer([File(f"deep/{number}/{n}", content(n))]) for n in range(LAYERS)]
        push(node.registry, "test/death", str(number), make_image(layers))
        name = f"{node.registry}/test/death:{number}"
        restart(node, f"layers:{number}:after")
        process = node.daemon.process
        assert process is not None
        try:
            node.pull(name)
        except grpc.RpcError:
            process.wait(timeout=20)
        else:
            assert number > 5 * LAYERS
            break
        restart(node)
        check_layers(node)
        assert images(node, name) == []
        node.pull(name)
        assert len(images(node, name)) == 1
        check_layers(node)
        node.call("RemoveImage", node.m.RemoveImageRequest(image=node.m.ImageSpec(image=name)))
        assert sorted((node.graph / "overlay" / "layers").iterdir()) == blank
    else:
        raise AssertionError(f"a pull takes more than {MOST_STEPS} steps")

"""Images whose record or layer is damaged while no daemon runs: hidden, told, and out of the way with one call."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.images import File, make_image, push, tar_layer
from tests.stand.node import Node, stand_node

pytestmark = [pytest.mark.root, pytest.mark.timeout(300)]


@pytest.fixture
def node() -> Iterator[Node]:
    with stand_node("damage") as node:
        yield node


def pull(node: Node, name: str) -> str:
    """Two layers, of which the lower is every image's; the image's id."""
    layers = [tar_layer([File("shared", b"x")]), tar_layer([File(name, b"y")])]
    push(node.registry, f"test/{name}", "1", make_image(layers))
    node.pull(reference(node, name))
    (image,) = (image for image in images(node) if reference(node, name) in image.repo_tags)
    return str(image.id)


def reference(node: Node, name: str) -> str:
    return f"{node.registry}/test/{name}:1"


def images(node: Node) -> list[object]:
    return list(node.call("ListImages", node.m.ListImagesRequest()).images)


def remove(node: Node, name: str) -> None:
    node.call("RemoveImage", node.m.RemoveImageRequest(image=node.m.ImageSpec(image=name)))


def layers(node: Node) -> list[Path]:
    return list((node.graph / "overlay/layers").iterdir())


def test_a_record_that_cannot_be_read(node: Node) -> None:
    damaged = pull(node, "damaged")
    pull(node, "good")
    node.daemon.stop()
    with sqlite3.connect(node.graph / "isulad.db") as database:
        assert database.execute("UPDATE records SET payload = x'7b' WHERE key = ?", (damaged,)).rowcount == 1
    database.close()
    node.daemon.start()
    node.reconnect()
    assert [image.repo_tags for image in images(node)] == [[reference(node, "good")]]
    pod_id = node.run_pod()  # all else goes on
    node.remove_pod(pod_id)
    remove(node, reference(node, "good"))
    assert len(layers(node)) == 3, "which were the damaged image's nobody knows"
    remove(node, damaged)
    assert layers(node) == []


def test_a_layer_that_cannot_be_read(node: Node) -> None:
    damaged = pull(node, "damaged")
    pull(node, "good")
    (upper,) = (folder for folder in layers(node) if (folder / "diff/damaged").exists())
    node.daemon.stop()
    (upper / "meta.json").write_text("{")
    node.daemon.start()
    node.reconnect()
    assert [image.repo_tags for image in images(node)] == [[reference(node, "good")]]
    remove(node, reference(node, "damaged"))
    remove(node, damaged)
    assert len(layers(node)) == 2
    assert pull(node, "damaged") == damaged
    assert len(layers(node)) == 3

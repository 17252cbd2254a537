"""kill -9 in the middle of a pull: the next one fetches nothing again that was here and verified."""

from __future__ import annotations

import http.client
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import grpc
import pytest

from tests.images import File, make_image, push, tar_layer
from tests.stand.node import Node, stand_node

pytestmark = [pytest.mark.root, pytest.mark.timeout(300)]


class Gateway:
    """Before the registry: counts what is asked for, and holds one blob back halfway."""

    def __init__(self, registry: str) -> None:
        self.registry = registry
        self.blobs: Counter[str] = Counter()
        self.held = ""
        """Digest of the blob."""
        self.go_on = threading.Event()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        digest = request.path.rpartition("/")[2] if "/blobs/" in request.path else ""
        self.blobs[digest] += bool(digest)
        connection = http.client.HTTPConnection(self.registry, timeout=20)
        connection.request(request.command, request.path, headers=dict(request.headers))
        reply = connection.getresponse()
        body = reply.read()
        connection.close()
        request.send_response(reply.status)
        for name, value in reply.getheaders():
            request.send_header(name, value)
        request.end_headers()
        half = len(body) // 2 if digest and digest == self.held else len(body)
        try:
            request.wfile.write(body[:half])
            request.wfile.flush()
            if half < len(body):
                self.go_on.wait(60)
                request.wfile.write(body[half:])
        except OSError:
            request.close_connection = True  # the client has gone: it was killed


@contextmanager
def gateway(registry: str) -> Iterator[tuple[Gateway, str]]:
    front = Gateway(registry)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            front.answer(self)

        do_HEAD = do_GET

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield front, f"127.0.0.1:{server.server_port}"
    finally:
        front.go_on.set()
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def node() -> Iterator[Node]:
    with stand_node("resume") as node:
        yield node


def push_layers(node: Node, name: str) -> list[str]:
    """Digests of four layers, bottom first."""
    layers = [tar_layer([File(f"file{number}", bytes([number]) * 300_000)]) for number in range(4)]
    push(node.registry, name, "1", make_image(layers))
    return [layer.digest for layer in layers]


def pull_until_killed(node: Node, name: str) -> threading.Thread:
    def pull() -> None:
        with pytest.raises(grpc.RpcError):
            node.pull(name)

    thread = threading.Thread(target=pull)
    thread.start()
    return thread


def restart(node: Node, failpoint: str = "") -> None:
    node.daemon.kill()
    node.reconnect()
    node.daemon.start(environment={"ISULAD_FAILPOINT": failpoint})


def layers_in(node: Node, folder: str) -> list[Path]:
    return list((node.graph / "overlay" / folder).glob("*/meta.json"))


def test_layers_that_were_verified_are_not_fetched_again(node: Node) -> None:
    blobs = push_layers(node, "test/resumed")
    with gateway(node.registry) as (front, host):
        front.held = blobs[2]
        thread = pull_until_killed(node, f"{host}/test/resumed:1")
        node.wait(lambda: len(layers_in(node, "ingest")) == 3)
        restart(node)
        thread.join()
        front.held = ""
        node.pull(f"{host}/test/resumed:1")
        assert [front.blobs[digest] for digest in blobs] == [1, 1, 2, 1]
    assert layers_in(node, "ingest") == []
    assert len(layers_in(node, "layers")) == 4


def test_layers_of_an_image_that_was_not_yet_on_record_are_not_fetched_again(node: Node) -> None:
    blobs = push_layers(node, "test/unrecorded")
    with gateway(node.registry) as (front, host):
        restart(node, failpoint="records:1:before")
        pull_until_killed(node, f"{host}/test/unrecorded:1").join()
        assert node.daemon.process is not None
        node.daemon.process.wait()
        assert len(layers_in(node, "layers")) == 4
        restart(node)
        assert len(layers_in(node, "layers")) == 4
        assert list(node.call("ListImages", node.m.ListImagesRequest()).images) == []
        node.pull(f"{host}/test/unrecorded:1")
        assert [front.blobs[digest] for digest in blobs] == [1, 1, 1, 1]

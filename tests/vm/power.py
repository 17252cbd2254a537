"""Cuts of the power in the middle of pulls and creates: each boot finds a disk that a former one left at any moment.

What was answered before a cut may be gone after it (records are written ahead, not flushed one by one); what is there
is whole. The last test of a boot asks for the next cut; without it (`-k "not cut"`) the machine ends in order.
"""

from __future__ import annotations

import contextlib
import hashlib
import random
import secrets
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from tests import images
from tests.cri_client import connect
from tests.stand.node import Node
from tests.vm.lasting import HOST, MARK, boot_id, lasting_node, left_on_disk, note, notes

FILES = 60
LAYERS = 3
CONSOLE = Path("/dev/ttyS0")


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    with lasting_node() as made:
        yield made


def fresh_image() -> images.Image:
    """A root file system that knows the sums of all its files; no layer of it is known to anybody."""
    layers, sums = [images.tar_layer(images.busybox_entries())], []
    for layer in range(LAYERS):
        files = {f"data/{layer}/{number}": random.randbytes(random.randint(0, 60_000)) for number in range(FILES)}
        sums += [f"{hashlib.sha256(data).hexdigest()}  /{name}\n" for name, data in files.items()]
        layers.append(images.tar_layer([images.File(name, data) for name, data in files.items()]))
    layers.append(images.tar_layer([images.File("sums", "".join(sums).encode())]))
    return images.make_image(layers, config={"Cmd": ["sleep", "1000"]})


def listed(node: Node) -> list[str]:
    return sorted(
        tag for image in node.call("ListImages", node.m.ListImagesRequest()).images for tag in image.repo_tags
    )


def test_the_daemon_starts_and_every_record_is_read(node: Node) -> None:
    note(boots=[*notes().get("boots", []), boot_id()])
    log = node.daemon.log.read_text(errors="replace")
    assert "put aside" not in log
    assert "damaged" not in log
    for pod in node.pods():
        assert node.pod_status(pod.id).state == node.m.SANDBOX_NOTREADY
    for container in node.containers():
        status = node.status(container.id)
        assert status.state == node.m.CONTAINER_EXITED
        assert status.exit_code in {137, 255}  # stopped before the cut, or ended by it


def test_what_pods_left_can_be_removed(node: Node) -> None:
    node.clear_pods()
    assert node.containers() == []
    # Of addresses nothing is asked: host-local's removal of a file may be lost to the cut, and the record of it not.
    node.wait(lambda: not left_on_disk())


def test_every_image_that_is_listed_is_whole(node: Node) -> None:
    names = [name for name in listed(node) if "/fresh/" in name]
    note(whole=notes().get("whole", 0) + len(names))
    pod_id = node.run_pod()
    for number, name in enumerate(names):
        config = node.container_config("sleep", "1000", name=f"c{number}")
        config.image.image = name
        container_id = node.create(pod_id, config)
        node.start(container_id)
        answer = node.exec(container_id, "sh", "-c", "sha256sum -c /sums | grep -vc ': OK$'; wc -l < /sums")
        assert answer.stdout.split() == [b"0", str(FILES * LAYERS).encode()], (name, answer)
        node.remove(container_id)
    node.clear_pods()
    for name in names:
        node.call("RemoveImage", node.m.RemoveImageRequest(image=node.m.ImageSpec(image=name)))
    assert not [name for name in listed(node) if "/fresh/" in name]


def test_no_layer_lies_without_an_image(node: Node) -> None:
    """Half-made ones are cleared at the start; those of removed images go with them; what a pull had verified when it
    was cut off stays for an hour, for the next try."""
    for name in listed(node):
        node.call("RemoveImage", node.m.RemoveImageRequest(image=node.m.ImageSpec(image=name)))
    subprocess.run(["date", "--set", "+2 hours"], check=True, capture_output=True, timeout=60)
    node.daemon.kill()
    node.daemon.start()
    node.reconnect()
    layers = MARK.root / "graph" / "overlay" / "layers"
    node.wait(lambda: not list(layers.iterdir()))
    node.pull()
    container_id = node.run_container(node.run_pod())
    assert node.exec(container_id, "echo", "on").stdout == b"on\n"
    node.clear_pods()


def keep_pulling(node: Node, numbers: Iterator[int]) -> None:
    with connect(node.daemon.address) as cri:
        for number in numbers:
            name = f"fresh/{secrets.token_hex(4)}"
            images.push(node.registry, name, "latest", fresh_image())
            spec = cri.m.ImageSpec(image=f"{HOST}/{name}:latest")
            cri.image.PullImage(cri.m.PullImageRequest(image=spec), timeout=300)
            note(pulls=number + 1)


def keep_making_pods(node: Node) -> None:
    while True:
        with contextlib.suppress(grpc.RpcError):
            pod_id = node.run_pod()
            node.run_container(pod_id)
            if random.random() < 0.3:
                node.stop_pod(pod_id)
                node.remove_pod(pod_id)


def test_cut(node: Node) -> None:
    numbers = iter(range(1_000_000))
    for work, arguments in ((keep_pulling, (node, numbers)), (keep_making_pods, (node,))):
        threading.Thread(target=work, args=arguments, daemon=True).start()
    # At any moment: the clock, not a state, ends it.
    time.sleep(random.uniform(5, 40))
    CONSOLE.write_text("\n=== the power goes\n")
    time.sleep(60)
    pytest.fail("the power did not go")

"""What the node says of its disk, against du."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.images import bench_layers, busybox_layer, make_image, push
from tests.stand.node import Node

pytestmark = pytest.mark.root

MIB = 1 << 20


def du(*folders: Path) -> tuple[int, int]:
    """Bytes and inodes of the trees together, without what is mounted in them."""

    def total(unit: str) -> int:
        command = ["du", "--one-file-system", "--summarize", "--total", unit, *map(str, folders)]
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        return int(lines[-1].split()[0])

    return total("--block-size=1"), total("--inodes")


def usage(node: Node) -> tuple[Any, Any]:
    info = node.call("ImageFsInfo", node.m.ImageFsInfoRequest())
    return info.image_filesystems[0], info.container_filesystems[0]


def pull_several(node: Node, tag: str) -> str:
    layers = [*bench_layers(2, 300), busybox_layer()]
    name = f"{node.registry}/test/several:{tag}"
    push(node.registry, "test/several", tag, make_image(layers, config={"Labels": {"tag": tag}}))
    node.pull(name)
    return name


def remove(node: Node, name: str) -> None:
    node.call("RemoveImage", node.m.RemoveImageRequest(image=node.m.ImageSpec(image=name)))


def test_images_take_what_they_say(node: Node) -> None:
    """On an image that shares a layer with the node's own, and after it has gone."""
    before, _ = usage(node)
    name = pull_several(node, "1")
    during, _ = usage(node)
    overlay = node.graph / "overlay"
    used, inodes = du(overlay / "layers", overlay / "l")
    assert abs(during.used_bytes.value - used) < 0.01 * used + MIB
    assert abs(during.inodes_used.value - inodes) < 0.01 * inodes + 8
    remove(node, name)
    after, _ = usage(node)
    assert (after.used_bytes, after.inodes_used) == (before.used_bytes, before.inodes_used)


def test_containers_take_what_they_say(node: Node) -> None:
    """Also after heavy writes, once they have been measured."""
    pod_id = node.run_pod()
    container_id = node.run_container(pod_id)
    many = "mkdir /many && cd /many && for i in $(seq 500); do echo $i > $i; done"
    script = f"dd if=/dev/zero of=/big bs=1M count=24 && {many}"
    assert node.exec(container_id, "sh", "-c", script).exit_code == 0
    (diff,) = (node.graph / "overlay/containers").glob(f"{container_id}/diff")

    def measured() -> Any:
        _, of_containers = usage(node)
        return of_containers.used_bytes.value > 24 * MIB and of_containers

    total = node.wait(measured, 60)
    used, inodes = du(diff)
    assert abs(total.used_bytes.value - used) < MIB
    assert abs(total.inodes_used.value - inodes) < 8
    stats = node.call("ContainerStats", node.m.ContainerStatsRequest(container_id=container_id)).stats
    assert stats.writable_layer.used_bytes.value == total.used_bytes.value
    assert stats.writable_layer.fs_id == total.fs_id


def test_both_are_on_the_file_system_of_the_graph(node: Node) -> None:
    """One file system: a kubelet takes its own capacity for both (its eviction signals imagefs and containerfs)."""
    of_images, of_containers = usage(node)
    assert of_images.fs_id == of_containers.fs_id
    assert Path(of_images.fs_id.mountpoint).stat().st_dev == node.graph.stat().st_dev
    assert of_images.timestamp > 0


def test_images_that_come_and_go_leave_no_descriptor(node: Node) -> None:
    assert node.daemon.process is not None
    descriptors = Path(f"/proc/{node.daemon.process.pid}/fd")

    def of_the_graph() -> list[str]:
        return [link for entry in descriptors.iterdir() if "/overlay" in (link := os.path.realpath(entry))]

    for tag in ("one", "two", "three"):
        remove(node, pull_several(node, tag))
    node.wait(lambda: not of_the_graph())
    node.wait(lambda: not list((node.graph / "overlay/trash").iterdir()), 60)

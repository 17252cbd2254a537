"""Volumes that an image declares, and that nothing else is mounted on."""

from __future__ import annotations

import pytest

from tests import images
from tests.stand.node import Node

pytestmark = pytest.mark.root


@pytest.fixture
def image(node: Node) -> str:
    entries = [images.Dir("data", 0o751, uid=1000, gid=1000), images.File("data/first", b"of the image\n", 0o640)]
    made = images.make_image(
        [images.busybox_layer(), images.tar_layer(entries)],
        config={"Cmd": ["sleep", "1000"], "Volumes": {"/data": {}, "/new": {}}},
    )
    images.push(node.registry, "test/volumes", "latest", made)
    return node.pull(f"{node.registry}/test/volumes:latest") and f"{node.registry}/test/volumes:latest"


def test_they_are_writable_though_the_root_is_not_and_last_as_long_as_the_container(node: Node, image: str) -> None:
    asked = node.container_config()
    asked.image.image = image
    asked.linux.security_context.readonly_rootfs = True
    pod_id = node.run_pod()
    container_id = node.create(pod_id, asked)
    node.start(container_id)

    def says(*command: str) -> tuple[int, bytes]:
        answer = node.exec(container_id, *command)
        return answer.exit_code, answer.stdout

    assert says("touch", "/etc/x")[0] == 1
    assert says("cat", "/data/first") == (0, b"of the image\n")
    assert says("stat", "-c", "%u %g %a", "/data") == (0, b"1000 1000 751\n")
    assert says("sh", "-c", "echo more > /data/second; touch /new/file; ls /data /new")[0] == 0
    assert not any(b"overlay" in line for line in says("grep", " /data ", "/proc/mounts")[1].splitlines())
    node.daemon.kill()
    node.reconnect()
    node.daemon.start()
    assert says("cat", "/data/second") == (0, b"more\n")
    folder = node.graph / "overlay/containers" / container_id
    assert sorted(path.name for path in (folder / "volumes/0").iterdir()) == ["first", "second"]
    node.stop(container_id)
    node.remove(container_id)
    assert not folder.exists()


def test_another_container_has_others(node: Node, image: str) -> None:
    pod_id = node.run_pod()
    for name in ("one", "two"):
        asked = node.container_config(name=name)
        asked.image.image = image
        container_id = node.create(pod_id, asked)
        node.start(container_id)
        assert node.exec(container_id, "ls", "/data").stdout == b"first\n"
        node.exec(container_id, "touch", "/data/mine")


def test_in_a_pod_with_users_of_its_own_they_belong_to_these(node: Node, image: str) -> None:
    mappings = [node.m.IDMapping(container_id=0, host_id=100_000, length=65536)]
    config, asked = node.pod_config(), node.container_config()
    asked.image.image = image
    asked.linux.security_context.namespace_options.pid = node.m.CONTAINER
    for options in (config.linux.security_context.namespace_options, asked.linux.security_context.namespace_options):
        options.userns_options.uids.extend(mappings)
        options.userns_options.gids.extend(mappings)
    container_id = node.create(node.run_pod(config), asked)
    node.start(container_id)
    assert node.exec(container_id, "stat", "-c", "%u %g", "/data", "/data/first", "/new").stdout.split() == [
        b"1000", b"1000", b"0", b"0", b"0", b"0"
    ]  # fmt: skip
    assert node.exec(container_id, "touch", "/data/mine", "/new/mine").exit_code == 0
    status = (node.graph / "overlay/containers" / container_id / "volumes/0/mine").stat()
    assert (status.st_uid, status.st_gid) == (100_000, 100_000)

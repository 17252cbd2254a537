"""Mounts, from the request to what a container sees and does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from isulad_py.host import mounts
from tests.stand.node import Node

pytestmark = pytest.mark.root


@pytest.fixture
def shared(node: Node) -> Iterator[Path]:
    """A place on the host whose mounts are told to others (mount_namespaces(7))."""
    place = node.mark.root / "shared"
    place.mkdir()
    mounts.mount("tmpfs", str(place), "tmpfs", data="size=1m")
    mounts.mount("", str(place), flags=mounts.MS_SHARED)
    (place / "before").mkdir()
    (place / "after").mkdir()
    mount_here(place / "before")
    yield place
    node.clear_pods()
    mounts.unmount_under(str(place))
    place.rmdir()


def mount_here(place: Path) -> None:
    mounts.mount("tmpfs", str(place), "tmpfs", data="size=64k")
    (place / "file").touch()


def privileged(node: Node) -> tuple[str, Any]:
    """A pod, and what a container in it needs for mounting."""
    config = node.pod_config()
    config.linux.security_context.privileged = True
    linux = node.m.LinuxContainerConfig(security_context=node.m.LinuxContainerSecurityContext(privileged=True))
    return node.run_pod(config), linux


def seen(node: Node, container_id: str, path: str) -> bool:
    return bool(node.exec(container_id, "test", "-e", path).exit_code == 0)


@pytest.mark.parametrize(
    ("name", "later_ones_come", "own_ones_go"),
    [
        ("PROPAGATION_PRIVATE", False, False),
        ("PROPAGATION_HOST_TO_CONTAINER", True, False),
        ("PROPAGATION_BIDIRECTIONAL", True, True),
    ],
)
def test_propagation(node: Node, shared: Path, name: str, *, later_ones_come: bool, own_ones_go: bool) -> None:
    pod_id, linux = privileged(node)
    mount = node.m.Mount(container_path="/x", host_path=str(shared), propagation=getattr(node.m, name))
    container_id = node.run_container(pod_id, linux=linux, mounts=[mount])
    assert seen(node, container_id, "/x/before/file")
    mount_here(shared / "after")
    assert seen(node, container_id, "/x/after/file") is later_ones_come
    script = "mkdir /x/own && mount -t tmpfs none /x/own && touch /x/own/file"
    assert node.exec(container_id, "sh", "-c", script).exit_code == 0
    assert (shared / "own/file").exists() is own_ones_go
    assert node.status(container_id).mounts[0].propagation == getattr(node.m, name)


@pytest.mark.parametrize("name", ["PROPAGATION_HOST_TO_CONTAINER", "PROPAGATION_BIDIRECTIONAL"])
def test_propagation_from_where_nothing_is_told(node: Node, shared: Path, name: str) -> None:
    mounts.mount("", str(shared), flags=mounts.MS_PRIVATE)
    pod_id, linux = privileged(node)
    mount = node.m.Mount(container_path="/x", host_path=str(shared), propagation=getattr(node.m, name))
    config = node.container_config(linux=linux, mounts=[mount])
    code, words = node.fails("CreateContainer", node.m.CreateContainerRequest(pod_sandbox_id=pod_id, config=config))
    assert (code, "config.mounts[0].propagation" in words) == ("FAILED_PRECONDITION", True), words
    assert node.containers() == []


def test_host_paths_that_are_links_or_missing(node: Node) -> None:
    root = node.mark.root / "paths"
    (root / "real").mkdir(parents=True)
    (root / "real/file").write_text("found")
    (root / "link").symlink_to("real")
    asked = [
        node.m.Mount(container_path="/link", host_path=str(root / "link")),
        node.m.Mount(container_path="/made", host_path=str(root / "link/not/there/yet")),
    ]
    container_id = node.run_container(node.run_pod(), mounts=asked)
    script = "cat /link/file; touch /made/new"
    assert node.exec(container_id, "sh", "-c", script).stdout == b"found"
    assert (root / "real/not/there/yet/new").exists()
    made = node.m.Mount(container_path="/x", host_path=str(root / "unmade"))
    refused = node.container_config(name="wrong", mounts=[made])
    refused.linux.security_context.capabilities.add_capabilities.append("CAP_NONSENSE")
    request = node.m.CreateContainerRequest(pod_sandbox_id=node.pods()[0].id, config=refused)
    assert node.fails("CreateContainer", request)[0] == "INVALID_ARGUMENT"
    assert not (root / "unmade").exists()
    (root / "dangling").symlink_to("nowhere")
    for name in ("dangling", "real/file/below"):
        mount = node.m.Mount(container_path="/x", host_path=str(root / name))
        config = node.container_config(name="wrong", mounts=[mount])
        request = node.m.CreateContainerRequest(pod_sandbox_id=node.pods()[0].id, config=config)
        code, words = node.fails("CreateContainer", request)
        assert (code, "config.mounts[0].host_path" in words) == ("INVALID_ARGUMENT", True)


def test_recursive_read_only_and_where_it_cannot_be(node: Node, shared: Path) -> None:
    def mount(**fields: Any) -> Any:
        return node.m.Mount(container_path="/x", host_path=str(shared), recursive_read_only=True, **fields)

    pod_id = node.run_pod()
    wrong = [mount(), mount(readonly=True, propagation=node.m.PROPAGATION_HOST_TO_CONTAINER)]
    for each in wrong:
        config = node.container_config(mounts=[each])
        code, words = node.fails("CreateContainer", node.m.CreateContainerRequest(pod_sandbox_id=pod_id, config=config))
        assert (code, "config.mounts[0].recursive_read_only" in words) == ("INVALID_ARGUMENT", True)
    config = node.container_config(mounts=[mount(readonly=True)])
    status = node.call("Status", node.m.StatusRequest())
    default = next(handler for handler in status.runtime_handlers if not handler.name)
    if default.features.recursive_read_only_mounts:
        container_id = node.create(pod_id, config)
        node.start(container_id)
        done = node.exec(container_id, "touch", "/x/before/new")
        assert b"Read-only file system" in done.stderr
        assert node.status(container_id).mounts[0].recursive_read_only
    else:
        code, words = node.fails("CreateContainer", node.m.CreateContainerRequest(pod_sandbox_id=pod_id, config=config))
        assert (code, "recursive_read_only" in words) == ("UNIMPLEMENTED", True), words


def test_an_image_as_a_volume_and_a_part_of_one(node: Node) -> None:
    def mount(path: str, **fields: Any) -> Any:
        image = node.m.ImageSpec(image=node.image)
        return node.m.Mount(container_path=path, image=image, readonly=True, **fields)

    pod_id = node.run_pod()
    container_id = node.run_container(pod_id, mounts=[mount("/all"), mount("/part", image_sub_path="bin")])
    script = "test -x /all/bin/busybox && test -x /part/busybox && touch /part/new"
    done = node.exec(container_id, "sh", "-c", script)
    assert b"Read-only file system" in done.stderr
    found = {each.container_path: each for each in node.status(container_id).mounts}
    assert found["/part"].image_sub_path == "bin"
    assert found["/part"].image.image_ref
    for sub_path, code in (("no/such", "NOT_FOUND"), ("../..", "INVALID_ARGUMENT"), ("/bin", "INVALID_ARGUMENT")):
        config = node.container_config(name="wrong", mounts=[mount("/x", image_sub_path=sub_path)])
        request = node.m.CreateContainerRequest(pod_sandbox_id=pod_id, config=config)
        told, words = node.fails("CreateContainer", request)
        assert (told, "config.mounts[0].image_sub_path" in words) == (code, True)

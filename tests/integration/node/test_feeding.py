"""A node that runs is fed: archives and pulls by `isulad image`, and iSulad's own image service on the same socket."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cri_client import service_of
from tests.stand.daemon import PROJECT
from tests.stand.node import Node

pytestmark = pytest.mark.root


def image(node: Node, *argv: str) -> tuple[int, str, str]:
    return node.daemon.image(*argv)


def names(node: Node) -> set[str]:
    status, out, err = image(node, "ls")
    assert (status, err) == (0, "")
    return {name for line in out.splitlines() for name in line.split()[2:]}


@pytest.mark.parametrize("form", ["docker-archive", "oci-archive"])
def test_saved_removed_loaded_and_run(node: Node, tmp_path: Path, form: str) -> None:
    archive = tmp_path / "image.tar"
    status, saved, err = image(node, "save", node.image, str(archive), "--format", form)
    assert (status, err) == (0, "")
    identity = saved.split()[0]
    if shutil.which("skopeo"):
        told = subprocess.run(
            ["skopeo", "inspect", "--config", f"{form}:{archive}"], capture_output=True, check=True, text=True
        )
        assert json.loads(told.stdout)["os"] == "linux"
    assert image(node, "rm", identity)[0] == 0
    assert node.image not in names(node)
    status, loaded, err = image(node, "load", str(archive), "--name", "fed.example/app:1")
    assert (status, err, loaded.split()[0]) == (0, "", identity)
    pod_id = node.run_pod()
    config = node.container_config("sleep", "1000")
    config.image.image = "fed.example/app:1"
    container_id = node.create(pod_id, config)
    node.start(container_id)
    assert node.status(container_id).image_id == identity
    status, _, err = image(node, "rm", "fed.example/app:1", node.image)
    assert status == 1
    assert "in use" in err
    node.remove_pod(pod_id)
    node.pull()


MAKERS = {
    "skopeo, OCI, zstd": ["--format", "oci", "--dest-compress-format", "zstd"],
    "skopeo, OCI, zstd:chunked": ["--format", "oci", "--dest-compress-format", "zstd:chunked"],
    "skopeo, docker schema 2": ["--format", "v2s2"],
    "umoci": [],
}


@pytest.mark.skipif(not (shutil.which("skopeo") and shutil.which("umoci")), reason="needs skopeo and umoci")
@pytest.mark.parametrize("maker", MAKERS)
def test_what_others_make_is_pulled_run_saved_and_loaded(node: Node, tmp_path: Path, maker: str) -> None:
    name = f"{node.registry}/made/by:{maker.replace(', ', '-').replace(' ', '-').replace(':', '-')}"
    plain = ["--src-tls-verify=false", "--dest-tls-verify=false"]
    if maker == "umoci":
        (tmp_path / "etc").mkdir()
        (tmp_path / "etc/maker").write_text("umoci")
        layout = f"{tmp_path}/layout:v1"
        commands = [
            ["skopeo", "copy", *plain, f"docker://{node.image}", f"oci:{layout}"],
            ["umoci", "insert", "--image", layout, str(tmp_path / "etc"), "/etc"],
            ["skopeo", "copy", *plain, f"oci:{layout}", f"docker://{name}"],
        ]
    else:
        commands = [["skopeo", "copy", *plain, *MAKERS[maker], f"docker://{node.image}", f"docker://{name}"]]
    for each in commands:
        subprocess.run(each, check=True, capture_output=True)
    status, pulled, err = image(node, "pull", name)
    assert status == 0, err
    identity = pulled.split()[0]
    pod_id = node.run_pod()
    config = node.container_config("sleep", "1000")
    config.image.image = name
    container_id = node.create(pod_id, config)
    node.start(container_id)
    if maker == "umoci":
        assert node.exec(container_id, "cat", "/etc/maker").stdout == b"umoci"
    assert node.exec(container_id, "true").exit_code == 0
    node.remove_pod(pod_id)
    for form in ("docker-archive", "oci-archive"):
        archive = tmp_path / form
        assert image(node, "save", name, str(archive), "--format", form)[0] == 0
        assert image(node, "rm", name)[0] == 0
        status, loaded, err = image(node, "load", str(archive))
        assert (status, err, loaded.split()[0]) == (0, "", identity)
        assert name in loaded.split()[2:]
    assert image(node, "rm", name)[0] == 0


def test_imported_tagged_and_inspected(node: Node, tmp_path: Path) -> None:
    (tmp_path / "root/etc").mkdir(parents=True)
    (tmp_path / "root/etc/fed").write_text("by hand")
    subprocess.run(["tar", "-czf", tmp_path / "root.tgz", "-C", tmp_path / "root", "."], check=True)
    status, made, err = image(node, "import", str(tmp_path / "root.tgz"), "fed.example/made:1")
    assert (status, err) == (0, "")
    assert image(node, "tag", "fed.example/made:1", "fed.example/made:2")[0] == 0
    status, inspected, _ = image(node, "inspect", "fed.example/made:2")
    assert json.loads(inspected)["image"]["id"] == made.split()[0].removeprefix("sha256:")
    assert image(node, "rm", made.split()[0])[0] == 0
    assert not any("made" in name for name in names(node))


def test_pulled_with_a_line_for_each_step(node: Node) -> None:
    image(node, "rm", node.image)
    status, out, err = image(node, "pull", node.image)
    assert (status, out.split()[2]) == (0, node.image)
    assert err.splitlines()[0] == "resolving"
    assert err.splitlines()[-1] == "done"
    status, out, err = image(node, "pull", f"{node.registry}/absent:1")
    assert (status, out) == (1, "")
    assert err.splitlines()[-1].startswith(f"isulad image: registry {node.registry}: image {node.registry}/absent:1")


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Where the tests run in a shell's background SIGINT is ignored, and what is ignored stays so in a new program."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupted_pull_ends_in_the_daemon_too(node: Node) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(20)
        name = f"127.0.0.1:{silent.getsockname()[1]}/app:1"
        # In place of a TLS handshake it hears nothing: the pull would wait for half a minute.
        with subprocess.Popen(
            node.daemon.image_command("pull", name),
            cwd=PROJECT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as pull:
            asked, _ = silent.accept()
            with asked:
                asked.settimeout(20)
                assert asked.recv(65536)
                pull.send_signal(signal.SIGINT)
                _, err = pull.communicate(timeout=20)
                assert (pull.returncode, err.splitlines()[-1]) == (130, "isulad image: interrupted")
                assert asked.recv(65536) == b"", "the daemon has let go of the registry"


def test_the_socket_is_for_root_and_one_group(node: Node) -> None:
    found = Path(node.daemon.address.removeprefix("unix://")).stat()
    assert stat.S_ISSOCK(found.st_mode)
    assert (stat.S_IMODE(found.st_mode), found.st_uid) == (0o660, 0)


def test_isulads_own_service(node: Node) -> None:
    service, m = service_of(node.cri.channel, "images", "ImagesService")
    answers = list(service.PullImage(m.PullImageRequest(image={"image": node.image}, is_progress_visible=True)))
    assert answers[-1].image_ref == node.image
    listed = service.List(m.ListImagesRequest(filters={"reference": node.image}))
    assert [entry.name for entry in listed.images] == [node.image]
    assert service.Inspect(m.InspectImageRequest(id="fed.example/absent:1")).cc == 5


def test_without_a_daemon_the_same_command_works_on_the_graph(node: Node, tmp_path: Path) -> None:
    """`node` has the graph: another one is used, and the node's own is refused with its daemon's pid."""
    assert node.daemon.process is not None
    status, _, err = graph_ls(node.graph)
    assert status == 1
    assert f"in use by another isulad, pid {node.daemon.process.pid}" in err
    assert graph_ls(tmp_path) == (0, "", "")
    status, out, err = on_graph(tmp_path, "pull", node.image)
    assert (status, len(out.splitlines())) == (0, 1), "what is logged is not told to programs"
    assert err.splitlines()[-1] == "done"
    assert graph_ls(tmp_path) == (0, out, "")


def graph_ls(graph: Path) -> tuple[int, str, str]:
    return on_graph(graph, "ls")


def on_graph(graph: Path, *command: str) -> tuple[int, str, str]:
    argv = [sys.executable, "-m", "isulad_py", "image", "--graph", str(graph), *command]
    done = subprocess.run(argv, cwd=PROJECT, check=False, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr

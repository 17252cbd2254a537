"""Checkpoints of running containers on real parts, and containers that begin where one ended."""

from __future__ import annotations

import io
import json
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stand.criu import working_criu
from tests.stand.node import Node, stand_node

pytestmark = pytest.mark.root

COUNTER = """
trap 'echo ended; exit 7' TERM
i=0
while :; do i=$((i+1)); echo "count $i"; echo $i > /tmp/now; sleep 0.1; done
"""


@pytest.fixture(scope="module")
def able() -> Iterator[Node]:
    criu = working_criu()
    with stand_node("ck", criu=criu) as node:
        node.pull()
        yield node


def counts(path: str) -> list[int]:
    lines = [line.split(" ", 3)[3] for line in Path(path).read_text().splitlines() if " F " in line]
    return [int(line.removeprefix("count ")) for line in lines if line.startswith("count ")]


def running_counter(node: Node, **fields: object) -> tuple[str, str]:
    pod_id = node.run_pod()
    container_id = node.run_container(pod_id, "sh", "-c", COUNTER, **fields)
    path = node.status(container_id).log_path
    node.wait(lambda: len(counts(path)) > 3)
    return pod_id, container_id


def checkpoint(node: Node, container_id: str, name: str = "one.tar") -> Path:
    location = node.mark.root / name
    location.unlink(missing_ok=True)
    request = node.m.CheckpointContainerRequest(container_id=container_id, location=str(location), timeout=60)
    node.call("CheckpointContainer", request, seconds=90)
    return location


def kept(node: Node) -> list[str]:
    folder = node.graph / "checkpoints"
    return [path.name for path in folder.iterdir()] if folder.exists() else []


def test_a_counter_goes_on_where_its_checkpoint_ended(able: Node) -> None:
    node = able
    pod_id, container_id = running_counter(node)
    script = "echo changed > /etc/changed; rm /bin/vi; rm -r /home; mkdir /home; ln -s a /home/b; mknod /dev/x p"
    assert node.exec(container_id, "sh", "-c", script).exit_code == 0
    log = node.status(container_id).log_path
    location = checkpoint(node, container_id)
    assert stat.S_IMODE(location.stat().st_mode) == 0o600
    assert kept(node) == []
    with tarfile.open(location) as archive:
        names = archive.getnames()
        assert {"config.dump", "spec.dump", "status.dump", "rootfs-diff.tar", "dump.log", "stats-dump"} <= set(names)
        assert "checkpoint/inventory.img" in names
        config = json.load(archive.extractfile("config.dump"))  # type: ignore[arg-type]
        assert config["rootfsImageName"] == node.image
        assert json.load(archive.extractfile("deleted.files")) == ["/bin/vi"]  # type: ignore[arg-type]
    # It ran on.
    before = counts(log)[-1]
    node.wait(lambda: counts(log)[-1] > before + 3)
    assert node.exec(container_id, "true").exit_code == 0
    assert node.status(container_id).state == node.m.CONTAINER_RUNNING
    node.stop_pod(pod_id)
    node.remove_pod(pod_id)

    other = node.run_pod()
    again = node.create(other, node.container_config("sh", image=node.m.ImageSpec(image=str(location))))
    created = node.status(again)
    assert created.state == node.m.CONTAINER_CREATED
    assert created.image.image == node.image
    assert kept(node) == [again]
    node.start(again)
    assert node.status(again).state == node.m.CONTAINER_RUNNING
    assert kept(node) == []
    path = node.status(again).log_path
    node.wait(lambda: len(counts(path)) > 5)
    seen = counts(path)
    assert 3 < seen[0] <= before + 1
    assert seen == list(range(seen[0], seen[0] + len(seen)))
    answer = node.exec(again, "sh", "-c", "cat /etc/changed; ls /bin/vi; ls /home; cat /tmp/now")
    lines = answer.stdout.decode().split()
    assert lines[:2] == ["changed", "b"]
    assert int(lines[2]) >= seen[0]
    assert b"/bin/vi" in answer.stderr
    node.stop(again, timeout=10)
    ended = node.status(again)
    assert (ended.state, ended.exit_code) == (node.m.CONTAINER_EXITED, 7)
    assert Path(path).read_text().splitlines()[-1].endswith("ended")
    node.remove(again)
    node.stop_pod(other)
    node.remove_pod(other)
    location.unlink()


def refused(node: Node, container_id: str, location: Path, timeout: int = 0) -> tuple[str, str]:
    request = node.m.CheckpointContainerRequest(container_id=container_id, location=str(location), timeout=timeout)
    return node.fails("CheckpointContainer", request, seconds=90)


def test_a_terminal_goes_on_too(able: Node) -> None:
    node = able
    pod_id, container_id = running_counter(node, tty=True, stdin=True)
    location = checkpoint(node, container_id)
    config = node.container_config("sh", name="again", image=node.m.ImageSpec(image=str(location)), stdin=True)
    request = node.m.CreateContainerRequest(pod_sandbox_id=pod_id, config=config)
    assert node.fails("CreateContainer", request)[0] == "INVALID_ARGUMENT"
    config.tty = True
    again = node.create(pod_id, config)
    node.start(again)
    path = node.status(again).log_path
    node.wait(lambda: len(counts(path)) > 3)
    assert node.exec(again, "tty").exit_code == 1
    node.stop(again, timeout=10)
    assert node.status(again).exit_code == 7
    node.stop_pod(pod_id)
    node.remove_pod(pod_id)


def test_what_criu_refuses_is_told_and_the_container_runs_on(able: Node) -> None:
    node = able
    pod_id = node.run_pod()
    script = "nc -l -p 7 -e sleep 1000 & sleep 0.2; exec nc 127.0.0.1 7"
    container_id = node.run_container(pod_id, "sh", "-c", script, stdin=True)
    node.wait(lambda: b"ESTABLISHED" in node.exec(container_id, "netstat", "-tn").stdout)
    location = node.mark.root / "tcp.tar"
    code, words = refused(node, container_id, location)
    assert code == "FAILED_PRECONDITION"
    assert "tcp-established" in words
    assert not location.exists()
    assert [path for path in node.mark.root.iterdir() if ".part" in path.name] == []
    assert kept(node) == []
    assert node.exec(container_id, "true").exit_code == 0
    node.stop_pod(pod_id)
    node.remove_pod(pod_id)


def test_where_no_archive_can_be_made(able: Node) -> None:
    node = able
    pod_id, container_id = running_counter(node)
    (node.mark.root / "there").touch()
    assert refused(node, container_id, node.mark.root / "there")[0] == "ALREADY_EXISTS"
    assert refused(node, container_id, node.mark.root / "no/one.tar")[0] == "INVALID_ARGUMENT"
    assert refused(node, container_id, Path("one.tar"))[0] == "INVALID_ARGUMENT"
    node.stop(container_id)
    assert refused(node, container_id, node.mark.root / "one.tar")[0] == "FAILED_PRECONDITION"
    assert kept(node) == []
    node.stop_pod(pod_id)
    node.remove_pod(pod_id)


def test_a_mount_has_to_be_there_again(able: Node) -> None:
    node = able
    folder = node.mark.root / "data"
    folder.mkdir(exist_ok=True)
    mounts = [node.m.Mount(container_path="/data", host_path=str(folder))]
    pod_id, container_id = running_counter(node, mounts=mounts)
    location = checkpoint(node, container_id)
    image = node.m.ImageSpec(image=str(location))
    config = node.container_config("sh", name="again", image=image)
    code, words = node.fails("CreateContainer", node.m.CreateContainerRequest(pod_sandbox_id=pod_id, config=config))
    assert (code, "/data" in words) == ("INVALID_ARGUMENT", True)
    assert words.startswith("config.mounts: ")
    again = node.create(pod_id, node.container_config("sh", name="again", image=image, mounts=mounts))
    node.start(again)
    assert node.exec(again, "touch", "/data/here").exit_code == 0
    assert (folder / "here").exists()
    node.stop_pod(pod_id)
    assert node.status(again).state == node.m.CONTAINER_EXITED
    node.remove_pod(pod_id)


def test_an_archive_that_is_none(able: Node) -> None:
    node = able
    pod_id = node.run_pod()
    for name, content, code in (
        ("empty.tar", b"", "DATA_LOSS"),
        ("rubbish.tar", b"x" * 5000, "DATA_LOSS"),
        ("none.tar", None, "INVALID_ARGUMENT"),
    ):
        path = node.mark.root / name
        if content is not None:
            path.write_bytes(content)
            path.chmod(0o600)
        config = node.container_config("sh", image=node.m.ImageSpec(image=str(path)))
        found, words = node.fails(
            "CreateContainer", node.m.CreateContainerRequest(pod_sandbox_id=pod_id, config=config)
        )
        assert (found, words.startswith("config.image.image: ")) == (code, True)
    location = node.mark.root / "bad.tar"
    with tarfile.open(location, "w") as archive:
        for name, content in (
            ("config.dump", json.dumps({"rootfsImageName": node.image, "rootfsImageRef": node.image}).encode()),
            ("spec.dump", b"{}"),
            ("checkpoint/inventory.img", b"rubbish"),
            ("checkpoint/descriptors.json", b'["a","b","c"]'),
            ("rootfs-diff.tar", b"rubbish" * 100),
        ):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    location.chmod(0o600)
    config = node.container_config("sh", image=node.m.ImageSpec(image=str(location)))
    found, words = node.fails("CreateContainer", node.m.CreateContainerRequest(pod_sandbox_id=pod_id, config=config))
    assert found == "DATA_LOSS"
    assert words.startswith("config.image.image: ")
    assert node.containers() == []
    assert kept(node) == []
    node.stop_pod(pod_id)
    node.remove_pod(pod_id)


def test_images_that_criu_cannot_read_fail_the_start(able: Node) -> None:
    node = able
    pod_id, container_id = running_counter(node)
    location = checkpoint(node, container_id)
    broken = node.mark.root / "broken.tar"
    with tarfile.open(location) as source, tarfile.open(broken, "w") as target:
        for member in source:
            content = source.extractfile(member).read() if member.isfile() else b""  # type: ignore[union-attr]
            if member.name == "checkpoint/pstree.img":
                content = b"rubbish"
            member.size = len(content)
            target.addfile(member, io.BytesIO(content))
    broken.chmod(0o600)
    again = node.create(pod_id, node.container_config("sh", name="again", image=node.m.ImageSpec(image=str(broken))))
    code, words = node.fails("StartContainer", node.m.StartContainerRequest(container_id=again))
    assert (code, "CRIU: " in words) == ("FAILED_PRECONDITION", True)
    status = node.status(again)
    assert (status.state, status.reason) == (node.m.CONTAINER_EXITED, "StartError")
    node.remove(again)
    assert kept(node) == []
    node.stop_pod(pod_id)
    node.remove_pod(pod_id)


def test_pods(able: Node) -> None:
    node = able
    pod_id = node.run_pod()
    for name in ("one", "two"):
        node.run_container(pod_id, "sh", "-c", COUNTER, name=name)
    folder = node.mark.root / "pod"
    folder.mkdir()
    request = node.m.CheckpointPodRequest(pod_sandbox_id=pod_id, output_path=str(folder))
    node.call("CheckpointPod", request, seconds=90)
    assert {path.name for path in folder.iterdir()} == {"one.tar", "two.tar", "pod.dump", "pod.options"}
    node.stop_pod(pod_id)
    node.remove_pod(pod_id)
    configs = [node.container_config("sh", name=name) for name in ("one", "two")]
    restore = node.m.RestorePodRequest(
        checkpoint_path=str(folder), config=node.pod_config("restored"), container_configs=configs
    )
    answer = node.call("RestorePod", restore, seconds=90)
    assert [each.name for each in answer.restored_containers] == ["one", "two"]
    for each in answer.restored_containers:
        status = node.status(each.container_id)
        assert status.state == node.m.CONTAINER_RUNNING
        node.wait(lambda path=status.log_path: len(counts(path)) > 3)
    assert node.fails("RestorePod", restore)[0] == "ALREADY_EXISTS"
    node.stop_pod(answer.pod_sandbox_id)
    node.remove_pod(answer.pod_sandbox_id)
    assert node.pods() == []


@pytest.fixture(scope="module")
def unable() -> Iterator[Node]:
    with stand_node("nock", criu="") as node:
        node.pull()
        yield node


def test_without_criu_every_call_says_so(unable: Node) -> None:
    node = unable
    pod_id = node.run_pod()
    container_id = node.run_container(pod_id)
    answers = [refused(node, container_id, node.mark.root / "x.tar")]
    pods = node.m.CheckpointPodRequest(pod_sandbox_id=pod_id, output_path=str(node.mark.root))
    answers.append(node.fails("CheckpointPod", pods))
    configs = [node.container_config("sh")]
    restore = node.m.RestorePodRequest(
        checkpoint_path=str(node.mark.root), config=node.pod_config(), container_configs=configs
    )
    answers.append(node.fails("RestorePod", restore))
    config = node.container_config("sh", image=node.m.ImageSpec(image="/x.tar"))
    create = node.m.CreateContainerRequest(pod_sandbox_id=pod_id, config=config)
    answers.append(node.fails("CreateContainer", create))
    for code, words in answers:
        assert code == "FAILED_PRECONDITION"
        assert "checkpoints are turned off" in words
    assert node.status(container_id).state == node.m.CONTAINER_RUNNING
    node.stop_pod(pod_id)
    node.remove_pod(pod_id)

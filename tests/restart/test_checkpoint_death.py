"""kill -9 while a checkpoint is taken or restored: the next daemon lets the container go on, or ends what was half
restored, and nothing is left over."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.stand.criu import working_criu
from tests.stand.node import Node, stand_node

pytestmark = [pytest.mark.root, pytest.mark.timeout(600)]

COUNTER = "i=0; while :; do i=$((i+1)); echo $i; sleep 0.1; done"
WRITES = 15


@dataclass
class Gate:
    """A criu that waits, where `closed`, before it does what the runtime asks for."""

    folder: Path

    @property
    def program(self) -> Path:
        return self.folder / "criu"

    def install(self, criu: str) -> None:
        self.folder.mkdir()
        hold, entered = shlex.quote(str(self.folder / "hold")), shlex.quote(str(self.folder / "entered"))
        self.program.write_text(
            "#!/bin/sh\n"
            f'if [ "$1" = swrk ] && [ -p {hold} ]; then : > {entered}; read -r line < {hold}; fi\n'
            f'exec {shlex.quote(criu)} "$@"\n'
        )
        self.program.chmod(0o755)

    def close(self) -> None:
        os.mkfifo(self.folder / "hold")

    def open(self) -> None:
        (self.folder / "hold").unlink(missing_ok=True)
        (self.folder / "entered").unlink(missing_ok=True)

    @property
    def entered(self) -> bool:
        return (self.folder / "entered").exists()

    def waiting(self) -> list[str]:
        """Processes that stand at the gate."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                try:
                    words = (entry / "cmdline").read_bytes().split(b"\0")
                except OSError:
                    continue
                if os.fsencode(self.program) in words:
                    found.append(entry.name)
        return found


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Gate:
    gate = Gate(tmp_path_factory.mktemp("gate") / "bin")
    gate.install(working_criu())
    return gate


@pytest.fixture(scope="module")
def shared_node(gate: Gate) -> Iterator[Node]:
    with stand_node("ckd", criu=str(gate.program)) as node:
        node.pull()
        yield node


@pytest.fixture
def node(shared_node: Node, gate: Gate) -> Iterator[Node]:
    if shared_node.daemon.process is None:
        restart(shared_node)
    yield shared_node
    gate.open()
    shared_node.clear_pods()
    assert shared_node.left_of_pods() == []
    assert list((shared_node.graph / "checkpoints").iterdir()) == []
    assert gate.waiting() == []


def restart(node: Node, failpoint: str = "") -> None:
    if node.daemon.process is not None:
        node.daemon.kill()
    node.reconnect()
    node.daemon.start(environment={"ISULAD_FAILPOINT": failpoint})


def counter(node: Node) -> tuple[str, str]:
    pod_id = node.run_pod()
    container_id = node.run_container(pod_id, "sh", "-c", COUNTER)
    goes_on(node, container_id)
    return pod_id, container_id


def lines(path: str) -> int:
    return len(Path(path).read_text().splitlines())


def goes_on(node: Node, container_id: str) -> None:
    path = node.status(container_id).log_path
    seen = lines(path)
    node.wait(lambda: lines(path) > seen + 2)
    assert node.exec(container_id, "true").exit_code == 0


def location_of(node: Node) -> Path:
    path = node.mark.root / "one.tar"
    path.unlink(missing_ok=True)
    return path


def request(node: Node, container_id: str, location: Path) -> object:
    return node.m.CheckpointContainerRequest(container_id=container_id, location=str(location))


def archives(node: Node) -> list[str]:
    return [path.name for path in node.mark.root.iterdir() if "one.tar" in path.name]


def test_death_while_criu_works(node: Node, gate: Gate) -> None:
    _, container_id = counter(node)
    location = location_of(node)
    gate.close()
    call = node.cri.runtime.CheckpointContainer.future(request(node, container_id, location))
    node.wait(lambda: gate.entered)
    node.daemon.kill()
    call.cancel()
    restart(node)
    assert archives(node) == []
    assert gate.waiting() == []
    goes_on(node, container_id)
    gate.open()
    node.call("CheckpointContainer", request(node, container_id, location), seconds=90)
    assert archives(node) == ["one.tar"]
    goes_on(node, container_id)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_death_at_every_write_of_a_checkpoint_and_a_restore(node: Node, moment: str) -> None:
    pod_id, container_id = counter(node)
    location = location_of(node)
    node.call("CheckpointContainer", request(node, container_id, location), seconds=90)
    kept = location.rename(node.mark.root / "kept.tar")
    survived = False
    for number in range(1, WRITES):
        restart(node, f"records:{number}:{moment}")
        location_of(node)
        try:
            node.call("CheckpointContainer", request(node, container_id, location), seconds=90)
            image = node.m.ImageSpec(image=str(kept))
            node.start(node.create(pod_id, node.container_config("sh", name=f"n{number}", image=image)))
            survived = True
        except Exception:  # it died, wherever it was
            node.daemon.kill()
        restart(node)
        assert set(archives(node)) <= {"one.tar"}
        goes_on(node, container_id)
        for container in node.containers():
            status = node.status(container.id)
            if status.state == node.m.CONTAINER_CREATED:
                node.start(container.id)
            if node.status(container.id).state == node.m.CONTAINER_RUNNING:
                goes_on(node, container.id)
            if container.id != container_id:
                node.remove(container.id)
        if survived:
            assert number > 3
            return
    raise AssertionError("it never came to the end")


def test_death_while_a_container_is_restored(node: Node, gate: Gate) -> None:
    pod_id, container_id = counter(node)
    location = location_of(node)
    node.call("CheckpointContainer", request(node, container_id, location), seconds=90)
    image = node.m.ImageSpec(image=str(location))
    again = node.create(pod_id, node.container_config("sh", name="again", image=image))
    gate.close()
    call = node.cri.runtime.StartContainer.future(node.m.StartContainerRequest(container_id=again))
    node.wait(lambda: gate.entered)
    node.daemon.kill()
    call.cancel()
    restart(node)
    status = node.status(again)
    assert (status.state, status.reason) == (node.m.CONTAINER_EXITED, "StartError")
    assert "the engine ended while" in status.message
    assert gate.waiting() == []
    node.remove(again)
    gate.open()
    third = node.create(pod_id, node.container_config("sh", name="third", image=image))
    restart(node)
    assert node.status(third).state == node.m.CONTAINER_CREATED
    node.start(third)
    goes_on(node, third)
    goes_on(node, container_id)

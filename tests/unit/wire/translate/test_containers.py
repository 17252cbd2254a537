from __future__ import annotations

from mmap import PAGESIZE
from typing import Any

import pytest
from hypothesis import given

from isulad_py.api.runtime import v1 as cri
from isulad_py.model.container import (
    ContainerConfig,
    ContainerMetadata,
    ContainerRecord,
    ContainerState,
    Device,
    ExitFact,
    Identity,
    ImageSpec,
    Mount,
)
from isulad_py.model.errors import InvalidInput, Unsupported
from isulad_py.model.ids import ContainerId, PodId
from isulad_py.model.resources import Resources
from isulad_py.wire.translate import containers
from tests.cri_messages import messages


def container(**fields: Any) -> cri.ContainerConfig:
    return cri.ContainerConfig(metadata=cri.ContainerMetadata(name="c"), image=cri.ImageSpec(image="busybox"), **fields)


def test_a_whole_configuration(codec: str) -> None:
    message = cri.ContainerConfig(
        metadata=cri.ContainerMetadata(name="c", attempt=3),
        image=cri.ImageSpec(image="sha256:1", user_specified_image="busybox"),
        command=["sh"],
        args=["-c", "true"],
        working_dir="/w",
        envs=[cri.KeyValue(key="A", value=b"1=2\n"), cri.KeyValue(key="E")],
        mounts=[cri.Mount(container_path="/v", host_path="/h", readonly=True)],
        devices=[cri.Device(container_path="/dev/x", host_path="/dev/null", permissions="rw")],
        cdi_devices=[cri.CdiDevice(name="vendor/class=x")],
        labels={"a": "b"},
        annotations={"c": "d"},
        log_path="c/0.log",
        stdin=True,
        stdin_once=True,
        tty=True,
        linux=cri.LinuxContainerConfig(resources=cri.LinuxContainerResources(memory_limit_in_bytes=7)),
        stop_signal=cri.Signal.SIGINT,
    )
    config = containers.container_config(cri.ContainerConfig().parse(bytes(message)))
    assert config == ContainerConfig(
        metadata=ContainerMetadata(name="c", attempt=3),
        image=ImageSpec(image="sha256:1", user_specified_image="busybox"),
        command=("sh",),
        args=("-c", "true"),
        working_dir="/w",
        envs=(("A", "1=2\n"), ("E", "")),
        mounts=(Mount(container_path="/v", host_path="/h", readonly=True),),
        devices=(Device(container_path="/dev/x", host_path="/dev/null", permissions="rw"),),
        cdi_devices=("vendor/class=x",),
        labels={"a": "b"},
        annotations={"c": "d"},
        log_path="c/0.log",
        stdin=True,
        stdin_once=True,
        tty=True,
        resources=Resources(memory_limit_bytes=7),
        stop_signal=int(cri.Signal.SIGINT),
    )


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        (cri.ContainerConfig(), r"^config is missing"),
        (cri.ContainerConfig(tty=True), r"^config\.metadata is missing"),
        (cri.ContainerConfig(metadata=cri.ContainerMetadata(attempt=1)), r"^config\.metadata\.name is empty"),
        (cri.ContainerConfig(metadata=cri.ContainerMetadata(name="c")), r"^config\.image\.image is empty"),
        (container(command=["a\0b"]), r"^config\.command\[0\] has a NUL"),
        (container(args=["a", "\0"]), r"^config\.args\[1\] has a NUL"),
        (container(working_dir="w"), r"^config\.working_dir: 'w' is not an absolute path"),
        (container(envs=[cri.KeyValue(key="")]), r"^config\.envs\[0\]\.key is empty"),
        (container(envs=[cri.KeyValue(key="A=B")]), r"^config\.envs\[0\]\.key: 'A=B' has an equals sign"),
        (container(log_path="/abs/x.log"), r"^config\.log_path: .* is not a relative path"),
        (container(log_path="a/../../x.log"), r"^config\.log_path: .* climbs out"),
        (container(log_path="./"), r"^config\.log_path: '\./' is the log directory itself"),
        (container(working_dir="/w/.."), r"^config\.working_dir: '/w/\.\.' has a part that climbs"),
        (container(args=["x" * 32 * PAGESIZE]), r"^config\.args\[0\] is longer than \d+ bytes"),
        (
            container(envs=[cri.KeyValue(key="A", value=b"x" * (32 * PAGESIZE - 2))]),
            r"^config\.envs\[0\]\.value \(of A\) is",
        ),
        (container(args=["x" * 100_000] * 63), r"^config\.command, args and envs: more than 6291456 bytes together"),
        (
            container(envs=[cri.KeyValue(key=str(n), value=b"x" * 100_000) for n in range(63)]),
            r"args and envs: more than",
        ),
        (
            container(mounts=[cri.Mount(container_path="/v", host_path="/h")] * 4097),
            r"^config\.mounts: 4097 are more than 4096",
        ),
        (container(devices=[cri.Device(host_path="/dev/null")] * 4097), r"^config\.devices: 4097 are more than 4096"),
        (
            cri.ContainerConfig(
                metadata=cri.ContainerMetadata(name="c"),
                image=cri.ImageSpec(image="i", annotations={"a": "b" * 512 * 1024}),
            ),
            r"^config\.image\.annotations: more than 524288 bytes together",
        ),
        (container(cdi_devices=[cri.CdiDevice()]), r"^config\.CDI_devices\[0\]\.name is empty"),
        (container(stop_signal=66), r"^config\.stop_signal: 66 is not a value of Signal"),
        (
            container(mounts=[cri.Mount(container_path="v", host_path="/h")]),
            r"^config\.mounts\[0\]\.container_path: 'v'",
        ),
        (
            container(linux=cri.LinuxContainerConfig(resources=cri.LinuxContainerResources(cpu_shares=-1))),
            r"^config\.linux\.resources\.cpu_shares: -1",
        ),
    ],
)
def test_refusals_name_the_field(message: cri.ContainerConfig, complaint: str) -> None:
    with pytest.raises(InvalidInput, match=complaint):
        containers.container_config(message)


def test_the_longest_that_a_program_can_be_given() -> None:
    longest = 32 * PAGESIZE - 1
    config = containers.container_config(
        container(args=["x" * longest], envs=[cri.KeyValue(key="A", value=b"x" * (longest - 2))])
    )
    assert (len(config.args[0]), len(config.envs[0][1])) == (longest, longest - 2)


@pytest.mark.parametrize("value", [b"hunter2\xff", b"hunter2\0"])
def test_a_refused_variable_is_named_and_not_shown(value: bytes) -> None:
    with pytest.raises(InvalidInput, match="TOKEN") as refusal:
        containers.container_config(container(envs=[cri.KeyValue(key="TOKEN", value=value)]))
    assert "hunter2" not in str(refusal.value)


@given(messages(cri.ContainerConfig))
def test_any_message_is_translated_or_refused_by_name(message: cri.ContainerConfig) -> None:
    message.metadata = cri.ContainerMetadata(name="c")
    message.image = cri.ImageSpec(image="busybox")
    complaint = ""
    try:
        config = containers.container_config(cri.ContainerConfig().parse(bytes(message)))
    except (InvalidInput, Unsupported) as refusal:
        complaint = str(refusal)
    else:
        assert config.labels == message.labels
        assert config.annotations == message.annotations
    assert complaint.startswith("config") or not complaint


def record(**facts: Any) -> ContainerRecord:
    config = ContainerConfig(
        metadata=ContainerMetadata(name="c", attempt=1),
        image=ImageSpec(image="sha256:i", user_specified_image="busybox", annotations={"x": "y"}),
        labels={"a": "b"},
        annotations={"c": "d"},
    )
    base: dict[str, Any] = {
        "id": ContainerId("c1"),
        "pod_id": PodId("p1"),
        "config": config,
        "reserved_at": 4,
        "created_at": 5,
        "image_id": "sha256:i",
        "image_name": "docker.io/library/busybox:latest",
        "image_ref": "docker.io/library/busybox@sha256:d",
        "log_path": "/logs/c/1.log",
    }
    return ContainerRecord(**{**base, **facts})


CREATED = cri.ContainerState.CONTAINER_CREATED
RUNNING = cri.ContainerState.CONTAINER_RUNNING
EXITED = cri.ContainerState.CONTAINER_EXITED
ENDED = ExitFact(exit_code=3, finished_at=9)


@pytest.mark.parametrize(
    ("facts", "state"),
    [
        ({}, CREATED),
        ({"started_at": 6}, RUNNING),
        ({"started_at": 6, "paused_at": 7}, RUNNING),
        ({"started_at": 6, "exit": ENDED}, EXITED),
        ({"started_at": 6, "exit": ENDED, "removing_at": 10}, EXITED),
        ({"started_at": 6, "removing_at": 10}, EXITED),
    ],
)
def test_states(facts: dict[str, Any], state: cri.ContainerState) -> None:
    assert containers.container_item(record(**facts)).state == state
    assert containers.container_status(record(**facts)).state == state


def test_every_state_of_ours_has_one_in_cri() -> None:
    assert set(containers._STATES) == set(ContainerState)


def test_a_list_item(codec: str) -> None:
    item = cri.Container().parse(bytes(containers.container_item(record(started_at=6))))
    assert item == cri.Container(
        id="c1",
        pod_sandbox_id="p1",
        metadata=cri.ContainerMetadata(name="c", attempt=1),
        image=cri.ImageSpec(
            image="sha256:i", user_specified_image="busybox", annotations={"x": "y"}, image_ref="sha256:i"
        ),
        image_ref="docker.io/library/busybox@sha256:d",
        state=RUNNING,
        created_at=5,
        labels={"a": "b"},
        annotations={"c": "d"},
        image_id="sha256:i",
    )


def test_what_a_kubelet_insists_on_in_a_status(codec: str) -> None:
    found = record(
        started_at=6,
        exit=ENDED,
        stop_signal=2,
        identity=Identity(uid=7, gid=8, supplemental_groups=(9,)),
        mounts=(Mount(container_path="/v", host_path="/h"),),
        resources=Resources(cpu_shares=2),
    )
    status = cri.ContainerStatus().parse(bytes(containers.container_status(found)))
    assert (status.id, status.metadata) == ("c1", cri.ContainerMetadata(name="c", attempt=1))
    assert (status.state, status.labels, status.annotations) == (EXITED, {"a": "b"}, {"c": "d"})
    assert status.image == cri.ImageSpec(
        image="docker.io/library/busybox:latest",
        user_specified_image="busybox",
        annotations={"x": "y"},
        image_ref="sha256:i",
    )
    assert (status.image_ref, status.image_id) == ("docker.io/library/busybox@sha256:d", "sha256:i")
    assert (status.created_at, status.started_at, status.finished_at) == (5, 6, 9)
    assert (status.exit_code, status.reason, status.log_path) == (3, "Error", "/logs/c/1.log")
    assert status.stop_signal == cri.Signal.SIGINT
    assert status.user.linux == cri.LinuxContainerUser(uid=7, gid=8, supplemental_groups=[9])
    assert status.mounts == [cri.Mount(container_path="/v", host_path="/h")]
    assert status.resources.linux.cpu_shares == 2


@pytest.mark.parametrize(
    ("fact", "reason", "words"),
    [
        (ExitFact(exit_code=0, finished_at=9), "Completed", ""),
        (ExitFact(exit_code=137, finished_at=9, oom_killed=True), "OOMKilled", ""),
        (
            ExitFact(exit_code=128, finished_at=9, reason="StartError", message="no such file"),
            "StartError",
            "no such file",
        ),
    ],
)
def test_reasons(fact: ExitFact, reason: str, words: str) -> None:
    status = containers.container_status(record(exit=fact))
    assert (status.reason, status.message) == (reason, words)


def test_a_status_without_names_still_has_an_image_and_a_reference() -> None:
    status = containers.container_status(record(image_name="", image_ref=""))
    assert (status.image.image, status.image_ref) == ("sha256:i", "sha256:i")


def test_windows_is_refused_by_name() -> None:
    message = cri.ContainerConfig(
        metadata=cri.ContainerMetadata(name="c"),
        image=cri.ImageSpec(image="i"),
        windows=cri.WindowsContainerConfig(resources=cri.WindowsContainerResources(cpu_count=1)),
    )
    with pytest.raises(Unsupported, match=r"^config\.windows is not supported"):
        containers.container_config(message)


def test_statuses_of_a_pod_leave_out_what_is_only_being_made() -> None:
    found = containers.container_statuses([record(), record(created_at=0)])
    assert [status.created_at for status in found] == [5]


def test_attributes() -> None:
    assert containers.container_attributes(record()) == cri.ContainerAttributes(
        id="c1", metadata=cri.ContainerMetadata(name="c", attempt=1), labels={"a": "b"}, annotations={"c": "d"}
    )

from __future__ import annotations

import msgspec

from isulad_py.engine.checkpoint_documents import documents, full_name
from isulad_py.model.container import ContainerConfig, ContainerMetadata, ContainerRecord, ImageSpec, Processes
from isulad_py.model.ids import ContainerId, PodId
from isulad_py.model.pod import PodConfig, PodMetadata, PodRecord

POD = PodRecord(id=PodId("p"), config=PodConfig(metadata=PodMetadata(name="web", namespace="shop", uid="u-1")))
RECORD = ContainerRecord(
    id=ContainerId("c"),
    pod_id=POD.id,
    config=ContainerConfig(
        metadata=ContainerMetadata(name="main", attempt=2), image=ImageSpec(image="busybox"), labels={"a": "b"}
    ),
    runtime_handler="runc",
    created_at=1_700_000_000_000_000_001,
    started_at=1_700_000_001_000_000_000,
    image_name="docker.io/library/busybox:latest",
    image_ref="docker.io/library/busybox@sha256:1",
    processes=Processes(pid=7),
)
NOW = 1_700_000_002_500_000_000


def test_the_documents_that_other_engines_read() -> None:
    made = documents(RECORD, POD, b'{"ociVersion":"1.0.2"}', NOW)
    assert made["spec.dump"] == b'{"ociVersion":"1.0.2"}'
    assert msgspec.json.decode(made["config.dump"]) == {
        "id": "c",
        "name": "main_web_shop_u-1_2",
        "rootfsImage": "busybox",
        "rootfsImageRef": "docker.io/library/busybox@sha256:1",
        "rootfsImageName": "docker.io/library/busybox:latest",
        "runtime": "runc",
        "createdTime": "2023-11-14T22:13:20.000000001Z",
        "checkpointedTime": "2023-11-14T22:13:22.500000000Z",
        "restoredTime": "0001-01-01T00:00:00Z",
        "restored": False,
    }
    status = msgspec.json.decode(made["status.dump"])
    assert status["metadata"] == {"name": "main", "attempt": 2}
    assert status["labels"] == {"a": "b"}
    assert msgspec.json.decode(made["status"])["Pid"] == 7


def test_one_that_was_restored_says_so() -> None:
    again = msgspec.structs.replace(RECORD, restored_from="/x.tar")
    config = msgspec.json.decode(documents(again, POD, b"{}", NOW)["config.dump"])
    assert (config["restored"], config["restoredTime"]) == (True, "2023-11-14T22:13:21.000000000Z")
    assert full_name(again, POD) == config["name"]

"""PURE: what a checkpoint archive says about its container, in the words of containerd and CRI-O and their tools."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import msgspec

from isulad_py.model.container import ContainerRecord
from isulad_py.model.pod import PodRecord

_NEVER: Final = "0001-01-01T00:00:00Z"


def documents(record: ContainerRecord, pod: PodRecord, spec: bytes, now_ns: int) -> dict[str, bytes]:
    """By name: spec.dump and config.dump, which every engine has; status.dump and status as containerd has them."""
    return {
        "spec.dump": spec,
        "config.dump": msgspec.json.encode(_config(record, pod, now_ns)),
        "status.dump": msgspec.json.encode(_cri_status(record)),
        "status": msgspec.json.encode(_status(record)),
    }


def full_name(record: ContainerRecord, pod: PodRecord) -> str:
    """As containerd calls it."""
    container, sandbox = record.config.metadata, pod.config.metadata
    return f"{container.name}_{sandbox.name}_{sandbox.namespace}_{sandbox.uid}_{container.attempt}"


def _config(record: ContainerRecord, pod: PodRecord, now_ns: int) -> dict[str, object]:
    return {
        "id": record.id,
        "name": full_name(record, pod),
        "rootfsImage": record.config.image.image,
        "rootfsImageRef": record.image_ref,
        "rootfsImageName": record.image_name,
        "runtime": record.runtime_handler,
        "createdTime": _time(record.created_at),
        "checkpointedTime": _time(now_ns),
        "restoredTime": _time(record.started_at) if record.restored_from else _NEVER,
        "restored": bool(record.restored_from),
    }


def _cri_status(record: ContainerRecord) -> dict[str, object]:
    """CRI ContainerStatus by its field names."""
    metadata = record.config.metadata
    return {
        "id": record.id,
        "metadata": {"name": metadata.name, "attempt": metadata.attempt},
        "state": 1,
        "created_at": record.created_at,
        "started_at": record.started_at,
        "image": {"image": record.image_name, "user_specified_image": record.config.image.user_specified_image},
        "image_ref": record.image_ref,
        "image_id": record.image_id,
        "labels": record.config.labels,
        "annotations": record.config.annotations,
        "log_path": record.log_path,
    }


def _status(record: ContainerRecord) -> dict[str, object]:
    return {
        "Version": "v1",
        "Pid": record.processes.pid,
        "CreatedAt": record.created_at,
        "StartedAt": record.started_at,
        "FinishedAt": 0,
        "ExitCode": 0,
        "Reason": "",
        "Message": "",
    }


def _time(at_ns: int) -> str:
    """RFC 3339."""
    seconds, rest = divmod(at_ns, 10**9)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:09d}Z"

"""What is logged of a call, and what never is. The rest is in tests/wire."""

from __future__ import annotations

import pytest
import structlog
from grpclib.const import Status

from isulad_py.api import images as native
from isulad_py.api.isulad import v1 as own
from isulad_py.api.runtime import v1 as cri
from isulad_py.wire.interceptor import log_outcome, subject_of
from isulad_py.wire.methods import Method
from isulad_py.wire.status import OK, Outcome


def test_ids_and_images_are_logged_and_nothing_else() -> None:
    pull = cri.PullImageRequest(
        image=cri.ImageSpec(image="registry.test/a:1", annotations={"token": "hunter2"}),
        auth=cri.AuthConfig(username="u", password="hunter2"),
    )
    assert subject_of(pull) == {"image": "registry.test/a:1"}
    create = cri.CreateContainerRequest(
        pod_sandbox_id="p1", config=cri.ContainerConfig(envs=[cri.KeyValue(key="TOKEN", value=b"hunter2")])
    )
    assert subject_of(create) == {"pod_sandbox_id": "p1"}
    assert subject_of(cri.ExecSyncRequest(container_id="c1", cmd=["login", "hunter2"])) == {"container_id": "c1"}
    assert subject_of(cri.VersionRequest()) == {}
    save = own.SaveRequest(image="a:1", path="/out.tar", format="oci-archive")
    assert subject_of(save) == {"image": "a:1", "path": "/out.tar"}
    pull_own = own.PullRequest(image="a:1", auth=cri.AuthConfig(username="u", password="hunter2"))
    assert subject_of(pull_own) == {"image": "a:1"}
    assert subject_of(native.LoadImageRequest(file="/in.tar", type="docker")) == {"file": "/in.tar"}


@pytest.mark.parametrize(
    ("name", "outcome", "level"),
    [
        ("ListContainers", OK, "debug"),
        ("StartContainer", OK, "info"),
        ("ContainerStatus", Outcome(Status.NOT_FOUND, "x"), "info"),
        ("StartContainer", Outcome(Status.INTERNAL, "x"), "warning"),
        ("StartContainer", Outcome(Status.DATA_LOSS, "x"), "warning"),
    ],
)
def test_levels(name: str, outcome: Outcome, level: str) -> None:
    method = Method(name=f"runtime.v1.RuntimeService/{name}", request=cri.VersionRequest)
    with structlog.testing.capture_logs() as lines:
        log_outcome(method, outcome, {"container_id": "c1"})
    assert [(line["log_level"], line["container_id"]) for line in lines] == [(level, "c1")]

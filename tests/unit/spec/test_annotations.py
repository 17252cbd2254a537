from __future__ import annotations

from isulad_py.spec.annotations import container_annotations, passed_on, sandbox_annotations
from tests.fakes.spec_inputs import pod


def test_a_container_says_what_it_is_and_whose() -> None:
    assert container_annotations(pod(), "app", "registry/app:1", {"x": "y"}) == {
        "x": "y",
        "run.oci.systemd.subgroup": "",
        "io.kubernetes.cri.container-type": "container",
        "io.kubernetes.cri.container-name": "app",
        "io.kubernetes.cri.image-name": "registry/app:1",
        "io.kubernetes.cri.sandbox-id": "pod1",
        "io.kubernetes.cri.sandbox-name": "web",
        "io.kubernetes.cri.sandbox-namespace": "shop",
        "io.kubernetes.cri.sandbox-uid": "u-1",
    }


def test_a_clients_annotation_cannot_pose_as_ours() -> None:
    key = "io.kubernetes.cri.container-type"
    assert sandbox_annotations(pod(), {key: "container"})[key] == "sandbox"
    assert sandbox_annotations(pod(), {"run.oci.systemd.subgroup": "mine"})["run.oci.systemd.subgroup"] == ""


def test_only_what_is_allowed_is_passed_on() -> None:
    found = {"run.oci.handler": "a", "run.oci.": "b", "exact": "c", "exactly": "d"}
    assert passed_on(("run.oci.*", "exact"), found) == {"run.oci.handler": "a", "run.oci.": "b", "exact": "c"}
    assert passed_on((), found) == {}
    assert passed_on(("*",), found) == found

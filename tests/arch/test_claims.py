"""That a claim is shown by its tests is tried by `nox -s claims`, for hours; here, that this would notice."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from isulad_py.api.runtime import v1 as cri
from tests.claims.blind import VARIABLE, without

PROJECT = Path(__file__).resolve().parents[2]
TEST = "tests/wire/test_runtime_servicer.py::test_a_pods_life"


@pytest.mark.parametrize(
    ("claim", "code"),
    [
        ("RunPodSandboxRequest.runtime_handler", 1),  # read by the product
        ("PodSandbox.runtime_handler", 1),  # told by it
        ("RuntimeService/StopPodSandbox", 1),
        ("PodSandboxConfig.hostname", 0),  # not a matter of this test
    ],
)
def test_a_test_of_what_is_blind_fails(claim: str, code: int) -> None:
    path = os.pathsep.join((str(PROJECT / "tests" / "claims"), str(PROJECT)))
    argv = [sys.executable, "-m", "pytest", "-q", "-x", "--tb=no", "-p", "no:cacheprovider", TEST]
    environment = {**os.environ, VARIABLE: claim, "PYTHONPATH": path}
    done = subprocess.run(argv, cwd=PROJECT, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == code, done.stdout


def test_a_field_is_taken_out_wherever_it_is() -> None:
    item = cri.PodSandbox(id="p", created_at=5, labels={"a": "b"}, metadata=cri.PodSandboxMetadata(name="n", uid="u"))
    answer = bytes(cri.ListPodSandboxResponse(items=[item, cri.PodSandbox(id="q")]))
    assert cri.ListPodSandboxResponse().parse(
        without(answer, cri.ListPodSandboxResponse, cri.PodSandboxMetadata, 2)
    ) == (
        cri.ListPodSandboxResponse(
            items=[
                cri.PodSandbox(id="p", created_at=5, labels={"a": "b"}, metadata=cri.PodSandboxMetadata(name="n")),
                cri.PodSandbox(id="q"),
            ]
        )
    )

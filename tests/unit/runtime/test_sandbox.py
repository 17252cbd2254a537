"""Pods that own no namespace: all that can be done without root. The rest: tests/contract/test_sandbox.py."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from isulad_py.model.errors import HostFailure, InvalidInput
from isulad_py.model.ids import PodId
from isulad_py.ports.sandbox import EnvironmentRequest
from isulad_py.runtime.cgroups import CgroupTree
from isulad_py.runtime.sandbox import HostEnvironments
from tests.fakes.clock import FakeClock
from tests.fakes.facts import host_facts


def make(tmp_path: Path) -> HostEnvironments:
    tree = CgroupTree(host_facts(), systemd=False, clock=FakeClock())
    return HostEnvironments(state_dir=f"{tmp_path}/", cgroups=tree, etc_dir=str(tmp_path / "etc"))


def on_host_network(pod_id: str = "abc") -> EnvironmentRequest:
    return EnvironmentRequest(pod_id=PodId(pod_id), hostname="", network=False, ipc=False)


async def test_a_host_without_files_gives_empty_ones(tmp_path: Path) -> None:
    made = await make(tmp_path).create(on_host_network())
    assert made.hosts_path == f"{tmp_path}/pods/abc/hosts"
    assert (Path(made.hosts_path).read_text(), Path(made.resolv_path).read_text()) == ("", "")
    assert Path(made.hostname_path).read_text() == f"{socket.gethostname()}\n"


async def test_a_failure_half_way_is_named_and_undone(tmp_path: Path) -> None:
    (tmp_path / "etc/resolv.conf").mkdir(parents=True)
    environments = make(tmp_path)
    with pytest.raises(HostFailure, match=r"resolv\.conf"):
        await environments.create(on_host_network())
    assert await environments.present() == frozenset()
    assert list((tmp_path / "pods").iterdir()) == []


@pytest.mark.parametrize("pod_id", ["", "..", "a/b", "../etc", ".hidden", "x" * 200, "a\n"])
async def test_an_id_never_leads_out_of_the_directory(tmp_path: Path, pod_id: str) -> None:
    environments = make(tmp_path)
    with pytest.raises(InvalidInput, match="pod id"):
        await environments.destroy(PodId(pod_id))
    with pytest.raises(InvalidInput, match="pod id"):
        await environments.create(on_host_network(pod_id))


async def test_nothing_is_present_before_the_first_pod(tmp_path: Path) -> None:
    assert await make(tmp_path).present() == frozenset()

from __future__ import annotations

from isulad_py.engine.pod_cgroups import PodCgroups
from isulad_py.model.ids import PodId
from isulad_py.model.pod import PodRecord
from tests.fakes.sandbox import FakeEnvironments
from tests.unit.engine.node import pod_config

POD = PodId("ab" * 32)


def record(cgroups: PodCgroups, parent: str) -> PodRecord:
    config = pod_config(cgroup_parent=parent)
    return PodRecord(id=POD, config=config, cgroup_path=cgroups.path_for(POD, config))


async def test_a_parent_that_the_kubelet_names_is_used_and_never_removed() -> None:
    environments = FakeEnvironments()
    cgroups = PodCgroups(environments=environments, default_parent="/isulad", systemd=False)
    pod = record(cgroups, "/kubepods/pod1")
    assert cgroups.place("c1", pod).path == "/kubepods/pod1/c1"
    environments.cgroups.add(pod.cgroup_path)
    await cgroups.remove(pod)
    assert environments.cgroups


async def test_a_pod_without_a_parent_gets_its_own_and_gives_it_back() -> None:
    environments = FakeEnvironments()
    cgroups = PodCgroups(environments=environments, default_parent="/isulad", systemd=False)
    pod = record(cgroups, "")
    assert pod.cgroup_path == f"/isulad/{POD}"
    environments.cgroups.add(pod.cgroup_path)
    await cgroups.remove(pod)
    assert not environments.cgroups


def test_systemd_has_slices() -> None:
    cgroups = PodCgroups(environments=FakeEnvironments(), default_parent="system.slice", systemd=True)
    pod = record(cgroups, "")
    assert cgroups.place("c1", pod).oci_path == f"system-pod{POD[:12]}.slice:isulad:c1"
    named = record(cgroups, "kubepods-besteffort.slice")
    assert cgroups.place("c1", named).path == "/kubepods.slice/kubepods-besteffort.slice/isulad-c1.scope"

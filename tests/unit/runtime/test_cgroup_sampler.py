from __future__ import annotations

from pathlib import Path

import pytest

from isulad_py.model.facts import HostFacts
from isulad_py.runtime.cgroup_sampler import CgroupFiles
from tests.fakes.facts import host_facts
from tests.unit.runtime.test_cgroup_values import V1, V2


@pytest.fixture
def v1(tmp_path: Path) -> HostFacts:
    """A hybrid host with one container /pods/a, two processes of its own and one in a cgroup below."""
    for name, text in V1.items():
        hierarchy = "unified" if name.endswith("pressure") else name.partition(".")[0]
        path = tmp_path / hierarchy / "pods/a" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)
    (tmp_path / "pids/pods/a/cgroup.procs").write_text("10\n11\n")
    (tmp_path / "pids/pods/a/below").mkdir()
    (tmp_path / "pids/pods/a/below/cgroup.procs").write_text("12\n")
    mounts = {name: str(tmp_path / name) for name in ("cpuacct", "memory", "pids", "unified", "name=x")}
    return host_facts(cgroup_version=1, cgroup_mounts=mounts)


@pytest.fixture
def v2(tmp_path: Path) -> HostFacts:
    path = tmp_path / "a.slice/a-b.slice/isulad-x.scope"
    path.mkdir(parents=True)
    for name, text in V2.items():
        (path / name).write_bytes(text)
    (path / "cgroup.procs").write_text("".join(f"{pid}\n" for pid in range(1_000_000, 1_005_000)))
    return host_facts(cgroup_version=2, cgroup_mounts={"unified": str(tmp_path)})


async def test_version_1_is_read_from_every_hierarchy(v1: HostFacts) -> None:
    (sample,) = await CgroupFiles(v1, now_ns=lambda: 42).sample(["/pods/a"])
    assert sample is not None
    assert sample.timestamp == 42
    assert sample.cpu_usage_ns == 123456789
    assert sample.memory_usage_bytes == 10485760
    assert sample.cpu_psi is not None
    assert (sample.threads_current, sample.processes) == (4, 3)


async def test_version_2_is_read_from_one_directory(v2: HostFacts) -> None:
    (sample,) = await CgroupFiles(v2).sample(["/a.slice/a-b.slice/isulad-x.scope"])
    assert sample is not None
    assert (sample.cpu_usage_ns, sample.memory_usage_bytes, sample.processes) == (550_369_000, 7581696, 5000)


async def test_a_slice_is_found_by_its_name(v2: HostFacts, tmp_path: Path) -> None:
    (tmp_path / "a.slice/a-b.slice/memory.current").write_text("7\n")
    (sample,) = await CgroupFiles(v2).sample(["a-b.slice"])
    assert sample is not None
    assert sample.memory_usage_bytes == 7


async def test_what_is_gone_is_none_and_the_order_is_kept(v1: HostFacts) -> None:
    samples = await CgroupFiles(v1).sample(["/pods/b", "/pods/a", "", "/", "/../x", "/pods/a/nothing"])
    assert [sample is None for sample in samples] == [True, False, True, True, True, True]


async def test_a_hierarchy_that_is_not_mounted_is_unknown_not_zero(v1: HostFacts) -> None:
    only = host_facts(cgroup_version=1, cgroup_mounts={"memory": v1.cgroup_mounts["memory"]})
    (sample,) = await CgroupFiles(only).sample(["/pods/a"])
    assert sample is not None
    assert (sample.cpu_usage_ns, sample.pids_current, sample.processes) == (None, None, None)
    assert sample.memory_rss_bytes == 8192


async def test_details_of_version_1(v1: HostFacts, tmp_path: Path) -> None:
    (tmp_path / "blkio/pods/a").mkdir(parents=True)
    (tmp_path / "blkio/pods/a/blkio.throttle.io_service_bytes_recursive").write_text("4095:7 Read 5\nTotal 5\n")
    (tmp_path / "pids/pods/a/pids.max").write_text("max\n")
    (tmp_path / "pids/pods/a/cgroup.procs").write_text("4194305\n4194306\n")
    mounts = v1.cgroup_mounts | {"blkio": str(tmp_path / "blkio")}
    found = await CgroupFiles(host_facts(cgroup_version=1, cgroup_mounts=mounts)).details(["/pods/a", "/pods/b"])
    assert found[1] is None
    assert found[0] is not None
    sample, details = found[0]
    assert (sample.memory_usage_bytes, sample.processes) == (10485760, 3)
    assert [(io.device, io.read_bytes) for io in details.io] == [("4095:7", 5)]
    assert (details.threads_limit, details.descriptors, details.open_files_soft_limit) == (None, 0, None)


async def test_details_of_version_2(v2: HostFacts, tmp_path: Path) -> None:
    path = "/a.slice/a-b.slice/isulad-x.scope"
    Path(f"{tmp_path}{path}", "pids.max").write_text("77\n")
    Path(f"{tmp_path}{path}", "cgroup.procs").write_text("4194305\n")
    [found] = await CgroupFiles(v2).details([path])
    assert found is not None
    assert (found[0].processes, found[1].threads_limit) == (1, 77)
    assert await CgroupFiles(v2).details([]) == []

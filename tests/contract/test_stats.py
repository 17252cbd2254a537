"""What every CgroupSampler does: the fake, and the real one over trees of files as v1 and v2 have them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from isulad_py.ports.stats import CgroupSampler
from isulad_py.runtime.cgroup_sampler import CgroupFiles
from tests.fakes.facts import host_facts
from tests.fakes.stats import FakeSampler

Put = Callable[[str, int], None]


@pytest.fixture(params=["fake", "v1", "v2"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[CgroupSampler, Put]:
    """A sampler, and how to make a cgroup that uses so much memory."""
    if request.param == "fake":
        fake = FakeSampler()
        return fake, lambda path, used: fake.put(path, memory_usage_bytes=used)
    version = 1 if request.param == "v1" else 2
    key, name = ("memory", "memory.usage_in_bytes") if version == 1 else ("unified", "memory.current")

    def put(path: str, used: int) -> None:
        Path(f"{tmp_path}{path}").mkdir(parents=True)
        Path(f"{tmp_path}{path}", name).write_text(f"{used}\n")

    facts = host_facts(cgroup_version=version, cgroup_mounts={key: str(tmp_path)})
    return CgroupFiles(facts), put


async def test_entries_come_in_order_and_none_where_a_cgroup_is_gone(world: tuple[CgroupSampler, Put]) -> None:
    sampler, put = world
    put("/pods/b", 2)
    put("/pods/a", 1)
    samples = await sampler.sample(["/pods/a", "/pods/gone", "/pods/b", "/pods/a"])
    assert [sample and sample.memory_usage_bytes for sample in samples] == [1, None, 2, 1]


async def test_no_paths_are_no_entries(world: tuple[CgroupSampler, Put]) -> None:
    assert await world[0].sample([]) == []


async def test_what_is_unknown_is_none(world: tuple[CgroupSampler, Put]) -> None:
    sampler, put = world
    put("/pods/a", 1)
    (sample,) = await sampler.sample(["/pods/a"])
    assert sample is not None
    assert sample.cpu_usage_ns is None
    assert sample.timestamp > 0


async def test_details_come_in_the_same_order(world: tuple[CgroupSampler, Put]) -> None:
    sampler, put = world
    put("/pods/a", 1)
    found = await sampler.details(["/pods/gone", "/pods/a"])
    assert found[0] is None
    assert found[1] is not None
    sample, details = found[1]
    assert (sample.memory_usage_bytes, details.cpu_periods) == (1, None)
    assert await sampler.details([]) == []

from __future__ import annotations

import betterproto
from hypothesis import given
from hypothesis import strategies as st

from isulad_py.api.runtime import v1 as cri
from isulad_py.model.container import ContainerConfig, ContainerMetadata, ContainerRecord
from isulad_py.model.ids import ContainerId, PodId
from isulad_py.model.pod import PodConfig, PodMetadata, PodRecord
from isulad_py.model.stats import (
    CgroupSample,
    ContainerSample,
    FilesystemUsage,
    InterfaceSample,
    PodSample,
    Pressure,
    Psi,
)
from isulad_py.wire import protobuf
from isulad_py.wire.translate import containers, pods, stats

POD = PodRecord(id=PodId("p1"), config=PodConfig(metadata=PodMetadata(name="p"), labels={"a": "b"}))
CONTAINER = ContainerRecord(
    id=ContainerId("c1"),
    pod_id=PodId("p1"),
    config=ContainerConfig(metadata=ContainerMetadata(name="c"), labels={"l": "m"}),
)
PSI = Psi(some=Pressure(total_us=7, avg10=0.5, avg60=0.25, avg300=0.0))
FULL = CgroupSample(
    timestamp=100,
    cpu_usage_ns=0,
    cpu_psi=PSI,
    memory_usage_bytes=50,
    memory_working_set_bytes=40,
    memory_rss_bytes=30,
    memory_limit_bytes=64,
    memory_page_faults=5,
    memory_major_page_faults=2,
    swap_usage_bytes=4,
    swap_limit_bytes=10,
    io_psi=Psi(some=PSI.some, full=Pressure(total_us=1, avg10=0.0, avg60=0.0, avg300=0.125)),
)
NUMBERS = {
    "cpu_usage_ns": ("cpu", "usage_core_nano_seconds"),
    "memory_working_set_bytes": ("memory", "working_set_bytes"),
    "memory_usage_bytes": ("memory", "usage_bytes"),
    "memory_rss_bytes": ("memory", "rss_bytes"),
    "memory_page_faults": ("memory", "page_faults"),
    "memory_major_page_faults": ("memory", "major_page_faults"),
    "swap_usage_bytes": ("swap", "swap_usage_bytes"),
}
ATTRIBUTES = protobuf.message(1, bytes(containers.container_attributes(CONTAINER)))
POD_ATTRIBUTES = protobuf.message(1, bytes(pods.pod_attributes(POD)))
LAYER = FilesystemUsage(timestamp=99, mountpoint="/g", used_bytes=7, inodes_used=3)


def test_a_container_with_everything(codec: str) -> None:
    sample = ContainerSample(container_id="c1", cgroup=FULL, nano_cores=0, writable_layer=LAYER)
    found = cri.ContainerStats().parse(stats.container_stats(ATTRIBUTES, sample))
    assert (found.attributes.id, found.attributes.metadata.name, found.attributes.labels) == ("c1", "c", {"l": "m"})
    assert betterproto.serialized_on_wire(found.cpu.usage_core_nano_seconds)
    assert betterproto.serialized_on_wire(found.cpu.usage_nano_cores)
    assert [part.timestamp for part in (found.cpu, found.memory, found.swap, found.io)] == [100] * 4
    assert found.cpu.psi.some == cri.PsiData(total=7000, avg10=0.5, avg60=0.25)
    assert not betterproto.serialized_on_wire(found.cpu.psi.full)
    assert found.io.psi.full == cri.PsiData(total=1000, avg300=0.125)
    memory = found.memory
    assert [memory.working_set_bytes.value, memory.available_bytes.value, memory.usage_bytes.value] == [40, 24, 50]
    assert [memory.rss_bytes.value, memory.page_faults.value, memory.major_page_faults.value] == [30, 5, 2]
    assert (found.writable_layer.fs_id.mountpoint, found.writable_layer.used_bytes.value) == ("/g", 7)
    assert (found.swap.swap_usage_bytes.value, found.swap.swap_available_bytes.value) == (4, 6)
    assert found.io.psi.some.total == 7000


def test_what_is_not_known_is_absent(codec: str) -> None:
    sample = ContainerSample(container_id="c1", cgroup=CgroupSample(timestamp=100))
    found = cri.ContainerStats().parse(stats.container_stats(ATTRIBUTES, sample))
    assert found.cpu.timestamp == 100
    assert not betterproto.serialized_on_wire(found.cpu.usage_nano_cores)
    assert not betterproto.serialized_on_wire(found.memory.available_bytes)
    for part in (found.swap, found.io, found.writable_layer, found.cpu.psi):
        assert not betterproto.serialized_on_wire(part)


def test_more_used_than_allowed_leaves_nothing() -> None:
    over = CgroupSample(timestamp=1, memory_limit_bytes=5, memory_working_set_bytes=9)
    sample = ContainerSample(container_id="c1", cgroup=over)
    found = cri.ContainerStats().parse(stats.container_stats(ATTRIBUTES, sample)).memory.available_bytes
    assert betterproto.serialized_on_wire(found)
    assert found.value == 0


def test_a_pod(codec: str) -> None:
    interfaces = (
        InterfaceSample(name="eth0", rx_bytes=1, rx_errors=5, tx_bytes=6),
        InterfaceSample(name="net1", tx_errors=2),
    )
    parts = (ContainerSample(container_id="c1", cgroup=FULL), ContainerSample(container_id="gone", cgroup=FULL))
    sample = PodSample(
        pod_id="p1",
        timestamp=77,
        cgroup=FULL,
        nano_cores=3,
        interfaces=interfaces,
        process_count=4,
        containers=parts,
    )
    found = cri.PodSandboxStats().parse(stats.pod_stats(POD_ATTRIBUTES, sample, {"c1": ATTRIBUTES}))
    assert (found.attributes.id, found.attributes.labels) == ("p1", {"a": "b"})
    assert (found.linux.network.timestamp, found.linux.network.default_interface.name) == (77, "eth0")
    first = found.linux.network.default_interface
    assert [first.rx_bytes.value, first.rx_errors.value, first.tx_bytes.value, first.tx_errors.value] == [1, 5, 6, 0]
    assert found.linux.cpu.usage_nano_cores.value == 3
    assert found.linux.memory.rss_bytes.value == 30
    assert found.linux.io.psi.some.avg10 == 0.5
    assert found.linux.network.interfaces[0].tx_errors.value == 2
    assert (found.linux.process.timestamp, found.linux.process.process_count.value) == (100, 4)
    assert [part.attributes.id for part in found.linux.containers] == ["c1"]


def test_a_pod_with_nothing_but_loopback_has_no_interface_of_its_own() -> None:
    sample = PodSample(pod_id="p1", timestamp=5, cgroup=None, interfaces=(InterfaceSample(name="lo"),))
    network = cri.PodSandboxStats().parse(stats.pod_stats(POD_ATTRIBUTES, sample, {})).linux.network
    assert not betterproto.serialized_on_wire(network.default_interface)
    assert [each.name for each in network.interfaces] == ["lo"]


def test_a_pod_without_a_cgroup(codec: str) -> None:
    sample = PodSample(pod_id="p1", timestamp=5, cgroup=None, interfaces=(InterfaceSample(name="eth0"),))
    parsed = cri.PodSandboxStats().parse(stats.pod_stats(POD_ATTRIBUTES, sample, {}))
    assert parsed.attributes.id == "p1"
    assert parsed.linux.network.timestamp == 5
    for part in (parsed.linux.cpu, parsed.linux.memory, parsed.linux.process, parsed.linux.io):
        assert not betterproto.serialized_on_wire(part)


MESSAGES = st.fixed_dictionaries({name: st.none() | st.integers(0, 2**64 - 1) for name in NUMBERS})


@given(MESSAGES, st.integers(1, 2**63 - 1))
def test_every_number_of_a_cgroup_arrives(figures: dict[str, int | None], at: int) -> None:
    sample = ContainerSample(container_id="c1", cgroup=CgroupSample(timestamp=at, **figures))
    found = cri.ContainerStats().parse(stats.container_stats(ATTRIBUTES, sample))
    assert {found.cpu.timestamp, found.memory.timestamp} == {at}
    for name, (part, field) in NUMBERS.items():
        value = getattr(getattr(found, part), field)
        assert (value.value if betterproto.serialized_on_wire(value) else None) == figures[name]

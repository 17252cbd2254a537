from __future__ import annotations

import pytest
from msgspec.structs import replace

from isulad_py.engine.metric_table import DESCRIPTORS, SUBJECT_KEYS, Reading, container_values, pod_values
from isulad_py.model.metrics import CgroupDetails, MetricKind
from isulad_py.model.resources import Resources
from isulad_py.model.stats import CgroupSample, InterfaceSample
from tests.readings import CAPACITY, FULL

WORDS = """
blkio_device_usage_total cpu_cfs_periods_total cpu_cfs_throttled_periods_total cpu_cfs_throttled_seconds_total
cpu_system_seconds_total cpu_usage_seconds_total cpu_user_seconds_total file_descriptors fs_inodes_free
fs_inodes_total fs_limit_bytes fs_reads_bytes_total fs_reads_total fs_usage_bytes fs_writes_bytes_total
fs_writes_total hugetlb_max_usage_bytes hugetlb_usage_bytes last_seen memory_cache memory_failcnt
memory_failures_total memory_kernel_usage memory_mapped_file memory_max_usage_bytes memory_rss memory_swap
memory_usage_bytes memory_working_set_bytes network_receive_bytes_total network_receive_errors_total
network_receive_packets_dropped_total network_receive_packets_total network_transmit_bytes_total
network_transmit_errors_total network_transmit_packets_dropped_total network_transmit_packets_total oom_events_total
pressure_cpu_stalled_seconds_total pressure_cpu_waiting_seconds_total pressure_io_stalled_seconds_total
pressure_io_waiting_seconds_total pressure_memory_stalled_seconds_total pressure_memory_waiting_seconds_total
processes sockets spec_cpu_period spec_cpu_quota spec_cpu_shares spec_memory_limit_bytes
spec_memory_reservation_limit_bytes spec_memory_swap_limit_bytes start_time_seconds threads threads_max ulimits_soft
"""
"""What critest asks for, without the prefix."""
UNCOUNTED = """
fs_io_current fs_io_time_seconds_total fs_io_time_weighted_seconds_total fs_read_seconds_total fs_reads_merged_total
fs_sector_reads_total fs_sector_writes_total fs_write_seconds_total fs_writes_merged_total
"""
"""What the kubelet's own suite asks for besides: zero, there too."""
CONFORMANCE = (WORDS + UNCOUNTED).split()

EMPTY = Reading(
    now=1,
    started_at=0,
    resources=Resources(),
    sample=CgroupSample(timestamp=1),
    details=CgroupDetails(),
    writable_layer=None,
    filesystem=CAPACITY,
)


def values(reading: Reading) -> dict[tuple[str, ...], int]:
    return {
        (value.descriptor.name.removeprefix("container_"), *value.labels): value.value
        for value in container_values(reading)
    }


def test_every_metric_of_the_conformance_suite_is_described() -> None:
    assert sorted(each.name.removeprefix("container_") for each in DESCRIPTORS) == sorted(CONFORMANCE)


@pytest.mark.parametrize("descriptor", DESCRIPTORS, ids=lambda each: each.name)
def test_descriptors(descriptor: object) -> None:
    found = next(each for each in DESCRIPTORS if each is descriptor)
    assert found.help.endswith(".")
    assert found.label_keys[: len(SUBJECT_KEYS)] == SUBJECT_KEYS
    counts = found.name.endswith("_total") and found.name != "container_fs_inodes_total"
    assert (found.kind is MetricKind.COUNTER) is (counts or found.name == "container_memory_failcnt")


def test_a_container_that_tells_everything_has_every_metric() -> None:
    found = container_values(FULL) + pod_values([InterfaceSample(name="eth0")])
    assert {value.descriptor.name for value in found} == {each.name for each in DESCRIPTORS}
    assert all(len(value.labels) + len(SUBJECT_KEYS) == len(value.descriptor.label_keys) for value in found)


def test_values() -> None:
    found = values(FULL)
    assert found["last_seen",] == 100
    assert found["start_time_seconds",] == 90
    assert found["cpu_usage_seconds_total", "total"] == 5
    assert found["cpu_cfs_throttled_seconds_total",] == 2
    assert found["memory_failures_total", "pgfault", "container"] == 10
    assert found["memory_failures_total", "pgfault", "hierarchy"] == 11
    assert found["memory_failures_total", "pgmajfault", "container"] == 0
    assert found["fs_usage_bytes", "/dev/sda"] == 77
    assert found["fs_writes_total", "/dev/sda"] == 4
    assert found["blkio_device_usage_total", "/dev/sda", "8", "0", "Write"] == 2
    assert found["hugetlb_max_usage_bytes", "2MB"] == 4
    assert found["threads_max",] == 0
    assert found["ulimits_soft", "max_open_files"] == 1024
    assert found["pressure_io_stalled_seconds_total",] == 3
    assert found["pressure_cpu_waiting_seconds_total",] == 7
    # The request's own shares, not what a cgroup v2 weight would make of them.
    assert found["spec_cpu_shares",] == 512


def test_what_is_not_known_is_no_metric() -> None:
    assert {name for name, *_ in values(EMPTY)} == {
        "last_seen", "fs_limit_bytes", *UNCOUNTED.split(),
    }  # fmt: skip


def test_who_touched_no_device_did_nothing_to_the_one_under_its_layer() -> None:
    idle = replace(EMPTY, details=CgroupDetails(io=()))
    found = values(idle)
    assert found["fs_reads_total", "/dev/sda"] == 0
    assert found["blkio_device_usage_total", "/dev/sda", "8", "0", "Write"] == 0


def test_inodes_are_those_of_the_layer() -> None:
    found = values(FULL)
    assert (found["fs_inodes_total", "/dev/sda"], found["fs_inodes_free", "/dev/sda"]) == (7, 0)


def test_an_interface() -> None:
    sample = InterfaceSample(
        name="eth0",
        rx_bytes=1, rx_packets=2, rx_dropped=3, rx_errors=4, tx_bytes=5, tx_packets=6, tx_dropped=7, tx_errors=8,
    )  # fmt: skip
    found = pod_values([sample, InterfaceSample(name="lo", rx_bytes=1)])
    assert [value.value for value in found] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert {value.labels for value in found} == {("eth0",)}

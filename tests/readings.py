"""A container of which everything is known."""

from __future__ import annotations

from isulad_py.engine.metric_table import Reading
from isulad_py.model.metrics import CgroupDetails, DeviceIo, FilesystemCapacity, HugepageUsage
from isulad_py.model.resources import Resources
from isulad_py.model.stats import CgroupSample, FilesystemUsage, Pressure, Psi

PSI = Psi(
    some=Pressure(total_us=7_900_000, avg10=0, avg60=0, avg300=0),
    full=Pressure(total_us=3_100_000, avg10=0, avg60=0, avg300=0),
)
CAPACITY = FilesystemCapacity(device="/dev/sda", major=8, minor=0, total_bytes=500)
FULL = Reading(
    now=100_500_000_000,
    started_at=90_900_000_000,
    resources=Resources(cpu_shares=512),
    sample=CgroupSample(
        timestamp=1,
        cpu_usage_ns=5_900_000_000,
        cpu_user_ns=4_000_000_000,
        cpu_system_ns=1_900_000_000,
        cpu_psi=PSI,
        memory_usage_bytes=50,
        memory_working_set_bytes=40,
        memory_rss_bytes=30,
        memory_cache_bytes=20,
        memory_page_faults=11,
        memory_major_page_faults=12,
        memory_psi=PSI,
        swap_usage_bytes=9,
        io_psi=PSI,
        processes=2,
        threads_current=3,
    ),
    details=CgroupDetails(
        cpu_periods=8,
        cpu_throttled_periods=4,
        cpu_throttled_ns=2_500_000_000,
        cpu_quota_us=20000,
        cpu_period_us=100000,
        cpu_shares=1024,
        memory_limit_hits=1,
        memory_most_used_bytes=60,
        memory_kernel_bytes=5,
        memory_mapped_file_bytes=6,
        own_page_faults=10,
        own_major_page_faults=0,
        oom_kills=0,
        io=(DeviceIo(device="/dev/sda", major=8, minor=0, read_bytes=1, write_bytes=2, reads=3, writes=4),),
        hugepages=(HugepageUsage(page_size="2MB", usage_bytes=2, max_usage_bytes=4),),
        descriptors=16,
        sockets=2,
        open_files_soft_limit=1024,
    ),
    writable_layer=FilesystemUsage(timestamp=1, mountpoint="/g", used_bytes=77, inodes_used=7),
    filesystem=CAPACITY,
)

from __future__ import annotations

import itertools

from isulad_py.spec import seccomp_default as default
from isulad_py.spec.capabilities import KNOWN

NEVER = """
add_key keyctl request_key kexec_load kexec_file_load swapon swapoff userfaultfd io_uring_setup io_uring_enter
pivot_root create_module nfsservctl uselib ustat sysfs _sysctl vm86 vm86old move_pages migrate_pages
"""


def test_no_call_is_listed_twice_among_those_that_are_always_allowed() -> None:
    groups = (
        default.FILES,
        default.MEMORY,
        default.PROCESSES,
        default.WAITING,
        default.TALKING,
        default.CLOCKS,
        default.TRACING,
    )
    names = list(itertools.chain.from_iterable(group.split() for group in groups))
    assert len(names) == len(set(names))


def test_what_must_never_be_allowed_is_not_listed() -> None:
    listed = {name for rule in default.PROFILE.syscalls or () for name in rule.names}
    assert listed.isdisjoint(NEVER.split())


def test_the_conditions_name_real_capabilities() -> None:
    assert set(default.BY_CAPABILITY) <= set(KNOWN)

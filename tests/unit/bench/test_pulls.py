from __future__ import annotations

import os
import subprocess
import sys

import pytest

from bench import pulls


def test_cpu_time_of_a_process_counts_its_children() -> None:
    before = pulls.process_cpu_ms(os.getpid())
    subprocess.run([sys.executable, "-c", "sum(i * i for i in range(3_000_000))"], check=True)
    assert pulls.process_cpu_ms(os.getpid()) - before >= 20


def test_a_tool_that_fails_is_an_error() -> None:
    with pytest.raises(OSError, match="false ends with 1"):
        pulls._run(("false",))


def test_a_tools_use_is_told() -> None:
    assert pulls._run((sys.executable, "-c", "bytearray(60 << 20)")).ru_maxrss > 60 * 1024

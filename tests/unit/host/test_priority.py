from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from isulad_py.host.priority import prefer_this_process, start_programs_ordinarily


def test_threads_are_preferred_and_programs_are_not() -> None:
    seen: dict[str, int] = {}
    interval = sys.getswitchinterval()

    def starter() -> None:
        seen["thread"] = os.getpriority(os.PRIO_PROCESS, 0)
        start_programs_ordinarily()
        seen["program"] = int(subprocess.run(["nice"], capture_output=True, check=True).stdout)

    def main() -> None:
        if prefer_this_process(-5):
            thread = threading.Thread(target=starter)
            thread.start()
            thread.join()

    before = os.getpriority(os.PRIO_PROCESS, 0)
    thread = threading.Thread(target=main)
    thread.start()
    thread.join()
    sys.setswitchinterval(interval)
    if not seen:
        pytest.skip("this machine does not let us raise a priority")
    assert seen == {"thread": -5, "program": 0}
    assert os.getpriority(os.PRIO_PROCESS, 0) == before

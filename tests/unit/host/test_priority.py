from __future__ import annotations

import os
import subprocess
import threading

import pytest

from isulad_py.host.priority import prefer_this_thread


def test_only_the_calling_thread_is_preferred_and_nothing_that_it_starts() -> None:
    seen: dict[str, int] = {}

    def loop() -> None:
        if not prefer_this_thread(-5):
            return
        seen["loop"] = os.getpriority(os.PRIO_PROCESS, 0)
        worker = threading.Thread(target=lambda: seen.update(worker=os.getpriority(os.PRIO_PROCESS, 0)))
        worker.start()
        worker.join()
        seen["program"] = int(subprocess.run(["nice"], capture_output=True, check=True).stdout)

    before = os.getpriority(os.PRIO_PROCESS, 0)
    thread = threading.Thread(target=loop)
    thread.start()
    thread.join()
    if not seen:
        pytest.skip("this machine does not let us raise a priority")
    assert seen == {"loop": -5, "worker": 0, "program": 0}
    assert os.getpriority(os.PRIO_PROCESS, 0) == before

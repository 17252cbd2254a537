from __future__ import annotations

import os
import socket
from pathlib import Path

from bench.memory import daemon_pid, measure, pss


def test_the_listener_is_found_through_its_socket(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen(1)
        assert daemon_pid(tmp_path / "s") == os.getpid()


def test_no_ids_find_no_monitors_by_command_line() -> None:
    own = measure(os.getpid(), [])
    assert own.daemon > 0
    assert own.total == own.daemon + own.monitors


def test_a_process_that_is_gone_weighs_nothing() -> None:
    assert pss(2**22 + 1) == 0

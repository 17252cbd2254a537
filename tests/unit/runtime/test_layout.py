"""Paths, derived from the id alone."""

from __future__ import annotations

import pytest

from isulad_py.model.errors import InvalidInput
from isulad_py.model.ids import ContainerId
from isulad_py.runtime.layout import Layout

LAYOUT = Layout("/state")
ID = ContainerId("abc")


def test_everything_of_a_container_lies_in_its_bundle() -> None:
    assert LAYOUT.bundle(ID) == "/state/containers/abc"
    paths = [
        LAYOUT.spec(ID),
        LAYOUT.record(ID),
        LAYOUT.pid_file(ID),
        LAYOUT.monitor_pid_file(ID),
        LAYOUT.exit_file(ID),
        LAYOUT.oom_file(ID),
        LAYOUT.exec_pid_file(ID, "exec-1"),
        LAYOUT.control(ID),
        LAYOUT.attach_socket(ID),
        LAYOUT.log_link(ID),
    ]
    assert all(path.startswith("/state/containers/abc/") for path in paths)
    assert len(set(paths)) == len(paths)


def test_each_handler_has_a_root_of_its_own() -> None:
    assert LAYOUT.runtime_root("crun") == "/state/runtime/crun"
    assert LAYOUT.runtime_state("crun", ID) == "/state/runtime/crun/abc"


@pytest.mark.parametrize("bad", ["", ".", "..", "a/b", "/etc", ".hidden"])
def test_an_id_that_would_climb_is_refused(bad: str) -> None:
    with pytest.raises(InvalidInput):
        LAYOUT.bundle(ContainerId(bad))

from __future__ import annotations

import pytest

from isulad_py.model.errors import InvalidInput
from isulad_py.model.security import SELinuxLabel
from isulad_py.spec.selinux import labels
from tests.fakes.facts import host_facts

HOST = host_facts(selinux=True)


def test_a_host_without_selinux_has_no_labels() -> None:
    assert labels(SELinuxLabel(type="x_t"), host_facts(), level="s0") == ("", "")


def test_parts_that_are_not_given_have_defaults() -> None:
    process, mount = labels(SELinuxLabel(type="x_t"), HOST, level="s0:c1,c2")
    assert process == "system_u:system_r:x_t:s0:c1,c2"
    assert mount == "system_u:object_r:container_file_t:s0:c1,c2"


def test_a_given_level_wins() -> None:
    process, mount = labels(SELinuxLabel(user="u", role="r", level="s0:c9"), HOST, level="s0:c1")
    assert process == "u:r:container_t:s0:c9"
    assert mount.endswith("s0:c9")


def test_a_privileged_container_has_none_unless_asked_for() -> None:
    assert labels(None, HOST, level="s0", privileged=True) == ("", "")
    assert labels(SELinuxLabel(type="x_t"), HOST, level="s0", privileged=True)[0] == "system_u:system_r:x_t:s0"


def test_a_part_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"selinux_options\.type"):
        labels(SELinuxLabel(type="a:b"), HOST, level="s0")

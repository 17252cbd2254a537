from __future__ import annotations

import pytest

from isulad_py.config.schema import Config


def test_a_configuration_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Config().graph = "/elsewhere"  # type: ignore[misc]  # that is the point


def test_the_cgroup_root_follows_the_driver() -> None:
    assert Config().cgroup_root == "/isulad"
    assert Config(systemd_cgroup=True).cgroup_root == "system.slice"
    assert Config(systemd_cgroup=True, cgroup_parent="kube.slice").cgroup_root == "kube.slice"


def test_instances_share_no_table() -> None:
    assert Config().runtimes is not Config().runtimes

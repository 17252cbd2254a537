from __future__ import annotations

from pathlib import Path

import pytest

from isulad_py.host import namespaces
from isulad_py.model.errors import InvalidInput, NotFound


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("net.ipv4.ip_forward", "/proc/sys/net/ipv4/ip_forward"),
        ("net/ipv4/ip_forward", "/proc/sys/net/ipv4/ip_forward"),
        ("net.ipv4.conf.eth0/1.forwarding", "/proc/sys/net/ipv4/conf/eth0.1/forwarding"),
        ("net/ipv4/conf/eth0.1/forwarding", "/proc/sys/net/ipv4/conf/eth0.1/forwarding"),
        ("kernel.shm_rmid_forced", "/proc/sys/kernel/shm_rmid_forced"),
    ],
)
def test_the_first_separator_decides(name: str, path: str) -> None:
    assert namespaces.sysctl_path(name) == path


@pytest.mark.parametrize(
    "name", ["", "net", ".", "net.", ".net", "net..x", "net/../kernel/panic", "net.//.kernel", "net.a\0b", "/net/x"]
)
def test_what_names_no_file_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="sysctl"):
        namespaces.sysctl_path(name)


def test_only_kinds_with_a_path_are_made() -> None:
    request = namespaces.NewNamespaces(uts_path="/x/uts")
    assert [(kind, path) for kind, _, path in request.pins()] == [("uts", "/x/uts")]


def test_a_file_or_nothing_is_no_namespace(tmp_path: Path) -> None:
    (tmp_path / "net").write_bytes(b"")
    assert not namespaces.is_pinned(str(tmp_path / "net"))
    assert not namespaces.is_pinned(str(tmp_path / "absent"))
    assert not namespaces.is_pinned(str(tmp_path / "net" / "below"))
    assert namespaces.is_pinned("/proc/self/ns/uts")
    with pytest.raises(NotFound, match="absent"):
        namespaces.call_in_netns(str(tmp_path / "absent"), lambda: None)


def test_no_path_is_the_hosts_namespace() -> None:
    assert namespaces.call_in_netns("", lambda: 7) == 7


def test_releasing_what_is_not_there_is_success(tmp_path: Path) -> None:
    (tmp_path / "net").write_bytes(b"")
    namespaces.release(str(tmp_path / "net"))
    namespaces.release(str(tmp_path / "net"))
    assert not (tmp_path / "net").exists()

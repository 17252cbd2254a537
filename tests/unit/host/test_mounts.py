from __future__ import annotations

import os
from pathlib import Path

import pytest

from isulad_py.host import mounts

TABLE = (
    rb"""22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
40 27 0:37 / /run/state rw shared:3 master:1 - tmpfs tmpfs rw
41 40 0:38 / /run/state/a\040b rw - tmpfs tmpfs rw
42 40 0:39 / /run/state/back\134slash rw - tmpfs tmpfs rw
43 40 0:4 net:[4026532000] /run/state/pods/x/ns/net rw - nsfs nsfs rw
44 27 0:40 / /run/stateful rw - tmpfs tmpfs rw
short line
"""
    b"45 27 0:41 / /run/state/\xff rw - tmpfs tmpfs rw\n"
)


def test_mount_points_below_a_root_come_latest_first() -> None:
    assert mounts.parse_mountpoints(TABLE, "/run/state") == [
        os.fsdecode(b"/run/state/\xff"),
        "/run/state/pods/x/ns/net",
        "/run/state/back\\slash",
        "/run/state/a b",
        "/run/state",
    ]


def test_everything_is_below_the_root_directory() -> None:
    assert len(mounts.parse_mountpoints(TABLE, "/")) == 8


def test_a_name_that_only_begins_alike_is_not_below() -> None:
    assert mounts.parse_mountpoints(TABLE, "/run/statefu") == []


PEERS = b"""22 27 0:21 / /proc rw - proc proc rw
27 1 254:0 / / rw shared:1 - ext4 /dev/vda rw
28 27 0:37 / /srv rw shared:3 master:1 propagate_from:2 - tmpfs tmpfs rw
29 28 0:38 / /srv/a\\040b rw - tmpfs tmpfs rw
30 28 0:39 / /srv/over rw shared:4 - tmpfs tmpfs rw
31 30 0:40 / /srv/over rw master:4 - tmpfs tmpfs rw
short line
"""


@pytest.mark.parametrize(
    ("path", "peers"),
    [
        ("/", {"shared"}),
        ("/srvx", {"shared"}),
        ("/srv", {"shared", "master", "propagate_from"}),
        ("/srv/x/y", {"shared", "master", "propagate_from"}),
        ("/srv/a b/c", set()),
        ("/srv/over/x", {"master"}),
        ("/proc", set()),
    ],
)
def test_peers_are_those_of_the_nearest_mount(path: str, peers: set[str]) -> None:
    assert mounts.parse_peers(PEERS, path) == peers


def test_peers_of_this_host_are_told() -> None:
    assert mounts.peers("/proc") <= {"shared", "master", "propagate_from", "unbindable"}


@pytest.mark.parametrize(("field", "text"), [(rb"a\040b", "a b"), (rb"\134040", "\\040"), (rb"\9", "\\9"), (b"x", "x")])
def test_octal_escapes_are_decoded_once(field: bytes, text: str) -> None:
    assert mounts.unescape(field) == text


def test_unmounting_what_is_not_mounted_is_success(tmp_path: Path) -> None:
    mounts.unmount(str(tmp_path / "absent"))
    assert not mounts.is_mountpoint(str(tmp_path / "absent"))
    assert not mounts.is_mountpoint(str(tmp_path))
    assert mounts.is_mountpoint("/proc")

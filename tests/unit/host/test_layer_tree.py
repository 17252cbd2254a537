"""Trees from untrusted archives: nothing ever lands outside the root."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Struct

from isulad_py.host import directory_times, inherit, layer_tree, mounts, parents, trees
from isulad_py.host.disk_reserve import Growth
from isulad_py.host.layer_tree import LayerTree
from isulad_py.model.errors import Aborted, DataLoss, EngineError, ResourceExhausted, Unsupported
from tests.fakes.growth import Tally, freely


class Attributes(Struct):
    mode: int = 0o644
    uid: int = os.geteuid()
    gid: int = os.getegid()
    mtime_ns: int = 1_700_000_000_123_456_789
    xattrs: dict[str, bytes] = {}


PLAIN = Attributes()
FOLDER = Attributes(mode=0o755)
CAPABILITY = bytes.fromhex("0100000200200000000000000000000000000000")
"""cap_net_raw=ep (linux/capability.h, struct vfs_cap_data)."""


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "root"
    path.mkdir()
    yield path
    trees.remove_tree(str(path))  # some are too deep for anybody else's cleaning


@pytest.fixture
def tree(root: Path) -> Iterator[LayerTree]:
    tree = new_tree(root)
    yield tree
    tree.close()


def new_tree(root: Path, grow: Growth = freely, max_inodes: int = 1_000_000) -> LayerTree:
    return LayerTree(str(root), grow=grow, max_inodes=max_inodes)


def count_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def put(tree: LayerTree, name: bytes, text: bytes = b"x", attributes: Attributes = PLAIN) -> None:
    tree.file(name, attributes, [memoryview(text)], size=len(text))


@pytest.mark.root
def test_attributes_survive(tree: LayerTree, root: Path) -> None:
    su_attributes = Attributes(mode=0o4755, uid=7, gid=8, xattrs={"user.note": b"\0\xff"})
    put(tree, b"bin/su", b"program", su_attributes)
    tree.directory(b"tmp/", Attributes(mode=0o1777, uid=1, gid=2, mtime_ns=5_000_000_000))
    put(tree, b"tmp/file")
    tree.symlink(b"link", Attributes(uid=3, gid=4), b"../../outside")
    tree.hardlink(b"bin/su2", su_attributes, b"bin/su")
    tree.node(b"null", Attributes(mode=0o666, gid=9), stat.S_IFCHR, (1, 3))
    tree.node(b"disk", Attributes(mode=0o600), stat.S_IFBLK, (8, 0))
    tree.node(b"pipe", Attributes(mode=0o620), stat.S_IFIFO)
    facts = tree.finish()
    su = (root / "bin/su").stat()
    assert (stat.S_IMODE(su.st_mode), su.st_uid, su.st_gid, su.st_nlink) == (0o4755, 7, 8, 2)
    assert su.st_mtime_ns == PLAIN.mtime_ns
    assert os.getxattr(root / "bin/su", "user.note") == b"\0\xff"
    tmp = (root / "tmp").stat()
    assert (stat.S_IMODE(tmp.st_mode), tmp.st_uid, tmp.st_gid, tmp.st_mtime_ns) == (0o1777, 1, 2, 5_000_000_000)
    link = (root / "link").lstat()
    assert ((root / "link").readlink(), link.st_uid, link.st_gid) == (Path("../../outside"), 3, 4)
    assert link.st_mtime_ns == PLAIN.mtime_ns
    null = (root / "null").stat()
    assert (stat.S_ISCHR(null.st_mode), null.st_rdev, stat.S_IMODE(null.st_mode)) == (True, os.makedev(1, 3), 0o666)
    assert stat.S_ISBLK((root / "disk").stat().st_mode)
    assert stat.S_ISFIFO((root / "pipe").stat().st_mode)
    assert facts.inodes == 9
    assert facts.implied == (b"", b"bin")


@pytest.mark.root
def test_file_capabilities_are_kept_and_foreign_attributes_dropped(tree: LayerTree, root: Path) -> None:
    capability = bytes.fromhex("0100000200200000000000000000000000000000")
    xattrs = {
        "security.capability": capability,
        "trusted.overlay.opaque": b"y",
        "trusted.overlay.redirect": b"/etc",
        "trusted.other": b"x",
        "user.overlay.opaque": b"y",
        "security.selinux": b"system_u:object_r:bin_t:s0",
    }
    put(tree, b"ping", b"program", Attributes(mode=0o755, xattrs=xattrs))
    tree.directory(b"folder", Attributes(mode=0o755, xattrs=xattrs))
    assert os.getxattr(root / "ping", "security.capability") == capability
    assert os.listxattr(root / "ping") == ["security.capability"]
    assert "trusted.overlay.opaque" not in os.listxattr(root / "folder")


@pytest.mark.parametrize("name", [b"../x", b"a/../../x", b"/../x", b"..", b"./../x", b"a/b/../../../x"])
def test_climbing_out_is_refused(tree: LayerTree, root: Path, name: bytes) -> None:
    attempts: list[Callable[[], None]] = [
        lambda: put(tree, name),
        lambda: tree.directory(name, FOLDER),
        lambda: tree.symlink(name, PLAIN, b"/"),
        lambda: tree.hardlink(b"here", PLAIN, name),
        lambda: tree.hardlink(name, PLAIN, b"here"),
        lambda: tree.node(name, PLAIN, stat.S_IFIFO),
        lambda: tree.whiteout(name),
        lambda: tree.opaque(name),
    ]
    for attempt in attempts:
        with pytest.raises(DataLoss, match="climbs out"):
            attempt()
    assert list(root.iterdir()) == []
    assert [path.name for path in root.parent.iterdir()] == ["root"]


@pytest.mark.parametrize(
    ("name", "normal"),
    [(b"/abs/file", "abs/file"), (b"./dot", "dot"), (b"a//b/./c", "a/b/c"), (b"a/b/../c", "a/c"), (b"/a/../b", "b")],
)
def test_names_are_cleaned_inside_the_root(tree: LayerTree, root: Path, name: bytes, normal: str) -> None:
    put(tree, name)
    assert (root / normal).read_bytes() == b"x"


@pytest.mark.parametrize(
    "target", [b"/", b"/etc", b"..", b"../..", b"../outside", b"/proc/self/root", b"/proc/self/cwd"]
)
def test_a_link_to_the_outside_leads_to_the_inside(tree: LayerTree, root: Path, target: bytes) -> None:
    """As in containerd and docker, a link is resolved as if the root were the root directory."""
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "passwd").write_text("precious")
    tree.symlink(b"link", PLAIN, target)
    for name in (b"link/isulad-test-canary", b"link/passwd"):
        try:
            put(tree, name, b"evil")
        except DataLoss:
            continue
    assert (outside / "passwd").read_text() == "precious"
    assert [path.name for path in outside.iterdir()] == ["passwd"]
    for folder in ("/", "/etc", str(root.parent), str(Path.cwd())):
        assert not Path(folder, "isulad-test-canary").exists()


def test_a_link_inside_is_followed_for_parents_only(tree: LayerTree, root: Path) -> None:
    tree.directory(b"usr/lib", FOLDER)
    tree.symlink(b"lib", PLAIN, b"/usr/lib")
    put(tree, b"lib/libc.so")
    assert (root / "usr/lib/libc.so").read_bytes() == b"x"
    put(tree, b"lib")
    assert (root / "lib").read_bytes() == b"x"
    assert (root / "usr/lib/libc.so").read_bytes() == b"x"
    put(tree, b"target", b"kept")
    tree.symlink(b"file", PLAIN, b"target")
    put(tree, b"file", b"own")
    assert (root / "target").read_bytes() == b"kept"
    assert not (root / "file").is_symlink()


@pytest.mark.root
def test_a_hard_link_gives_its_attributes_to_both_names(tree: LayerTree, root: Path) -> None:
    put(tree, b"file", b"x", Attributes(mode=0o644, xattrs={"user.a": b"1"}))
    tree.hardlink(b"link", Attributes(mode=0o4755, uid=5, gid=6, mtime_ns=7, xattrs={"user.b": b"2"}), b"file")
    state = (root / "file").stat()
    assert (stat.S_IMODE(state.st_mode), state.st_uid, state.st_gid, state.st_mtime_ns) == (0o4755, 5, 6, 7)
    assert os.listxattr(root / "link") == ["user.a", "user.b"]
    tree.symlink(b"symlink", PLAIN, b"file")
    tree.hardlink(b"second", Attributes(mode=0o600, uid=9), b"symlink")
    assert (root / "symlink").lstat().st_uid == 9
    assert stat.S_IMODE((root / "file").stat().st_mode) == 0o4755


@pytest.mark.root
def test_a_hard_link_of_the_same_owner_keeps_capabilities(tree: LayerTree, root: Path) -> None:
    put(tree, b"ping", b"x", Attributes(mode=0o755, xattrs={"security.capability": CAPABILITY}))
    tree.hardlink(b"ping6", Attributes(mode=0o755), b"ping")
    assert os.getxattr(root / "ping6", "security.capability") == CAPABILITY


def test_attributes_that_cannot_be_set_are_told(tree: LayerTree, monkeypatch: pytest.MonkeyPatch) -> None:
    attributes = Attributes(xattrs={"user.big": bytes(70_000)})
    with pytest.raises(DataLoss, match=r"entry 'a': attribute 'user.big' of 70000 bytes"):
        put(tree, b"a", b"x", attributes)
    with pytest.raises(DataLoss, match=r"entry 'd': attribute 'user.big'"):
        tree.directory(b"d", attributes)
    monkeypatch.setattr(inherit, "_XATTR_PREFIXES", ("security.",))
    long = Attributes(xattrs={"security." + "x" * 300: b""})
    with pytest.raises(EngineError, match=r"entry 'l': attribute 'security.x"):
        tree.symlink(b"l", long, b"x")
    with pytest.raises(EngineError, match=r"entry 'f': attribute 'security.x"):
        tree.node(b"f", long, stat.S_IFIFO)


def test_devices_without_the_capability(tree: LayerTree, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "mknod", refuse)
    monkeypatch.setattr(layer_tree, "in_user_namespace", lambda: False)
    with pytest.raises(Unsupported, match=r"entry 'dev/null': a device cannot be made without CAP_MKNOD"):
        tree.node(b"dev/null", PLAIN, stat.S_IFCHR, (1, 3))
    monkeypatch.setattr(layer_tree, "in_user_namespace", lambda: True)
    tree.node(b"dev/null", PLAIN, stat.S_IFCHR, (1, 3))
    assert list((root / "dev").iterdir()) == []


def test_a_hard_link_never_leaves_the_layer(tree: LayerTree, root: Path) -> None:
    (root.parent / "secret").write_text("precious")
    tree.symlink(b"up", PLAIN, b"..")
    tree.symlink(b"secret-link", PLAIN, b"../secret")
    with pytest.raises(DataLoss, match="not in this layer"):
        tree.hardlink(b"stolen", PLAIN, b"up/secret")
    with pytest.raises(DataLoss, match="not in this layer"):
        tree.hardlink(b"stolen", PLAIN, b"/etc/passwd")
    tree.hardlink(b"stolen", PLAIN, b"secret-link")  # to the symbolic link itself
    assert (root / "stolen").is_symlink()
    assert (root.parent / "secret").stat().st_nlink == 1
    tree.directory(b"folder", FOLDER)
    with pytest.raises(DataLoss, match="cannot have links"):
        tree.hardlink(b"stolen", PLAIN, b"folder")


def test_a_parent_swapped_for_a_link_is_seen_anew(tree: LayerTree, root: Path) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    tree.directory(b"a/b", FOLDER)
    put(tree, b"a/b/first")
    tree.symlink(b"a", PLAIN, b"../outside")
    put(tree, b"a/b/second")
    put(tree, b"a/third")
    assert list(outside.iterdir()) == []
    assert sorted(path.name for path in (root / "outside").iterdir()) == ["b", "third"]
    tree.directory(b"a", FOLDER)
    put(tree, b"a/fourth")
    assert [path.name for path in (root / "a").iterdir()] == ["fourth"]


def test_a_loop_of_links_is_refused(tree: LayerTree) -> None:
    tree.symlink(b"a", PLAIN, b"b")
    tree.symlink(b"b", PLAIN, b"a")
    with pytest.raises(DataLoss):
        put(tree, b"a/x")


@pytest.mark.parametrize("second", ["file", "directory", "symlink", "fifo", "hardlink"])
@pytest.mark.parametrize("first", ["file", "directory", "symlink", "fifo", "full directory", "hardlink"])
def test_a_later_entry_replaces_an_earlier_one(tree: LayerTree, root: Path, first: str, second: str) -> None:
    def make(kind: str) -> None:
        if kind == "file":
            put(tree, b"name", b"content")
        elif kind == "symlink":
            tree.symlink(b"name", PLAIN, b"other")
        elif kind == "fifo":
            tree.node(b"name", PLAIN, stat.S_IFIFO)
        elif kind == "hardlink":
            tree.hardlink(b"name", PLAIN, b"other")
        else:
            tree.directory(b"name", FOLDER)
            if kind == "full directory":
                put(tree, b"name/deep/inside")

    put(tree, b"other", b"kept")
    make(first)
    make(second)
    tree.finish()
    kinds = {"file": stat.S_IFREG, "symlink": stat.S_IFLNK, "fifo": stat.S_IFIFO, "hardlink": stat.S_IFREG}
    assert stat.S_IFMT((root / "name").lstat().st_mode) == kinds.get(second, stat.S_IFDIR)
    assert (root / "other").read_bytes() == b"kept"
    if first == "full directory" and second == "directory":
        assert (root / "name/deep/inside").exists()


def test_a_hard_link_to_itself_keeps_the_file(tree: LayerTree, root: Path) -> None:
    put(tree, b"file", b"content")
    tree.hardlink(b"file", PLAIN, b"./file")
    tree.symlink(b"here", PLAIN, b".")
    tree.hardlink(b"here/file", PLAIN, b"file")
    assert (root / "file").read_bytes() == b"content"


@pytest.mark.root
def test_whiteouts_and_opaque_directories(tree: LayerTree, root: Path) -> None:
    tree.whiteout(b"gone")
    tree.whiteout(b"new/gone")
    tree.directory(b"cleared", FOLDER)
    tree.opaque(b"cleared")
    put(tree, b"kept/file")
    tree.whiteout(b"kept/file")
    tree.whiteout(b"kept")
    tree.opaque(b"implied/deep")
    tree.whiteout(b"reborn")
    tree.directory(b"reborn", FOLDER)
    tree.whiteout(b"refilled")
    put(tree, b"refilled")
    for name in ("gone", "new/gone"):
        state = (root / name).lstat()
        assert (stat.S_ISCHR(state.st_mode), state.st_rdev) == (True, 0)
    assert (root / "kept/file").read_bytes() == b"x"
    for name in ("cleared", "kept", "implied/deep", "reborn"):
        assert os.getxattr(root / name, "trusted.overlay.opaque") == b"y"
    assert (root / "refilled").read_bytes() == b"x"
    assert b"implied/deep" in tree.finish().implied


@pytest.mark.root
def test_the_root_itself(tree: LayerTree, root: Path) -> None:
    tree.directory(b"./", Attributes(mode=0o700, uid=5, mtime_ns=9_000_000_000))
    put(tree, b"file")
    for name in (b".", b"/", b"", b"a/.."):
        with pytest.raises(DataLoss, match="root of a layer"):
            put(tree, name)
    tree.opaque(b"")
    facts = tree.finish()
    state = root.stat()
    assert (stat.S_IMODE(state.st_mode), state.st_uid, state.st_mtime_ns) == (0o700, 5, 9_000_000_000)
    assert facts.implied == ()


@pytest.mark.parametrize(
    "name",
    [
        b"n" * 256,
        b"d/" * 2100 + b"x",
        b"nul\0byte",
        b"file/below",
        b"to-file/below",
        b"long/" + (b"n" * 200 + b"/") * 12 + b"x",
    ],
)
def test_names_that_cannot_be_are_refused(tree: LayerTree, root: Path, name: bytes) -> None:
    put(tree, b"file")
    tree.symlink(b"to-file", PLAIN, b"file")
    tree.symlink(b"long", PLAIN, (b"n" * 200 + b"/") * 12 + b"d")
    with pytest.raises(DataLoss):
        put(tree, name)
    assert (root / "to-file").is_symlink()
    put(tree, b"after")


def test_a_link_to_what_a_layer_below_has(tree: LayerTree, root: Path) -> None:
    """`/var/run` leads to `../run`, which this layer has no entry for: containerd makes it."""
    tree.directory(b"var", FOLDER)
    tree.symlink(b"var/run", PLAIN, b"../run")
    put(tree, b"var/run/lock/x")
    put(tree, b"var/run/y")
    tree.symlink(b"again", PLAIN, b"/var/../opt/./app/../app")
    put(tree, b"again/below/z")
    tree.symlink(b"hidden", PLAIN, b"var/run/deep")
    tree.whiteout(b"hidden/.gone") if os.geteuid() == 0 else None
    facts = tree.finish()
    assert (root / "run/lock/x").read_bytes() == b"x"
    assert (root / "run/y").read_bytes() == b"x"
    assert (root / "opt/app/below/z").read_bytes() == b"x"
    assert (root / "var/run").readlink() == Path("../run")
    # By the paths that lead there without a link: it is there that the layers below have them.
    assert {b"run", b"run/lock", b"opt", b"opt/app", b"opt/app/below"} <= set(facts.implied)
    assert not any(path.startswith((b"var/run/", b"again", b"hidden/")) for path in facts.implied)


def test_an_entry_for_an_implied_directory_may_come_through_a_link(tree: LayerTree, root: Path) -> None:
    put(tree, b"d/a/x")
    tree.symlink(b"l", PLAIN, b"d")
    tree.directory(b"l/a", Attributes(mode=0o700))
    assert tree.finish().implied == (b"", b"d")
    assert stat.S_IMODE((root / "d/a").stat().st_mode) == 0o700


@pytest.mark.root
def test_a_name_below_a_whiteout_of_the_same_layer(tree: LayerTree, root: Path) -> None:
    tree.whiteout(b"d")
    put(tree, b"d/e/x")
    assert (root / "d/e/x").read_bytes() == b"x"
    assert os.getxattr(root / "d", "trusted.overlay.opaque") == b"y"


def test_the_deepest_possible_name(tree: LayerTree, root: Path) -> None:
    before = count_descriptors()
    seen = 0

    def look(_used_bytes: int, _inodes: int) -> None:
        nonlocal seen
        seen = max(seen, count_descriptors())

    deep = new_tree(root, look)
    put(deep, b"e/" * 300 + b"x")
    deep.close()
    assert seen - before <= parents.MAX_OPEN + 8
    put(tree, b"d/" * 2000 + b"x")
    facts = tree.finish()
    assert facts.inodes == 2002
    assert len(facts.implied) == 2001
    assert facts.implied[:3] == (b"", b"d", b"d/d")


@pytest.mark.parametrize("owner", [(-1, 0), (0, -1), (1 << 32, 0), ((1 << 32) - 1, 0)])
def test_owners_out_of_range_are_refused(tree: LayerTree, owner: tuple[int, int]) -> None:
    attributes = Attributes(uid=owner[0], gid=owner[1])
    attempts: list[Callable[[], None]] = [
        lambda: put(tree, b"file", b"x", attributes),
        lambda: tree.directory(b"folder", attributes),
        lambda: tree.symlink(b"link", attributes, b"x"),
    ]
    for attempt in attempts:
        with pytest.raises(DataLoss):
            attempt()


def test_strange_devices_and_targets_are_refused(tree: LayerTree) -> None:
    with pytest.raises(DataLoss):
        tree.node(b"device", PLAIN, stat.S_IFCHR, (1 << 40, 0))
    with pytest.raises(DataLoss):
        tree.symlink(b"link", PLAIN, b"")
    with pytest.raises(DataLoss):
        tree.symlink(b"link", PLAIN, b"a\0b")
    with pytest.raises(DataLoss):
        tree.symlink(b"link", PLAIN, b"t" * 5000)


def test_sparse_files(tree: LayerTree, root: Path) -> None:
    pieces = [memoryview(b"ab"), memoryview(b"cdef"), memoryview(b"gh")]
    tree.file(b"sparse", PLAIN, pieces, size=1 << 30, segments=[(10, 3), (1 << 20, 5)])
    state = (root / "sparse").stat()
    assert state.st_size == 1 << 30
    assert state.st_blocks * 512 < 1 << 20
    with (root / "sparse").open("rb") as file:
        assert file.read(14) == bytes(10) + b"abc\0"
        file.seek(1 << 20)
        assert file.read(6) == b"defgh\0"
    assert tree.finish().used_bytes < 1 << 20


@pytest.mark.root
def test_a_full_disk_is_told_as_such(tree: LayerTree, root: Path) -> None:
    disk = root.parent / "disk"
    disk.mkdir()
    mounts.mount("tmpfs", str(disk), "tmpfs", 0, "size=64k")
    try:
        small = new_tree(disk)
        with pytest.raises(ResourceExhausted, match=r"'big'.*no space"):
            put(small, b"big", bytes(200_000))
        small.close()
    finally:
        mounts.unmount(str(disk))


def test_many_directories_do_not_hold_many_descriptors(tree: LayerTree) -> None:
    before = count_descriptors()
    for number in range(300):
        put(tree, b"d%d/e/file" % number)
    assert count_descriptors() - before <= parents.MAX_OPEN + 8
    tree.finish()
    tree.close()
    assert count_descriptors() == before - 1


def test_what_names_imply_is_counted_and_bounded(root: Path) -> None:
    tally = Tally()
    tree = new_tree(root, tally, max_inodes=100)
    put(tree, b"a/" * 50 + b"f")
    assert (tally.inodes, tally.used_bytes) == (51, 51 * 4096 + 1)
    with pytest.raises(ResourceExhausted, match="more than 100 entries and directories"):
        put(tree, b"b/" * 100 + b"f")
    assert tally.inodes <= 101
    tree.close()


def test_the_paths_of_implied_directories_are_bounded(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layer_tree, "MAX_IMPLIED_BYTES", 100_000)
    tree = new_tree(root)
    put(tree, b"a/" * 200 + b"f")  # about 40,000 of paths, and 12,800 for keeping them
    with pytest.raises(ResourceExhausted, match="without an entry"):
        put(tree, b"b/" * 300 + b"f")
    tree.close()


def test_work_is_given_up_in_the_midst_of_a_name(root: Path) -> None:
    tally = Tally(at_inodes=30, stop=lambda: Aborted("given up"))
    tree = new_tree(root, tally)
    before = count_descriptors()
    with pytest.raises(Aborted):
        put(tree, b"a/" * 1000 + b"f")
    assert tally.inodes == 30
    tree.close()
    assert count_descriptors() < before


def test_every_way_to_grow_is_asked_about(root: Path) -> None:
    tally = Tally()
    tree = new_tree(root, tally)
    attempts: list[tuple[int, int, Callable[[], None]]] = [
        (1, 4096 + 1, lambda: put(tree, b"file")),
        (1, 4096, lambda: tree.directory(b"folder", FOLDER)),
        (0, 0, lambda: tree.directory(b"folder", FOLDER)),
        (1, 0, lambda: tree.symlink(b"link", PLAIN, b"x")),
        (0, 0, lambda: tree.hardlink(b"again", PLAIN, b"file")),
        (1, 0, lambda: tree.node(b"fifo", PLAIN, stat.S_IFIFO)),
        (
            1,
            3 * 4096 + 8,
            lambda: tree.file(
                b"sparse", PLAIN, [memoryview(b"12345678")], size=1 << 20, segments=[(0, 4), (1 << 19, 4)]
            ),
        ),
    ]
    for inodes, used_bytes, attempt in attempts:
        was = tally.inodes, tally.used_bytes
        attempt()
        assert (tally.inodes - was[0], tally.used_bytes - was[1]) == (inodes, used_bytes)
    assert tree.finish().inodes == tally.inodes + 1
    tree.close()


def test_the_times_of_many_directories(tree: LayerTree, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory_times, "MEMORY_BYTES", 100)
    spooled = new_tree(root)
    for number in range(50):
        spooled.directory(b"d%d" % number, Attributes(mode=0o755, mtime_ns=number * 1_000_000_007))
        put(spooled, b"d%d/f" % number)
    spooled.directory(b"d7", Attributes(mode=0o755, mtime_ns=-5))
    spooled.finish()
    spooled.close()
    assert [(root / f"d{number}").stat().st_mtime_ns for number in (3, 7, 49)] == [3_000_000_021, -5, 49_000_000_343]
    assert [path.name for path in root.parent.iterdir()] == ["root"]


NAME = st.sampled_from([b"a", b"b", b"c", b"..", b"."])
PATH = st.lists(NAME, min_size=1, max_size=4).map(b"/".join).flatmap(lambda p: st.sampled_from([p, b"/" + p, p + b"/"]))
OPERATION = st.one_of(
    st.tuples(st.just("file"), PATH),
    st.tuples(st.just("directory"), PATH),
    st.tuples(
        st.just("symlink"), PATH, st.sampled_from([b"..", b"../..", b"/", b"a", b"/b", b"../canary", b"../../canary"])
    ),
    st.tuples(st.just("hardlink"), PATH, PATH),
    st.tuples(st.just("whiteout"), PATH),
    st.tuples(st.just("opaque"), PATH),
    st.tuples(st.just("fifo"), PATH),
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(OPERATION, max_size=25))
def test_whatever_an_archive_says_nothing_outside_changes(
    tmp_path: Path, operations: list[tuple[str, bytes] | tuple[str, bytes, bytes]]
) -> None:
    base = tmp_path / os.urandom(8).hex()
    outer = base / "outer"
    root = outer / "root"
    root.mkdir(parents=True)
    for folder in (base, outer):
        (folder / "canary").mkdir()
        (folder / "canary/file").write_text("alive")
    tree = new_tree(root)
    for kind, name, *rest in operations:
        other = b"".join(rest)
        try:
            if kind == "file":
                put(tree, name)
            elif kind == "directory":
                tree.directory(name, FOLDER)
            elif kind == "symlink":
                tree.symlink(name, PLAIN, other)
            elif kind == "hardlink":
                tree.hardlink(name, PLAIN, other)
            elif kind == "whiteout":
                tree.whiteout(name)
            elif kind == "opaque":
                tree.opaque(name)
            else:
                tree.node(name, PLAIN, stat.S_IFIFO)
        except EngineError:
            continue
    facts = tree.finish()
    tree.close()
    inherit.attributes(str(root), [str(outer)], facts.implied)
    for folder, names in ((base, {"canary", "outer"}), (outer, {"canary", "root"})):
        assert {path.name for path in folder.iterdir()} == names
        assert [path.name for path in (folder / "canary").iterdir()] == ["file"]
        assert (folder / "canary/file").read_text() == "alive"
        assert (folder / "canary/file").stat().st_nlink == 1

"""What directories take from the layers below. More, with owners and mounts: tests/integration/storage."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from isulad_py.host import inherit
from isulad_py.model.errors import DataLoss, EngineError, HostFailure, ResourceExhausted, Unsupported


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def layer(path: Path, **folders: int) -> Path:
    path.mkdir()
    for name, bits in folders.items():
        (path / name).mkdir()
        (path / name).chmod(bits)
    return path


def test_the_nearest_layer_below_counts(tmp_path: Path) -> None:
    low = layer(tmp_path / "low", a=0o700, b=0o711, c=0o1777)
    middle = layer(tmp_path / "middle", a=0o750)
    top = layer(tmp_path / "top", a=0o755, b=0o755, c=0o755, d=0o755)
    os.utime(middle / "a", (7, 7))
    inherit.attributes(str(top), [str(middle), str(low)], [b"a", b"b", b"d"])
    assert [mode(top / name) for name in "abcd"] == [0o750, 0o711, 0o755, 0o755]
    assert (top / "a").stat().st_mtime == 7


def test_what_is_hidden_in_between_does_not_count(tmp_path: Path) -> None:
    low = layer(tmp_path / "low", a=0o700, b=0o700)
    middle = layer(tmp_path / "middle")
    (middle / "a").write_text("a file")
    (middle / "b").symlink_to("/")
    top = layer(tmp_path / "top", a=0o755, b=0o755)
    inherit.attributes(str(top), [str(middle), str(low)], [b"a", b"b"])
    assert (mode(top / "a"), mode(top / "b")) == (0o755, 0o755)


def test_links_are_never_followed(tmp_path: Path) -> None:
    outside = layer(tmp_path / "outside", d=0o755)
    low = layer(tmp_path / "low", a=0o700)
    (low / "a/d").mkdir(0o700)
    top = layer(tmp_path / "top")
    (top / "a").symlink_to(outside)
    inherit.attributes(str(top), [str(low)], [b"a", b"a/d", b"gone"])
    assert mode(outside / "d") == 0o755


def refusing(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "setxattr", refuse)


CASES = [
    ("security.capability", errno.EPERM, Unsupported, "may not set it"),
    ("security.ima", errno.EPERM, Unsupported, "may not set it"),
    ("security.capability", errno.EINVAL, DataLoss, "invalid argument"),
    ("user.big", errno.E2BIG, DataLoss, "argument list too long"),
    ("user.big", errno.ENOSPC, Unsupported, "cannot hold one of that size"),
    ("user.x", errno.EIO, HostFailure, "input/output error"),
]


@pytest.mark.parametrize(("name", "number", "kind", "words"), CASES)
@pytest.mark.parametrize("by_path", [True, False])
def test_attributes_that_are_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    number: int,
    kind: type[EngineError],
    words: str,
    by_path: bool,
) -> None:
    refusing(monkeypatch, number)
    fd = os.open(tmp_path, os.O_RDONLY)
    try:
        with pytest.raises(kind, match=rf"attribute '{name}' of 3 bytes: .*{words}"):
            inherit.set_xattrs(str(tmp_path) if by_path else fd, {name: b"abc"})
    finally:
        os.close(fd)


def test_a_full_disk_is_not_taken_for_a_small_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refusing(monkeypatch, errno.ENOSPC)
    monkeypatch.setattr(inherit, "_ROOM", 1 << 62)
    with pytest.raises(ResourceExhausted, match="no space left"):
        inherit.set_xattrs(str(tmp_path), {"user.a": b"x"})


@pytest.mark.parametrize(("name", "number"), [("user.a", errno.EPERM), ("security.capability", errno.EOPNOTSUPP)])
def test_attributes_that_a_file_cannot_have_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, number: int
) -> None:
    refusing(monkeypatch, number)
    inherit.set_xattrs(str(tmp_path), {name: b"x"})


@pytest.mark.root
@pytest.mark.parametrize("marked", ["top", "middle", "low"])
def test_what_lies_below_an_opaque_layer_does_not_count(tmp_path: Path, marked: str) -> None:
    low = layer(tmp_path / "low", a=0o700)
    middle = layer(tmp_path / "middle")
    middle.chmod(0o711)
    top = layer(tmp_path / "top", a=0o755)
    os.setxattr(tmp_path / marked, inherit.OPAQUE, b"y")
    assert [inherit.is_opaque(str(path)) for path in (top, middle, low)] == [
        marked == name for name in ("top", "middle", "low")
    ]
    inherit.attributes(str(top), [str(middle), str(low)], [b"", b"a"])
    assert mode(top / "a") == (0o700 if marked == "low" else 0o755)
    assert mode(top) == 0o711, "the mark hides what is in the root, not the root"

"""What directories take from the layers below. More, with owners and mounts: tests/integration/storage."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from isulad_py.host import inherit


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

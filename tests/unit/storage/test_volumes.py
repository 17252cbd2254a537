from __future__ import annotations

from pathlib import Path

import pytest

from isulad_py.model.errors import ResourceExhausted
from isulad_py.storage import volumes


def test_each_has_a_directory_with_what_the_image_has_there(tmp_path: Path) -> None:
    folder, root = tmp_path / "container", tmp_path / "root"
    folder.mkdir()
    (root / "a").mkdir(parents=True)
    (root / "a/file").write_text("x")
    (root / "b").mkdir(mode=0o700)
    wanted = volumes.directories(str(folder), ("/a", "/b"))
    assert wanted == {"/a": f"{folder}/volumes/0", "/b": f"{folder}/volumes/1"}
    included: list[str] = []
    volumes.fill(str(folder), str(root), wanted, included.append)
    assert included == [f"{folder}/volumes"]
    assert Path(wanted["/a"], "file").read_text() == "x"
    assert Path(wanted["/b"]).stat().st_mode & 0o777 == 0o700


def test_what_a_former_attempt_left_is_gone(tmp_path: Path) -> None:
    (tmp_path / "root/a").mkdir(parents=True)
    wanted = volumes.directories(str(tmp_path), ("/a",))
    for _ in range(2):
        volumes.fill(str(tmp_path), str(tmp_path / "root"), wanted, print)
        assert list(Path(wanted["/a"]).iterdir()) == []
        Path(wanted["/a"], "old").touch()


def test_they_share_one_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(volumes, "MAX_ENTRIES", 3)
    (tmp_path / "root/a/b/c").mkdir(parents=True)
    wanted = volumes.directories(str(tmp_path), ("/a", "/a/b"))
    volumes.fill(str(tmp_path), str(tmp_path / "root"), wanted, print)
    monkeypatch.setattr(volumes, "MAX_ENTRIES", 2)
    with pytest.raises(ResourceExhausted):
        volumes.fill(str(tmp_path), str(tmp_path / "root"), wanted, print)

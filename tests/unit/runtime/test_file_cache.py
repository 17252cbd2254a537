from __future__ import annotations

import os
from pathlib import Path

import pytest

from isulad_py.model.errors import InvalidInput, NotFound, ResourceExhausted
from isulad_py.runtime import file_cache
from isulad_py.runtime.file_cache import FileCache, names


class Parser:
    def __init__(self) -> None:
        self.parsed: list[str] = []

    def __call__(self, path: str, data: bytes) -> str:
        self.parsed.append(path)
        if data == b"bad":
            raise InvalidInput("bad")
        return data.decode()


def test_a_file_is_parsed_again_only_when_it_has_changed(tmp_path: Path) -> None:
    parse = Parser()
    cache = FileCache(parse, limit_bytes=100)
    path = tmp_path / "a"
    path.write_text("one")
    for _ in range(3):
        assert cache.read([str(path)]) == {str(path): "one"}
    assert len(parse.parsed) == 1
    path.write_text("longer")
    assert cache.read([str(path)]) == {str(path): "longer"}
    replacement = tmp_path / "b"
    replacement.write_text("linger")
    os.utime(replacement, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    replacement.replace(path)
    assert cache.read([str(path)]) == {str(path): "linger"}


def test_one_bad_file_leaves_the_others(tmp_path: Path) -> None:
    parse = Parser()
    cache = FileCache(parse, limit_bytes=5)
    for name, text in (("good", "ok"), ("bad", "bad"), ("long", "x" * 6)):
        (tmp_path / name).write_text(text)
    os.mkfifo(tmp_path / "fifo")
    paths = {name: str(tmp_path / name) for name in ("good", "bad", "long", "fifo", "missing")}
    for _ in range(2):
        found = cache.read(paths.values())
        assert found[paths["good"]] == "ok"
        assert isinstance(found[paths["bad"]], InvalidInput)
        assert isinstance(found[paths["long"]], ResourceExhausted)
        assert isinstance(found[paths["fifo"]], Exception)
        assert isinstance(found[paths["missing"]], Exception)
    assert parse.parsed == [paths["good"], paths["bad"]]


def test_names_of_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("b.json", "a.yaml", "c.txt"):
        (tmp_path / name).touch()
    assert names(str(tmp_path), (".json", ".yaml")) == ["a.yaml", "b.json"]
    assert names(str(tmp_path / "none"), (".json",)) == []
    monkeypatch.setattr(file_cache, "MOST_FILES", 1)
    with pytest.raises(ResourceExhausted, match="more than 1 files"):
        names(str(tmp_path), (".json", ".yaml"))
    with pytest.raises(Exception, match="list") as caught:
        names(f"{tmp_path}/{'x' * 300}", (".json",))
    assert not isinstance(caught.value, NotFound)

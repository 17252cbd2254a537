from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from isulad_py.network.directory import FINDING_LIMIT, load


def put(path: Path, **keys: Any) -> None:
    known = {"cniVersion": "1.0.0", "name": path.stem, "plugins": [{"type": "bridge"}]}
    path.write_text(json.dumps({**known, **keys}))


def test_an_empty_or_missing_directory(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "missing"):
        loaded = load(str(folder))
        assert (loaded.config, loaded.path, loaded.findings) == (None, "", ())


def test_the_first_valid_file_in_the_order_of_names(tmp_path: Path) -> None:
    (tmp_path / "00-broken.conflist").write_text("{")
    (tmp_path / "05-typed.conf").write_text('{"cniVersion": "1.0.0", "name": 5}')
    put(tmp_path / "20-second.conflist")
    put(tmp_path / "10-first.json")
    (tmp_path / "99-late.conf").write_text("[]")
    loaded = load(str(tmp_path))
    assert loaded.config is not None
    assert loaded.config.name == "10-first"
    assert loaded.path == str(tmp_path / "10-first.json")
    assert [finding.split(":")[0] for finding in loaded.findings] == [
        "00-broken.conflist",
        "05-typed.conf",
        "99-late.conf",
    ]
    assert "name" in loaded.findings[1]


def test_what_is_no_configuration_is_not_looked_at(tmp_path: Path) -> None:
    for name in (".10-hidden.conflist", "10-x.conflist.bak", "README", "isulacni-mine.conflist"):
        put(tmp_path / name)
    (tmp_path / "05-folder.conf").mkdir()
    assert load(str(tmp_path)).config is None
    assert load(str(tmp_path)).findings == ()


def test_odd_files_are_findings(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "1.conf")
    (tmp_path / "2.conf").symlink_to("nowhere")
    (tmp_path / "3.conf").symlink_to("3.conf")
    (tmp_path / "4.conf").write_bytes(b" " * (1024 * 1024 + 1))
    (tmp_path / "real").mkdir()
    put(tmp_path / "real" / "x")
    (tmp_path / "5.conf").symlink_to("real/x")
    loaded = load(str(tmp_path))
    assert [finding[:6] for finding in loaded.findings] == ["1.conf", "2.conf", "3.conf", "4.conf"]
    assert loaded.path == str(tmp_path / "5.conf")


def test_names_that_are_no_text(tmp_path: Path) -> None:
    for number, content in ((1, "{"), (2, '{"cniVersion": "1.0.0", "name": "net", "type": "bridge"}')):
        (tmp_path / os.fsdecode(b"%d-\xff.conf" % number)).write_text(content)
    loaded = load(str(tmp_path))
    assert loaded.path == str(tmp_path / "2-?.conf")
    assert loaded.findings[0].startswith("1-?.conf: ")


def test_findings_are_bounded(tmp_path: Path) -> None:
    for i in range(FINDING_LIMIT + 10):
        (tmp_path / f"{i:03}.conf").touch()
    assert len(load(str(tmp_path)).findings) == FINDING_LIMIT


def test_a_path_that_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert load(str(tmp_path / "file")).config is None
    (tmp_path / "loop").symlink_to("loop")
    assert "loop" in load(str(tmp_path / "loop")).findings[0]


def test_plugins_from_the_networks_own_folder(tmp_path: Path) -> None:
    put(tmp_path / "10.conflist", name="net", cniVersion="1.1.0")
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "20.conf").write_text('{"type": "second"}')
    (tmp_path / "net" / "10.conf").write_text('{"type": "first"}')
    (tmp_path / "net" / "30.json").write_text('{"type": "not-one"}')
    config = load(str(tmp_path)).config
    assert config is not None
    assert [plugin.type for plugin in config.plugins] == ["bridge", "first", "second"]
    (tmp_path / "net" / "20.conf").write_text("{}")
    loaded = load(str(tmp_path))
    assert loaded.config is None
    assert "net/20.conf" in loaded.findings[0]

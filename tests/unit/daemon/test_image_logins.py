from __future__ import annotations

import base64
import io
import json
from pathlib import Path

import pytest

from isulad_py.daemon.image_logins import credentials_from_file, credentials_from_line
from isulad_py.model.errors import EngineError, InvalidInput, NotFound


def auths(path: Path, host: str, **entry: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"auths": {host: entry}}))
    return str(path)


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_a_line() -> None:
    found = credentials_from_line(io.StringIO("user:a:b \r\nmore"))
    assert (found.username, found.password) == ("user", "a:b ")


@pytest.mark.parametrize("text", ["", "user\n", ":password\n", "\nuser:password"])
def test_no_such_line(text: str) -> None:
    with pytest.raises(InvalidInput, match="standard input") as caught:
        credentials_from_line(io.StringIO(text))
    assert "password" not in str(caught.value)


def test_the_file_that_is_named(tmp_path: Path) -> None:
    path = auths(tmp_path / "auth.json", "r.example:5000", auth=encoded("user:secret"))
    found = credentials_from_file("r.example:5000/app:1", path, {})
    assert found is not None
    assert (found.username, found.password) == ("user", "secret")
    assert credentials_from_file("other.example/app", path, {}) is None
    path = auths(tmp_path / "auth.json", "r.example:5000/team", auth=encoded("team:secret"))
    found = credentials_from_file("r.example:5000/team/app", path, {})
    assert found is not None
    assert found.username == "team"
    assert credentials_from_file("r.example:5000/app:1", path, {}) is None
    with pytest.raises(NotFound):
        credentials_from_file("app", str(tmp_path / "absent"), {})
    (tmp_path / "bad").write_text("{")
    with pytest.raises(EngineError, match="bad"):
        credentials_from_file("app", str(tmp_path / "bad"), {})


def test_where_others_keep_theirs(tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path / "home"), "XDG_RUNTIME_DIR": str(tmp_path / "run")}
    assert credentials_from_file("app", "", environment) is None
    assert credentials_from_file("app", "", {}) is None
    auths(tmp_path / "home/.docker/config.json", "https://index.docker.io/v1/", identitytoken="token")
    found = credentials_from_file("app", "", environment)
    assert found is not None
    assert found.identity_token == "token"
    auths(tmp_path / "run/containers/auth.json", "docker.io", auth=encoded("first:secret"))
    found = credentials_from_file("app", "", environment)
    assert found is not None
    assert found.username == "first"
    named = auths(tmp_path / "named", "docker.io", auth=encoded("named:secret"))
    found = credentials_from_file("app", "", {**environment, "REGISTRY_AUTH_FILE": named})
    assert found is not None
    assert found.username == "named"

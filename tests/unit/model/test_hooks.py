from __future__ import annotations

import json
from typing import Any

import pytest

from isulad_py.model.errors import InvalidInput
from isulad_py.model.hooks import MOST_HOOKS, STAGES, Hook, When, parse_hook_file, parse_hook_spec


def file(**fields: Any) -> bytes:
    plain = {"version": "1.0.0", "hook": {"path": "/bin/h"}, "when": {"always": True}, "stages": ["prestart"]}
    return json.dumps({**plain, **fields}).encode()


def test_every_stage_of_a_hook_spec() -> None:
    found = parse_hook_spec(json.dumps({stage: [{"path": f"/bin/{stage}"}] for stage in STAGES}).encode())
    assert [(entry.stages, entry.hook.path) for entry in found] == [((stage,), f"/bin/{stage}") for stage in STAGES]
    assert all(entry.when.always for entry in found)


def test_a_whole_file() -> None:
    hook = {"path": "/bin/h", "args": ["h", "x"], "env": ["A=1"], "timeout": 3}
    when = {"annotations": {"^a$": "b"}, "commands": ["sh$"], "hasBindMounts": True}
    found = parse_hook_file(file(hook=hook, when=when, stages=["poststop", "prestart", "poststop"]))
    assert found.hook == Hook(path="/bin/h", args=("h", "x"), env=("A=1",), timeout=3)
    assert found.when == When(annotations={"^a$": "b"}, commands=("sh$",), has_bind_mounts=True)
    assert found.stages == ("poststop", "prestart")


@pytest.mark.parametrize(
    ("data", "named"),
    [
        (b"", "not an OCI hooks object"),
        (b"[" * 100_000, "not an OCI hooks object"),
        (b'{"prestrat":[]}', "prestrat"),
        (b'{"prestart":[{}]}', "path"),
        (b'{"prestart":[{"path":"h"}]}', r"prestart\[0\]\.path"),
        (b'{"prestart":[{"path":"/h","timeout":0}]}', r"prestart\[0\]\.timeout"),
        (b'{"prestart":[{"path":"/h"},{"path":"/h","env":["=x"]}]}', r"prestart\[1\]\.env"),
        (b'{"prestart":[{"path":"/h","args":["\\u0000"]}]}', "NUL"),
        (json.dumps({"prestart": [{"path": "/h"}] * (MOST_HOOKS + 1)}).encode(), "more than"),
    ],
)
def test_a_wrong_hook_spec_is_refused_by_name(data: bytes, named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        parse_hook_spec(data)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"version": "0.1.0"}, "version"),
        ({"stages": []}, "stages"),
        ({"stages": ["later"]}, "stages"),
        ({"when": {"commands": ["("]}}, "no regular expression"),
        ({"when": {"annotations": {"a": "("}}}, "no regular expression"),
        ({"when": {"or": True}}, "or"),
        ({"hook": {"path": "bin/h"}}, r"hook\.path"),
        ({"extra": 1}, "extra"),
    ],
)
def test_a_wrong_file_is_refused_by_name(fields: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        parse_hook_file(file(**fields))

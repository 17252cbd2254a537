from __future__ import annotations

import pytest

from isulad_py.config.convert import WrongType, convert
from isulad_py.config.keys import BY_NAME, KEYS, Kind
from isulad_py.config.schema import RuntimeEntry


@pytest.mark.parametrize(
    ("name", "raw", "value"),
    [
        ("graph", "/g", "/g"),
        ("hosts", ["unix:///a"], ("unix:///a",)),
        ("metrics-port", 1, 1),
        ("start-timeout", "2m", 120.0),
        ("cni-bin-dir", "/a;/b", ("/a", "/b")),
        (
            "runtimes",
            {"x": {"path": "/x", "runtime-args": ["-d"]}},
            {"x": RuntimeEntry(path="/x", runtime_args=("-d",))},
        ),
    ],
)
def test_values(name: str, raw: object, value: object) -> None:
    assert convert(BY_NAME[name], raw) == value


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_every_key_refuses_a_wrong_type_with_a_hint(key: object) -> None:
    wrong = {Kind.TEXT: 7, Kind.BOOL: "yes", Kind.INT: "1"}
    found = next(k for k in KEYS if k is key)
    with pytest.raises(WrongType) as error:
        convert(found, wrong.get(found.kind, True))
    assert error.value.hint.startswith("write ")
    assert "`" not in str(error.value)


def test_fields_inside_are_named() -> None:
    with pytest.raises(WrongType, match="runtime-argz"):
        convert(BY_NAME["runtimes"], {"x": {"runtime-argz": []}})
    with pytest.raises(WrongType, match="expected bool, got str"):
        convert(BY_NAME["registries"], {"h": {"insecure": "yes"}})

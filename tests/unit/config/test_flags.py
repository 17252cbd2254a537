from __future__ import annotations

import shlex

import pytest

from isulad_py.config.flags import FlagError, parse, parser, raw_value
from isulad_py.config.keys import BY_NAME, KEYS


def test_every_key_has_a_flag() -> None:
    text = parser().format_help()
    for key in KEYS:
        assert key.flags[-1] in text, key.name


def test_isulads_spellings() -> None:
    found = parse(
        shlex.split(
            "-H unix:///a --host unix:///b -p /p -g /g -S /s -G g -l DEBUG -s overlay2.size=1G --storage-opt a=b "
            "--insecure-registry r:5000 --default-ulimit nofile=1:2 --cri-runtime k=kata --tlscacert /ca "
            "--container-log-opts max-size=1MB --container-log-opts max-file=2 --systemd-cgroup"
        )
    )
    assert found.given == {
        "hosts": ["unix:///a", "unix:///b"],
        "pidfile": "/p",
        "graph": "/g",
        "state": "/s",
        "group": "g",
        "log-level": "DEBUG",
        "storage-opts": ["overlay2.size=1G", "a=b"],
        "insecure-registries": ["r:5000"],
        "default-ulimits": ["nofile=1:2"],
        "cri-runtimes": ["k=kata"],
        "tls-config": ["CAFile=/ca"],
        "container-log": ["opts=max-size=1MB", "opts=max-file=2"],
        "systemd-cgroup": "true",
    }


def test_other_switches() -> None:
    found = parse(["--config", "/c", "--validate-config"])
    assert (found.file, found.validate, found.version) == ("/c", True, False)
    assert parse(["-V"]).version
    assert parse(["--help"]).help


@pytest.mark.parametrize("argv", [["--no-such"], ["--graph"], ["extra"], ["--grap", "/g"]])
def test_bad_command_lines(argv: list[str]) -> None:
    with pytest.raises(FlagError):
        parse(argv)


@pytest.mark.parametrize(
    ("name", "given", "raw"),
    [
        ("systemd-cgroup", "true", True),
        ("systemd-cgroup", "0", False),
        ("systemd-cgroup", "maybe", "maybe"),
        ("metrics-port", "17", 17),
        ("metrics-port", "x", "x"),
        ("hosts", ["a"], ["a"]),
        ("sup-groups", ["5"], [5]),
        ("runtimes", ["x=/usr/bin/x"], {"x": {"path": "/usr/bin/x"}}),
        ("runtimes", ['x={"path":"/x"}'], {"x": {"path": "/x"}}),
        ("registries", ["docker.io=m1,m2"], {"docker.io": {"mirrors": ["m1", "m2"]}}),
        ("default-ulimits", ["nofile=1:2"], {"nofile": {"Name": "nofile", "Soft": 1, "Hard": 2}}),
        ("container-log", ["opts=a=1", "opts=b=2", "driver=d"], {"opts": {"a": "1", "b": "2"}, "driver": "d"}),
        ("graph", "/g", "/g"),
    ],
)
def test_raw_values(name: str, given: str | list[str], raw: object) -> None:
    assert raw_value(BY_NAME[name], given) == raw


@pytest.mark.parametrize("item", ["x", "=v", "x={bad"])
def test_bad_table_items(item: str) -> None:
    with pytest.raises(ValueError):
        raw_value(BY_NAME["runtimes"], [item])

"""The commands that README shows do what it says."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.root


def run(*arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=PROJECT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=100,
        check=False,
    )
    return done.returncode, done.stdout.decode()


def test_the_demo_shows_a_pods_life() -> None:
    status, shown = run("demo")
    assert status == 0, shown
    for label in (
        "pull",
        "pod",
        "create",
        "start",
        "http",
        "exec",
        "log",
        "stats",
        "crash",
        "stop",
        "remove",
        "look back",
    ):
        assert f"\n{label} " in shown
    assert "nothing of ours is left" in shown


def test_ctrl_c_in_the_demo_leaves_nothing() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "demo"], cwd=PROJECT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    ) as demo:
        assert demo.stdout is not None
        shown = ""
        while "\nstart " not in shown:
            line = demo.stdout.readline()
            assert line, shown
            shown += line
        demo.send_signal(signal.SIGINT)
        shown += demo.stdout.read()
    assert demo.returncode == 130, shown
    assert "nothing of ours is left" in shown


def test_the_bench_measures_our_daemon_without_an_error(tmp_path: Path) -> None:
    found = tmp_path / "bench.json"
    small = ("--pods", "1", "--parallel", "4", "--concurrency", "4", "--containers", "6", "--pulls", "1")
    status, shown = run("bench", *small, "--seccomp", "default", "--json", str(found))
    assert status == 0, shown
    assert "nothing is left behind" in shown
    document = json.loads(found.read_text(encoding="utf-8"))
    assert document["errors"] == {"isulad-py": []}
    assert document["skipped"] == []
    assert set(document["milliseconds"]["lists"]["isulad-py"]) == {"1", "4", "6"}
    assert document["ratios"]["isulad-py"]["pod up"] > 0

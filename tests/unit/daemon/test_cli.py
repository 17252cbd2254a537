from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from isulad_py import __version__
from isulad_py.daemon.cli import BAD_FLAGS, START_FAILURE, run


def isulad(*argv: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    return run(argv, out=out, err=err), out.getvalue(), err.getvalue()


@pytest.fixture
def sound(tmp_path: Path) -> list[str]:
    """Flags with which every machine passes the checks."""
    for name in ("conmon", "runc"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    runtimes = f"runc={tmp_path / 'runc'}"
    return ["--monitor", str(tmp_path / "conmon"), "--runtimes", runtimes, "--cni-bin-dir", str(tmp_path)]


def test_version_and_help() -> None:
    assert isulad("--version") == (0, f"isulad-py version {__version__}\n", "")
    status, out, _ = isulad("--help")
    assert status == 0
    assert "--validate-config" in out
    assert "isulad image --help" in out


def test_bad_flags_have_a_status_of_their_own() -> None:
    status, out, err = isulad("--no-such-flag")
    assert (status, out) == (BAD_FLAGS, "")
    assert "--no-such-flag" in err
    status, _, err = isulad("--metrics-port", "many")
    assert status == BAD_FLAGS
    assert "metrics-port" in err


def test_all_findings_are_printed_and_the_start_refused(tmp_path: Path) -> None:
    file = tmp_path / "daemon.json"
    file.write_text(json.dumps({"graph": 1, "grph": "/x", "log-level": "LOUD"}))
    status, _, err = isulad("--config", str(file))
    assert status == START_FAILURE
    assert err.count("error: ") >= 3
    for key in ("graph:", "grph:", "log-level:"):
        assert key in err


def test_validation_alone(tmp_path: Path, sound: list[str]) -> None:
    file = tmp_path / "daemon.json"
    file.write_text(json.dumps({"nri-support": True}))
    status, out, err = isulad("--config", str(file), *sound, "--validate-config")
    assert (status, err) == (0, "")
    assert "nri-support" in out
    assert "valid (1 warnings)" in out
    file.write_text("{")
    status, out, err = isulad("--config", str(file), "--validate-config")
    assert status == START_FAILURE
    assert "[syntax]" in out


def test_the_quick_answers_import_no_daemon() -> None:
    script = (
        "import io, sys; from isulad_py.daemon.cli import run; run(['--help'], out=io.StringIO(), err=io.StringIO());"
        "print([m for m in ('asyncio', 'aiohttp', 'uvloop', 'msgspec', 'structlog') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_daemon_imports_nothing_that_only_people_at_terminals_need() -> None:
    """Each of these is installed beside it, costs megabytes, and has been imported by accident before."""
    script = (
        "import sys; from isulad_py.daemon.cli import load_daemon; load_daemon(); import isulad_py.daemon.bootstrap;"
        "print([m for m in ('rich', 'pygments', 'pyroute2', 'grpc', 'unittest', 'black') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

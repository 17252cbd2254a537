"""CRIU for tests that take checkpoints: the first `criu` in PATH that works on this kernel."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest


def working_criu() -> str:
    """Its absolute path; skips the test where there is none."""
    reason = "criu is not installed"
    for folder in os.environ.get("PATH", "").split(":"):
        path = shutil.which("criu", path=folder)
        if path is None:
            continue
        done = subprocess.run([path, "check"], capture_output=True, text=True, timeout=30, check=False)
        if done.returncode == 0:
            return str(Path(path).absolute())
        reason = f"{path} check: {(done.stderr.strip().splitlines() or ['no word'])[0]}"
    pytest.skip(reason)

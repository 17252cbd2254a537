"""The real OCI runtimes that suites run with, one after the other."""

from __future__ import annotations

import os
import shutil

import pytest

from isulad_py.model.handlers import RuntimeHandler

RUNTIMES = ("runc", "crun")
HANDLER = "tried"
"""Of whichever runtime a suite runs with."""


def program(name: str) -> str:
    """The runtime's path. TEST_RUNC and TEST_CRUN name other builds than the installed ones; one that is not there is a
    reason to skip."""
    path = shutil.which(os.environ.get(f"TEST_{name.upper()}", name))
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path


def handlers(name: str) -> dict[str, RuntimeHandler]:
    return {HANDLER: RuntimeHandler(name=HANDLER, path=program(name))}

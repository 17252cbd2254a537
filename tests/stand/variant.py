"""Which daemon a stand starts: the same suites run with another cgroup driver, another runtime, on a slow machine.

Two variables of the environment say so: STAND_KEYS, a JSON object of keys of daemon.json, and STAND_PATIENCE, by how
much longer than usual to wait (an emulated machine is ten times slower).
"""

from __future__ import annotations

import json
import os
from typing import Any, Final

KEYS: Final[dict[str, Any]] = json.loads(os.environ.get("STAND_KEYS") or "{}")
PATIENCE: Final = float(os.environ.get("STAND_PATIENCE") or 1)
SYSTEMD: Final = bool(KEYS.get("systemd-cgroup"))
"""Cgroups are systemd's to make."""
RUNTIME: Final[str] = KEYS.get("default-runtime", "runc")


def cgroup_root(word: str) -> str:
    """`cgroup-parent` of a stand, as the driver is told."""
    return f"{word}.slice" if SYSTEMD else f"/{word}"

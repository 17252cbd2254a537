"""Where a container is on the machine: its process, its cgroup, what systemd knows of it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.stand.node import Node

ROOT = Path("/sys/fs/cgroup")


def process_of(node: Node, container_id: str) -> int:
    request = node.m.ContainerStatusRequest(container_id=container_id, verbose=True)
    return int(json.loads(node.call("ContainerStatus", request).info["info"])["pid"])


def cgroup_path(pid: int | str) -> str:
    """Below the root of cgroup v2."""
    return Path(f"/proc/{pid}/cgroup").read_text().strip().removeprefix("0::")


def cgroup_of(node: Node, container_id: str) -> Path:
    return ROOT / cgroup_path(process_of(node, container_id)).lstrip("/")


def units(pattern: str) -> list[str]:
    """Names of the units that systemd has loaded, failed ones too."""
    argv = ["systemctl", "list-units", "--all", "--plain", "--no-legend", "--full", pattern]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)
    return [line.split()[0] for line in done.stdout.splitlines()]

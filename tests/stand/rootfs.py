"""A root file system and a runtime spec as small as they can be, for tests of the runtime alone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

APPLETS = ("sh", "sleep", "true", "false", "cat", "echo", "ps", "setsid", "ls", "head", "yes", "stty", "kill", "dd")
CAPABILITIES = ["CAP_CHOWN", "CAP_KILL", "CAP_SETUID", "CAP_SETGID"]


def make_rootfs(path: Path) -> Path:
    """busybox with its applets as links."""
    busybox = shutil.which("busybox") or "/usr/bin/busybox"
    for name in ("bin", "proc", "dev", "tmp"):
        (path / name).mkdir(parents=True)
    shutil.copy2(busybox, path / "bin/busybox")
    for applet in APPLETS:
        (path / "bin" / applet).symlink_to("busybox")
    return path


def process(args: Sequence[str], *, terminal: bool = False) -> dict[str, Any]:
    """OCI runtime spec, process."""
    return {
        "terminal": terminal,
        "user": {"uid": 0, "gid": 0},
        "args": list(args),
        "env": ["PATH=/bin"],
        "cwd": "/",
        "capabilities": dict.fromkeys(("bounding", "effective", "permitted"), CAPABILITIES),
    }


def spec(
    args: Sequence[str],
    *,
    root: Path,
    cgroup: str,
    terminal: bool = False,
    memory_bytes: int = 0,
    own_pids: bool = True,
) -> bytes:
    """config.json. `own_pids`: a PID namespace of its own."""
    kinds = ["ipc", "uts", "mount", "network"] + (["pid"] if own_pids else [])
    resources: dict[str, Any] = {"devices": [{"allow": False, "access": "rwm"}]}
    if memory_bytes:
        resources["memory"] = {"limit": memory_bytes, "swap": memory_bytes}
    device = ["nosuid", "strictatime", "mode=755", "size=65536k"]
    terminals = ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"]
    document = {
        "ociVersion": "1.0.2",
        "process": process(args, terminal=terminal),
        "root": {"path": str(root), "readonly": True},
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": device},
            {"destination": "/dev/pts", "type": "devpts", "source": "devpts", "options": terminals},
            {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs"},
        ],
        "linux": {
            "namespaces": [{"type": kind} for kind in kinds],
            "cgroupsPath": cgroup,
            "resources": resources,
        },
    }
    return json.dumps(document).encode()

"""The mark of one stand: a random word that all it makes bears in its name, and the one folder it lives in."""

from __future__ import annotations

import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.stand.variant import cgroup_root


@dataclass(frozen=True)
class Mark:
    word: str
    """At most 12 characters, so that it is a legal interface name (15) with room for a suffix."""
    root: Path

    @property
    def cgroup_parent(self) -> str:
        return cgroup_root(self.word)


def make_mark(kind: str) -> Mark:
    """A new mark with its (empty) folder; short, because a socket's path may have 107 characters."""
    word = f"{kind}{secrets.token_hex(4)}"
    root = Path(tempfile.gettempdir()) / f"isulad-{word}"
    root.mkdir(mode=0o711)  # root of a user namespace has to get through
    return Mark(word, root)


def run(argv: Sequence[str], *, seconds: float = 60, check: bool = True) -> str:
    """Run a command and give its output; a failure carries what it said."""
    done = subprocess.run(
        list(argv),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=seconds,
        check=False,
    )
    if check and done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip()
        raise OSError(f"{' '.join(argv)}: exit status {done.returncode}: {said}")
    return done.stdout.decode(errors="replace")


def find_program(*names: str) -> str:
    """The first of the names that can be started; sbin is looked in whatever PATH says."""
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    for name in names:
        found = shutil.which(name) or shutil.which(name, path=path)
        if found:
            return found
    raise FileNotFoundError(f"none of {', '.join(names)} is installed")


def cni_bin_dir() -> Path:
    for folder in ("/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"):
        if (Path(folder) / "bridge").exists():
            return Path(folder)
    raise FileNotFoundError("no CNI plugins in /usr/lib/cni, /opt/cni/bin or /usr/libexec/cni")

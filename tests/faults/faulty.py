"""Real programs behind a wrapper that can be told to fail at a call."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path

from isulad_py.host.process import PATH

_PROGRAM = Path(__file__).with_name("program.py")


@dataclass
class FaultyProgram:
    """Writes the wrapper into `folder`. `fail("exec", 2, "hang")` is for the second `exec` from the start, call 0 for
    every one; conmon's only command is `monitor`. What faults there are, `program.py` tells; any other word is the
    message of an error."""

    folder: Path
    real: str
    plan: list[dict[str, str | int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        self._write_plan()
        real = shutil.which(self.real, path=PATH)
        assert real is not None
        words = [sys.executable, "-I", "-S", str(_PROGRAM), str(self.folder), real]
        self.path.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        self.path.chmod(0o755)

    @property
    def path(self) -> Path:
        return self.folder / Path(self.real).name

    def fail(self, command: str, call: int, fault: str) -> None:
        self.plan.append({"command": command, "call": call, "fault": fault})
        self._write_plan()

    def heal(self) -> None:
        self.plan.clear()
        self._write_plan()

    def _write_plan(self) -> None:
        temporary = self.folder / "plan.new"
        temporary.write_text(json.dumps(self.plan))
        temporary.rename(self.folder / "plan.json")

    def calls(self, command: str) -> list[list[str]]:
        """The arguments of each call."""
        path = self.folder / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        return [json.loads(line.partition(" ")[2]) for line in lines if line.startswith(f"{command} ")]

"""The simulated OCI runtime and monitor, ready to be called; for tests without root."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from isulad_py.host.clock import SystemClock
from isulad_py.model.handlers import RuntimeHandler
from isulad_py.model.ids import ContainerId, new_id
from isulad_py.ports.runtime import ExecCommand, Launch
from isulad_py.runtime.adapter import OciRuntime, Options
from tests.fakes.facts import host_facts


@dataclass
class SimulatedPrograms:
    """`runtime` and `monitor` are programs in `folder`."""

    folder: Path

    def __post_init__(self) -> None:
        for role in ("runtime", "monitor"):
            words = [sys.executable, "-I", "-S", str(Path(__file__).with_name("oci_program.py")), role]
            program = self.folder / role
            program.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
            program.chmod(0o755)

    @property
    def handlers(self) -> dict[str, RuntimeHandler]:
        return {"runc": RuntimeHandler(name="runc", path=str(self.folder / "runtime"))}

    @property
    def state(self) -> Path:
        return self.folder / "state"

    def adapter(self, *, create_seconds: float = 20.0, program_seconds: float = 60.0, criu: str = "criu") -> OciRuntime:
        return OciRuntime(
            handlers=self.handlers,
            facts=host_facts(),
            clock=SystemClock(),
            options=Options(
                state=str(self.state),
                monitor=str(self.folder / "monitor"),
                criu=criu,
                create_seconds=create_seconds,
                program_seconds=program_seconds,
            ),
        )


def launch(args: Sequence[str]) -> Launch:
    document = json.dumps({"process": {"args": list(args)}}).encode()
    return Launch(id=ContainerId(new_id()), handler="runc", spec=document)


def command(container_id: ContainerId, args: Sequence[str], *, seconds: float | None = None) -> ExecCommand:
    document = json.dumps({"args": list(args)}).encode()
    return ExecCommand(id=container_id, handler="runc", process=document, timeout_seconds=seconds)

"""Runtime handlers from `runtimes`, `cri-runtimes` and what is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from isulad_py.config.schema import Config, RuntimeEntry
from isulad_py.model.handlers import RuntimeHandler

BUILT_IN: Final = ("runc", "crun")
"""Runtimes that need no entry: found by their name, where they are installed."""

FindProgram = Callable[[str], str | None]
"""Absolute path of a program, or None."""


def runtime_handlers(config: Config, find_program: FindProgram) -> dict[str, RuntimeHandler]:
    """Every handler that pods may name, the default runtime among them; what is not installed is left out."""
    entries = {name: RuntimeEntry() for name in BUILT_IN} | config.runtimes
    programs = {name: (entry.path or name, entry) for name, entry in entries.items()}
    programs |= {name: programs[runtime] for name, runtime in config.cri_runtimes.items() if runtime in programs}
    handlers = {}
    for name, (program, entry) in programs.items():
        path = find_program(program)
        if path is not None:
            handlers[name] = RuntimeHandler(
                name=name,
                path=path,
                args=entry.runtime_args,
                annotations=entry.annotations,
                sandbox_mode=entry.sandbox_mode,
                seccomp_profile=entry.seccomp_profile,
                systemd_cgroup=config.systemd_cgroup,
            )
    return handlers

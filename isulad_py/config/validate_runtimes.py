"""Checks of runtimes, monitor, cgroups and limits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Final

from isulad_py.config.findings import Finding, Severity
from isulad_py.config.runtimes import BUILT_IN, FindProgram
from isulad_py.config.schema import Config

MODES: Final = ("namespaces", "pause")


def check(config: Config, find_program: FindProgram) -> Iterator[Finding]:
    yield from _programs(config, find_program)
    yield from _handlers(config)
    yield from _modes(config)
    yield from _cgroup(config)
    yield from _limits(config)


def _programs(config: Config, find_program: FindProgram) -> Iterator[Finding]:
    if not find_program(config.monitor):
        message = f"no program {config.monitor}, the monitor of every container"
        yield Finding(id="missing-program", key="monitor", message=message, hint="Debian: apt install conmon")
    yield from _criu(config.criu, find_program)
    for name, entry in config.runtimes.items():
        program = entry.path or name
        if not find_program(program):
            hint = "remove the entry, or install the runtime"
            yield Finding(id="missing-program", key="runtimes", message=f"{name}: no program {program}", hint=hint)
    default = config.default_runtime
    if default in config.runtimes:
        return
    if default not in BUILT_IN:
        hint = f"known are {', '.join((*BUILT_IN, *config.runtimes))}"
        yield Finding(id="bad-value", key="default-runtime", message=f"{default!r} is not in runtimes", hint=hint)
    elif not find_program(default):
        message = f"no program {default}"
        yield Finding(
            id="missing-program", key="default-runtime", message=message, hint=f"Debian: apt install {default}"
        )


def _criu(program: str, find_program: FindProgram) -> Iterator[Finding]:
    """Runtimes look it up by its name. A node without it is none of our business."""
    path = PurePosixPath(program)
    if program in {"", "criu"}:
        return
    if not path.is_absolute() or path.name != "criu":
        hint = "criu, or an absolute path that ends in /criu"
        yield Finding(id="bad-value", key="criu", message=f"{program!r} is not how runtimes can find it", hint=hint)
    elif not find_program(program):
        message = f"no program {program}: checkpoints will be refused"
        yield Finding(id="missing-program", key="criu", message=message, severity=Severity.WARNING)


def _handlers(config: Config) -> Iterator[Finding]:
    for name, entry in config.runtimes.items():
        if entry.sandbox_mode and entry.sandbox_mode not in MODES:
            message = f"{name}: sandbox-mode {entry.sandbox_mode!r} is no mode"
            yield Finding(id="bad-value", key="runtimes", message=message, hint=f"one of {' '.join(MODES)}")
        if any(not pattern or "*" in pattern[:-1] for pattern in entry.annotations):
            message = f"{name}: annotations: each is a key, or the beginning of one with * behind it"
            yield Finding(id="bad-value", key="runtimes", message=message)
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}", name):
            yield Finding(id="bad-value", key="runtimes", message=f"{name!r} is no name of a runtime")
    for handler, runtime in config.cri_runtimes.items():
        if runtime not in config.runtimes and runtime not in BUILT_IN:
            # A warning: iSulad's packaged file names kata here, whether it is installed or not.
            message = f"{handler}: no runtime {runtime!r}; pods that ask for it will be refused"
            yield Finding(id="bad-value", key="cri-runtimes", message=message, severity=Severity.WARNING)


def _modes(config: Config) -> Iterator[Finding]:
    if config.pod_sandbox_mode not in MODES:
        hint = f"one of {' '.join(MODES)}"
        message = f"{config.pod_sandbox_mode!r} is no mode"
        yield Finding(id="bad-value", key="pod-sandbox-mode", message=message, hint=hint)
    if config.native_umask not in {"secure", "normal"}:
        message = f"{config.native_umask!r} is not secure or normal"
        yield Finding(id="bad-value", key="native.umask", message=message)
    if re.search(r"\s", config.pod_sandbox_image):
        message = f"{config.pod_sandbox_image!r} is no image name"
        yield Finding(id="bad-value", key="pod-sandbox-image", message=message)


def _cgroup(config: Config) -> Iterator[Finding]:
    parent = config.cgroup_root
    if ".." in PurePosixPath(parent).parts or "\0" in parent:
        yield Finding(id="bad-value", key="cgroup-parent", message=f"{parent!r} leads out of the hierarchy")
    if config.systemd_cgroup and not parent.endswith(".slice"):
        message = f"{parent!r} is no slice, which systemd-cgroup needs"
        yield Finding(id="bad-value", key="cgroup-parent", message=message, hint="such as system.slice")


def _limits(config: Config) -> Iterator[Finding]:
    for name, limit in config.default_ulimits.items():
        if name != limit.name:
            message = f"{name}: Name is {limit.name!r}, not the key"
            yield Finding(id="bad-value", key="default-ulimits", message=message)
        if limit.soft > limit.hard:
            message = f"{name}: Soft {limit.soft} is above Hard {limit.hard}"
            yield Finding(id="bad-value", key="default-ulimits", message=message)

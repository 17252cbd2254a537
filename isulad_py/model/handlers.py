"""Runtime handlers: OCI runtimes by the name that a RuntimeClass asks for (CRI, RunPodSandboxRequest)."""

from __future__ import annotations

from msgspec import Struct


class RuntimeHandler(Struct, frozen=True, kw_only=True):
    """One OCI runtime with runc's command line."""

    name: str
    path: str = ""
    """Absolute, or a program to look up; empty means `name`."""
    args: tuple[str, ...] = ()
    """Global arguments, before the command."""
    systemd_cgroup: bool = False
    """The runtime makes cgroups through systemd; its cgroup paths are then of the form slice:prefix:name."""

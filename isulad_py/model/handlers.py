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
    annotations: tuple[str, ...] = ()
    """Of pods and containers, which the runtime is given: keys, or beginnings that end in `*`."""
    sandbox_mode: str = ""
    """How its pods are held, `namespaces` or `pause`; empty as all others are."""
    seccomp_profile: str = ""
    """Path of its containers' default profile; empty is the one of all others."""
    systemd_cgroup: bool = False
    """The runtime makes cgroups through systemd; its cgroup paths are then of the form slice:prefix:name."""

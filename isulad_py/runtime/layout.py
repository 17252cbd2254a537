"""Where everything of a container lies below the state directory: derived from its id, so that a half-made one can be
removed after a crash at any line. Pure."""

from __future__ import annotations

import posixpath
from typing import Final

from isulad_py.model.errors import InvalidInput
from isulad_py.model.ids import ContainerId

EXEC_PREFIX: Final = "exec-"
"""Of the files and cgroups of one exec."""


class Layout:
    def __init__(self, state: str) -> None:
        self.containers = posixpath.join(state, "containers")
        """One bundle a container."""
        self.runtime = posixpath.join(state, "runtime")
        """The OCI runtimes' own state, one directory a handler."""

    def bundle(self, container_id: ContainerId) -> str:
        """The bundle; also the monitor's working directory and home of all its files."""
        if not container_id or "/" in container_id or container_id.startswith("."):
            raise InvalidInput(f"container id: {container_id!r} cannot name a directory")
        return posixpath.join(self.containers, container_id)

    def spec(self, container_id: ContainerId) -> str:
        return posixpath.join(self.bundle(container_id), "config.json")

    def record(self, container_id: ContainerId) -> str:
        """What `create` found out, written when it has succeeded."""
        return posixpath.join(self.bundle(container_id), "record.json")

    def pid_file(self, container_id: ContainerId) -> str:
        return posixpath.join(self.bundle(container_id), "pid")

    def monitor_pid_file(self, container_id: ContainerId) -> str:
        return posixpath.join(self.bundle(container_id), "monitor.pid")

    def exit_file(self, container_id: ContainerId) -> str:
        """conmon writes it, whole, into --persist-dir; its content is the exit code."""
        return posixpath.join(self.bundle(container_id), "exit")

    def oom_file(self, container_id: ContainerId) -> str:
        """conmon makes it in its working directory when the memory cgroup reports that it is out of memory."""
        return posixpath.join(self.bundle(container_id), "oom")

    def exec_pid_file(self, container_id: ContainerId, name: str) -> str:
        return posixpath.join(self.bundle(container_id), name)

    def control(self, container_id: ContainerId) -> str:
        """conmon's control fifo."""
        return posixpath.join(self.bundle(container_id), "ctl")

    def attach_socket(self, container_id: ContainerId) -> str:
        """conmon's SOCK_SEQPACKET socket. A socket's name may have 107 bytes: clients connect through
        /proc/self/fd/<the open bundle>/attach."""
        return posixpath.join(self.bundle(container_id), "attach")

    def restore_log(self, container_id: ContainerId) -> str:
        """conmon makes the bundle CRIU's working directory."""
        return posixpath.join(self.bundle(container_id), "restore.log")

    def log_link(self, container_id: ContainerId) -> str:
        """Stands for the log's directory where its name has a colon, which conmon would take for a driver's name."""
        return posixpath.join(self.bundle(container_id), "log")

    def runtime_root(self, handler: str) -> str:
        return posixpath.join(self.runtime, handler)

    def runtime_state(self, handler: str, container_id: ContainerId) -> str:
        return posixpath.join(self.runtime, handler, container_id)

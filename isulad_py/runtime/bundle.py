"""The bundle of a container (OCI runtime spec, bundle.md) with the files that its monitor and we keep beside the spec.

Synchronous: callers on the loop go through `host.blocking`.
"""

from __future__ import annotations

import contextlib
import os
import posixpath
from pathlib import Path
from typing import Final

import msgspec
import structlog
from msgspec import Struct

from isulad_py.host import files, trees
from isulad_py.host.failures import translate
from isulad_py.model.container import Processes
from isulad_py.model.errors import (
    AlreadyExists,
    EngineError,
    FailedPrecondition,
    HostFailure,
    InvalidInput,
    NotFound,
)
from isulad_py.model.ids import ContainerId
from isulad_py.ports.runtime import Launch
from isulad_py.runtime.layout import EXEC_PREFIX, Layout

log = structlog.get_logger(__name__)

SPEC_LIMIT: Final = 16 * 1024 * 1024
_SMALL: Final = 64 * 1024


class Launched(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What `create` found out and the other calls need, also after the daemon's death."""

    handler: str
    boot_id: str = ""
    """Of the kernel's run in which it was made: the processes of another have ended, whatever bears their numbers."""
    family: str = ""
    """First word of the runtime's version: what its state directory and signals are like."""
    processes: Processes = Processes()
    cgroups: dict[str, str] = {}
    """Directory by controller, as the kernel tells for the first process."""
    monitor_cgroups: tuple[str, ...] = ()
    """Made for the monitor alone."""
    log_path: str = ""
    terminal: bool = False
    stdin: bool = False
    stdin_once: bool = False


class Exit(Struct, frozen=True, kw_only=True):
    code: int
    at: int
    """Nanoseconds since 1970, when the monitor wrote it."""


class _Linux(Struct, rename="camel"):
    cgroups_path: str = ""


class _Spec(Struct):
    linux: _Linux | None = None


class Bundles:
    def __init__(self, layout: Layout, boot_id: str) -> None:
        self._layout = layout
        self._boot_id = boot_id

    def write(self, launch: Launch) -> str:
        """A new bundle; its path. The log's directory is made. AlreadyExists, with nothing changed, where there is one;
        after any other error a part of it may be there."""
        path = self._layout.bundle(launch.id)
        files.ensure_dir(self._layout.containers, 0o711)
        files.ensure_dir(self._layout.runtime_root(launch.handler), 0o711)
        try:
            Path(path).mkdir(mode=0o700)
        except FileExistsError as error:
            raise AlreadyExists(f"container {launch.id} has a bundle already") from error
        except OSError as error:
            raise translate("make the bundle", error) from error
        # Half of it would be seen only by one who looks after a crash, and then the bundle is removed.
        files.write_atomic(self._layout.spec(launch.id), launch.spec, mode=0o600)
        if launch.log_path:
            self._prepare_log(launch)
        return path

    def _prepare_log(self, launch: Launch) -> None:
        directory, name = posixpath.split(launch.log_path)
        if not directory.startswith("/") or ":" in name:
            raise InvalidInput(f"log_path: {launch.log_path} is not absolute, or its name has a colon")
        try:
            files.ensure_dir(directory)
        except HostFailure as error:
            raise FailedPrecondition(f"log_path: {directory} is no directory for logs: {error}") from error
        # The monitor cannot write to the one, and would wait for a reader of the other.
        if Path(launch.log_path).exists() and not Path(launch.log_path).is_file():
            raise FailedPrecondition(f"log_path: {launch.log_path} is there, and is not a file")
        if ":" in directory:
            try:
                Path(self._layout.log_link(launch.id)).symlink_to(directory)
            except OSError as error:
                raise translate("link the log's directory", error) from error

    def log_argument(self, launch: Launch) -> str:
        """The monitor's --log-path: conmon splits it at colons."""
        if not launch.log_path:
            return "none"
        directory, name = posixpath.split(launch.log_path)
        return f"k8s-file:log/{name}" if ":" in directory else f"k8s-file:{launch.log_path}"

    def write_record(self, container_id: ContainerId, launched: Launched) -> None:
        made = msgspec.structs.replace(launched, boot_id=self._boot_id)
        files.write_atomic(self._layout.record(container_id), msgspec.json.encode(made), mode=0o600)

    def record(self, container_id: ContainerId) -> Launched:
        """Raises NotFound for a container that does not exist or was never made whole. One that was made before the
        machine was restarted has no processes."""
        try:
            data = files.read_limited(self._layout.record(container_id), _SMALL)
            launched = msgspec.json.decode(data, type=Launched)
        except (NotFound, msgspec.DecodeError) as error:
            raise NotFound(f"container {container_id} is not known to the runtime") from error
        if launched.boot_id != self._boot_id:
            return msgspec.structs.replace(launched, processes=Processes())
        return launched

    def spec(self, container_id: ContainerId) -> bytes:
        try:
            return files.read_limited(self._layout.spec(container_id), SPEC_LIMIT)
        except NotFound as error:
            raise NotFound(f"container {container_id} has no bundle") from error

    def cgroups_path(self, container_id: ContainerId) -> str:
        """linux.cgroupsPath of the spec; empty where there is none."""
        with contextlib.suppress(EngineError, msgspec.DecodeError, UnicodeError):
            linux = msgspec.json.decode(self.spec(container_id), type=_Spec).linux
            return linux.cgroups_path if linux else ""
        return ""

    def exit(self, container_id: ContainerId) -> Exit | None:
        """None while there is none. A monitor that lost the exit status writes -1."""
        path = Path(self._layout.exit_file(container_id))
        try:
            at = path.stat().st_mtime_ns
            code = int(path.read_text())
        except (OSError, ValueError):
            return None
        return Exit(code=code, at=at)

    def out_of_memory(self, container_id: ContainerId) -> bool:
        return Path(self._layout.oom_file(container_id)).exists()

    def exists(self, container_id: ContainerId) -> bool:
        return Path(self._layout.bundle(container_id)).exists()

    def has_runtime_state(self, container_id: ContainerId, handler: str) -> bool:
        return Path(self._layout.runtime_state(handler, container_id)).exists()

    def waits_for_start(self, container_id: ContainerId, handler: str) -> bool:
        """runc and crun keep this fifo from `create` to `start`: the first process blocks on it."""
        return Path(self._layout.runtime_state(handler, container_id), "exec.fifo").exists()

    def has_known_state(self, container_id: ContainerId, handler: str) -> bool:
        """Whether the state directory is one that we can read: runc's or crun's."""
        state = Path(self._layout.runtime_state(handler, container_id))
        return (state / "state.json").exists() or (state / "status").exists()

    def handler_of(self, container_id: ContainerId) -> str:
        """Which it was made with; empty where nothing tells: then no runtime knows of it."""
        with contextlib.suppress(NotFound):
            return self.record(container_id).handler
        homes = (handler for handler in _names(self._layout.runtime) if self.has_runtime_state(container_id, handler))
        return next(homes, "")

    def exec_files(self, container_id: ContainerId) -> list[str]:
        """What execs have here: files with numbers, sockets."""
        return [str(path) for path in Path(self._layout.bundle(container_id)).glob(f"{EXEC_PREFIX}*")]

    def remove(self, container_id: ContainerId) -> None:
        """Idempotent."""
        trees.remove_tree(self._layout.bundle(container_id))

    def remove_runtime_state(self, container_id: ContainerId, handler: str) -> None:
        """Idempotent."""
        trees.remove_tree(self._layout.runtime_state(handler, container_id))

    def present(self) -> frozenset[ContainerId]:
        found = set(_names(self._layout.containers))
        for handler in _names(self._layout.runtime):
            found |= set(_names(self._layout.runtime_root(handler)))
        return frozenset(map(ContainerId, found))


def read_number(path: str) -> int:
    """A pid file's; 0 where there is none."""
    try:
        return int(Path(path).read_text())
    except (OSError, ValueError):
        return 0


def _names(path: str) -> list[str]:
    try:
        with os.scandir(path) as entries:
            return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise translate("read", error) from error

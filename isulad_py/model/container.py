"""Containers: what was asked for, and the facts from which the state is derived."""

from __future__ import annotations

import enum

from msgspec import Struct, field

from isulad_py.model.ids import ContainerId, PodId
from isulad_py.model.resources import Resources
from isulad_py.model.security import ContainerSecurity, IdMapping


class ContainerMetadata(Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    attempt: int = 0


class ImageSpec(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """CRI ImageSpec: an image as a client names it."""

    image: str = ""
    annotations: dict[str, str] = field(default_factory=dict)
    user_specified_image: str = ""
    runtime_handler: str = ""
    image_ref: str = ""


class Propagation(enum.IntEnum):
    """CRI MountPropagation."""

    PRIVATE = 0
    HOST_TO_CONTAINER = 1
    BIDIRECTIONAL = 2


class Mount(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """CRI Mount. An image volume has `image` and no host path."""

    container_path: str
    host_path: str = ""
    readonly: bool = False
    selinux_relabel: bool = False
    propagation: Propagation = Propagation.PRIVATE
    uid_mappings: tuple[IdMapping, ...] = ()
    gid_mappings: tuple[IdMapping, ...] = ()
    recursive_read_only: bool = False
    image: ImageSpec | None = None
    image_sub_path: str = ""
    mount_options: tuple[str, ...] = ()


class Device(Struct, frozen=True, kw_only=True, omit_defaults=True):
    container_path: str
    host_path: str
    permissions: str = ""
    """Of the letters r, w and m."""


class ContainerConfig(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """CRI ContainerConfig, and what iSulad's own clients may say besides. Labels and annotations are returned exactly
    as given."""

    metadata: ContainerMetadata
    image: ImageSpec = ImageSpec()
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    working_dir: str = ""
    envs: tuple[tuple[str, str], ...] = ()
    mounts: tuple[Mount, ...] = ()
    devices: tuple[Device, ...] = ()
    cdi_devices: tuple[str, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    log_path: str = ""
    stdin: bool = False
    stdin_once: bool = False
    tty: bool = False
    resources: Resources = Resources()
    security: ContainerSecurity = ContainerSecurity()
    stop_signal: int = 0
    """Number of CRI's Signal enumeration, not of the kernel; 0 is the image's or the runtime's default."""
    external_rootfs: str = ""
    """iSulad: a directory or block device of this host that is the root instead of the image's layers; the image, whose
    configuration counts all the same, may be left out then."""
    storage_bytes: int = 0
    """iSulad's storage-opt size: what may be written into the root; 0 for what the node's configuration says."""


class ContainerState(enum.Enum):
    """`CREATING`, `PAUSED` and `REMOVING` are ours; see `wire.translate` for what CRI sees."""

    CREATING = "creating"
    CREATED = "created"
    RUNNING = "running"
    PAUSED = "paused"
    EXITED = "exited"
    UNKNOWN = "unknown"
    REMOVING = "removing"


class Identity(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The user that the container's first process runs as (CRI LinuxContainerUser)."""

    uid: int = 0
    gid: int = 0
    supplemental_groups: tuple[int, ...] = ()


class Processes(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The container's first process and its monitor, each with its start time in clock ticks against pid reuse."""

    pid: int = 0
    pid_started: int = 0
    monitor_pid: int = 0
    monitor_started: int = 0


class ExitFact(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a container ended."""

    exit_code: int
    finished_at: int
    """Nanoseconds since 1970."""
    oom_killed: bool = False
    reason: str = ""
    """Set only where it is not Completed, Error or OOMKilled: StartError, ContainerStatusUnknown."""
    message: str = ""


class ContainerRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Facts about one container, in nanoseconds since 1970 where they are times; zero is "not yet"."""

    id: ContainerId
    pod_id: PodId
    config: ContainerConfig
    runtime_handler: str = ""
    """Resolved name of the OCI runtime."""
    reserved_at: int = 0
    created_at: int = 0
    starting_at: int = 0
    started_at: int = 0
    paused_at: int = 0
    stopping_at: int = 0
    removing_at: int = 0
    exit: ExitFact | None = None
    boot_id: str = ""
    image_id: str = ""
    """Digest of the image's configuration."""
    image_name: str = ""
    """A name of the image (tag or digest), for `ContainerStatus.image`."""
    image_ref: str = ""
    """Repository digest, or the image id where the image has none."""
    log_path: str = ""
    """Absolute path, or empty for no log."""
    stop_signal: int = 15
    """Kernel's number."""
    identity: Identity = Identity()
    processes: Processes = Processes()
    resources: Resources = Resources()
    """As last set by CreateContainer or UpdateContainerResources."""
    updating_to: Resources | None = None
    """What an update that is under way was asked to set."""
    mounts: tuple[Mount, ...] = ()
    """As reported in the status: the requested ones, resolved."""
    cgroup_path: str = ""
    """The container's cgroup, relative to the hierarchy's root; for the systemd driver, the resolved path."""
    restored_from: str = ""
    """Path of the checkpoint that its start restores; before that there is no process."""
    checkpoint_to: str = ""
    """Where a checkpoint of it is being written."""

    @property
    def to_restore(self) -> bool:
        """Whether it waits for its start without any process."""
        return bool(self.restored_from) and not self.processes.pid

    @property
    def name(self) -> str:
        """The reserved name within its pod: no two live containers of a pod may share it."""
        return f"{self.config.metadata.name}_{self.config.metadata.attempt}"

    @property
    def state(self) -> ContainerState:
        if self.removing_at:
            return ContainerState.REMOVING
        if self.exit is not None:
            return ContainerState.EXITED
        if self.paused_at:
            return ContainerState.PAUSED
        if self.started_at:
            return ContainerState.RUNNING
        return ContainerState.CREATED if self.created_at else ContainerState.CREATING

    @property
    def reason(self) -> str:
        """Why it ended, in the kubelet's words; empty while it has not."""
        if self.exit is None:
            return ""
        if self.exit.reason:
            return self.exit.reason
        if self.exit.oom_killed:
            return "OOMKilled"
        return "Completed" if self.exit.exit_code == 0 else "Error"

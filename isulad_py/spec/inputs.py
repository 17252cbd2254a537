"""All that a spec is made from. Whoever fills these has done the input and output: profiles are loaded, devices are
looked up, users are resolved, images are mounted."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from isulad_py.model.container import ContainerConfig, Identity
from isulad_py.model.devices import HostDevice
from isulad_py.model.edits import Edits
from isulad_py.model.facts import HostFacts
from isulad_py.model.hooks import HookEntry
from isulad_py.model.image import ImageConfig
from isulad_py.model.pod import PodRecord


class Ulimit(Struct, frozen=True, kw_only=True):
    name: str
    """As users write it: nofile, RLIMIT_NOFILE."""
    hard: int
    """-1 is unlimited."""
    soft: int


class Defaults(Struct, frozen=True, kw_only=True):
    """What the configuration gives every container that asks for nothing else."""

    ulimits: tuple[Ulimit, ...] = ()
    umask: int | None = None
    pids_limit: int = 0
    """0 is none."""
    seccomp: bytes | None = None
    """Profile (JSON) instead of the built-in one."""
    apparmor: str = ""
    """Name of a profile; empty is none."""


class Handler(Struct, frozen=True, kw_only=True):
    """What the chosen OCI runtime can do."""

    recursive_read_only: bool = False
    idmap_mounts: bool = False
    """Bind mounts with owners mapped."""
    user_namespaces: bool = False
    reads_id_maps: bool = False
    """Of a user namespace that is joined by its path."""


class ContainerInputs(Struct, frozen=True, kw_only=True):
    config: ContainerConfig
    pod: PodRecord
    image: ImageConfig
    host: HostFacts
    rootfs_path: str
    cgroups_path: str
    """As OCI has it: a path, or `slice:prefix:name` for the systemd driver."""
    image_name: str = ""
    identity: Identity = Identity()
    home: str = ""
    """Of the user, from the image's passwd; empty where unknown."""
    handler: Handler = Handler()
    defaults: Defaults = Defaults()
    pod_pidns_path: str = ""
    """Of the pause container; empty where the pod has none, which gives the container a PID namespace of its own."""
    target_pidns_path: str = ""
    """Of the container that NamespaceMode.TARGET names."""
    seccomp_profile: bytes | None = None
    """The localhost profile (JSON), where one is asked for."""
    process_label: str = ""
    mount_label: str = ""
    devices: tuple[HostDevice, ...] = ()
    """What `config.devices` came to, directories expanded."""
    host_devices: tuple[HostDevice, ...] = ()
    """All of the host's; used for privileged containers only."""
    image_mounts: Mapping[str, str] = {}
    """Host path of each image volume by its container path."""
    volume_dirs: Mapping[str, str] = {}
    """Host directory of each anonymous volume (image config, Volumes) by its container path."""
    annotations: Mapping[str, str] = {}
    """Passed on to the runtime beside our own."""
    edits: Edits = Edits()
    """Of CDI devices."""
    hooks: tuple[HookEntry, ...] = ()
    """The operator's, each with its conditions."""


class PauseInputs(Struct, frozen=True, kw_only=True):
    """For the container that holds a pod's PID namespace."""

    pod: PodRecord
    image: ImageConfig
    host: HostFacts
    rootfs_path: str
    cgroups_path: str
    identity: Identity = Identity()
    handler: Handler = Handler()
    defaults: Defaults = Defaults()
    seccomp_profile: bytes | None = None
    process_label: str = ""
    mount_label: str = ""
    args: tuple[str, ...] = ()
    """Instead of the image's own command."""
    annotations: Mapping[str, str] = {}

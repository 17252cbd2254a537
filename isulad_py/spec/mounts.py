"""Mounts of a container: what every one has, what its pod gives, what the request asks for; parents before children."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from isulad_py.model.container import Mount as CriMount
from isulad_py.model.container import Propagation
from isulad_py.model.errors import InvalidInput, Unsupported
from isulad_py.model.pod import PodEnvironment
from isulad_py.model.security import UserNamespace
from isulad_py.spec import checks, namespaces
from isulad_py.spec.inputs import Handler
from isulad_py.spec.schema import Mount

PROPAGATION: Final = {
    Propagation.PRIVATE: "rprivate",
    Propagation.HOST_TO_CONTAINER: "rslave",
    Propagation.BIDIRECTIONAL: "rshared",
}

EXTRA_OPTIONS: Final = frozenset(
    {
        "noexec", "exec", "nosuid", "suid", "nodev", "dev", "noatime", "atime", "nodiratime", "diratime", "relatime",
        "norelatime", "strictatime", "nostrictatime", "nosymfollow", "symfollow",
    }
)  # fmt: skip
"""Mount flags of one mount point (mount(8)) that a client may add."""

FROM_POD: Final = frozenset({"/dev/shm", "/etc/hostname", "/etc/hosts", "/etc/resolv.conf"})  # noqa: S108
MAX_VOLUMES: Final = 64
"""An image's configuration has room for some hundred thousand."""

HOST_SHM: Final = "/dev/shm"  # noqa: S108  # the host's own, for pods in its IPC namespace


TTY_GROUP: Final = 5
"""Of Debian and most others; terminals belong to it."""


def base(users: UserNamespace | None = None, *, privileged: bool) -> list[Mount]:
    """What every Linux program expects (OCI config-linux.md, Default Filesystems), and /sys and cgroups, which only a
    privileged container may write. `users` is the pod's own user namespace."""
    system = "rw" if privileged else "ro"
    # The kernel takes no owner that is not mapped.
    tty = [f"gid={TTY_GROUP}"] if users is None or users.host_gid(TTY_GROUP) is not None else []
    return [
        Mount(destination="/proc", type="proc", source="proc", options=("nosuid", "noexec", "nodev")),
        Mount(
            destination="/dev",
            type="tmpfs",
            source="tmpfs",
            options=("nosuid", "strictatime", "mode=755", "size=65536k"),
        ),
        Mount(
            destination="/dev/pts",
            type="devpts",
            source="devpts",
            options=("nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", *tty),
        ),
        Mount(destination="/dev/mqueue", type="mqueue", source="mqueue", options=("nosuid", "noexec", "nodev")),
        Mount(destination="/sys", type="sysfs", source="sysfs", options=("nosuid", "noexec", "nodev", system)),
        Mount(
            destination="/sys/fs/cgroup",
            type="cgroup",
            source="cgroup",
            options=("nosuid", "noexec", "nodev", "relatime", system),
        ),
    ]


def from_pod(environment: PodEnvironment, *, readonly: bool) -> list[Mount]:
    """The pod's shared memory and the files of the pod; these are read-only with a read-only root."""
    mode = "ro" if readonly else "rw"
    files = (
        ("/etc/hostname", environment.hostname_path),
        ("/etc/hosts", environment.hosts_path),
        ("/etc/resolv.conf", environment.resolv_path),
    )
    shm = Mount(
        destination="/dev/shm",  # noqa: S108
        type="bind",
        source=environment.shm_path or HOST_SHM,
        options=("rbind", "rprivate", "nosuid", "nodev", "noexec", "rw"),
    )
    return [shm, *(_bind(path, source, "rprivate", mode) for path, source in files if source)]


def volume_paths(declared: Iterable[str], mounts: Iterable[CriMount]) -> tuple[str, ...]:
    """Of the volumes that an image declares those that need a directory of their own: on which neither the request
    mounts anything, nor every container has something. InvalidInput for one that cannot be."""
    field = "image config: volumes"
    taken = {checks.inner_path(mount.container_path, "config.mounts") for mount in mounts}
    taken |= {mount.destination for mount in base(privileged=False)} | FROM_POD
    paths = dict.fromkeys(checks.inner_path(path, field) for path in declared)
    if "/" in paths:
        raise InvalidInput(f"{field}: the root itself cannot be one")
    if len(paths) > MAX_VOLUMES:
        raise InvalidInput(f"{field}: {len(paths)} are more than {MAX_VOLUMES}")
    return tuple(path for path in paths if path not in taken)


def anonymous_volumes(dirs: Mapping[str, str]) -> list[Mount]:
    """Volumes that only the image asks for, by path."""
    return [_bind(path, directory, "rprivate", "rw") for path, directory in dirs.items()]


def requested(
    mounts: Sequence[CriMount], images: Mapping[str, str], handler: Handler, users: UserNamespace | None = None
) -> list[Mount]:
    """The request's own (CRI Mount), in its order. `users` is the pod's own user namespace."""
    found = []
    for index, mount in enumerate(mounts):
        field = f"config.mounts[{index}]"
        _check_mappings(mount, field, handler, users)
        found.append(_requested(mount, field, images, handler))
    return found


def _check_mappings(mount: CriMount, field: str, handler: Handler, users: UserNamespace | None) -> None:
    if not mount.uid_mappings and not mount.gid_mappings:
        return
    if mount.image is not None:
        # It is mounted with its pod's ids already, whatever the runtime can do.
        if users is None or (mount.uid_mappings, mount.gid_mappings) != (users.uids, users.gids):
            raise Unsupported(f"{field}.uidMappings: not those of the pod, which an image always has")
    elif not handler.idmap_mounts:
        raise Unsupported(f"{field}.uidMappings: the runtime has no id-mapped mounts")


def _requested(mount: CriMount, field: str, images: Mapping[str, str], handler: Handler) -> Mount:
    destination = checks.inner_path(mount.container_path, f"{field}.container_path")
    if destination == "/":
        raise InvalidInput(f"{field}.container_path: the root itself cannot be mounted on")
    for option in mount.mount_options:
        if option not in EXTRA_OPTIONS:
            raise InvalidInput(f"{field}.mount_options: {option!r} is not a flag of a mount point")
    mode = _read_write_mode(mount, field, handler)
    return Mount(
        destination=destination,
        type="bind",
        source=_source(mount, field, images),
        options=("rbind", PROPAGATION[mount.propagation], mode, *mount.mount_options),
        uid_mappings=() if mount.image is not None else namespaces.mappings(mount.uid_mappings),
        gid_mappings=() if mount.image is not None else namespaces.mappings(mount.gid_mappings),
    )


def _source(mount: CriMount, field: str, images: Mapping[str, str]) -> str:
    if mount.image is None or not mount.image.image:
        return checks.absolute_path(mount.host_path, f"{field}.host_path")
    if mount.host_path:
        raise InvalidInput(f"{field}: host_path and image are both given")
    if mount.container_path not in images:
        raise InvalidInput(f"{field}.image: not mounted: {mount.image.image!r}")
    return images[mount.container_path]


def _read_write_mode(mount: CriMount, field: str, handler: Handler) -> str:
    """`rro` is read-only for every mount below too (mount_setattr(2)); an image is never writable."""
    if mount.recursive_read_only:
        if not mount.readonly:
            raise InvalidInput(f"{field}.recursive_read_only: needs readonly")
        if mount.propagation is not Propagation.PRIVATE:
            raise InvalidInput(f"{field}.recursive_read_only: needs private propagation")
        if not handler.recursive_read_only:
            raise Unsupported(f"{field}.recursive_read_only: the runtime cannot do that")
        return "rro"
    return "ro" if mount.readonly or mount.image is not None else "rw"


def combined(defaults: Sequence[Mount], wanted: Sequence[Mount]) -> tuple[Mount, ...]:
    """Defaults that the request does not replace, then its mounts; of two on one path the last. A request for /dev
    replaces all below it. Stable, parents first, because a runtime mounts in the order of the list."""
    last = {mount.destination: mount for mount in wanted}
    chosen = [mount for mount in wanted if last[mount.destination] is mount]
    kept = [
        mount
        for mount in defaults
        if mount.destination not in last and not ("/dev" in last and mount.destination.startswith("/dev/"))
    ]
    return tuple(sorted((*kept, *chosen), key=lambda mount: mount.destination.count("/")))


def root_propagation(mounts: Iterable[CriMount]) -> str:
    """The root's own propagation, without which nothing mounted on the host later could arrive below it."""
    modes = {mount.propagation for mount in mounts}
    if Propagation.BIDIRECTIONAL in modes:
        return "rshared"
    return "rslave" if Propagation.HOST_TO_CONTAINER in modes else ""


def _bind(destination: str, source: str, propagation: str, mode: str) -> Mount:
    return Mount(destination=destination, type="bind", source=source, options=("rbind", propagation, mode))

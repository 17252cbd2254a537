"""The environment of a pod: pinned namespaces, /dev/shm and the files of /etc, all below `<state>/pods/<id>`."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import structs

from isulad_py.host import blocking, files, mounts, namespaces, trees, user_namespaces
from isulad_py.host.failures import translated
from isulad_py.model.errors import AlreadyExists, EngineError, FailedPrecondition, InvalidInput, NotFound
from isulad_py.model.ids import PodId
from isulad_py.model.pod import PodEnvironment
from isulad_py.ports.sandbox import EnvironmentRequest
from isulad_py.runtime import pod_files, sysctls
from isulad_py.runtime.cgroups import CgroupTree

_NAMESPACES: Final = ("user", "net", "ipc", "uts")
_ID: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.-]{0,127}")
HOST_FILE_LIMIT_BYTES: Final = 1024 * 1024


class HostEnvironments:
    """Implements ports.sandbox.PodEnvironments.

    Nothing is kept in memory: the directory is the whole state, and outlives the daemon together with the mounts.
    """

    def __init__(
        self,
        *,
        state_dir: str,
        cgroups: CgroupTree,
        etc_dir: str = "/etc",
        unprivileged_ports: bool = False,
        unprivileged_icmp: bool = False,
    ) -> None:
        self._pods_dir = f"{state_dir.rstrip('/')}/pods"
        self._cgroups = cgroups
        self._etc_dir = etc_dir
        self._ports = _known(sysctls.PORTS) if unprivileged_ports else {}
        self._ping = _known(sysctls.PING) if unprivileged_icmp else {}

    def _directory(self, pod_id: str) -> str:
        if not _ID.fullmatch(pod_id):
            raise InvalidInput(f"pod id {pod_id!r}: not an id")
        return f"{self._pods_dir}/{pod_id}"

    async def create(self, request: EnvironmentRequest) -> PodEnvironment:
        if request.shm_bytes <= 0:
            raise InvalidInput(f"shm size: {request.shm_bytes} is not a size")
        pod_files.check_hostname(request.hostname)
        sysctls.check(request.sysctls, network=request.network, ipc=request.ipc)
        request = structs.replace(request, sysctls=self._sysctls(request))
        resolv = pod_files.resolv_conf(request.dns)
        directory = self._directory(request.pod_id)
        made: list[str] = []
        try:
            # To its end, also when cancelled: an undo that overtook it would leave mounts behind.
            environment = await blocking.run_to_end(self._create, directory, request, resolv, made)
            if request.users is not None:
                await user_namespaces.create(_new_namespaces(environment, request), request.users)
        except BaseException as error:
            if made:
                await _undo(directory, error)
            raise
        return environment

    def _sysctls(self, request: EnvironmentRequest) -> dict[str, str]:
        if not request.network:
            return request.sysctls
        defaults = self._ports if request.users is not None else self._ports | self._ping
        return sysctls.with_defaults(request.sysctls, defaults)

    def _create(self, directory: str, request: EnvironmentRequest, resolv: str, made: list[str]) -> PodEnvironment:
        """`made` tells the caller that the directory is this request's, to be undone."""
        files.ensure_dir(self._pods_dir, 0o711)
        with translated("make directory"):
            try:
                Path(directory).mkdir(0o711)
            except FileExistsError as error:
                raise AlreadyExists(f"pod {request.pod_id} has an environment already") from error
        made.append(directory)
        return self._fill(directory, request, resolv)

    def _fill(self, directory: str, request: EnvironmentRequest, resolv: str) -> PodEnvironment:
        environment = _paths(directory, request)
        owner = request.users.owner(0, 0) if request.users else None
        text = pod_files.hosts("", ()) if request.network else self._host_file("hosts")
        files.write_atomic(environment.hosts_path, _encoded(text), owner=owner)
        text = resolv or self._host_file("resolv.conf")
        files.write_atomic(environment.resolv_path, _encoded(text), owner=owner)
        files.write_atomic(environment.hostname_path, _encoded(f"{environment.hostname}\n"), owner=owner)
        if environment.shm_path:
            files.ensure_dir(environment.shm_path, 0o1777)
            flags = mounts.MS_NOSUID | mounts.MS_NODEV | mounts.MS_NOEXEC
            data = f"mode=1777,size={request.shm_bytes}" + (f",uid={owner[0]},gid={owner[1]}" if owner else "")
            mounts.mount("shm", environment.shm_path, "tmpfs", flags, data)
        files.ensure_dir(f"{directory}/ns", 0o711)
        wanted = _new_namespaces(environment, request)
        if wanted.pins() and request.users is None:
            namespaces.create(wanted)
        return environment

    def _host_file(self, name: str) -> str:
        """A copy of the host's; empty where it has none."""
        try:
            data = files.read_limited(f"{self._etc_dir}/{name}", HOST_FILE_LIMIT_BYTES)
        except NotFound:
            return ""
        return data.decode(errors="surrogateescape")

    async def settle(self, request: EnvironmentRequest, ips: Sequence[str]) -> None:
        late = {name: value for name, value in request.sysctls.items() if sysctls.names_interface(name)}
        if request.network and (late or ips):
            await blocking.run_to_end(self._settle, request, tuple(ips), late)

    def _settle(self, request: EnvironmentRequest, ips: tuple[str, ...], late: dict[str, str]) -> None:
        paths = _paths(self._directory(request.pod_id), request)
        owner = request.users.owner(0, 0) if request.users else None
        files.write_atomic(paths.hosts_path, _encoded(pod_files.hosts(paths.hostname, ips)), owner=owner)
        if late:
            namespaces.call_in_netns(paths.netns_path, lambda: namespaces.write_sysctls(late))

    async def destroy(self, pod_id: PodId) -> None:
        await blocking.run_to_end(_destroy, self._directory(pod_id))

    async def intact(self, environment: PodEnvironment) -> bool:
        return await blocking.run(_intact, environment)

    async def present(self) -> frozenset[PodId]:
        return await blocking.run(self._present)

    def _present(self) -> frozenset[PodId]:
        with translated("list"):
            try:
                return frozenset(PodId(name) for name in os.listdir(self._pods_dir) if _ID.fullmatch(name))  # noqa: PTH208 - names
            except FileNotFoundError:
                return frozenset()

    async def ensure_cgroup(self, cgroup_path: str) -> None:
        await self._cgroups.ensure(cgroup_path)

    async def remove_cgroup(self, cgroup_path: str) -> None:
        await self._cgroups.remove(cgroup_path)


def _paths(directory: str, request: EnvironmentRequest) -> PodEnvironment:
    """Everything where `destroy` looks for it. A pod on the host's network also has the host's name (UTS)."""
    return PodEnvironment(
        netns_path=f"{directory}/ns/net" if request.network else "",
        ipcns_path=f"{directory}/ns/ipc" if request.ipc else "",
        utsns_path=f"{directory}/ns/uts" if request.network else "",
        userns_path=f"{directory}/ns/user" if request.users else "",
        shm_path=f"{directory}/shm" if request.ipc else "",
        hostname_path=f"{directory}/hostname",
        hosts_path=f"{directory}/hosts",
        resolv_path=f"{directory}/resolv.conf",
        hostname=request.hostname or socket.gethostname(),
    )


def _new_namespaces(environment: PodEnvironment, request: EnvironmentRequest) -> namespaces.NewNamespaces:
    return namespaces.NewNamespaces(
        user_path=environment.userns_path,
        net_path=environment.netns_path,
        ipc_path=environment.ipcns_path,
        uts_path=environment.utsns_path,
        hostname=request.hostname,
        sysctls={name: value for name, value in request.sysctls.items() if not sysctls.names_interface(name)},
    )


def _encoded(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


def _known(wanted: Mapping[str, str]) -> dict[str, str]:
    """Without those that this kernel does not have."""
    return {name: value for name, value in wanted.items() if Path(namespaces.sysctl_path(name)).exists()}


async def _undo(directory: str, cause: BaseException) -> None:
    try:
        await blocking.run_to_end(_destroy, directory)
    except EngineError as failure:
        if isinstance(cause, EngineError):
            cause.cleanup.append(failure)


def _destroy(directory: str) -> None:
    """By what `_paths` may have made; whatever else is mounted below is found and unmounted too."""
    for name in _NAMESPACES:
        namespaces.release(f"{directory}/ns/{name}")
    mounts.unmount(f"{directory}/shm")
    try:
        trees.remove_tree(directory)
    except FailedPrecondition:
        mounts.unmount_under(directory)
        trees.remove_tree(directory)


def _intact(environment: PodEnvironment) -> bool:
    pins = (environment.userns_path, environment.netns_path, environment.ipcns_path, environment.utsns_path)
    texts = (environment.hostname_path, environment.hosts_path, environment.resolv_path)
    return (
        all(namespaces.is_pinned(path) for path in pins if path)
        and all(Path(path).is_file() for path in texts if path)
        and (not environment.shm_path or mounts.is_mountpoint(environment.shm_path))
    )

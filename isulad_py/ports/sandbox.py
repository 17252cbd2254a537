"""What the containers of one pod share on this host: namespaces, /dev/shm, resolv.conf, hostname and hosts files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from isulad_py.model.ids import PodId
from isulad_py.model.network import Dns
from isulad_py.model.pod import PodEnvironment
from isulad_py.model.security import UserNamespace


class EnvironmentRequest(Struct, frozen=True, kw_only=True):
    pod_id: PodId
    hostname: str
    """Empty: the host's own, as for host-network pods."""
    network: bool
    """A network namespace of its own; else the host's."""
    ipc: bool
    """An IPC namespace and /dev/shm of its own; else the host's."""
    users: UserNamespace | None = None
    """A user namespace of its own, which owns the others; else the host's."""
    sysctls: dict[str, str] = {}
    """Set inside the new namespaces; one that belongs to no namespace the pod owns is InvalidInput naming it."""
    dns: Dns | None = None
    """None copies the host's resolv.conf."""
    shm_bytes: int = 64 * 1024 * 1024


class PodEnvironments(Protocol):
    async def create(self, request: EnvironmentRequest) -> PodEnvironment:
        """Every path is derived from the pod's id, so that `destroy` works after a crash at any line. Leaves nothing
        behind on failure or cancellation. Raises InvalidInput naming the field, AlreadyExists for an id in use,
        HostFailure or ResourceExhausted."""
        ...

    async def settle(self, request: EnvironmentRequest, ips: Sequence[str]) -> None:
        """What needs the network to be attached: sets the sysctls that name an interface (`create` leaves them), and
        puts the pod's addresses into its hosts file. Raises InvalidInput naming the sysctl."""
        ...

    async def destroy(self, pod_id: PodId) -> None:
        """Idempotent; works from the id alone."""
        ...

    async def intact(self, environment: PodEnvironment) -> bool:
        """Whether the pinned namespaces are still what they were (false after a reboot)."""
        ...

    async def present(self) -> frozenset[PodId]: ...

    async def ensure_cgroup(self, cgroup_path: str) -> None:
        """Makes the pod's cgroup in every hierarchy where it is missing."""
        ...

    async def remove_cgroup(self, cgroup_path: str) -> None:
        """Removes a cgroup that this engine made, in every hierarchy, once it is empty. Idempotent."""
        ...

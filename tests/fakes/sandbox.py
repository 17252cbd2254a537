"""Pod environments in memory. They pass tests/contract/test_sandbox.py."""

from __future__ import annotations

from collections.abc import Sequence

from isulad_py.model.errors import AlreadyExists
from isulad_py.model.ids import PodId
from isulad_py.model.pod import PodEnvironment
from isulad_py.ports.sandbox import EnvironmentRequest
from isulad_py.runtime import pod_files, sysctls
from tests.fakes.faults import Faults


class FakeEnvironments:
    """Implements ports.sandbox.PodEnvironments. `reboot` loses every pin. Faults: create, settle, destroy,
    ensure_cgroup, remove_cgroup; `create` fails half-way, as the real one may, and leaves nothing."""

    def __init__(self) -> None:
        self.faults = Faults()
        self.requests: dict[PodId, EnvironmentRequest] = {}
        self.pinned: set[PodId] = set()
        self.hosts: dict[PodId, tuple[str, ...]] = {}
        self.cgroups: set[str] = set()

    def reboot(self) -> None:
        self.pinned.clear()

    async def create(self, request: EnvironmentRequest) -> PodEnvironment:
        pod_files.check_hostname(request.hostname)
        sysctls.check(request.sysctls, network=request.network, ipc=request.ipc)
        pod_files.resolv_conf(request.dns)
        if request.pod_id in self.requests:
            raise AlreadyExists(f"pod {request.pod_id} has an environment already")
        self.requests[request.pod_id] = request
        self.pinned.add(request.pod_id)
        try:
            await self.faults.at("create")
        except BaseException:
            self._forget(request.pod_id)
            raise
        base = f"/fake/pods/{request.pod_id}"
        return PodEnvironment(
            netns_path=f"{base}/ns/net" if request.network else "",
            ipcns_path=f"{base}/ns/ipc" if request.ipc else "",
            utsns_path=f"{base}/ns/uts" if request.network else "",
            userns_path=f"{base}/ns/user" if request.users else "",
            shm_path=f"{base}/shm" if request.ipc else "",
            hostname_path=f"{base}/hostname",
            hosts_path=f"{base}/hosts",
            resolv_path=f"{base}/resolv.conf",
            hostname=request.hostname or "node",
        )

    async def settle(self, request: EnvironmentRequest, ips: Sequence[str]) -> None:
        await self.faults.at("settle")
        self.hosts[request.pod_id] = tuple(ips)

    def _forget(self, pod_id: PodId) -> None:
        self.requests.pop(pod_id, None)
        self.hosts.pop(pod_id, None)
        self.pinned.discard(pod_id)

    async def destroy(self, pod_id: PodId) -> None:
        await self.faults.at("destroy")
        self._forget(pod_id)

    async def intact(self, environment: PodEnvironment) -> bool:
        return PodId(environment.hosts_path.split("/")[3]) in self.pinned

    async def present(self) -> frozenset[PodId]:
        return frozenset(self.requests)

    async def ensure_cgroup(self, cgroup_path: str) -> None:
        await self.faults.at("ensure_cgroup")
        self.cgroups.add(cgroup_path)

    async def remove_cgroup(self, cgroup_path: str) -> None:
        await self.faults.at("remove_cgroup")
        self.cgroups = {path for path in self.cgroups if not f"{path}/".startswith(f"{cgroup_path}/")}

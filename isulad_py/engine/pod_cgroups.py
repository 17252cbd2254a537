"""Which cgroup a pod's containers live under, and whose it is."""

from __future__ import annotations

from isulad_py.model.ids import PodId
from isulad_py.model.pod import PodConfig, PodRecord
from isulad_py.ports.sandbox import PodEnvironments
from isulad_py.spec.cgroup_paths import CgroupPlacement, parent_path, place_container


class PodCgroups:
    """A parent that the kubelet names is the kubelet's: used, never removed. Without one the pod gets its own."""

    def __init__(self, *, environments: PodEnvironments, default_parent: str, systemd: bool) -> None:
        self._environments = environments
        self._default_parent = default_parent
        self._systemd = systemd

    def path_for(self, pod_id: PodId, config: PodConfig) -> str:
        """The pod's cgroup below the root of each hierarchy. InvalidInput naming `linux.cgroup_parent`."""
        return parent_path(self.parent_for(pod_id, config), systemd=self._systemd)

    def place(self, container_id: str, pod: PodRecord) -> CgroupPlacement:
        """Where a container of the pod goes."""
        return place_container(self.parent_for(pod.id, pod.config), container_id, systemd=self._systemd)

    def parent_for(self, pod_id: PodId, config: PodConfig) -> str:
        """What the driver is told: a path, or a slice's name for systemd's."""
        if config.cgroup_parent:
            return config.cgroup_parent
        if self._systemd:
            stem = self._default_parent.removesuffix(".slice").strip("/") or "isulad"
            return f"{stem}-pod{pod_id[:12]}.slice"
        return f"{self._default_parent.rstrip('/')}/{pod_id}"

    async def remove(self, record: PodRecord) -> None:
        """Idempotent."""
        if record.cgroup_path and not record.config.cgroup_parent:
            await self._environments.remove_cgroup(record.cgroup_path)

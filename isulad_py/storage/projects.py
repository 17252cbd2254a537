"""Projects of writable layers: the file system counts what each takes, and bounds it (overlay2.size). Synchronous."""

from __future__ import annotations

import threading
from typing import Final, Protocol

from isulad_py.host.project_quota import QuotaState, QuotaUsage
from isulad_py.model.errors import ResourceExhausted, Unsupported
from isulad_py.model.ids import ContainerId

FIRST: Final = 1 << 24
"""Above what kubelets (from 1,048,577 on) and people (/etc/projid) take."""
COUNT: Final = 1 << 20

_PARTS: Final = ("diff", "work")
"""Of a container's folder. Both: overlayfs makes files in the second and moves them into the first, which the kernel
allows within one project only."""


class Quotas(Protocol):
    """As host.project_quota.ProjectQuotas."""

    def state(self) -> QuotaState: ...

    def project_of(self, directory: str) -> int: ...

    def assign(self, directory: str, project: int) -> None: ...

    def usage(self, project: int) -> QuotaUsage: ...

    def limit(self, project: int, limit_bytes: int) -> None: ...


class Projects:
    """One for each container, where the file system knows them.

    Nothing is recorded: the directories carry their project, and one that nothing carries any more (the trash included)
    is free. So neither a crash nor a lost record can lead two containers to one project.
    """

    def __init__(self, quotas: Quotas, *, root: str, limit_bytes: int = 0) -> None:
        """`limit_bytes` is for containers that name no limit; 0 is none. Unsupported where there is one that the file
        system cannot keep."""
        self._quotas = quotas
        self._root = root
        self._state = quotas.state()
        self._limit_bytes = limit_bytes
        self._held: dict[ContainerId, int] = {}
        self._next = FIRST
        self._choosing = threading.Lock()
        self.limit_for(0)

    def limit_for(self, asked_bytes: int) -> int:
        """The limit of a container that asks for this one. Unsupported where it cannot be kept."""
        limit_bytes = asked_bytes or self._limit_bytes
        if limit_bytes and not self._state.enforced:
            raise Unsupported(
                f"overlay2.size: {self._root} is on a file system without project quotas: ext4 made with"
                " -O project,quota and mounted with prjquota has them, or xfs mounted with pquota"
            )
        return limit_bytes

    def take_up(self, container_id: ContainerId, folder: str) -> None:
        """What a former daemon gave."""
        project = self._quotas.project_of(f"{folder}/diff") if self._state.accounted else 0
        if FIRST <= project < FIRST + COUNT:
            self._held[container_id] = project

    def give(self, container_id: ContainerId, folder: str, limit_bytes: int) -> None:
        """Before anything is written there. A second time for one container changes nothing."""
        if not self._state.accounted or container_id in self._held:
            return
        project = self._held[container_id] = self._choose()
        self._quotas.limit(project, limit_bytes)
        for part in _PARTS:
            self._quotas.assign(f"{folder}/{part}", project)

    def include(self, container_id: ContainerId, directory: str) -> None:
        """What is written in this directory, too, counts. Before anything is."""
        project = self._held.get(container_id)
        if project is not None:
            self._quotas.assign(directory, project)

    def take_back(self, container_id: ContainerId) -> None:
        """Idempotent. The project stays taken until the last of its files has gone."""
        project = self._held.get(container_id)
        if project is not None:
            self._quotas.limit(project, 0)
            self._held.pop(container_id, None)

    def has(self, container_id: ContainerId) -> bool:
        return container_id in self._held

    def usage(self, container_id: ContainerId) -> QuotaUsage | None:
        """As it is now; None for one without a project."""
        project = self._held.get(container_id)
        return self._quotas.usage(project) if project is not None else None

    def usages(self) -> list[QuotaUsage]:
        return [self._quotas.usage(project) for project in list(self._held.values())]

    def _choose(self) -> int:
        with self._choosing:
            held = frozenset(self._held.values())
            for _ in range(COUNT):
                project = self._next
                self._next = FIRST + (project + 1 - FIRST) % COUNT
                if project not in held and self._quotas.usage(project).inodes == 0:
                    return project
        raise ResourceExhausted(f"overlay2.size: all {COUNT} projects on {self._root} are taken")

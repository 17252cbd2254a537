"""Checkpoints of whole pods: a directory with one archive for each of its containers, and a list of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

import msgspec

from isulad_py.engine.checkpoint_documents import full_name
from isulad_py.engine.checkpoints import Checkpoints
from isulad_py.engine.containers import Containers
from isulad_py.engine.handlers import Handlers
from isulad_py.engine.pods import Pods
from isulad_py.engine.registry import Registry
from isulad_py.engine.undo import Undo
from isulad_py.model.container import ContainerConfig, ContainerRecord, ImageSpec
from isulad_py.model.errors import FailedPrecondition, InvalidInput, Unsupported
from isulad_py.model.ids import ContainerId, PodId
from isulad_py.model.lifecycle import can_exec
from isulad_py.model.pod import PodConfig, PodRecord, PodState
from isulad_py.ports.checkpoints import CheckpointFiles
from isulad_py.ports.tasks import Tasks

LIST: Final = "pod.options"
"""As checkpointctl has it: {"version": 1, "containers": {name: its name in full}}."""
POD: Final = "pod.dump"
"""Metadata of the pod, for people."""


class RestoredPod(msgspec.Struct, frozen=True, kw_only=True):
    id: PodId
    containers: tuple[tuple[str, ContainerId], ...]
    """Names and ids."""


class PodCheckpoints:
    def __init__(
        self,
        *,
        registry: Registry,
        checkpoints: Checkpoints,
        pods: Pods,
        containers: Containers,
        files: CheckpointFiles,
        handlers: Handlers,
        tasks: Tasks,
    ) -> None:
        self._registry = registry
        self._checkpoints = checkpoints
        self._pods = pods
        self._containers = containers
        self._files = files
        self._handlers = handlers
        self._tasks = tasks

    async def checkpoint(
        self, pod_id: str, directory: str, container_ids: Sequence[str], options: Mapping[str, str]
    ) -> None:
        """CRI CheckpointPod: of the containers named, or of all that run, one after the other; each stands still only
        while its own state is taken. The directory is there. On failure nothing is left in it.

        Errors as Checkpoints.container; Unsupported for an option.
        """
        _refuse(options)
        pod = self._registry.pods.require(pod_id)
        if pod.state is not PodState.READY:
            raise FailedPrecondition(f"pod {pod.id} is not ready")
        members = self._members(pod, container_ids)
        await self._checkpoints.require_criu("CheckpointPod", self._handlers.resolve(pod.runtime_handler))
        if not members:
            raise FailedPrecondition(f"pod {pod.id} has no running container")
        async with Undo(tasks=self._tasks) as undo:
            for record in members:
                path = _archive(directory, record.config.metadata.name)
                await self._checkpoints.container(record.id, path)
                undo.push("remove the archive", partial(self._files.remove, path))
            for name, document in _documents(pod, members).items():
                await self._files.write_document(f"{directory}/{name}", document)
                undo.push("remove the list", partial(self._files.remove, f"{directory}/{name}"))

    def _members(self, pod: PodRecord, container_ids: Sequence[str]) -> list[ContainerRecord]:
        found = [record for record in self._registry.containers_of(pod.id) if can_exec(record.state)]
        if container_ids:
            found = [self._member(pod, each, f"container_ids[{index}]") for index, each in enumerate(container_ids)]
        names = [record.config.metadata.name for record in found]
        for name in names:
            if names.count(name) > 1 or "/" in name:
                raise FailedPrecondition(f"container name {name!r} cannot name one file of the checkpoint")
        return found

    def _member(self, pod: PodRecord, container_id: str, field: str) -> ContainerRecord:
        record = self._registry.containers.require(container_id)
        if record.pod_id != pod.id:
            raise InvalidInput(f"{field}: {container_id} is not in pod {pod.id}")
        if not can_exec(record.state):
            raise FailedPrecondition(f"{field}: container {record.id} is {record.state.value}, not running")
        return record

    async def restore(
        self,
        directory: str,
        config: PodConfig | None,
        runtime_handler: str,
        configs: Sequence[ContainerConfig],
        options: Mapping[str, str],
    ) -> RestoredPod:
        """CRI RestorePod: a new pod with all containers of the checkpoint, which run when this returns. On failure
        there is no pod.

        InvalidInput naming the field where the pod's or a container's configuration is missing.
        """
        _refuse(options)
        handler = self._handlers.resolve(runtime_handler)
        await self._checkpoints.require_criu("RestorePod", handler)
        names = await self._listed(directory)
        by_name = {each.metadata.name: each for each in configs}
        for name in names:
            if name not in by_name:
                raise InvalidInput(f"container_configs: none for container {name} of the checkpoint")
        if config is None:
            raise InvalidInput("config: must be given")
        async with Undo(tasks=self._tasks) as undo:
            pod_id = await self._pods.run(config, runtime_handler)
            undo.push("remove the pod", partial(self._remove, pod_id))
            restored = [(name, await self._restore(pod_id, config, by_name[name], directory)) for name in names]
        return RestoredPod(id=pod_id, containers=tuple(restored))

    async def _restore(
        self, pod_id: PodId, pod_config: PodConfig, config: ContainerConfig, directory: str
    ) -> ContainerId:
        path = _archive(directory, config.metadata.name)
        image = ImageSpec(image=path, user_specified_image=config.image.user_specified_image)
        config = msgspec.structs.replace(config, image=image)
        container_id = await self._containers.create(pod_id, config, pod_config)
        await self._containers.start(container_id)
        return container_id

    async def _remove(self, pod_id: PodId) -> None:
        await self._pods.stop(pod_id)
        await self._pods.remove(pod_id)

    async def _listed(self, directory: str) -> list[str]:
        document = await self._files.read_document(f"{directory}/{LIST}")
        try:
            names = list(msgspec.json.decode(document, type=_List).containers)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InvalidInput(f"checkpoint_path: {directory}/{LIST}: {error}") from error
        if not names or any("/" in name for name in names):
            raise InvalidInput(f"checkpoint_path: {directory}/{LIST}: it names no containers")
        return names


class _List(msgspec.Struct):
    containers: dict[str, str]


def _refuse(options: Mapping[str, str]) -> None:
    for key in options:
        raise Unsupported(f"options: there is no option {key[:80]!r}")


def _archive(directory: str, name: str) -> str:
    return f"{directory.rstrip('/')}/{name}.tar"


def _documents(pod: PodRecord, members: Sequence[ContainerRecord]) -> dict[str, bytes]:
    containers = {record.config.metadata.name: full_name(record, pod) for record in members}
    metadata = pod.config.metadata
    about = {
        "metadata": {"name": metadata.name, "uid": metadata.uid, "namespace": metadata.namespace},
        "hostname": pod.config.hostname,
    }
    return {
        POD: msgspec.json.encode(about),
        LIST: msgspec.json.encode({"version": 1, "containers": containers}),
    }

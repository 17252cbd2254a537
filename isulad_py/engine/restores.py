"""Containers that begin where a checkpoint ended: made from its image and its changes, restored by their start."""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import structlog

from isulad_py.engine.images import Images
from isulad_py.model.checkpoint import Checkpointed
from isulad_py.model.container import ContainerConfig, ContainerRecord, ImageSpec, Processes
from isulad_py.model.errors import EngineError, FailedPrecondition, InvalidInput
from isulad_py.model.ids import ContainerId, ImageId
from isulad_py.model.image import ImageRecord
from isulad_py.ports.checkpoints import CheckpointArchive, Checkpointer, CheckpointFiles
from isulad_py.ports.runtime import ContainerRuntime, Launch
from isulad_py.ports.storage import Fill

log = structlog.get_logger(__name__)

FIELD: Final = "config.image.image"
NO_IMAGE: Final = ImageRecord(id=ImageId(""))
"""Of a container whose root is none of an image's."""
_ID: Final = re.compile(r"(?:sha256:)?[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True)
class Source:
    """What a container is made from: an image, or a checkpoint and the image under it."""

    config: ContainerConfig
    image: ImageRecord
    path: str = ""
    """Of the checkpoint; empty for none."""
    archive: CheckpointArchive | None = None

    @property
    def fill(self) -> Fill | None:
        return self._fill if self.archive is not None else None

    def _fill(self, upper: str, lower: Sequence[str]) -> None:
        if self.archive is not None:
            with _named():
                self.archive.fill(upper, lower)

    async def keep(self, container_id: ContainerId, spec: bytes) -> None:
        """Keeps the state of the processes for the container's start. InvalidInput naming the field where the spec is
        not one that they can be restored by."""
        if self.archive is not None:
            check_spec(self.config, spec, self.archive.about)
            with _named():
                await self.archive.unpack(container_id, spec)


class Restores:
    def __init__(
        self, *, images: Images, runtime: ContainerRuntime, checkpointer: Checkpointer, files: CheckpointFiles
    ) -> None:
        self._images = images
        self._runtime = runtime
        self._checkpointer = checkpointer
        self._files = files

    @contextlib.asynccontextmanager
    async def source(self, config: ContainerConfig, handler: str, *, remapped: bool = False) -> AsyncIterator[Source]:
        """By `image.image`: the path of a checkpoint, or else the name of an image that is here. Inside, the checkpoint
        is open. One is not taken into a pod with users of its own (`remapped`): its files' owners are others."""
        path = config.image.image
        if not path.startswith("/"):
            needs_none = config.external_rootfs and not path
            yield Source(config=config, image=NO_IMAGE if needs_none else self._images.require(path))
            return
        if config.external_rootfs:
            raise InvalidInput(f"{FIELD}: a checkpoint cannot be restored into a root of this host")
        if remapped:
            raise FailedPrecondition(f"{FIELD}: {path} cannot be restored in a user namespace")
        obstacle = await self._checkpointer.obstacle(handler)
        if obstacle:
            raise FailedPrecondition(f"{FIELD}: {path} cannot be restored: {obstacle}")
        async with contextlib.AsyncExitStack() as stack:
            with _named():
                archive = await stack.enter_async_context(self._files.open(path))
                image = await self._base(archive.about)
            spec = ImageSpec(
                image=image.repo_tags[0] if image.repo_tags else image.reference,
                user_specified_image=config.image.user_specified_image or path,
                annotations=config.image.annotations,
                runtime_handler=config.image.runtime_handler,
            )
            config = msgspec.structs.replace(config, image=spec)
            yield Source(config=config, image=image, path=path, archive=archive)

    async def _base(self, about: Checkpointed) -> ImageRecord:
        """The image under the checkpoint, pulled where it is missing."""
        wanted = about.image_ref or about.image_name
        found = self._images.find(wanted)
        if found is not None:
            return found
        by_id = _ID.fullmatch(wanted) is not None
        if by_id and not about.image_name:
            raise FailedPrecondition(f"the image {wanted} under it is not on this node, and it has no name to pull")
        pulled = await self._images.pull(ImageSpec(image=about.image_name if by_id else wanted), None)
        if by_id and pulled.id.removeprefix("sha256:") != wanted.removeprefix("sha256:"):
            raise FailedPrecondition(f"{about.image_name} is {pulled.id} by now, not the image {wanted} under it")
        return pulled

    async def run(self, record: ContainerRecord) -> Processes:
        """The container runs when this returns. On failure nothing of it does."""
        return await self._runtime.create(
            Launch(
                id=record.id,
                handler=record.runtime_handler,
                spec=await self._files.spec(record.id),
                log_path=record.log_path,
                terminal=record.config.tty,
                stdin=record.config.stdin,
                stdin_once=record.config.stdin_once,
                restore=self._files.place(record.id).images,
            )
        )

    async def discard(self, container_id: ContainerId) -> None:
        """Idempotent. What is left is cleared at the next start."""
        try:
            await self._files.discard(container_id)
        except EngineError as error:
            log.warning("state of a restored container not removed", container=container_id, error=str(error))


def check_spec(config: ContainerConfig, spec: bytes, about: Checkpointed) -> None:
    """CRIU restores what it finds in the images: a mount that the request has and the checkpoint has not would be
    missing without a word, and the other way round it would fail."""
    document = msgspec.json.decode(spec)
    binds = {mount["destination"] for mount in document["mounts"] if _is_bind(mount)}
    missing = sorted(about.binds - binds)
    if missing:
        raise InvalidInput(f"config.mounts: the checkpoint has mounts at {', '.join(missing)}, the request has none")
    for index, mount in enumerate(config.mounts):
        if mount.container_path.rstrip("/") not in about.binds:
            raise InvalidInput(f"config.mounts[{index}]: the checkpoint has no mount at {mount.container_path}")
    if config.tty != about.terminal:
        raise InvalidInput(f"config.tty: the checkpoint was taken {'with' if about.terminal else 'without'} a terminal")
    namespaces = {namespace["type"] for namespace in document["linux"]["namespaces"]}
    if namespaces != about.namespaces:
        kinds = ", ".join(sorted(namespaces ^ about.namespaces))
        raise FailedPrecondition(f"{FIELD}: the checkpoint and the pod differ in their namespaces ({kinds})")


def _is_bind(mount: dict[str, object]) -> bool:
    options = mount.get("options")
    return mount.get("type") == "bind" or (isinstance(options, list) and bool({"bind", "rbind"}.intersection(options)))


@contextlib.contextmanager
def _named() -> Iterator[None]:
    """Puts the field before what is wrong with the checkpoint."""
    try:
        yield
    except EngineError as error:
        raise type(error)(f"{FIELD}: {error}") from error

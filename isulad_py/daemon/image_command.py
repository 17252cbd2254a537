"""`isulad image`: feeds a node from files while no daemon runs on its graph; a running one owns records and layers."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import NoReturn, TextIO

from isulad_py.config.schema import Config
from isulad_py.daemon.adapters import registry_options
from isulad_py.daemon.state_lock import StateLock
from isulad_py.engine.archives import Archives
from isulad_py.engine.handlers import Handlers
from isulad_py.engine.images import Images
from isulad_py.engine.registry import Registry
from isulad_py.host.clock import SystemClock
from isulad_py.host.facts import read_facts
from isulad_py.host.tasks import TaskOwner
from isulad_py.images.adapter import RegistryImages
from isulad_py.images.archive_write import DOCKER, FORMS
from isulad_py.images.archives import ArchiveImages
from isulad_py.model.errors import EngineError, InvalidInput
from isulad_py.model.image import ImageRecord
from isulad_py.storage.layers import LayerStore
from isulad_py.storage.records import SqliteRecords
from isulad_py.storage.rootfs import OverlayRootFilesystems

BAD_ARGUMENTS = 125


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise InvalidInput(message)


def parser() -> argparse.ArgumentParser:
    made = _Parser(prog="isulad image", description="Images of a node on which no daemon runs at the moment.")
    made.add_argument("--graph", default=Config().graph, help="the daemon's graph directory (default %(default)s)")
    commands = made.add_subparsers(dest="command", required=True)
    load = commands.add_parser("load", help="take the images of a docker-archive, an oci-archive or an oci-layout")
    load.add_argument("path")
    load.add_argument("--name", default="", help="one more name, for an archive of one image")
    save = commands.add_parser("save", help="write an image to an archive")
    save.add_argument("image")
    save.add_argument("path")
    save.add_argument("--format", default=DOCKER, choices=FORMS)
    brought = commands.add_parser("import", help="make an image of the tar archive of a root file system")
    brought.add_argument("path")
    brought.add_argument("name")
    tag = commands.add_parser("tag", help="give an image one more name")
    tag.add_argument("image")
    tag.add_argument("name")
    commands.add_parser("ls", help="all images")
    return made


def run_image(argv: Sequence[str], *, out: TextIO, err: TextIO) -> int:
    """Returns the exit status."""
    try:
        arguments = parser().parse_args(list(argv))
    except InvalidInput as error:
        print(f"isulad image: {error}\nisulad image: see isulad image --help", file=err)
        return BAD_ARGUMENTS
    try:
        lock = StateLock.acquire_graph(arguments.graph)
        try:
            records = asyncio.run(_run(arguments))
        finally:
            lock.release()
    except EngineError as error:
        print(f"isulad image: {error}", file=err)
        return 1
    for record in records:
        names = record.repo_tags or record.repo_digests or ("<none>",)
        print(f"{record.id}  {record.size_bytes:>12}  {' '.join(names)}", file=out)
    return 0


async def _run(arguments: argparse.Namespace) -> list[ImageRecord]:
    async with _opened(arguments.graph) as (images, archives):
        match arguments.command:
            case "load":
                return await archives.load(arguments.path, arguments.name)
            case "save":
                return [await archives.save(arguments.image, arguments.path, arguments.format)]
            case "import":
                return [await archives.import_rootfs(arguments.path, arguments.name)]
            case "tag":
                return [await archives.tag(arguments.image, arguments.name)]
            case _:
                return images.list()


@contextlib.asynccontextmanager
async def _opened(graph: str) -> AsyncIterator[tuple[Images, Archives]]:
    config, clock = Config(graph=graph), SystemClock()
    failures: list[BaseException] = []
    async with contextlib.AsyncExitStack() as stack:
        tasks = TaskOwner(on_failure=lambda _, error: failures.append(error))
        records = await SqliteRecords.open(Path(graph, "isulad.db"), now_ns=clock.now_ns)
        stack.push_async_callback(records.close)
        stack.push_async_callback(tasks.close)
        layers = await LayerStore.open(graph, tasks=tasks, clock=clock, boot_id=read_facts().boot_id)
        rootfs = await OverlayRootFilesystems.open(layers=layers, tasks=tasks, clock=clock)
        source = RegistryImages(layers=layers, options=registry_options(config), clock=clock)
        stack.push_async_callback(source.close)
        images = Images(
            records=records,
            registry=Registry(records=records),
            source=source,
            layers=layers,
            rootfs=rootfs,
            tasks=tasks,
            clock=clock,
            handlers=Handlers(names=(config.default_runtime,), default=config.default_runtime),
            sandbox_image=config.pod_sandbox_image,
        )
        await images.load()
        yield images, Archives(images=images, files=ArchiveImages(layers=layers))

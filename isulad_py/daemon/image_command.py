"""`isulad image`: images of a node, in and out. Asks the daemon that runs; without one, works on its graph itself."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Final, NoReturn, Protocol, TextIO

from msgspec.structs import replace

from isulad_py.config.findings import errors
from isulad_py.config.load import load
from isulad_py.config.schema import Config
from isulad_py.daemon.image_logins import credentials_from_file, credentials_from_line
from isulad_py.daemon.image_progress import display
from isulad_py.daemon.state_lock import StateLock
from isulad_py.engine.progress import PullState
from isulad_py.host.failures import translate
from isulad_py.images.archive_write import DOCKER, FORMS
from isulad_py.model.errors import EngineError, InvalidInput, Unavailable
from isulad_py.model.image import Credentials, ImageRecord
from isulad_py.telemetry.logs import warnings_to
from isulad_py.wire.native.client import DaemonImages

BAD_ARGUMENTS: Final = 125
PROBE_SECONDS: Final = 10.0
INTERRUPTED: Final = 128 + signal.SIGINT
"""As a shell has it."""


class ImageWorks(Protocol):
    """What a daemon and a graph do alike. Paths are absolute."""

    async def listed(self) -> list[ImageRecord]: ...

    async def load(self, path: str, name: str) -> list[ImageRecord]: ...

    async def save(self, image: str, path: str, form: str) -> ImageRecord: ...

    async def import_rootfs(self, path: str, name: str) -> ImageRecord: ...

    async def tag(self, image: str, name: str) -> ImageRecord: ...

    async def pull(
        self, image: str, credentials: Credentials | None, watch: Callable[[PullState], None]
    ) -> ImageRecord: ...

    async def remove(self, image: str) -> None: ...

    async def inspect(self, image: str) -> str: ...


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise InvalidInput(message)


def _dash(value: str) -> str:
    if value != "-":
        raise argparse.ArgumentTypeError("only -, for standard input: everybody can read a program's arguments")
    return value


def parser() -> argparse.ArgumentParser:
    made = _Parser(prog="isulad image", description="Images of this node, whether its daemon runs or not.")
    made.add_argument("--config", help="the daemon's configuration (default /etc/isulad/daemon.json, if it is there)")
    made.add_argument("--graph", help="a graph directory on which no daemon runs, in place of the configuration's")
    made.add_argument("--host", help="the daemon's address, unix:///PATH, in place of the configuration's first")
    commands = made.add_subparsers(dest="command", required=True)
    load_ = commands.add_parser("load", help="take the images of a docker-archive, an oci-archive or an oci-layout")
    load_.add_argument("path")
    load_.add_argument("--name", default="", help="one more name, for an archive of one image")
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
    pull = commands.add_parser("pull", help="fetch an image from its registry")
    pull.add_argument("image")
    pull.add_argument("--creds", type=_dash, metavar="-", help="read USER:PASSWORD from standard input")
    pull.add_argument("--authfile", default="", help="docker's config.json (default: where skopeo and docker have it)")
    remove = commands.add_parser("rm", help="take a name from an image, and the image with its last one")
    remove.add_argument("image", nargs="+")
    inspect = commands.add_parser("inspect", help="all about an image, as JSON")
    inspect.add_argument("image")
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
        with warnings_to(lambda line: print(line.decode(errors="replace"), end="", file=err)):
            asyncio.run(_run(arguments, out, err))
    except EngineError as error:
        print(f"isulad image: {error}", file=err)
        return 1
    except KeyboardInterrupt:
        print("isulad image: interrupted", file=err)
        return INTERRUPTED
    return 0


async def _run(arguments: argparse.Namespace, out: TextIO, err: TextIO) -> None:
    async with _works(arguments) as works:
        match arguments.command:
            case "inspect":
                print(await works.inspect(arguments.image), file=out)
            case "rm":
                for image in arguments.image:
                    await works.remove(image)
            case _:
                for record in await _records(works, arguments, err):
                    names = record.repo_tags or record.repo_digests or ("<none>",)
                    print(f"{record.id}  {record.size_bytes:>12}  {' '.join(names)}", file=out)


async def _records(works: ImageWorks, arguments: argparse.Namespace, err: TextIO) -> list[ImageRecord]:
    match arguments.command:
        case "load":
            return await works.load(_absolute(arguments.path), arguments.name)
        case "save":
            return [await works.save(arguments.image, _absolute(arguments.path), arguments.format)]
        case "import":
            return [await works.import_rootfs(_absolute(arguments.path), arguments.name)]
        case "tag":
            return [await works.tag(arguments.image, arguments.name)]
        case "pull":
            return [await works.pull(arguments.image, _credentials(arguments), display(err))]
        case _:
            return await works.listed()


def _absolute(path: str) -> str:
    """The daemon's working directory is not ours."""
    return str(Path(path).absolute())


def _credentials(arguments: argparse.Namespace) -> Credentials | None:
    if arguments.creds:
        return credentials_from_line(sys.stdin)
    return credentials_from_file(arguments.image, arguments.authfile, os.environ)


@contextlib.asynccontextmanager
async def _works(arguments: argparse.Namespace) -> AsyncIterator[ImageWorks]:
    """The daemon where it answers; the graph where none has it."""
    config = _configuration(arguments)
    address = arguments.host or ("" if arguments.graph else config.hosts[0])
    path = address.removeprefix("unix://")
    if address and _answers(path, must=bool(arguments.host)):
        async with DaemonImages.connected(path) as daemon:
            yield daemon
        return
    from isulad_py.daemon.image_graph import GraphImages  # half of the engine, where the daemon's part is done by it

    lock = StateLock.acquire_graph(config.graph)
    try:
        async with GraphImages.opened(config) as graph:
            yield graph
    finally:
        lock.release()


def _configuration(arguments: argparse.Namespace) -> Config:
    """The daemon's, so that its registries and its policy are those of the command."""
    loaded = load(arguments.config, {})
    wrong = errors(loaded.findings)
    if wrong:
        raise InvalidInput(str(wrong[0]))
    return replace(loaded.config, graph=_absolute(arguments.graph)) if arguments.graph else loaded.config


def _answers(path: str, *, must: bool) -> bool:
    """Whether somebody listens. A socket that is there and not for us is an error: the graph behind it is not for us
    either."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(PROBE_SECONDS)
        try:
            probe.connect(path)
        except (FileNotFoundError, ConnectionRefusedError) as error:
            if must:
                raise Unavailable(f"no daemon answers at {path}: {(error.strerror or str(error)).lower()}") from error
            return False
        except OSError as error:
            raise translate(f"ask the daemon at {path}:", error) from error
    return True

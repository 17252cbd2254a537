"""Where everything below the graph root lies."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Final

from msgspec import Struct

from isulad_py.host import files
from isulad_py.model.errors import InvalidInput
from isulad_py.model.ids import ChainId, ContainerId

_CHAIN: Final = re.compile(r"sha(?:256|384|512):[0-9a-f]{64,128}")
_KEY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,199}")


class OverlayPaths(Struct, frozen=True):
    """All of them are derived from ids, so that what a crash left behind can be found again."""

    root: str
    """`<graph>/overlay`; one file system, so that renames are atomic."""

    @property
    def layers(self) -> str:
        return f"{self.root}/layers"

    @property
    def links(self) -> str:
        """Short names of layers: 128 of them have to fit into the one page that mount(2) takes."""
        return f"{self.root}/l"

    @property
    def ingest(self) -> str:
        return f"{self.root}/ingest"

    @property
    def containers(self) -> str:
        return f"{self.root}/containers"

    @property
    def views(self) -> str:
        return f"{self.root}/views"

    @property
    def trash(self) -> str:
        return f"{self.root}/trash"

    @property
    def aside(self) -> str:
        """What could not be read: kept for people to look at."""
        return f"{self.root}/aside"

    @property
    def empty(self) -> str:
        """A layer without anything: overlay wants two lower ones where there is no upper one."""
        return f"{self.root}/empty"

    def make(self) -> None:
        """Layers hold setuid programs of any age: nobody but root may reach them here."""
        files.ensure_dir(self.root, 0o711)
        for path in (self.layers, self.links, self.ingest, self.views, self.trash, self.aside):
            files.ensure_dir(path, 0o700)
        # Root of a user namespace has to come through to its own; each folder in it is closed to others.
        files.ensure_dir(self.containers, 0o711)
        Path(self.containers).chmod(0o711)
        files.ensure_dir(self.empty, 0o755)

    def layer(self, chain_id: ChainId) -> str:
        return f"{self.layers}/{chain_hex(chain_id)}"

    def diff(self, chain_id: ChainId) -> str:
        return f"{self.layers}/{chain_hex(chain_id)}/diff"

    def container(self, container_id: ContainerId) -> str:
        return f"{self.containers}/{checked(container_id, 'container id')}"

    def merged(self, container_id: ContainerId) -> str:
        return f"{self.container(container_id)}/merged"

    def view(self, key: str) -> str:
        return f"{self.views}/{checked(key, 'view')}"


def chain_hex(chain_id: ChainId) -> str:
    """The digest's value, fit for a file name."""
    if not _CHAIN.fullmatch(chain_id):
        raise InvalidInput(f"chain id {chain_id[:100]!r} is not a digest")
    return chain_id.partition(":")[2]


def link_name(chain_id: ChainId) -> str:
    """24 characters that carry 120 bits of the chain id: short, and nobody finds two chains with the same."""
    return base64.b32encode(bytes.fromhex(chain_hex(chain_id))[:15]).decode().lower()


def is_file_name(name: str) -> bool:
    return _KEY.fullmatch(name) is not None


def checked(name: str, what: str) -> str:
    """The name, where it can be a file's; InvalidInput else."""
    if not is_file_name(name):
        raise InvalidInput(f"{what} {name[:100]!r} cannot be a file name")
    return name

"""The directories of the layer store. Synchronous."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
import structlog
from msgspec import Struct
from msgspec.structs import replace

from isulad_py.host import files, inherit, libc
from isulad_py.host.disk_reserve import DiskReserve
from isulad_py.host.failures import translated
from isulad_py.model.errors import DataLoss, EngineError, HostFailure, ResourceExhausted
from isulad_py.model.ids import ChainId
from isulad_py.ports.layers import LayerFacts
from isulad_py.storage.paths import OverlayPaths, chain_hex, link_name
from isulad_py.storage.trash import Trash

log = structlog.get_logger(__name__)

RESERVE_BYTES: Final = 64 * 1024 * 1024
"""Free space that layers leave: the database and the logs of what runs need room to go on..."""
RESERVE_INODES: Final = 1024
"""...and files."""
SPARE_SHARE: Final = 0.15
"""Of the disk, free, below which nothing is kept that is only spare: kubelets delete images from there on."""
_META_LIMIT: Final = 64 * 1024 * 1024


Failpoint = Callable[[str, str, str], None]
"""For tests of recovery: told of each step (`after`, `layers`, its name) that a crash may be the next thing after."""


class Sealed(Struct, frozen=True, kw_only=True):
    folder: str
    facts: LayerFacts
    at: int
    """Nanoseconds since 1970."""

    def brief(self) -> Sealed:
        """Without what only the notes on disk tell, which can be megabytes."""
        return replace(self, facts=replace(self.facts, implied=()))


class _Meta(Struct, frozen=True, kw_only=True):
    version: int
    boot_id: str
    """A sealed layer that was never published can be trusted within one boot only: nothing has been flushed."""
    facts: LayerFacts


class LayerDisk:
    def __init__(self, paths: OverlayPaths, *, trash: Trash, boot_id: str, failpoint: Failpoint | None = None) -> None:
        self.paths = paths
        self.trash = trash
        self.reserve = DiskReserve(paths.ingest, keep_bytes=RESERVE_BYTES, keep_inodes=RESERVE_INODES)
        """For all layers that come in."""
        self._failpoint = failpoint
        self._boot_id = boot_id

    def load(self) -> tuple[dict[ChainId, LayerFacts], dict[ChainId, Sealed]]:
        """Published and sealed layers. Half-made ones go; what cannot be read is moved aside and reported."""
        with translated("read the layers:"):
            self.paths.make()
            found = [self._load_layer(path) for path in sorted(Path(self.paths.layers).iterdir())]
            published = {facts.chain_id: facts for facts in found if facts is not None}
            sealed: dict[ChainId, Sealed] = {}
            for path in sorted(Path(self.paths.ingest).iterdir()):
                facts = self._load_sealed(path)
                if facts is None or facts.chain_id in published or facts.chain_id in sealed:
                    self.trash.take(str(path))
                else:
                    sealed[facts.chain_id] = Sealed(folder=str(path), facts=facts, at=_sealed_at(path)).brief()
            self._mend_links(published)
        return published, sealed

    def make_staging(self, folder: str) -> None:
        with translated("stage a layer:"):
            self.reserve.check()
            Path(folder).mkdir(0o700)
            self._done("folder")
            files.ensure_dir(f"{folder}/diff", 0o755)
            self._done("staged")

    def seal(self, sealed: Sealed) -> None:
        meta = msgspec.json.encode(_Meta(version=1, boot_id=self._boot_id, facts=sealed.facts))
        if len(meta) > _META_LIMIT:
            raise ResourceExhausted(f"layer {sealed.facts.chain_id}: {len(meta)} bytes of notes")
        self._done("unpacked")
        files.write_atomic(f"{sealed.folder}/meta.json", meta, mode=0o600)
        self._done("sealed")

    def move_in(self, chain: Sequence[ChainId], new: Mapping[ChainId, Sealed]) -> None:
        """Makes the new layers of the chain (bottom first) durable and then visible. Can be repeated after an error."""
        folders = [self._folder(chain_id, new.get(chain_id)) for chain_id in chain]
        roots = [f"{folder}/diff" for folder in folders]
        for depth, chain_id in enumerate(chain):
            if chain_id in new:
                implied = _read_meta(Path(folders[depth])).facts.implied
                inherit.attributes(roots[depth], roots[:depth][::-1], implied)
                self._done("dressed")
        with translated("make layers durable:"):
            # Contents first, names second, record last (the engine's): after a loss of power no name leads to a layer
            # that is incomplete. One flush of the file system costs less than one of each file.
            fd = os.open(self.paths.layers, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                libc.syncfs(fd)
                self._done("flushed")
                for chain_id, sealed in new.items():
                    self._rename(sealed.folder, self.paths.layer(chain_id))
                    self._done("renamed")
                    self._link(chain_id)
                    self._done("named")
                os.fsync(fd)
                self._done("published")
            finally:
                os.close(fd)

    def has_room_to_spare(self) -> bool:
        with translated("look at the free space of layers:"):
            state = os.statvfs(self.paths.layers)
        ours = state.f_blocks - state.f_bfree + state.f_bavail  # as df reckons: not what is reserved for root
        return state.f_bavail >= SPARE_SHARE * ours

    def ages(self, chain_ids: Iterable[ChainId], now_ns: int) -> dict[ChainId, float]:
        """Seconds since each layer was sealed; those that have gone meanwhile are left out."""
        found = {}
        with translated("read the age of layers:"):
            for chain_id in chain_ids:
                with contextlib.suppress(FileNotFoundError):
                    found[chain_id] = (now_ns - _sealed_at(Path(self.paths.layer(chain_id)))) / 1e9
        return found

    def _done(self, step: str) -> None:
        if self._failpoint is not None:
            self._failpoint("after", "layers", step)

    def move_out(self, chain_ids: Sequence[ChainId]) -> None:
        for chain_id in chain_ids:
            files.remove_file(f"{self.paths.links}/{link_name(chain_id)}")
            self.trash.take(self.paths.layer(chain_id))

    def staging_of(self, staged: str) -> str:
        """The folder of a staged directory; ValueError for what is none."""
        folder = staged.removesuffix("/diff")
        if folder == staged or folder.rpartition("/")[0] != self.paths.ingest:
            raise ValueError(f"{staged} was not staged here")
        return folder

    def _folder(self, chain_id: ChainId, sealed: Sealed | None) -> str:
        if sealed is not None and Path(sealed.folder).is_dir():
            return sealed.folder
        return self.paths.layer(chain_id)  # published, if only by a try that failed afterwards

    @staticmethod
    def _rename(source: str, target: str) -> None:
        try:
            Path(source).rename(target)
        except FileNotFoundError:
            if not Path(target).is_dir():
                raise

    def _link(self, chain_id: ChainId) -> None:
        link = Path(self.paths.links, link_name(chain_id))
        target = Path("..", "layers", chain_hex(chain_id), "diff")
        try:
            link.symlink_to(target)
        except FileExistsError:
            if link.readlink() != target:
                raise HostFailure(f"{link} leads to another layer") from None

    def _mend_links(self, published: Mapping[ChainId, LayerFacts]) -> None:
        wanted = {link_name(chain_id) for chain_id in published}
        for link in Path(self.paths.links).iterdir():
            if link.name not in wanted:
                link.unlink()
        for chain_id in published:
            self._link(chain_id)

    def _load_layer(self, path: Path) -> LayerFacts | None:
        try:
            facts = _read_meta(path).facts
            if chain_hex(facts.chain_id) != path.name or not (path / "diff").is_dir():
                raise DataLoss("it is not the layer that its name says")
        except EngineError as error:
            log.error("layer put aside", path=str(path), error=str(error))
            path.rename(f"{self.paths.aside}/{path.name}-{secrets.token_hex(4)}")
            return None
        return replace(facts, implied=())

    def _load_sealed(self, path: Path) -> LayerFacts | None:
        try:
            meta = _read_meta(path)
        except EngineError:
            return None  # not finished, so never anybody's
        return meta.facts if meta.boot_id == self._boot_id else None


def _sealed_at(folder: Path) -> int:
    return (folder / "meta.json").stat().st_mtime_ns


def _read_meta(path: Path) -> _Meta:
    try:
        return msgspec.json.decode(files.read_limited(f"{path}/meta.json", _META_LIMIT), type=_Meta)
    except msgspec.DecodeError as error:
        raise DataLoss(f"{path}/meta.json: {error}") from error

"""PURE: manifests, indexes and image configurations (OCI image spec; docker's schema 2), checked before use."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct, field

from isulad_py.images.platform import Platform, choose
from isulad_py.model.errors import DataLoss, InvalidInput, NotFound, Unsupported
from isulad_py.model.ids import ChainId, Digest
from isulad_py.model.image import ImageConfig
from isulad_py.model.reference import check_digest

MANIFEST_LIMIT: Final = 4 * 1024 * 1024
"""What registries take at most, and containerd reads."""
CONFIG_LIMIT: Final = 4 * 1024 * 1024
MAX_LAYERS: Final = 150
"""What one overlay mount can name."""
MAX_ENTRIES: Final = 1000
"""Images of one index: there are not that many platforms."""
MAX_SILENT: Final = 10
"""Entries of an index that do not say for what they are, and are looked at one after the other."""

OCI_MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
OCI_INDEX: Final = "application/vnd.oci.image.index.v1+json"
DOCKER_MANIFEST: Final = "application/vnd.docker.distribution.manifest.v2+json"
DOCKER_LIST: Final = "application/vnd.docker.distribution.manifest.list.v2+json"
ACCEPT: Final = (DOCKER_MANIFEST, DOCKER_LIST, OCI_MANIFEST, OCI_INDEX)
_DOCUMENTS: Final = frozenset({*ACCEPT, ""})
_SCHEMA_1: Final = frozenset(
    {
        "application/vnd.docker.distribution.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.v1+prettyjws",
    }
)
_CONFIGS: Final = frozenset(
    {"application/vnd.oci.image.config.v1+json", "application/vnd.docker.container.image.v1+json"}
)
_LAYERS: Final = frozenset(
    {
        "application/vnd.oci.image.layer.v1.tar",
        "application/vnd.oci.image.layer.v1.tar+gzip",
        "application/vnd.oci.image.layer.v1.tar+zstd",
        "application/vnd.docker.image.rootfs.diff.tar",
        "application/vnd.docker.image.rootfs.diff.tar.gzip",
        "application/vnd.docker.image.rootfs.diff.tar.zstd",
    }
)
T = TypeVar("T")


class Descriptor(Struct, kw_only=True, rename={"media_type": "mediaType"}):
    media_type: str = ""
    digest: str = ""
    size: int = -1
    platform: Platform | None = None
    annotations: dict[str, str] | None = None


class Manifest(Struct, kw_only=True, rename={"media_type": "mediaType", "artifact_type": "artifactType"}):
    """One image for one platform."""

    config: Descriptor
    listed: list[Descriptor] | None = field(name="layers")
    media_type: str = ""
    artifact_type: str = ""

    @property
    def layers(self) -> list[Descriptor]:
        """Go writes an empty list as null: images FROM scratch."""
        return self.listed or []


class Index(Struct, kw_only=True):
    """Several images by platform."""

    listed: list[Descriptor] | None = field(name="manifests")

    @property
    def manifests(self) -> list[Descriptor]:
        return self.listed or []


class _Shape(Struct, kw_only=True, rename={"schema": "schemaVersion", "media_type": "mediaType"}):
    """What tells the kinds of documents apart."""

    schema: int = 0
    media_type: str = ""
    manifests: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    layers: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    config: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    fsLayers: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


def parse_document(body: bytes, media_type: str) -> Manifest | Index:
    """A manifest or an index, whatever was said before. Raises DataLoss for what is neither or both, Unsupported for
    what is well-formed but no container image."""
    media_type = media_type.partition(";")[0].strip().lower()
    if media_type in _SCHEMA_1:
        raise Unsupported("manifest of docker's schema 1: push the image again with a newer tool")
    shape = _decode(body, _Shape, "manifest")
    if shape.schema == 1 or shape.fsLayers is not msgspec.UNSET:
        raise Unsupported("manifest of docker's schema 1: push the image again with a newer tool")
    _check_kind(shape, media_type)
    if shape.manifests is not msgspec.UNSET:
        _check_length(shape.manifests, MAX_ENTRIES, "index", "images")
        index = _decode(body, Index, "index")
        for descriptor in index.manifests:
            check_descriptor(descriptor, "index")
        return index
    _check_length(shape.layers, MAX_LAYERS, "manifest", "layers")
    manifest = _decode(body, Manifest, "manifest")
    _check_manifest(manifest)
    return manifest


def _check_length(raw: msgspec.Raw | msgspec.UnsetType, limit: int, what: str, items: str) -> None:
    """Before the items are decoded: tens of thousands would hold the loop."""
    if raw is msgspec.UNSET or bytes(raw) == b"null":
        return
    found = len(_decode(bytes(raw), list[msgspec.Raw], what))
    if found > limit:
        raise Unsupported(f"{what}: {found} {items}; {limit} are the limit")


def _check_kind(shape: _Shape, media_type: str) -> None:
    """A document that can be read in two ways is refused (CVE-2021-41190)."""
    is_index = shape.manifests is not msgspec.UNSET
    is_manifest = shape.layers is not msgspec.UNSET or shape.config is not msgspec.UNSET
    if is_index and is_manifest:
        raise DataLoss("manifest: it is both a manifest and an index")
    if not is_index and (shape.layers is msgspec.UNSET or shape.config is msgspec.UNSET):
        raise DataLoss("manifest: neither a manifest nor an index")
    for told in (shape.media_type, media_type):
        if told in (OCI_MANIFEST, DOCKER_MANIFEST) and is_index:
            raise DataLoss(f"manifest: it calls itself {told}, but is an index")
        if told in (OCI_INDEX, DOCKER_LIST) and is_manifest:
            raise DataLoss(f"manifest: it calls itself {told}, but is no index")


def _check_manifest(manifest: Manifest) -> None:
    if manifest.config.media_type not in _CONFIGS:
        kind = manifest.artifact_type or manifest.config.media_type or "an unknown kind"
        raise Unsupported(f"manifest: an artifact of {kind[:200]}, not a container image")
    check_descriptor(manifest.config, "configuration")
    for layer in manifest.layers:
        check_descriptor(layer, "layer")
        if "foreign" in layer.media_type or "nondistributable" in layer.media_type:
            raise Unsupported(f"layer {layer.digest}: foreign ({layer.media_type[:200]}), to be had elsewhere only")
        if layer.media_type not in _LAYERS:
            raise Unsupported(f"layer {layer.digest}: {layer.media_type[:200]!r} is no kind of layer known here")


def check_descriptor(descriptor: Descriptor, what: str) -> None:
    try:
        check_digest(descriptor.digest, field=what)
    except InvalidInput as error:
        raise DataLoss(str(error)) from error
    if not 0 <= descriptor.size < 1 << 50:
        raise DataLoss(f"{what} {descriptor.digest}: size {descriptor.size}")


def choose_manifests(index: Index, machine: str) -> tuple[Descriptor, ...]:
    """The image for this machine; where none says to be it, those that do not say for what they are, in order, of which
    the first counts whose configuration fits (as containerd has it). Raises NotFound naming what there is."""
    entries = index.manifests
    chosen = choose([descriptor.platform for descriptor in entries], machine)
    if chosen is not None:
        return (entries[chosen],)
    silent = tuple(entry for entry in entries if entry.platform is None and entry.media_type in _DOCUMENTS)
    if silent:
        return silent[:MAX_SILENT]
    raise nothing_fits(index, machine)


def nothing_fits(index: Index, machine: str) -> NotFound:
    offers = {str(entry.platform) for entry in index.manifests if entry.platform is not None}
    known = ", ".join(sorted(offer for offer in offers if not offer.startswith("unknown"))[:20])
    return NotFound(f"index: nothing for linux on {machine}; there is {known or 'nothing at all'}")


class _RunConfig(Struct, kw_only=True, rename="pascal"):
    """What Go writes as null is absent."""

    user: str | None = None
    env: list[str] | None = None
    entrypoint: list[str] | None = None
    cmd: list[str] | None = None
    working_dir: str | None = None
    volumes: dict[str, Any] | None = None
    labels: dict[str, str] | None = None
    stop_signal: str | None = None
    exposed_ports: dict[str, Any] | None = None


class _RootFs(Struct, kw_only=True):
    type: str = ""
    diff_ids: list[str] | None = None


class _Document(Struct, kw_only=True):
    os: str = ""
    architecture: str = ""
    created: str | None = None
    config: _RunConfig | None = None
    variant: str = ""
    rootfs: _RootFs = field(default_factory=_RootFs)


class Configuration(Struct, frozen=True, kw_only=True):
    """What an image's configuration says."""

    config: ImageConfig
    diff_ids: tuple[Digest, ...]
    os: str
    architecture: str
    variant: str
    created_at: int
    """Nanoseconds since 1970; 0 where it is not told."""


def parse_configuration(body: bytes, layers: int) -> Configuration:
    """Raises DataLoss where it does not fit a manifest with that many layers, Unsupported for another system."""
    document = _decode(body, _Document, "configuration")
    if document.rootfs.type not in {"layers", ""}:
        raise Unsupported(f"configuration: a root file system of {document.rootfs.type[:100]!r}")
    told = document.rootfs.diff_ids or ()
    if len(told) != layers:
        raise DataLoss(f"configuration: {len(told)} layers, where the manifest has {layers}")
    if document.os not in {"linux", ""}:
        raise Unsupported(f"configuration: an image for {document.os[:100]}, not linux")
    try:
        diff_ids = tuple(check_digest(text, field="configuration") for text in told)
    except InvalidInput as error:
        raise DataLoss(str(error)) from error
    run = document.config or _RunConfig()
    return Configuration(
        config=ImageConfig(
            user=run.user or "",
            env=tuple(run.env or ()),
            entrypoint=tuple(run.entrypoint or ()),
            cmd=tuple(run.cmd or ()),
            working_dir=run.working_dir or "",
            volumes=tuple(run.volumes or ()),
            labels=run.labels or {},
            stop_signal=run.stop_signal or "",
            exposed_ports=tuple(run.exposed_ports or ()),
        ),
        diff_ids=diff_ids,
        os=document.os or "linux",
        architecture=document.architecture,
        variant=document.variant,
        created_at=parse_time(document.created or ""),
    )


def chain_ids(diff_ids: Sequence[Digest]) -> tuple[ChainId, ...]:
    """OCI image spec, config.md, Layer ChainID."""
    found: list[ChainId] = []
    for diff_id in diff_ids:
        if found:
            text = f"{found[-1]} {diff_id}".encode()
            found.append(ChainId("sha256:" + hashlib.sha256(text).hexdigest()))
        else:
            found.append(ChainId(diff_id))
    return tuple(found)


_FRACTION: Final = re.compile(r"\.(\d+)")


def parse_time(text: str) -> int:
    """Nanoseconds since 1970 of an RFC 3339 time; 0 for what is none."""
    fraction = _FRACTION.search(text)
    try:
        whole = datetime.fromisoformat(_FRACTION.sub("", text, count=1))
    except ValueError:
        return 0
    if whole.tzinfo is None:
        whole = whole.replace(tzinfo=UTC)
    seconds = round((whole - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds())
    nanoseconds = int(fraction[1][:9].ljust(9, "0")) if fraction else 0
    return max(0, seconds * 1_000_000_000 + nanoseconds)


def digest_of(body: bytes, like: str = "sha256") -> Digest:
    """With the algorithm of the digest `like`, or that algorithm."""
    algorithm = like.partition(":")[0]
    return Digest(f"{algorithm}:{hashlib.new(algorithm, body).hexdigest()}")


def _decode(body: bytes, kind: type[T], what: str) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataLoss(f"{what}: {error}") from error

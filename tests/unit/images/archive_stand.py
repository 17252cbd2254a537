"""Archives to load, and a store to load them into."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import zstandard

from isulad_py.host.clock import SystemClock
from isulad_py.images.archives import ArchiveImages
from isulad_py.storage.layers import LayerStore
from tests.fakes.tasks import TestTasks
from tests.images import File, Image, layer_of, make_image, tar, tar_layer

PACKED: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "zstd": lambda data: zstandard.ZstdCompressor().compress(data),
    "xz": lzma.compress,
    "bzip2": bz2.compress,
}


def file(name: str, data: bytes = b"x") -> File:
    return File(name, data, uid=os.geteuid(), gid=os.getegid())


def write_tar(path: Path, files: dict[str, bytes]) -> str:
    with tarfile.open(path, "w") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return str(path)


def oci_files(image: Image, name: str = "example.org/app:v1") -> dict[str, bytes]:
    entry = {"mediaType": image.media_type, "digest": image.digest, "size": len(image.document)}
    index = {
        "schemaVersion": 2,
        "manifests": [{**entry, "annotations": {"org.opencontainers.image.ref.name": name}}],
    }
    blobs = {f"blobs/{key.replace(':', '/')}": data for key, data in image.blobs.items()}
    return {
        "oci-layout": b'{"imageLayoutVersion":"1.0.0"}',
        "index.json": json.dumps(index).encode(),
        f"blobs/{image.digest.replace(':', '/')}": image.document,
        **blobs,
    }


def docker_files(compressed: bool = False) -> dict[str, bytes]:
    archives = [tar([file("base")]), tar([file("top", b"y" * 3000)])]
    layers = [layer_of(archive) for archive in archives]
    image = make_image(layers)
    manifest = [{"Config": "config.json", "RepoTags": ["app:v1"], "Layers": ["0/layer.tar", "./1/layer.tar"]}]
    data = [layer.blob for layer in layers] if compressed else archives
    return {
        "0/layer.tar": data[0],
        "1/layer.tar": data[1],
        "config.json": image.blobs[image.image_id],
        "manifest.json": json.dumps(manifest).encode(),
    }


def new_image() -> Image:
    return make_image([tar_layer([file("base")], "zstd"), tar_layer([file("top")])], config={"Cmd": ["sh"]})


class Stand:
    def __init__(self, store: LayerStore) -> None:
        self.store = store
        self.archives = ArchiveImages(layers=store, scratch=store.paths.root, machine=os.uname().machine)


async def stand_at(path: Path, tasks: TestTasks) -> Stand:
    return Stand(await LayerStore.open(str(path), tasks=tasks, clock=SystemClock(), boot_id="boot"))

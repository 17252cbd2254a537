"""The floor of a pull: fetch and verify all layers at once, and unpack each with tar."""

from __future__ import annotations

import hashlib
import http.client
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.images import ImageLayer


def fetch_and_unpack(host: str, repository: str, layers: list[ImageLayer], folder: Path) -> None:
    """Into the empty folder, a tree for each layer."""
    with ThreadPoolExecutor(len(layers)) as threads:
        list(threads.map(lambda layer: _fetch_one(host, repository, layer.digest, folder), layers))


def _fetch_one(host: str, repository: str, digest: str, folder: Path) -> None:
    blob = folder / digest.replace(":", "-")
    found = hashlib.sha256()
    connection = http.client.HTTPConnection(host, timeout=60)
    connection.request("GET", f"/v2/{repository}/blobs/{digest}")
    answer = connection.getresponse()
    with blob.open("wb") as file:
        while chunk := answer.read(1 << 18):
            found.update(chunk)
            file.write(chunk)
    connection.close()
    if f"sha256:{found.hexdigest()}" != digest:
        raise OSError(f"layer {digest} of {repository} is not what it must be")
    target = folder / f"{blob.name}-tree"
    target.mkdir()
    subprocess.run(["tar", "-xzf", str(blob), "-C", str(target)], check=True, stdin=subprocess.DEVNULL)
    blob.unlink()


def unpack(layer: ImageLayer, folder: Path) -> Path:
    """The layer's tree, as the one lower layer of the floors' overlay mounts."""
    folder.mkdir(parents=True)
    subprocess.run(["tar", "-xzf", "-", "-C", str(folder)], input=layer.blob, check=True)
    return folder

"""A registry in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from msgspec.structs import replace

from isulad_py.model import reference
from isulad_py.model.errors import InvalidInput, NotFound, Unauthenticated
from isulad_py.model.ids import ChainId, Digest, ImageId
from isulad_py.model.image import Credentials, ImageConfig, ImageRecord, Layer
from isulad_py.model.reference import Reference
from isulad_py.ports.images import PullProgress, PullRequest
from tests.fakes.faults import Faults
from tests.fakes.storage import MemoryLayers


def digest_of(text: str) -> Digest:
    return Digest("sha256:" + hashlib.sha256(text.encode()).hexdigest())


class FakeImageSource:
    """Implements ports.images.ImageSource. What it offers is said with `offer`; it puts the layers into `layers` as a
    real source does. `passwords[host]` makes a host want those credentials. `pulls` are the requests that were begun.
    Faults: resolve (before anything is fetched), fetch (before the layers come)."""

    def __init__(self, layers: MemoryLayers) -> None:
        self.faults = Faults()
        self.pulls: list[PullRequest] = []
        self.passwords: dict[str, Credentials] = {}
        self.closed = False
        self._layers = layers
        self._offers: dict[str, ImageRecord] = {}

    def offer(
        self,
        name: str,
        *,
        layers: tuple[str, ...] = ("base",),
        config: ImageConfig | None = None,
        content: str = "",
        layer_bytes: int = 4096,
    ) -> ImageRecord:
        """Offers an image under `name`, also by digest. `layers` are any words: equal words from the bottom up are the
        same layers. Images are the same (one id) when layers, configuration and `content` are equal. Gives the record
        that a pull by this name returns."""
        ref = reference.parse(name)
        config = config or ImageConfig(cmd=("sh",))
        identity = f"{layers}{config}{content}"
        record = ImageRecord(
            id=ImageId(digest_of("config" + identity)),
            manifest_digest=digest_of("manifest" + identity),
            config=config,
            layers=tuple(
                Layer(
                    chain_id=ChainId(digest_of("chain" + "/".join(layers[: depth + 1]))),
                    diff_id=digest_of("diff" + word),
                    size_bytes=layer_bytes,
                )
                for depth, word in enumerate(layers)
            ),
            size_bytes=layer_bytes * len(layers),
            architecture="amd64",
            raw_config=b"{}",
        )
        by_digest = ref.at(record.manifest_digest)
        record = replace(record, repo_digests=(by_digest.repo_digest,))
        self._offers[str(by_digest)] = record
        if ref.tag:
            record = replace(record, repo_tags=(ref.repo_tag,))
            self._offers[ref.repo_tag] = record
        return record

    def withdraw(self, name: str) -> None:
        """The tag is gone; the digest stays."""
        self._offers.pop(reference.parse(name).repo_tag, None)

    async def pull(self, request: PullRequest, progress: Callable[[PullProgress], None] | None = None) -> ImageRecord:
        self.pulls.append(request)
        say = progress or (lambda _: None)
        say(PullProgress(step="resolving"))
        await self.faults.at("resolve")
        ref = request.reference
        self._authorise(ref, request.credentials)
        record = self._offers.get(str(ref.at(ref.digest)) if ref.digest else ref.repo_tag)
        if record is None:
            raise NotFound(f"registry {ref.host}: image {ref}: resolve: manifest unknown")
        await self.faults.at("fetch")
        for layer in record.layers:
            say(PullProgress(step="downloading", digest=layer.diff_id, total_bytes=layer.size_bytes))
            self._layers.add(layer.chain_id, layer.size_bytes)
        say(PullProgress(step="done"))
        return replace(record, repo_tags=(ref.repo_tag,)) if ref.tag and not ref.digest else record

    async def close(self) -> None:
        self.closed = True

    def _authorise(self, ref: Reference, credentials: Credentials | None) -> None:
        wanted = self.passwords.get(ref.host)
        if wanted is None:
            return
        given = credentials or Credentials()
        if (given.username, given.password) != (wanted.username, wanted.password):
            raise Unauthenticated(f"registry {ref.host}: image {ref}: resolve: credentials are missing or wrong")


class FakeArchives:
    """Implements ports.images.ImageArchives. What a file holds is said with `offer`; `saved` is what was written, and
    `roots` are archives of root file systems. Faults: load."""

    def __init__(self, layers: MemoryLayers) -> None:
        self.faults = Faults()
        self.saved: dict[str, ImageRecord] = {}
        self.roots = {"/root.tar"}
        self._layers = layers
        self._files: dict[str, tuple[ImageRecord, ...]] = {}

    def offer(self, path: str, *names: str) -> None:
        self._files[path] = tuple(self._image(reference.parse(name), name) for name in names)

    def _image(self, ref: Reference, content: str) -> ImageRecord:
        layer = Layer(chain_id=ChainId(digest_of("chain" + content)), diff_id=digest_of("diff" + content))
        return ImageRecord(
            id=ImageId(digest_of("archived" + content)), repo_tags=(ref.repo_tag,), layers=(layer,), raw_config=b"{}"
        )

    async def load(self, path: str) -> tuple[ImageRecord, ...]:
        await self.faults.at("load")
        if path not in self._files:
            raise InvalidInput(f"archive {path}: no such file or directory")
        for record in self._files[path]:
            for layer in record.layers:
                self._layers.add(layer.chain_id)
        return self._files[path]

    async def save(self, image: ImageRecord, path: str, form: str) -> None:
        if form not in {"docker-archive", "oci-archive"}:
            raise InvalidInput(f"format {form!r}")
        missing = {layer.chain_id for layer in image.layers} - await self._layers.present()
        if missing:
            raise NotFound(f"archive {path}: layers {missing}")
        self.saved[path] = image
        self._files[path] = (image,)

    async def import_rootfs(self, path: str, name: Reference) -> ImageRecord:
        if path not in self.roots:
            raise InvalidInput(f"import {path}: there is no such file")
        record = self._image(name, f"import {path}")
        for layer in record.layers:
            self._layers.add(layer.chain_id)
        return record

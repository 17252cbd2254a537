"""Build images and push them to a registry, without docker: for tests, bench and demo.

    layer = tar_layer([File("hello", b"hi\\n"), Dir("tmp", mode=0o1777)])
    image = make_image([busybox_layer(), layer], config={"Cmd": ["sh"]})
    push("127.0.0.1:5000", "some/name", "latest", image)

Equal input gives equal digests. Standard library only (and `zstandard` for zstd layers); imports nothing of isulad_py.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import http.client
import io
import json
import platform
import random
import ssl
import subprocess
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

MTIME = 1_700_000_000
Compression = Literal["gzip", "zstd", "none"]
Format = Literal["oci", "docker"]

_TYPES: dict[Format, dict[str, str]] = {
    "oci": {
        "manifest": "application/vnd.oci.image.manifest.v1+json",
        "config": "application/vnd.oci.image.config.v1+json",
        "index": "application/vnd.oci.image.index.v1+json",
        "gzip": "application/vnd.oci.image.layer.v1.tar+gzip",
        "zstd": "application/vnd.oci.image.layer.v1.tar+zstd",
        "none": "application/vnd.oci.image.layer.v1.tar",
    },
    "docker": {
        "manifest": "application/vnd.docker.distribution.manifest.v2+json",
        "config": "application/vnd.docker.container.image.v1+json",
        "index": "application/vnd.docker.distribution.manifest.list.v2+json",
        "gzip": "application/vnd.docker.image.rootfs.diff.tar.gzip",
        "zstd": "application/vnd.docker.image.rootfs.diff.tar.zstd",
        "none": "application/vnd.docker.image.rootfs.diff.tar",
    },
}


def digest(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def machine_architecture() -> str:
    """As images name it."""
    names = {"x86_64": "amd64", "aarch64": "arm64", "loongarch64": "loong64", "i686": "386"}
    return names.get(platform.machine(), platform.machine())


@dataclass(frozen=True)
class File:
    name: str
    data: bytes = b""
    mode: int = 0o644
    uid: int = 0
    gid: int = 0
    xattrs: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Dir:
    name: str
    mode: int = 0o755
    uid: int = 0
    gid: int = 0


@dataclass(frozen=True)
class Symlink:
    name: str
    target: str


@dataclass(frozen=True)
class Hardlink:
    name: str
    target: str
    mode: int = 0o755
    uid: int = 0
    gid: int = 0
    """An archive's own tools repeat the target's mode and owner here, and engines set them on the shared inode."""


Entry = File | Dir | Symlink | Hardlink | tarfile.TarInfo


def tar(entries: Iterable[Entry]) -> bytes:
    """An uncompressed archive of exactly these entries; a TarInfo goes in as it is (devices, hostile ones)."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for entry in entries:
            info, data = _tar_info(entry)
            archive.addfile(info, io.BytesIO(data) if data is not None else None)
    return raw.getvalue()


def _tar_info(entry: Entry) -> tuple[tarfile.TarInfo, bytes | None]:
    if isinstance(entry, tarfile.TarInfo):
        return entry, bytes(entry.size) if entry.isreg() else None
    info = tarfile.TarInfo(entry.name)
    info.mtime = MTIME
    data = None
    if isinstance(entry, File):
        data = entry.data
        info.size, info.mode, info.uid, info.gid = len(data), entry.mode, entry.uid, entry.gid
        info.pax_headers = {
            f"SCHILY.xattr.{name}": value.decode("utf-8", "surrogateescape") for name, value in entry.xattrs.items()
        }
    elif isinstance(entry, Dir):
        info.type, info.mode, info.uid, info.gid = tarfile.DIRTYPE, entry.mode, entry.uid, entry.gid
    elif isinstance(entry, Symlink):
        info.type, info.mode, info.linkname = tarfile.SYMTYPE, 0o777, entry.target
    else:
        info.type, info.linkname = tarfile.LNKTYPE, entry.target
        info.mode, info.uid, info.gid = entry.mode, entry.uid, entry.gid
    return info, data


@dataclass(frozen=True)
class ImageLayer:
    blob: bytes = field(repr=False)
    diff_id: str
    compression: Compression = "gzip"

    @property
    def digest(self) -> str:
        return digest(self.blob)


def layer_of(archive: bytes, compression: Compression = "gzip") -> ImageLayer:
    """A layer of a ready tar archive."""
    if compression == "gzip":
        blob = gzip.compress(archive, compresslevel=6, mtime=0)
    elif compression == "zstd":
        import zstandard

        blob = zstandard.ZstdCompressor(level=3).compress(archive)
    else:
        blob = archive
    return ImageLayer(blob=blob, diff_id=digest(archive), compression=compression)


def tar_layer(entries: Iterable[Entry], compression: Compression = "gzip") -> ImageLayer:
    return layer_of(tar(entries), compression)


@dataclass(frozen=True)
class Image:
    """A manifest, or an index of several images, with all that it needs."""

    document: bytes = field(repr=False)
    media_type: str
    blobs: Mapping[str, bytes] = field(repr=False, default_factory=dict)
    images: tuple[Image, ...] = ()
    architecture: str = ""
    variant: str = ""
    image_id: str = ""

    @property
    def digest(self) -> str:
        return digest(self.document)


def make_image(
    layers: Sequence[ImageLayer],
    *,
    config: Mapping[str, Any] | None = None,
    form: Format = "oci",
    architecture: str = "",
    variant: str = "",
) -> Image:
    """An image for this machine unless said otherwise; `config` is the inner one (Cmd, Env, User...)."""
    types = _TYPES[form]
    inner = {"Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"], **(config or {})}
    architecture = architecture or machine_architecture()
    document = {
        "created": "2023-11-14T22:13:20Z",
        "architecture": architecture,
        "os": "linux",
        **({"variant": variant} if variant else {}),
        "config": inner,
        "rootfs": {"type": "layers", "diff_ids": [layer.diff_id for layer in layers]},
        "history": [{"created": "2023-11-14T22:13:20Z", "created_by": f"layer {n}"} for n in range(len(layers))],
    }
    raw_config = json.dumps(document).encode()
    manifest = {
        "schemaVersion": 2,
        "mediaType": types["manifest"],
        "config": {"mediaType": types["config"], "digest": digest(raw_config), "size": len(raw_config)},
        "layers": [
            {"mediaType": types[layer.compression], "digest": layer.digest, "size": len(layer.blob)} for layer in layers
        ],
    }
    return Image(
        document=json.dumps(manifest).encode(),
        media_type=types["manifest"],
        blobs={digest(raw_config): raw_config, **{layer.digest: layer.blob for layer in layers}},
        architecture=architecture,
        variant=variant,
        image_id=digest(raw_config),
    )


def make_index(images: Sequence[Image], form: Format = "oci") -> Image:
    """An index (manifest list) of several images, by their platforms."""
    entries = [
        {
            "mediaType": image.media_type,
            "digest": image.digest,
            "size": len(image.document),
            "platform": {
                "architecture": image.architecture,
                "os": "linux",
                **({"variant": image.variant} if image.variant else {}),
            },
        }
        for image in images
    ]
    document = {"schemaVersion": 2, "mediaType": _TYPES[form]["index"], "manifests": entries}
    return Image(document=json.dumps(document).encode(), media_type=_TYPES[form]["index"], images=tuple(images))


def push(
    host: str,
    repository: str,
    tag: str,
    image: Image,
    *,
    auth: tuple[str, str] | None = None,
    tls: ssl.SSLContext | None = None,
) -> str:
    """Pushes over HTTP, or over TLS with the context; gives the digest that the tag now names."""
    connection = (
        http.client.HTTPSConnection(host, timeout=60, context=tls)
        if tls
        else http.client.HTTPConnection(host, timeout=60)
    )
    headers = {}
    if auth is not None:
        headers["Authorization"] = "Basic " + base64.b64encode(":".join(auth).encode()).decode()
    try:
        _push(_Pusher(connection, headers, repository), tag, image)
    finally:
        connection.close()
    return image.digest


@dataclass
class _Pusher:
    connection: http.client.HTTPConnection
    headers: dict[str, str]
    repository: str

    def request(
        self, method: str, path: str, body: bytes = b"", *, content_type: str = ""
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        headers = dict(self.headers)
        if content_type:
            headers["Content-Type"] = content_type
        self.connection.request(method, path, body, headers)
        answer = self.connection.getresponse()
        return answer.status, answer.headers, answer.read()

    def blob(self, name: str, data: bytes) -> None:
        base = f"/v2/{self.repository}/blobs"
        if self.request("HEAD", f"{base}/{name}")[0] == 200:
            return
        status, headers, body = self.request("POST", f"{base}/uploads/")
        _expect(202, status, body)
        location = "/v2/" + headers["Location"].partition("/v2/")[2]
        separator = "&" if "?" in location else "?"
        status, _, body = self.request(
            "PUT", f"{location}{separator}digest={name}", data, content_type="application/octet-stream"
        )
        _expect(201, status, body)

    def manifest(self, tag: str, image: Image) -> None:
        path = f"/v2/{self.repository}/manifests/{tag}"
        status, _, body = self.request("PUT", path, image.document, content_type=image.media_type)
        _expect(201, status, body)


def _push(pusher: _Pusher, tag: str, image: Image) -> None:
    for part in image.images:
        _push(pusher, part.digest, part)
    for name, data in image.blobs.items():
        pusher.blob(name, data)
    pusher.manifest(tag, image)


def _expect(wanted: int, status: int, body: bytes) -> None:
    if status != wanted:
        raise OSError(f"push: HTTP {status}: {body[:300]!r}")


PASSWD = b"""root:x:0:0:root:/root:/bin/sh
daemon:x:1:1:daemon:/usr/sbin:/bin/false
www-data:x:33:33:www-data:/var/www:/bin/false
nobody:x:65534:65534:nobody:/home:/bin/false
"""
GROUP = b"""root:x:0:
daemon:x:1:
www-data:x:33:
users:x:100:
nobody:x:65534:
"""
_DIRS = (
    "bin",
    "dev",
    "etc",
    "home",
    "lib",
    "proc",
    "sbin",
    "sys",
    "usr",
    "usr/bin",
    "usr/sbin",
    "var",
    "var/run",
    "var/www",
)


def busybox_entries(busybox: Path = Path("/usr/bin/busybox")) -> list[Entry]:
    """A small root file system around a static busybox (Debian package busybox-static), with users and groups."""
    applets = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split()
    entries: list[Entry] = [Dir(name) for name in _DIRS]
    entries += [Dir("root", 0o700), Dir("tmp", 0o1777), File("bin/busybox", busybox.read_bytes(), 0o755)]
    entries += [Hardlink(f"bin/{name}", "bin/busybox") for name in sorted(set(applets) - {"busybox"})]
    entries += [
        Symlink("usr/bin/env", "../../bin/env"),
        File("etc/passwd", PASSWD),
        File("etc/group", GROUP),
        File("etc/shadow", b"root:*:10933:0:99999:7:::\n", 0o600),
        File("etc/nsswitch.conf", b"hosts: files dns\n"),
    ]
    return entries


def busybox_layer(compression: Compression = "gzip") -> ImageLayer:
    return tar_layer(busybox_entries(), compression)


def busybox_image(*, form: Format = "oci", config: Mapping[str, Any] | None = None) -> Image:
    return make_image([busybox_layer()], form=form, config={"Cmd": ["sh"], **(config or {})})


def bench_layers(count: int = 5, files: int = 600) -> list[ImageLayer]:
    """Layers for measuring pulls: by default 3,000 files, about 60 MB that compress to about 45 %."""
    return [_bench_layer(number, files) for number in range(count)]


def _bench_layer(number: int, files: int) -> ImageLayer:
    rng = random.Random(4000 + number)
    letters = b"abcdefghijklmnopqrstuvwxyz0123456789_-/."
    words = [bytes(rng.choices(letters, k=rng.randint(2, 11))) for _ in range(1500)]
    entries: list[Entry] = busybox_entries() if number == 0 else []
    entries.append(Dir(f"data{number}"))
    for index in range(files):
        folder = f"data{number}/d{index // 40:02d}"
        if index % 40 == 0:
            entries.append(Dir(folder))
        size = max(120, min(400_000, int(rng.lognormvariate(9.12, 1.25))))
        noise = rng.randbytes(size // 4)
        text = b" ".join(rng.choices(words, k=max(1, (size - len(noise)) // 7)))
        entries.append(File(f"{folder}/file{index:03d}.dat", (noise + text)[:size]))
    return tar_layer(entries)


def bench_image() -> Image:
    """The image of the pull benchmark."""
    return make_image(bench_layers(), config={"Cmd": ["sh"]})

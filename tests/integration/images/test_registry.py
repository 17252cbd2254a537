"""Pulls from Debian's registry: formats, password, TLS; and what skopeo and umoci make."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import os
import shutil
import stat
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from isulad_py.host import mounts
from isulad_py.host.clock import SystemClock
from isulad_py.images.adapter import RegistryImages
from isulad_py.images.archives import ArchiveImages
from isulad_py.images.options import RegistryOptions
from isulad_py.model.errors import NotFound, Unauthenticated, Unavailable
from isulad_py.model.ids import ContainerId
from isulad_py.model.image import Credentials, ImageRecord
from isulad_py.model.reference import parse
from isulad_py.ports.images import PullRequest
from isulad_py.ports.storage import RootfsRequest
from isulad_py.storage.layers import LayerStore
from isulad_py.storage.rootfs import OverlayRootFilesystems
from tests.fakes.tasks import TestTasks
from tests.images import (
    Dir,
    File,
    Hardlink,
    Image,
    Symlink,
    bench_layers,
    busybox_image,
    make_image,
    make_index,
    push,
    tar_layer,
)
from tests.stand.certificates import make_certificates
from tests.stand.registry import registry

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(shutil.which("docker-registry") is None, reason="needs docker-registry"),
]
LOGIN = ("user", "hunter2")


class Node:
    def __init__(self, store: LayerStore, rootfs: OverlayRootFilesystems) -> None:
        self.store = store
        self.rootfs = rootfs

    async def pull(self, name: str, options: RegistryOptions | None = None, **fields: Any) -> ImageRecord:
        source = RegistryImages(layers=self.store, options=options or RegistryOptions(), clock=SystemClock())
        try:
            return await source.pull(PullRequest(reference=parse(name), **fields))
        finally:
            await source.close()

    async def mount(self, record: ImageRecord) -> Path:
        layers = tuple(layer.chain_id for layer in record.layers)
        request = RootfsRequest(container_id=ContainerId(os.urandom(32).hex()), layers=layers)
        return Path(await self.rootfs.prepare(request))


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    tasks = TestTasks()
    store = await LayerStore.open(str(tmp_path / "graph"), tasks=tasks, clock=SystemClock(), boot_id="boot")
    try:
        yield Node(store, await OverlayRootFilesystems.open(layers=store, tasks=tasks, clock=SystemClock()))
    finally:
        mounts.unmount_under(str(tmp_path))
        await tasks.settle()


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with registry(tmp_path_factory.mktemp("registry")) as host:
        yield host


def layered(form: Any, compression: Any) -> Image:
    base = tar_layer(
        [
            Dir("etc"),
            File("etc/keep", b"base"),
            File("etc/gone", b"base"),
            Dir("cleared"),
            File("cleared/old", b"base"),
            Dir("tmp", 0o1777),
            File("bin/su", b"#!", 0o4755, 0, 7),
            Hardlink("bin/again", "bin/su", 0o4755, gid=7),
            Symlink("link", "etc/keep"),
        ],
        compression,
    )
    top = tar_layer(
        [
            File("etc/keep", b"top"),
            File("etc/.wh.gone"),
            Dir("cleared"),
            File("cleared/.wh..wh..opq"),
            File("cleared/new", b"top"),
            File("tmp/made", b"top"),
        ],
        compression,
    )
    return make_image([base, top], form=form)


async def test_a_layer_may_hide_all_that_is_below_it(node: Node, host: str) -> None:
    """An opaque marker at its root: overlay itself would overlook it there."""
    layers = [
        tar_layer([Dir("etc", 0o700), File("etc/old", b"base"), File("gone", b"base")]),
        tar_layer([File(".wh..wh..opq"), File("etc/new", b"middle")]),
        tar_layer([File("etc/newer", b"top"), File("top", b"top")]),
    ]
    push(host, "opaque", "v1", make_image(layers))
    record = await node.pull(f"{host}/opaque:v1")
    root = await node.mount(record)
    found = sorted(str(path.relative_to(root)) for path in root.rglob("*"))
    assert found == ["etc", "etc/new", "etc/newer", "top"]
    assert stat.S_IMODE((root / "etc").stat().st_mode) == 0o755, "not that of the one that is hidden"


@pytest.mark.parametrize("form", ["docker", "oci"])
@pytest.mark.parametrize("compression", ["gzip", "zstd", "none"])
async def test_what_a_container_sees(node: Node, host: str, tmp_path: Path, form: str, compression: str) -> None:
    image = layered(form, compression)
    digest = push(host, f"layered/{form}", compression, image)
    record = await node.pull(f"{host}/layered/{form}:{compression}")
    assert record.id == image.image_id
    assert record.repo_digests == (f"{host}/layered/{form}@{digest}",)
    root = await node.mount(record)
    assert (root / "etc/keep").read_text() == "top"
    assert sorted(path.name for path in (root / "etc").iterdir()) == ["keep"]
    assert sorted(path.name for path in (root / "cleared").iterdir()) == ["new"]
    assert stat.S_IMODE((root / "tmp").stat().st_mode) == 0o1777, "the top layer has no entry for it"
    su = (root / "bin/su").stat()
    assert (stat.S_IMODE(su.st_mode), su.st_gid, su.st_nlink) == (0o4755, 7, 2)
    assert (root / "link").read_text() == "top"
    await comes_back(node, record, tmp_path)


async def comes_back(node: Node, record: ImageRecord, folder: Path) -> None:
    """Saved and loaded again elsewhere, in each form: the same image, of the same layers."""
    for form in ("docker-archive", "oci-archive"):
        saved = str(folder / f"{form}.tar")
        await ArchiveImages(layers=node.store, scratch=str(folder)).save(record, saved, form)
        tasks = TestTasks()
        store = await LayerStore.open(str(folder / form), tasks=tasks, clock=SystemClock(), boot_id="boot")
        [found] = await ArchiveImages(layers=store, scratch=str(folder)).load(saved)
        await tasks.settle()
        assert (found.id, found.repo_tags) == (record.id, record.repo_tags)
        assert [layer.diff_id for layer in found.layers] == [layer.diff_id for layer in record.layers]
        if shutil.which("skopeo"):
            told = await asyncio.to_thread(
                subprocess.run,
                ["skopeo", "inspect", "--config", "--raw", f"{form}:{saved}"],
                check=True,
                capture_output=True,
            )
            assert "sha256:" + hashlib.sha256(told.stdout).hexdigest() == record.id


async def test_an_index_of_several_platforms(node: Node, host: str) -> None:
    ours = busybox_image(form="docker")
    other = make_image([tar_layer([File("x")])], architecture="s390x", form="docker")
    push(host, "multi", "v1", make_index([other, ours], "docker"))
    record = await node.pull(f"{host}/multi:v1")
    assert record.id == ours.image_id
    root = await node.mount(record)
    assert (root / "bin/sh").stat().st_ino == (root / "bin/busybox").stat().st_ino


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if shutil.which("htpasswd") is None:
        pytest.skip("needs htpasswd")
    with registry(tmp_path_factory.mktemp("locked"), login=LOGIN) as host:
        push(host, "app", "v1", make_image([tar_layer([File("x")])]), auth=LOGIN)
        yield host


async def test_with_a_password(node: Node, locked: str) -> None:
    for credentials in (None, Credentials(username="user", password="guess")):
        with pytest.raises(Unauthenticated, match=locked):
            await node.pull(f"{locked}/app:v1", credentials=credentials)
    await node.pull(f"{locked}/app:v1", credentials=Credentials(username=LOGIN[0], password=LOGIN[1]))


async def test_over_tls_with_an_authority_of_its_own(node: Node, tmp_path: Path) -> None:
    certificates = make_certificates(tmp_path)
    with registry(tmp_path / "registry", certificates=certificates) as host:
        push(host, "app", "v1", make_image([tar_layer([File("x")])]), tls=certificates.client_context())
        mirrors = {"registry.example": (f"https://{host}",)}
        await node.pull("registry.example/app:v1", RegistryOptions(mirrors=mirrors, certs_dir=""))
        folder = tmp_path / "certs.d" / host
        folder.mkdir(parents=True)
        shutil.copy(certificates.authority, folder / "ca.crt")
        await node.pull(f"{host}/app:v1", RegistryOptions(certs_dir=str(tmp_path / "certs.d")))
        folder = tmp_path / "hosts.d" / "other.example"
        folder.mkdir(parents=True)
        shutil.copy(certificates.authority, folder / "own.pem")
        (folder / "hosts.toml").write_text(f'server = "https://{host}"\nca = "own.pem"\n')
        options = RegistryOptions(certs_dir=str(tmp_path / "hosts.d"))
        await node.pull("other.example/app:v1", options)
        (folder / "hosts.toml").write_text(f'server = "https://{host}"\n')
        with pytest.raises(Unavailable, match="not trusted"):
            await node.pull("other.example/app:v1", options)


@pytest.mark.skipif(shutil.which("htpasswd") is None, reason="needs htpasswd")
async def test_over_tls_with_a_password_from_the_file_of_logins(node: Node, tmp_path: Path) -> None:
    certificates = make_certificates(tmp_path)
    with registry(tmp_path / "registry", certificates=certificates, login=LOGIN) as host:
        image = make_image([tar_layer([File("x")])])
        push(host, "app", "v1", image, tls=certificates.client_context(), auth=LOGIN)
        folder = tmp_path / "certs.d" / host
        folder.mkdir(parents=True)
        shutil.copy(certificates.authority, folder / "ca.crt")
        logins = tmp_path / "config.json"
        options = RegistryOptions(certs_dir=str(tmp_path / "certs.d"), auth_file=str(logins))
        with pytest.raises(Unauthenticated, match=host):
            await node.pull(f"{host}/app:v1", options)
        auth = base64.b64encode(":".join(LOGIN).encode()).decode()
        logins.write_text(json.dumps({"auths": {host: {"auth": auth}}}))
        assert (await node.pull(f"{host}/app:v1", options)).id == image.image_id
        # Over plain HTTP such a registry answers 400: the password is not sent there.
        with pytest.raises(Unavailable, match="HTTP 400"):
            await node.pull(
                "x.example/app:v1", RegistryOptions(mirrors={"x.example": (f"http://{host}",)}, certs_dir="")
            )


async def test_what_is_not_there(node: Node, host: str) -> None:
    with pytest.raises(NotFound, match=r"NAME_UNKNOWN|MANIFEST_UNKNOWN"):
        await node.pull(f"{host}/absent:v1")


async def test_large_layers_side_by_side(node: Node, host: str) -> None:
    image = make_image(bench_layers(count=5, files=60))
    push(host, "bench", "v1", image)
    first, second = await asyncio.gather(node.pull(f"{host}/bench:v1"), node.pull(f"{host}/bench:v1"))
    assert first == second
    root = await node.mount(first)
    assert sum(1 for path in root.rglob("*.dat")) == 300


@pytest.mark.skipif(shutil.which("skopeo") is None, reason="needs skopeo")
@pytest.mark.parametrize(
    ("form", "compression"), [("oci", "gzip"), ("oci", "zstd"), ("oci", "zstd:chunked"), ("v2s2", "gzip")]
)
async def test_images_that_skopeo_has_converted(
    node: Node, host: str, tmp_path: Path, form: str, compression: str
) -> None:
    """Docker's schema 2 has no zstd."""
    push(host, "from", "v1", busybox_image())
    name = f"{host}/skopeo/{form}:{compression.replace(':', '-')}"
    command = ["skopeo", "copy", "--src-tls-verify=false", "--dest-tls-verify=false", "--format", form]
    command += ["--dest-compress-format", compression, f"docker://{host}/from:v1", f"docker://{name}"]
    await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True)
    record = await node.pull(name)
    assert (await node.mount(record) / "bin/busybox").stat().st_size > 100_000
    await comes_back(node, record, tmp_path)


@pytest.mark.skipif(shutil.which("umoci") is None or shutil.which("skopeo") is None, reason="needs umoci and skopeo")
async def test_images_that_umoci_has_made(node: Node, host: str, tmp_path: Path) -> None:
    layout = tmp_path / "layout"
    (tmp_path / "root/etc").mkdir(parents=True)
    (tmp_path / "root/etc/umoci").write_text("made")
    commands = [
        ["umoci", "init", "--layout", str(layout)],
        ["umoci", "new", "--image", f"{layout}:v1"],
        ["umoci", "insert", "--image", f"{layout}:v1", str(tmp_path / "root"), "/"],
        ["umoci", "config", "--image", f"{layout}:v1", "--config.cmd", "sh"],
        ["skopeo", "copy", "--dest-tls-verify=false", f"oci:{layout}:v1", f"docker://{host}/umoci:v1"],
    ]
    for command in commands:
        await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True)
    record = await node.pull(f"{host}/umoci:v1")
    assert record.config.cmd == ("sh",)
    assert (await node.mount(record) / "etc/umoci").read_text() == "made"
    await comes_back(node, record, tmp_path)

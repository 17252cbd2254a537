"""What archives hold, and what hostile ones are told."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from isulad_py.images.manifest import MANIFEST_LIMIT
from isulad_py.model.errors import DataLoss, NotFound, ResourceExhausted, Unsupported
from tests.images import (
    File,
    Image,
    Symlink,
    digest,
    layer_of,
    machine_architecture,
    make_image,
    make_index,
    tar,
    tar_layer,
)
from tests.unit.images.archive_stand import PACKED, Stand, docker_files, file, new_image, oci_files, write_tar


async def test_a_layout_in_a_directory(archive_stand: Stand, tmp_path: Path) -> None:
    image = new_image()
    for name, data in oci_files(image, "v1").items():
        path = tmp_path / "layout" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    [record] = await archive_stand.archives.load(str(tmp_path / "layout"))
    assert (record.id, record.repo_tags) == (image.image_id, ())


@pytest.mark.parametrize("compressed", [False, True])
async def test_docker_archives(archive_stand: Stand, tmp_path: Path, compressed: bool) -> None:
    files = docker_files(compressed)
    [record] = await archive_stand.archives.load(write_tar(tmp_path / "in.tar", files))
    assert record.id == digest(files["config.json"])
    assert record.repo_tags == ("docker.io/library/app:v1",)
    assert (Path(archive_stand.store.place(record.layers[1].chain_id).directory) / "top").stat().st_size == 3000


def changed(files: dict[str, bytes], **changes: bytes | None) -> dict[str, bytes]:
    names = {key.replace(".", "_").replace("/", "_"): key for key in files}
    new = {**files, **{names.get(key, key): data for key, data in changes.items()}}
    return {key: data for key, data in new.items() if data is not None}


def docker_manifest(config: str, layers: list[str], *tags: str) -> dict[str, bytes]:
    manifest = [{"Config": config, "RepoTags": list(tags), "Layers": layers}]
    return changed(docker_files(), manifest_json=json.dumps(manifest).encode())


def oci_pointing(digest: str, size: int) -> dict[str, bytes]:
    """A layout whose index says so."""
    entry = {"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": digest, "size": size}
    index = {"schemaVersion": 2, "manifests": [entry]}
    return changed(oci_files(new_image()), index_json=json.dumps(index).encode())


@pytest.mark.parametrize(
    ("files", "error", "words"),
    [
        ({"x": b""}, DataLoss, "neither manifest.json nor index.json"),
        (changed(docker_files(), manifest_json=b"{"), DataLoss, "manifest.json"),
        (changed(docker_files(), manifest_json=b"[]"), NotFound, "no image"),
        (changed(docker_files(), config_json=None), DataLoss, "has no 'config.json'"),
        (changed(docker_files(), config_json=b"{}"), DataLoss, "config.json: .*0 layers"),
        (changed(docker_files(), **{"1_layer_tar": b"changed"}), DataLoss, "1/layer.tar"),
        (changed(docker_files(), **{"1_layer_tar": tar([file("other")])}), DataLoss, "1/layer.tar: .*digest"),
        (
            changed(docker_files(), manifest_json=b'[{"Config":"../../../etc/passwd","Layers":[]}]'),
            DataLoss,
            "etc/passwd",
        ),
        (
            changed(docker_files(), manifest_json=b"[" + b" " * MANIFEST_LIMIT + b"]"),
            ResourceExhausted,
            "manifest.json",
        ),
        (changed(docker_files(), manifest_json=b"[" * 100_000), DataLoss, "manifest.json"),
        (docker_manifest("0", []), DataLoss, "has no '0'"),
        (docker_manifest("config.json", ["0/layer.tar", "/etc/passwd"]), DataLoss, "has no '/etc/passwd'"),
        (docker_manifest("config.json", ["0/layer.tar", "../1/layer.tar"]), DataLoss, r"has no '\.\./1/layer\.tar'"),
        (docker_manifest("config.json", ["0/layer.tar", "1/layer.tar\0"]), DataLoss, "has no"),
        (docker_manifest("config.json", ["0/layer.tar"]), DataLoss, "config.json: .*layers"),
        (docker_manifest("config.json", ["0/layer.tar", "manifest.json"]), DataLoss, "manifest.json: .*digest"),
        (docker_manifest("0/layer.tar", ["0/layer.tar", "1/layer.tar"]), DataLoss, "0/layer.tar"),
        (docker_manifest("config.json", ["0/layer.tar", "1/layer.tar"], "UPPER:1"), DataLoss, "manifest.json: .*UPPER"),
        (docker_manifest("config.json", ["x"] * 200), Unsupported, "config.json"),
        (
            changed(docker_files(), manifest_json=json.dumps([{"Config": "x"}] * 1001).encode()),
            ResourceExhausted,
            "1001",
        ),
        (oci_pointing("sha256:../../../../etc/passwd", 10), DataLoss, "index.json"),
        (oci_pointing("sha256:" + "0" * 64, 10), DataLoss, "has no 'blobs/sha256/000"),
        (oci_pointing(new_image().digest, 1), DataLoss, "blobs/sha256/.* bytes with digest"),
        (oci_pointing(new_image().digest, -1), DataLoss, "index.json"),
        (oci_pointing(new_image().digest, 1 << 70), DataLoss, "index.json"),
        (changed(oci_files(new_image()), oci_layout=b'{"imageLayoutVersion":"9"}'), DataLoss, "neither|version"),
        (changed(oci_files(new_image()), index_json=b'{"manifests":[{"digest":"x"}]}'), DataLoss, "index.json"),
    ],
)
async def test_what_is_wrong_is_named(
    archive_stand: Stand, tmp_path: Path, files: dict[str, bytes], error: type[Exception], words: str
) -> None:
    if error is DataLoss and words == "neither|version":
        files = {**files, "oci-layout": files.pop("oci_layout")}
        error, words = Unsupported, "oci-layout: version"
    path = write_tar(tmp_path / "bad.tar", files)
    with pytest.raises(error, match=rf"bad\.tar: .*({words})"):
        await archive_stand.archives.load(path)
    assert await archive_stand.store.present() == frozenset()
    staged = (tmp_path / "graph/overlay/ingest").iterdir()
    assert not [path for path in staged if not (path / "meta.json").exists()]


def with_images(*images: Image) -> dict[str, bytes]:
    """A layout whose index names each of them."""
    files: dict[str, bytes] = {}
    entries = []
    for number, image in enumerate(images):
        for part in (image, *image.images):
            files |= {name: data for name, data in oci_files(part).items() if name.startswith("blobs/")}
        name = {"org.opencontainers.image.ref.name": f"example.org/app:{number}"}
        entry = {"mediaType": image.media_type, "digest": image.digest, "size": len(image.document)}
        entries.append({**entry, "annotations": name})
    index = {"schemaVersion": 2, "manifests": entries}
    return {**files, "oci-layout": b'{"imageLayoutVersion":"1.0.0"}', "index.json": json.dumps(index).encode()}


def foreign(name: str) -> Image:
    return make_image([tar_layer([file(name)])], architecture="s390x")


async def test_a_layout_of_several_images_and_indexes(archive_stand: Stand, tmp_path: Path) -> None:
    one, two = make_image([tar_layer([file("one")])]), make_image([tar_layer([file("two")])])
    layout = with_images(one, make_index([foreign("x"), two]), make_index([foreign("y")]))
    records = await archive_stand.archives.load(write_tar(tmp_path / "in.tar", layout))
    assert [(record.id, record.repo_tags) for record in records] == [
        (one.image_id, ("example.org/app:0",)),
        (two.image_id, ("example.org/app:1",)),
    ]
    path = write_tar(tmp_path / "none.tar", with_images(make_index([foreign("x")]), make_index([foreign("y")])))
    with pytest.raises(NotFound, match=r"none\.tar: .*s390x"):
        await archive_stand.archives.load(path)


async def test_indexes_within_each_other_without_end(archive_stand: Stand, tmp_path: Path) -> None:
    image = new_image()
    files: dict[str, bytes] = {}
    for _ in range(4):
        image = make_index([replace(image, architecture=machine_architecture())])
        files |= with_images(image)
    with pytest.raises(DataLoss, match="indexes within each other"):
        await archive_stand.archives.load(write_tar(tmp_path / "deep.tar", files))


async def test_a_layer_that_is_a_link_to_another(archive_stand: Stand, tmp_path: Path) -> None:
    """As docker wrote archives until version 25: a layer that comes twice is a link the second time."""
    archive = tar([file("same")])
    image = make_image([layer_of(archive), layer_of(archive)])
    manifest = [{"Config": "config.json", "RepoTags": ["twice:1"], "Layers": ["a/layer.tar", "b/layer.tar"]}]
    entries = [
        File("a/layer.tar", archive),
        Symlink("b/layer.tar", "../a/layer.tar"),
        File("config.json", image.blobs[image.image_id]),
        File("manifest.json", json.dumps(manifest).encode()),
    ]
    path = tmp_path / "links.tar"
    path.write_bytes(tar(entries))
    [record] = await archive_stand.archives.load(str(path))
    assert [layer.diff_id for layer in record.layers] == [digest(archive)] * 2
    path.write_bytes(tar([File("a/layer.tar", archive), Symlink("b/layer.tar", "/etc/passwd"), *entries[2:]]))
    with pytest.raises(DataLoss, match=r"has no 'b/layer\.tar'"):
        await archive_stand.archives.load(str(path))
    path.write_bytes(tar([*entries, File("manifest.json", b"[]")]))
    with pytest.raises(DataLoss, match=r"manifest\.json: comes twice"):
        await archive_stand.archives.load(str(path))


@pytest.mark.parametrize("name", PACKED)
async def test_a_compressed_archive_that_ends_early(archive_stand: Stand, tmp_path: Path, name: str) -> None:
    """Whether the decompressor notices or not."""
    path = tmp_path / "cut.tar"
    write_tar(path, docker_files())
    whole = PACKED[name](path.read_bytes())
    for size in range(8, len(whole) // 2, 7):
        path.write_bytes(whole[:size])
        with pytest.raises(DataLoss, match=r"cut\.tar: "):
            await archive_stand.archives.load(str(path))
    path.write_bytes(whole)
    assert len(await archive_stand.archives.load(str(path))) == 1

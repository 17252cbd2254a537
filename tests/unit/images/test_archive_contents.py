"""What archives hold, and what hostile ones are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from isulad_py.model.errors import DataLoss, NotFound, Unsupported
from tests.images import digest, tar
from tests.unit.images.archive_stand import Stand, docker_files, file, new_image, oci_files, write_tar


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

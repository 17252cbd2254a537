"""Images written to archives: equal digests, or no file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from isulad_py.model.errors import DataLoss, InvalidInput, Unsupported
from isulad_py.model.reference import parse
from tests.fakes.tasks import TestTasks
from tests.images import File, tar
from tests.unit.images.archive_stand import Stand, docker_files, new_image, oci_files, stand_at, write_tar


@pytest.mark.parametrize("form", ["docker-archive", "oci-archive"])
async def test_an_image_comes_back_with_equal_digests(
    archive_stand: Stand, tmp_path: Path, tasks: TestTasks, form: str
) -> None:
    image = new_image()
    [first] = await archive_stand.archives.load(write_tar(tmp_path / "in.tar", oci_files(image)))
    assert (first.id, first.repo_tags) == (image.image_id, ("example.org/app:v1",))
    assert first.repo_digests == (f"example.org/app@{image.digest}",)
    saved = tmp_path / "out.tar"
    await archive_stand.archives.save(first, str(saved), form)
    other = await stand_at(tmp_path / "other", tasks)
    [second] = await other.archives.load(str(saved))
    assert (second.id, second.layers, second.repo_tags) == (first.id, first.layers, first.repo_tags)
    await other.archives.save(second, str(tmp_path / "again.tar"), form)
    assert (tmp_path / "again.tar").read_bytes() == saved.read_bytes()
    assert not list(tmp_path.glob("*.part"))


async def test_a_layer_whose_files_have_changed_is_not_saved(archive_stand: Stand, tmp_path: Path) -> None:
    [record] = await archive_stand.archives.load(write_tar(tmp_path / "in.tar", docker_files()))
    top = Path(archive_stand.store.place(record.layers[1].chain_id).directory) / "top"
    top.write_bytes(b"z" * 3000)
    target = tmp_path / "out.tar"
    with pytest.raises(DataLoss, match=r"out.tar: layer sha256:.*give sha256:"):
        await archive_stand.archives.save(record, str(target), "docker-archive")
    assert not target.exists()
    assert not list(tmp_path.glob("*.part"))
    with pytest.raises(InvalidInput, match="zip"):
        await archive_stand.archives.save(record, str(target), "zip")


async def test_a_layer_that_holds_a_name_twice_is_refused_with_the_reason(archive_stand: Stand, tmp_path: Path) -> None:
    me = {"uid": os.geteuid(), "gid": os.getegid()}
    path = tmp_path / "rootfs.tar"
    path.write_bytes(tar([File("a", b"one", **me), File("b", b"x", **me), File("a", b"two", **me)]))
    record = await archive_stand.archives.import_rootfs(str(path), parse("example.org/twice:v1"))
    with pytest.raises(Unsupported, match=r"out.tar: layer sha256:.*holds 'a' twice.*cannot be saved"):
        await archive_stand.archives.save(record, str(tmp_path / "out.tar"), "oci-archive")
    assert [name.name for name in tmp_path.glob("out.tar*")] == []

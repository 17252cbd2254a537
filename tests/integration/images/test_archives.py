"""Archives that skopeo has made, and what skopeo says of ours."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from isulad_py.host.clock import SystemClock
from isulad_py.images.archives import ArchiveImages
from isulad_py.storage.layers import LayerStore
from tests.fakes.tasks import TestTasks
from tests.images import File as ImageFile
from tests.images import busybox_layer, make_image, tar_layer
from tests.unit.images.archive_stand import oci_files

pytestmark = [pytest.mark.root, pytest.mark.skipif(shutil.which("skopeo") is None, reason="needs skopeo")]


@pytest.fixture
async def archives(tmp_path: Path) -> AsyncIterator[ArchiveImages]:
    tasks = TestTasks()
    store = await LayerStore.open(str(tmp_path / "graph"), tasks=tasks, clock=SystemClock(), boot_id="boot")
    yield ArchiveImages(layers=store, scratch=str(tmp_path))
    await tasks.settle()


async def skopeo(*argv: str) -> bytes:
    done = await asyncio.to_thread(subprocess.run, ["skopeo", *argv], check=True, capture_output=True)
    return done.stdout


@pytest.mark.parametrize("source", ["docker-archive", "oci-archive", "oci"])
@pytest.mark.parametrize("form", ["docker-archive", "oci-archive"])
async def test_round_trips_with_equal_digests(archives: ArchiveImages, tmp_path: Path, source: str, form: str) -> None:
    top = tar_layer([ImageFile("etc/top", b"x" * 100_000, xattrs={"user.note": b"kept"})])
    image = make_image([busybox_layer(), top], config={"Cmd": ["sh"]})
    for name, data in oci_files(image, "v1").items():
        path = tmp_path / "layout" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    made, saved = tmp_path / "made", tmp_path / "saved.tar"
    await skopeo("copy", f"oci:{tmp_path}/layout:v1", f"{source}:{made}:example.org/app:v1")
    [record] = await archives.load(str(made))
    config = json.loads(await skopeo("inspect", "--config", "--raw", f"{source}:{made}"))
    assert [layer.diff_id for layer in record.layers] == config["rootfs"]["diff_ids"]
    assert [layer.diff_id for layer in record.layers] == [busybox_layer().diff_id, top.diff_id]
    await archives.save(record, str(saved), form)
    ours = await skopeo("inspect", "--config", "--raw", f"{form}:{saved}")
    assert "sha256:" + hashlib.sha256(ours).hexdigest() == record.id
    await skopeo("copy", f"{form}:{saved}", f"dir:{tmp_path}/checked")

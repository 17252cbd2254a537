"""Root file systems that become images."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import threading
from pathlib import Path

import pytest

from isulad_py.images.archive import Archive
from isulad_py.images.archives import AT_ONCE
from isulad_py.model.errors import DataLoss, FailedPrecondition, InvalidInput, PermissionDenied
from isulad_py.model.reference import parse
from tests.images import digest, tar
from tests.unit.images.archive_stand import Stand, docker_files, file, new_image, oci_files, write_tar

ACCEPT = [{"type": "insecureAcceptAnything"}]
REJECT = [{"type": "reject"}]


@pytest.mark.parametrize("packed", [False, True])
async def test_a_root_file_system_becomes_an_image(archive_stand: Stand, tmp_path: Path, packed: bool) -> None:
    archive = tar([file("bin/sh")])
    path = tmp_path / "root.tar"
    path.write_bytes(gzip.compress(archive) if packed else archive)
    record = await archive_stand.archives.import_rootfs(str(path), parse("made:1"))
    assert [layer.diff_id for layer in record.layers] == [digest(archive)]
    assert record.repo_tags == ("docker.io/library/made:1",)
    assert (await archive_stand.archives.import_rootfs(str(path), parse("made:1"))).id == record.id
    path.write_bytes(b"no archive" * 100)
    with pytest.raises(DataLoss, match=r"import .*root.tar: .*tar"):
        await archive_stand.archives.import_rootfs(str(path), parse("made:1"))
    with pytest.raises(InvalidInput, match="no such file"):
        await archive_stand.archives.import_rootfs(str(tmp_path / "absent"), parse("made:1"))


async def test_a_load_that_is_cancelled_lets_go_of_its_archive(
    archive_stand: Stand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_tar(tmp_path / "in.tar", docker_files())
    reached, go_on = threading.Event(), threading.Event()
    index = Archive._index

    def slow(self: Archive) -> None:
        reached.set()
        go_on.wait()
        index(self)

    monkeypatch.setattr(Archive, "_index", slow)
    before = open_files(path)
    load = asyncio.ensure_future(archive_stand.archives.load(path))
    await asyncio.to_thread(reached.wait)
    load.cancel()
    await asyncio.sleep(0)
    assert not load.done(), "what the thread does is not left behind"
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await load
    assert open_files(path) == before == 0
    monkeypatch.setattr(Archive, "_index", index)
    assert len(await archive_stand.archives.load(path)) == 1
    assert open_files(path) == 0


def open_files(path: str) -> int:
    found = 0
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # of another thread, and closed by now
            found += str(entry.readlink()) == path
    return found


async def test_many_archives_at_once(archive_stand: Stand, tmp_path: Path) -> None:
    """More than may be read at once: the others wait for their turn."""
    path = write_tar(tmp_path / "in.tar", docker_files())
    loaded = await asyncio.gather(*(archive_stand.archives.load(path) for _ in range(3 * AT_ONCE)))
    assert len({record.id for [record] in loaded}) == 1


async def test_the_policy_is_asked_before_anything_comes_in(archive_stand: Stand, tmp_path: Path) -> None:
    """And read anew each time."""
    policy = tmp_path / "policy.json"
    archive_stand.archives.policy_file = str(policy)
    root = tmp_path / "root.tar"
    root.write_bytes(tar([file("bin/sh")]))
    layout = tmp_path / "layout"
    for name, data in oci_files(new_image()).items():
        (layout / name).parent.mkdir(parents=True, exist_ok=True)
        (layout / name).write_bytes(data)
    sources = {
        "docker-archive": write_tar(tmp_path / "docker.tar", docker_files()),
        "oci-archive": write_tar(tmp_path / "oci.tar", oci_files(new_image())),
        "oci": str(layout),
    }
    for transport, path in sources.items():
        policy.write_text(json.dumps({"default": ACCEPT, "transports": {transport: {str(tmp_path): REJECT}}}))
        with pytest.raises(PermissionDenied, match=rf"archive {path}: .*transports\.{transport}\."):
            await archive_stand.archives.load(path)
    policy.write_text(json.dumps({"default": REJECT, "transports": {"docker": {"": ACCEPT}}}))
    with pytest.raises(PermissionDenied, match=rf"import {root}: .*\(default\)"):
        await archive_stand.archives.import_rootfs(str(root), parse("made:1"))
    policy.write_text("{")
    with pytest.raises(FailedPrecondition, match="signature policy"):
        await archive_stand.archives.load(sources["oci"])
    assert await archive_stand.store.present() == frozenset()
    assert list(Path(archive_stand.store.paths.ingest).iterdir()) == []
    policy.write_text(json.dumps({"default": REJECT, "transports": {"oci": {str(layout): ACCEPT}}}))
    assert len(await archive_stand.archives.load(sources["oci"])) == 1

"""Root file systems that become images."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from isulad_py.model.errors import DataLoss, InvalidInput
from isulad_py.model.reference import parse
from tests.images import digest, tar
from tests.unit.images.archive_stand import Stand, file


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

from __future__ import annotations

import os
from pathlib import Path

import pytest

from isulad_py.model.errors import FailedPrecondition, InvalidInput
from isulad_py.model.security import ContainerSecurity
from isulad_py.runtime.identity import LIMIT_BYTES, RootfsIdentities


@pytest.fixture
def rootfs(tmp_path: Path) -> Path:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/passwd").write_text("web:x:1000:1000::/srv:/bin/sh\n")
    (tmp_path / "etc/group").write_text("staff:x:50:web\n")
    return tmp_path


async def test_users_are_looked_up_in_the_root_file_system(rootfs: Path) -> None:
    user = await RootfsIdentities().resolve(str(rootfs), "web", ContainerSecurity())
    assert (user.identity.uid, user.identity.supplemental_groups, user.home) == (1000, (50, 1000), "/srv")


async def test_an_image_without_user_files_runs_ids(tmp_path: Path) -> None:
    user = await RootfsIdentities().resolve(str(tmp_path), "", ContainerSecurity(run_as_user=7))
    assert (user.identity.uid, user.identity.gid) == (7, 0)


@pytest.mark.parametrize("hostile", ["fifo", "directory", "loop", "too long"])
async def test_hostile_user_files_are_the_images_fault(rootfs: Path, hostile: str) -> None:
    path = rootfs / "etc/passwd"
    path.unlink()
    if hostile == "fifo":
        os.mkfifo(path)
    elif hostile == "directory":
        path.mkdir()
    elif hostile == "loop":
        path.symlink_to("passwd")
    else:
        path.write_bytes(b"#" * (LIMIT_BYTES + 1))
    with pytest.raises(FailedPrecondition, match="etc/passwd"):
        await RootfsIdentities().resolve(str(rootfs), "", ContainerSecurity())


async def test_links_never_lead_to_the_hosts_users(rootfs: Path) -> None:
    (rootfs / "etc/passwd").unlink()
    (rootfs / "etc/passwd").symlink_to("/../../../../../etc/hostname")
    user = await RootfsIdentities().resolve(str(rootfs), "", ContainerSecurity())
    assert user.username == ""


async def test_a_wrong_request_is_refused_before_anything_is_read() -> None:
    with pytest.raises(InvalidInput, match="run_as_group"):
        await RootfsIdentities().resolve("/nowhere", "", ContainerSecurity(run_as_group=1))

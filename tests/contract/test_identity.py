"""What every Identities does: the fake, and the real one over a directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from isulad_py.model.errors import FailedPrecondition, InvalidInput
from isulad_py.model.security import ContainerSecurity, GroupsPolicy
from isulad_py.ports.identity import Identities
from isulad_py.runtime.identity import RootfsIdentities
from tests.fakes.identity import FakeIdentities

PASSWD = b"root:x:0:0::/root:/bin/sh\nweb:x:1000:1000::/srv:/bin/sh\n"
GROUP = b"root:x:0:\nstaff:x:50:web\n"


@pytest.fixture(params=["fake", "real"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Identities, str]:
    if request.param == "fake":
        return FakeIdentities(passwd=PASSWD, group=GROUP), "/anywhere"
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/passwd").write_bytes(PASSWD)
    (tmp_path / "etc/group").write_bytes(GROUP)
    return RootfsIdentities(), str(tmp_path)


async def test_request_image_and_root_in_this_order(world: tuple[Identities, str]) -> None:
    identities, rootfs = world
    by_request = await identities.resolve(rootfs, "web", ContainerSecurity(run_as_user=0))
    by_image = await identities.resolve(rootfs, "web", ContainerSecurity())
    by_nobody = await identities.resolve(rootfs, "", ContainerSecurity())
    assert [user.username for user in (by_request, by_image, by_nobody)] == ["root", "web", "root"]
    assert by_image.identity.supplemental_groups == (50, 1000)
    assert by_image.home == "/srv"


async def test_strict_gives_only_what_is_asked_for(world: tuple[Identities, str]) -> None:
    identities, rootfs = world
    security = ContainerSecurity(run_as_user=1000, supplemental_groups=(7,), groups_policy=GroupsPolicy.STRICT)
    assert (await identities.resolve(rootfs, "", security)).identity.supplemental_groups == (7, 1000)


async def test_whose_fault_it_is(world: tuple[Identities, str]) -> None:
    identities, rootfs = world
    with pytest.raises(InvalidInput, match="run_as_username"):
        await identities.resolve(rootfs, "", ContainerSecurity(run_as_username="nobody"))
    with pytest.raises(FailedPrecondition, match="image"):
        await identities.resolve(rootfs, "nobody", ContainerSecurity())

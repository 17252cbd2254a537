"""What every AppArmorProfiles does: the fake, and the real one over a list that a stand-in for the parser adds to."""

from __future__ import annotations

from pathlib import Path

import pytest

from isulad_py.model.errors import InvalidInput
from isulad_py.ports.apparmor import AppArmorProfiles
from isulad_py.runtime.apparmor import KernelProfiles
from isulad_py.spec.apparmor_default import NAME
from tests.fakes.apparmor import FakeProfiles

LOADED = "my profile"


@pytest.fixture(params=["fake", "real"])
def profiles(request: pytest.FixtureRequest, tmp_path: Path) -> AppArmorProfiles:
    if request.param == "fake":
        return FakeProfiles({LOADED})
    listing, parser = tmp_path / "profiles", tmp_path / "parser"
    listing.write_text(f"/usr/bin/man (enforce)\n{LOADED} (complain)\n")
    parser.write_text(f"#!/bin/sh\ncat >/dev/null; echo '{NAME} (enforce)' >>{listing}\n")
    parser.chmod(0o755)
    return KernelProfiles(listing=str(listing), parser=str(parser))


async def test_one_that_is_loaded_will_do(profiles: AppArmorProfiles) -> None:
    await profiles.require(LOADED)


@pytest.mark.parametrize("name", ["mine", "my", "my profile (complain)", "/usr/bin/man (enforce)", "../x"])
async def test_one_that_is_not_is_the_requests_fault(profiles: AppArmorProfiles, name: str) -> None:
    with pytest.raises(InvalidInput, match=r"security_context\.apparmor\.localhost_ref: profile"):
        await profiles.require(name)


async def test_ours_is_loaded_where_it_is_missing(profiles: AppArmorProfiles) -> None:
    await profiles.require(NAME)
    await profiles.require(NAME)

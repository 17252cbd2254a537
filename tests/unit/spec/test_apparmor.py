from __future__ import annotations

import pytest

from isulad_py.model.errors import InvalidInput, Unsupported
from isulad_py.model.security import ProfileKind, SecurityProfile
from isulad_py.spec.apparmor import profile_name
from tests.fakes.facts import host_facts

WITH = host_facts(apparmor=True)
WITHOUT = host_facts(apparmor=False)
DEFAULT = SecurityProfile(kind=ProfileKind.RUNTIME_DEFAULT)
UNCONFINED = SecurityProfile(kind=ProfileKind.UNCONFINED)
LOCAL = SecurityProfile(kind=ProfileKind.LOCALHOST, localhost_ref="localhost/mine")


@pytest.mark.parametrize(
    ("asked", "privileged", "expected"),
    [
        (None, False, "ours"),
        (DEFAULT, False, "ours"),
        (UNCONFINED, False, ""),
        (LOCAL, False, "mine"),
        (None, True, ""),
        (LOCAL, True, "mine"),
    ],
)
def test_the_profile(asked: SecurityProfile | None, privileged: bool, expected: str) -> None:
    assert profile_name(asked, privileged=privileged, host=WITH, default="ours") == expected


@pytest.mark.parametrize("asked", [None, UNCONFINED])
def test_without_apparmor_nothing_is_needed_where_nothing_is_asked(asked: SecurityProfile | None) -> None:
    assert profile_name(asked, privileged=False, host=WITHOUT, default="ours") == ""


@pytest.mark.parametrize("asked", [DEFAULT, LOCAL])
def test_without_apparmor_a_profile_is_refused(asked: SecurityProfile) -> None:
    with pytest.raises(Unsupported, match=r"security_context\.apparmor"):
        profile_name(asked, privileged=False, host=WITHOUT, default="ours")


def test_without_a_parser_the_default_profile_is_refused_where_it_is_asked_for() -> None:
    with pytest.raises(Unsupported, match="apparmor_parser"):
        profile_name(DEFAULT, privileged=False, host=WITH, default="")
    assert profile_name(None, privileged=False, host=WITH, default="") == ""
    assert profile_name(DEFAULT, privileged=True, host=WITH, default="") == ""


def test_a_localhost_profile_needs_a_name() -> None:
    with pytest.raises(InvalidInput, match="localhost_ref"):
        profile_name(SecurityProfile(kind=ProfileKind.LOCALHOST), privileged=False, host=WITH, default="")

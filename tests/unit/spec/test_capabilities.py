from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isulad_py.model.errors import InvalidInput, Unsupported
from isulad_py.model.security import Capabilities
from isulad_py.spec.capabilities import DEFAULT, KNOWN, capability_sets
from tests.fakes.spec_inputs import capable_host

HOST = capable_host()
LACKING = capable_host(capabilities=tuple(name for name in KNOWN if name != "CAP_SYS_RESOURCE"))


def bounding(asked: Capabilities, *, privileged: bool = False) -> set[str]:
    return set(capability_sets(asked, privileged=privileged, host=HOST).bounding)


def test_the_default_set() -> None:
    sets = capability_sets(Capabilities(), privileged=False, host=HOST)
    assert set(sets.bounding) == set(DEFAULT)
    assert sets.bounding == sets.effective == sets.permitted
    assert sets.inheritable == sets.ambient == ()


def test_names_come_with_or_without_prefix_in_any_case() -> None:
    found = bounding(Capabilities(add=("net_admin", "CAP_SYS_TIME"), drop=("cap_chown",)))
    assert found == {*DEFAULT, "CAP_NET_ADMIN", "CAP_SYS_TIME"} - {"CAP_CHOWN"}


def test_drop_all_and_add_one_is_one() -> None:
    assert bounding(Capabilities(add=("NET_RAW",), drop=("ALL",))) == {"CAP_NET_RAW"}


def test_add_all_and_drop_one_is_all_but_one() -> None:
    assert bounding(Capabilities(add=("all",), drop=("NET_RAW",))) == set(KNOWN) - {"CAP_NET_RAW"}


def test_drop_all_is_nothing() -> None:
    assert bounding(Capabilities(drop=("ALL",))) == set()


def test_privileged_is_all_whatever_is_dropped() -> None:
    assert bounding(Capabilities(drop=("ALL",)), privileged=True) == set(KNOWN)


def test_all_is_what_this_daemon_holds() -> None:
    for asked, privileged in ((Capabilities(add=("ALL",)), False), (Capabilities(), True)):
        found = capability_sets(asked, privileged=privileged, host=LACKING)
        assert set(found.bounding) == set(LACKING.capabilities)


def test_one_that_this_daemon_does_not_hold_is_refused_by_name() -> None:
    with pytest.raises(Unsupported, match=r"add_capabilities.*CAP_SYS_RESOURCE"):
        capability_sets(Capabilities(add=("SYS_RESOURCE",)), privileged=False, host=LACKING)


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        (Capabilities(add=("FLY",)), "add_capabilities"),
        (Capabilities(drop=("CAP_",)), "drop_capabilities"),
        (Capabilities(add_ambient=("",)), "add_ambient_capabilities"),
    ],
)
def test_unknown_names_are_refused_by_field(asked: Capabilities, field: str) -> None:
    with pytest.raises(InvalidInput, match=rf"linux\.security_context\.capabilities\.{field}"):
        capability_sets(asked, privileged=False, host=HOST)


def test_ambient_ones_are_inheritable_and_permitted_too() -> None:
    sets = capability_sets(Capabilities(add_ambient=("NET_ADMIN",)), privileged=False, host=HOST)
    assert sets.ambient == sets.inheritable == ("CAP_NET_ADMIN",)
    assert "CAP_NET_ADMIN" in sets.permitted


NAMES = st.lists(st.sampled_from([*KNOWN, "ALL"]), max_size=6)


@given(add=NAMES, drop=NAMES, ambient=NAMES)
def test_what_is_dropped_is_gone_and_nothing_exceeds_the_host(
    add: list[str], drop: list[str], ambient: list[str]
) -> None:
    asked = Capabilities(add=tuple(add), drop=tuple(drop), add_ambient=tuple(ambient))
    sets = capability_sets(asked, privileged=False, host=HOST)
    assert set(sets.ambient) <= set(sets.permitted) <= set(sets.bounding) <= set(HOST.capabilities)
    assert (set(sets.bounding) - set(sets.ambient)).isdisjoint(set(drop) - {"ALL"})
    assert {name for name in add if name != "ALL"} - set(drop) <= set(sets.bounding)

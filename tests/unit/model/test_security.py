from __future__ import annotations

import pytest

from isulad_py.model.security import IdMapping, NamespaceMode, NamespaceOptions, UserNamespace

USERS = UserNamespace(
    mode=NamespaceMode.POD,
    uids=(
        IdMapping(host_id=100_000, container_id=0, length=10),
        IdMapping(host_id=200_000, container_id=1000, length=1),
    ),
    gids=(IdMapping(host_id=300_000, container_id=0, length=1),),
)


@pytest.mark.parametrize(
    ("inside", "on_host"), [(0, 100_000), (9, 100_009), (10, None), (999, None), (1000, 200_000), (1001, None)]
)
def test_users_of_the_host(inside: int, on_host: int | None) -> None:
    assert USERS.host_uid(inside) == on_host


def test_owners_of_files() -> None:
    assert USERS.owner(1000, 0) == (200_000, 300_000)
    assert USERS.owner(10, 1) == (-1, -1)


@pytest.mark.parametrize("userns", [None, UserNamespace(mode=NamespaceMode.NODE)])
def test_the_hosts_users_are_not_the_pods_own(userns: UserNamespace | None) -> None:
    assert NamespaceOptions(userns=userns).own_users is None
    assert NamespaceOptions(userns=USERS).own_users is USERS

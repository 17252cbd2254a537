"""What every implementation of storage.projects.Quotas does."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from isulad_py.host.project_quota import ProjectQuotas, QuotaState
from isulad_py.storage.projects import FIRST, Quotas
from tests.fakes.quotas import MemoryQuotas
from tests.stand.disk import NoQuotasHere, quota_disk
from tests.stand.mark import make_mark

ONE, TWO = FIRST, FIRST + 1


class Place(NamedTuple):
    root: Path
    quotas: Quotas


@pytest.fixture(params=["memory", *(pytest.param(kind, marks=pytest.mark.root) for kind in ("ext4", "xfs"))])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "memory":
        yield Place(tmp_path, MemoryQuotas(tmp_path))
        return
    mark = make_mark("quota")
    try:
        with quota_disk(mark, request.param) as root:
            yield Place(root, ProjectQuotas(str(root)))
    except NoQuotasHere as reason:
        pytest.skip(str(reason))
    finally:
        shutil.rmtree(mark.root)


def folder(place: Place, name: str, project: int) -> Path:
    path = place.root / name
    path.mkdir()
    place.quotas.assign(str(path), project)
    return path


def test_they_are_counted_and_enforced(place: Place) -> None:
    assert place.quotas.state() == QuotaState(accounted=True, enforced=True)


def test_what_is_made_below_counts_and_what_is_removed_does_not(place: Place) -> None:
    assert place.quotas.usage(ONE) == (0, 0, 0)
    one = folder(place, "one", ONE)
    folder(place, "two", TWO)
    (one / "sub").mkdir()
    (one / "sub/file").write_bytes(bytes(100_000))
    used = place.quotas.usage(ONE)
    assert used.used_bytes >= 100_000
    assert used.inodes == 3
    assert place.quotas.usage(TWO).inodes == 1
    shutil.rmtree(one)
    deadline = time.monotonic() + 20
    while place.quotas.usage(ONE).inodes:  # XFS frees inodes in the background
        assert time.monotonic() < deadline


def test_a_project_stays_with_what_is_moved(place: Place) -> None:
    (place.root / "trash").mkdir()
    parent = place.root / "parent"
    parent.mkdir()
    folder(place, "parent/one", ONE)
    parent.rename(place.root / "trash/gone")
    assert place.quotas.project_of(str(place.root / "trash/gone/one")) == ONE
    assert place.quotas.usage(ONE).inodes == 1


def test_only_what_was_given_one_has_a_project(place: Place) -> None:
    folder(place, "one", ONE)
    (place.root / "none").mkdir()
    assert place.quotas.project_of(str(place.root / "one")) == ONE
    assert place.quotas.project_of(str(place.root / "none")) == 0


def test_limits_are_told_changed_and_lifted(place: Place) -> None:
    folder(place, "one", ONE)
    for limit_bytes in (1 << 20, 8 << 20, 0):
        place.quotas.limit(ONE, limit_bytes)
        assert place.quotas.usage(ONE).limit_bytes == limit_bytes
    assert place.quotas.usage(TWO).limit_bytes == 0

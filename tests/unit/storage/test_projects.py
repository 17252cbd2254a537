from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from isulad_py.model.errors import ResourceExhausted, Unsupported
from isulad_py.model.ids import ContainerId
from isulad_py.storage import projects as module
from isulad_py.storage.projects import FIRST, Projects
from tests.fakes.quotas import MemoryQuotas

ONE, TWO, THREE = (ContainerId(digit * 64) for digit in "123")


def make(root: Path, container_id: ContainerId) -> str:
    folder = root / container_id
    for part in ("diff", "work"):
        (folder / part).mkdir(parents=True)
    return str(folder)


def test_each_container_has_its_own_on_both_directories(tmp_path: Path) -> None:
    quotas = MemoryQuotas(tmp_path)
    projects = Projects(quotas, root=str(tmp_path))
    for container_id in (ONE, TWO):
        projects.give(container_id, make(tmp_path, container_id), projects.limit_for(0))
    of = {c: {quotas.project_of(f"{tmp_path}/{c}/{part}") for part in ("diff", "work")} for c in (ONE, TWO)}
    assert of == {ONE: {FIRST}, TWO: {FIRST + 1}}
    used = projects.usage(ONE)
    assert used is not None
    assert (used.inodes, used.limit_bytes) == (2, 0)
    assert projects.usage(THREE) is None
    assert [each.inodes for each in projects.usages()] == [2, 2]


def test_what_lies_beside_the_layer_may_count_too(tmp_path: Path) -> None:
    quotas = MemoryQuotas(tmp_path)
    projects = Projects(quotas, root=str(tmp_path))
    for container_id in (ONE, TWO):
        Path(make(tmp_path, container_id), "volumes").mkdir()
    projects.give(ONE, f"{tmp_path}/{ONE}", 0)
    for container_id in (ONE, TWO):
        projects.include(container_id, f"{tmp_path}/{container_id}/volumes")
    assert [quotas.project_of(f"{tmp_path}/{c}/volumes") for c in (ONE, TWO)] == [FIRST, 0]


def test_the_next_daemon_gives_nothing_twice(tmp_path: Path) -> None:
    quotas = MemoryQuotas(tmp_path)
    former = Projects(quotas, root=str(tmp_path), limit_bytes=1 << 20)
    folders = {container_id: make(tmp_path, container_id) for container_id in (ONE, TWO)}
    for container_id, folder in folders.items():
        former.give(container_id, folder, former.limit_for(0))
    projects = Projects(quotas, root=str(tmp_path), limit_bytes=1 << 20)
    projects.take_up(ONE, folders[ONE])  # of the other it knows nothing
    projects.give(THREE, make(tmp_path, THREE), projects.limit_for(0))
    assert projects.has(ONE)
    assert quotas.project_of(f"{tmp_path}/{THREE}/diff") == FIRST + 2


def test_one_in_the_trash_is_free_when_its_last_file_has_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "COUNT", 2)
    quotas = MemoryQuotas(tmp_path)
    projects = Projects(quotas, root=str(tmp_path), limit_bytes=1 << 20)
    projects.give(ONE, make(tmp_path, ONE), projects.limit_for(0))
    projects.give(TWO, make(tmp_path, TWO), projects.limit_for(0))
    projects.take_back(ONE)
    projects.take_back(ONE)
    assert quotas.limits == {FIRST: 0, FIRST + 1: 1 << 20}
    with pytest.raises(ResourceExhausted, match="2 projects"):
        projects.give(THREE, make(tmp_path, THREE), projects.limit_for(0))
    shutil.rmtree(tmp_path / ONE)
    projects.give(THREE, str(tmp_path / THREE), projects.limit_for(0))
    assert quotas.project_of(f"{tmp_path}/{THREE}/diff") == FIRST


def test_a_limit_of_its_own_comes_before_the_node_s(tmp_path: Path) -> None:
    projects = Projects(MemoryQuotas(tmp_path), root=str(tmp_path), limit_bytes=1 << 20)
    assert projects.limit_for(0) == 1 << 20
    assert projects.limit_for(1 << 30) == 1 << 30


@pytest.mark.parametrize("accounted", [True, False])
def test_a_limit_that_cannot_be_kept_is_refused(tmp_path: Path, accounted: bool) -> None:
    quotas = MemoryQuotas(tmp_path, accounted=accounted, enforced=False)
    with pytest.raises(Unsupported, match=r"overlay2\.size: .*prjquota"):
        Projects(quotas, root=str(tmp_path), limit_bytes=1 << 20)
    projects = Projects(quotas, root=str(tmp_path))
    with pytest.raises(Unsupported, match=r"overlay2\.size"):
        projects.limit_for(4096)
    projects.give(ONE, make(tmp_path, ONE), projects.limit_for(0))
    assert projects.has(ONE) is accounted


def test_what_others_gave_is_left_alone(tmp_path: Path) -> None:
    quotas = MemoryQuotas(tmp_path)
    folder = make(tmp_path, ONE)
    quotas.assign(f"{folder}/diff", 7)
    projects = Projects(quotas, root=str(tmp_path))
    projects.take_up(ONE, folder)
    projects.take_back(ONE)
    assert not projects.has(ONE)
    assert quotas.limits == {}

"""The finder has to find: a check that never objects proves nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from tests.stand.cgroups import make_cgroup
from tests.stand.disk import journaled_disk, memory_disk
from tests.stand.leftovers import clear, find_leftovers
from tests.stand.mark import Mark, make_mark
from tests.stand.network import stand_network


@pytest.fixture
def mark() -> Iterator[Mark]:
    made = make_mark("it")
    try:
        yield made
    finally:
        if os.geteuid() == 0:
            clear(made)
        shutil.rmtree(made.root, ignore_errors=True)


def kinds(mark: Mark) -> set[str]:
    return {line.split(" ")[0] for line in find_leftovers(mark)}


def test_a_fresh_mark_has_its_folder_only(mark: Mark) -> None:
    assert find_leftovers(mark) == [f"folder {mark.root}"]
    assert find_leftovers(mark, folder_too=False) == []


def test_a_process_that_bears_the_mark_is_found(mark: Mark) -> None:
    script = f": {mark.word}; echo; read line"
    with subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()  # while the kernel makes it a shell it has no command line (execve(2))
        found = find_leftovers(mark, folder_too=False)
        process.communicate(b"\n")
    assert [line.split(" ")[:2] for line in found] == [["process", f"{process.pid}:"]]


@pytest.mark.root
def test_everything_is_found_and_cleared(mark: Mark) -> None:
    disk, memory = journaled_disk(mark), memory_disk(mark)
    disk.__enter__()
    memory.__enter__()
    with stand_network(mark, mark.root / "cni") as network:
        subprocess.run(["ip", "link", "add", network.bridge, "type", "bridge"], check=True)
        make_cgroup(f"{mark.cgroup_parent}/pod-x")
        assert kinds(mark) == {"mount", "loop", "link", "cgroup", "folder"}
        clear(mark)
    assert find_leftovers(mark) == []

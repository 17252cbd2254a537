"""Runtimes and monitor as programs; simulated ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from isulad_py.host import mounts, process
from isulad_py.model.errors import DeadlineExceeded, HostFailure, InvalidInput, NotFound
from isulad_py.model.handlers import RuntimeHandler
from isulad_py.runtime.layout import Layout
from isulad_py.runtime.programs import Call, Programs
from tests.fakes.oci_programs import SimulatedPrograms


def programs(folder: Path, *, seconds: float = 20.0, side_tree: str = "", **handlers: RuntimeHandler) -> Programs:
    simulated = SimulatedPrograms(folder)
    return Programs(
        handlers={**simulated.handlers, **handlers},
        monitor=str(folder / "monitor"),
        layout=Layout(str(folder / "state")),
        command_seconds=seconds,
        side_tree=side_tree,
    )


def script(path: Path, text: str) -> RuntimeHandler:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return RuntimeHandler(name=path.name, path=str(path))


async def test_versions_of_all(tmp_path: Path) -> None:
    broken = script(tmp_path / "broken", "exit 4")
    missing = RuntimeHandler(name="missing", path=str(tmp_path / "missing"))
    versions = await programs(tmp_path, broken=broken, missing=missing).versions()
    assert versions["runc"] == "runc version 0.1.0-simulated"
    assert versions["monitor"] == "conmon version 0.1.0-simulated"
    assert "exited with 4" in versions["broken"]
    assert "no such program" in versions["missing"]


async def test_features_are_asked_for_once_and_again_after_a_change(tmp_path: Path) -> None:
    count = 'echo x >> "$0.calls"; echo "runc version 1.2.3"'
    handler = script(tmp_path / "counting", count)
    made = programs(tmp_path, counting=handler)
    assert (await made.version("counting")).number == "1.2.3"
    await made.version("counting")
    await made.features("counting")
    assert len((tmp_path / "counting.calls").read_text().splitlines()) == 2
    await made.features("counting")
    assert len((tmp_path / "counting.calls").read_text().splitlines()) == 2
    script(tmp_path / "counting", count.replace("1.2.3", "1.2.4-new"))
    assert (await made.features("counting")).version == "1.2.4-new"


async def test_features(tmp_path: Path) -> None:
    features = await programs(tmp_path).features("runc")
    assert features.seccomp
    assert features.oci_version_max == "1.0.2"


async def test_a_handler_that_nobody_configured(tmp_path: Path) -> None:
    made = programs(tmp_path)
    assert made.handlers == ("runc",)
    with pytest.raises(InvalidInput, match="'other'"):
        made.path("other")
    with pytest.raises(InvalidInput):
        made.global_args("other")


async def test_a_call_has_the_handlers_root_and_raises_the_runtimes_words(tmp_path: Path) -> None:
    made = programs(tmp_path)
    assert made.global_args("runc")[:2] == ["--root", str(tmp_path / "state/runtime/runc")]
    with pytest.raises(NotFound, match="start: container does not exist"):
        await made.call(Call(handler="runc", words=("start", "nobody"), step="start"))


async def test_a_call_that_fails_without_a_word_or_hangs(tmp_path: Path) -> None:
    silent = script(tmp_path / "silent", "exit 7")
    hanging = script(tmp_path / "hanging", "exec sleep 1000")
    made = programs(tmp_path, seconds=0.05, silent=silent, hanging=hanging)
    with pytest.raises(HostFailure, match="pause: exit status 7"):
        await made.call(Call(handler="silent", words=("pause", "x"), step="pause"))
    with pytest.raises(DeadlineExceeded, match=r"pause: the runtime gave no answer within 0\.05 s"):
        await made.call(Call(handler="hanging", words=("pause", "x"), step="pause"))


async def test_stdin_goes_to_the_runtime(tmp_path: Path) -> None:
    reading = script(tmp_path / "reading", "cat")
    made = programs(tmp_path, reading=reading)
    assert await made.call(Call(handler="reading", words=(), step="update", stdin=b"limits")) == b"limits"


async def test_only_crun_is_kept_from_the_tree_beside_the_others(tmp_path: Path) -> None:
    made = programs(tmp_path, side_tree=str(tmp_path))
    async with made.begun("runc") as program:
        assert program == (made.path("runc"),)


@pytest.mark.root
async def test_crun_does_not_see_the_tree_beside_the_others(tmp_path: Path) -> None:
    tree, folder = tmp_path / "tree", tmp_path / "folder"
    tree.mkdir()
    folder.mkdir()
    crun = script(tmp_path / "crun", f'[ "$1" = --version ] && echo crun version 1.8.1 || (ls {tree}; pwd)')
    made = programs(tmp_path, side_tree=str(tree), crun=crun)
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    mounts.mount("tmpfs", str(tree), "tmpfs", data="size=64k")
    try:
        (tree / "cgroup.controllers").touch()
        assert await made.call(Call(handler="crun", words=(), step="look")) == b"/\n"
        async with made.begun("crun", folder=str(folder)) as program:
            done = await process.run(process.Command(argv=program))
        assert done.stdout.decode() == f"{folder}\n"
        assert (tree / "cgroup.controllers").exists()
    finally:
        mounts.unmount(str(tree))
    assert len(list(Path("/proc/self/fd").iterdir())) == descriptors
    with pytest.raises(HostFailure, match="copy the mounts without"):
        await made.call(Call(handler="crun", words=(), step="look"))

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from isulad_py.host import mounts
from isulad_py.model.container import Device, Identity, ImageSpec, Mount, Propagation
from isulad_py.model.errors import FailedPrecondition, InvalidInput, NotFound
from isulad_py.runtime import hostfiles
from isulad_py.runtime.hostfiles import HostPaths

PATHS = HostPaths()


async def test_links_of_host_paths_are_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    [mount] = await PATHS.resolve_mounts([Mount(container_path="/x", host_path=str(tmp_path / "link"))])
    assert mount.host_path == str(tmp_path / "real")


async def test_a_missing_host_path_becomes_a_directory(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(".")
    [mount] = await PATHS.resolve_mounts([Mount(container_path="/x", host_path=f"{tmp_path}/link/a/b")])
    assert mount.host_path == f"{tmp_path}/a/b"
    assert not (tmp_path / "a").exists()  # not before the whole request has been looked at
    await PATHS.make_sources([mount])
    await PATHS.make_sources([mount])
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("a", "a/b")] == [0o755, 0o755]


async def test_a_host_path_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    [mount] = await PATHS.resolve_mounts([Mount(container_path="/x", host_path=str(tmp_path / "a/b"))])
    (tmp_path / "a").touch()
    with pytest.raises(InvalidInput, match=r"config\.mounts\[0\]\.host_path: .*a/b cannot be made"):
        await PATHS.make_sources([mount])


@pytest.mark.parametrize(
    ("wanted", "peers", "refused"),
    [
        (Propagation.PRIVATE, set(), False),
        (Propagation.HOST_TO_CONTAINER, set(), True),
        (Propagation.HOST_TO_CONTAINER, {"master"}, False),
        (Propagation.HOST_TO_CONTAINER, {"shared"}, False),
        (Propagation.BIDIRECTIONAL, {"master"}, True),
        (Propagation.BIDIRECTIONAL, {"shared", "master"}, False),
    ],
)
async def test_propagation_needs_a_mount_that_takes_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: Propagation, peers: set[str], *, refused: bool
) -> None:
    monkeypatch.setattr(mounts, "peers", lambda path: frozenset(peers))
    mount = Mount(container_path="/x", host_path=str(tmp_path), propagation=wanted)
    if refused:
        with pytest.raises(FailedPrecondition, match=r"config\.mounts\[0\]\.propagation"):
            await PATHS.resolve_mounts([mount])
    else:
        assert await PATHS.resolve_mounts([mount]) == (mount,)


@pytest.mark.parametrize("name", ["file/below", "dangling", "loop", "nul\0"])
async def test_a_host_path_that_leads_nowhere_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "file").touch()
    mounts = [
        Mount(container_path="/a", host_path=str(tmp_path)),
        Mount(container_path="/b", host_path=f"{tmp_path}/{name}"),
    ]
    with pytest.raises(InvalidInput, match=r"config\.mounts\[1\]\.host_path"):
        await PATHS.resolve_mounts(mounts)


async def test_image_volumes_have_no_host_path() -> None:
    volume = Mount(container_path="/x", image=ImageSpec(image="a"))
    assert await PATHS.resolve_mounts([volume]) == (volume,)


async def test_devices_are_looked_up_and_directories_opened() -> None:
    [null] = await PATHS.resolve_devices([Device(container_path="/dev/n", host_path="/dev/null", permissions="r")])
    assert (null.path, null.type, null.major, null.minor, null.permissions) == ("/dev/n", "c", 1, 3, "r")
    found = await PATHS.resolve_devices([Device(container_path="/d", host_path="/dev")])
    assert "/d/null" in {device.path for device in found}


async def test_all_devices_of_the_host_but_terminals() -> None:
    found = {device.path for device in await PATHS.all_devices()}
    assert "/dev/null" in found
    assert not any(path.startswith(("/dev/pts/", "/dev/shm/")) for path in found)


@pytest.mark.parametrize(
    ("device", "field"),
    [
        (Device(container_path="/d", host_path="/no/such"), "host_path"),
        (Device(container_path="/d", host_path="/etc/passwd"), "host_path"),
        (Device(container_path="/d", host_path="/dev/null", permissions="rx"), "permissions"),
    ],
)
async def test_what_is_no_device_is_named(device: Device, field: str) -> None:
    with pytest.raises(InvalidInput, match=rf"config\.devices\[0\]\.{field}"):
        await PATHS.resolve_devices([device])


async def test_a_directory_that_is_too_large_for_devices_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hostfiles, "MOST_ENTRIES", 5)
    for number in range(6):
        (tmp_path / f"{number}").mkdir()
    device = Device(container_path="/dev/x", host_path=str(tmp_path))
    with pytest.raises(InvalidInput, match=r"config\.devices\[0\]\.host_path: .* more than 5 entries"):
        await PATHS.resolve_devices([device])


async def test_directories_are_made_inside_the_root(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (root / "link").symlink_to(outside)
    owner = Identity(uid=os.getuid(), gid=os.getgid())
    await PATHS.ensure_directories(str(root), ["/a/b"], owner)
    assert (root / "a" / "b").is_dir()
    with pytest.raises(Exception):  # noqa: B017 - whichever way it is refused, nothing may appear outside
        await PATHS.ensure_directories(str(root), ["/link/c"], owner)
    assert list(outside.iterdir()) == []


async def test_a_profile_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "profile").write_text("{}")
    assert await PATHS.read_profile(str(tmp_path / "profile")) == b"{}"
    with pytest.raises(InvalidInput, match="localhost_ref"):
        await PATHS.read_profile(str(tmp_path / "none"))


async def test_a_sub_path_stays_inside_its_image(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "out").symlink_to("/etc")
    assert await PATHS.within(str(root), "", 0) == str(root)
    assert await PATHS.within(str(root), "sub", 0) == str(root / "sub")
    for path in ("/etc", "../x", "a/../../x", "out"):
        with pytest.raises(InvalidInput, match=r"mounts\[3\]\.image_sub_path"):
            await PATHS.within(str(root), path, 3)
    with pytest.raises(NotFound, match="image_sub_path"):
        await PATHS.within(str(root), "none", 0)

from __future__ import annotations

import pytest

from isulad_py.model.errors import InvalidInput
from isulad_py.spec import cgroup_paths


@pytest.mark.parametrize(
    ("parent", "path"),
    [
        ("/kubepods/besteffort/podx", "/kubepods/besteffort/podx/id"),
        ("kubepods//podx/./", "/kubepods/podx/id"),
        ("/", "/id"),
        ("", "/id"),
    ],
)
def test_cgroupfs_takes_paths(parent: str, path: str) -> None:
    placement = cgroup_paths.place_container(parent, "id", systemd=False)
    assert (placement.oci_path, placement.path) == (path, path)
    assert cgroup_paths.runtime_path(path) == path


@pytest.mark.parametrize("parent", ["/a/../b", "..", "/a/b\0", "/a\nb"])
def test_a_path_that_climbs_is_refused_by_field(parent: str) -> None:
    with pytest.raises(InvalidInput, match=r"linux\.cgroup_parent"):
        cgroup_paths.place_container(parent, "id", systemd=False)


@pytest.mark.parametrize(
    ("parent", "oci", "path"),
    [
        (
            "kubepods-besteffort-pod1_2.slice",
            "kubepods-besteffort-pod1_2.slice:isulad:id",
            "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod1_2.slice/isulad-id.scope",
        ),
        ("/a.slice/a-b.slice/", "a-b.slice:isulad:id", "/a.slice/a-b.slice/isulad-id.scope"),
        ("system.slice", "system.slice:isulad:id", "/system.slice/isulad-id.scope"),
        ("-.slice", "-.slice:isulad:id", "/isulad-id.scope"),
    ],
)
def test_systemd_takes_slices(parent: str, oci: str, path: str) -> None:
    placement = cgroup_paths.place_container(parent, "id", systemd=True)
    assert (placement.oci_path, placement.path) == (oci, path)
    assert cgroup_paths.parent_path(parent, systemd=True) == path.rpartition("/")[0]
    assert cgroup_paths.runtime_path(oci) == path


@pytest.mark.parametrize("oci", ["", "relative/path", "a:b:c", "a:b"])
def test_what_we_never_say_is_nowhere(oci: str) -> None:
    assert cgroup_paths.runtime_path(oci) == ""


@pytest.mark.parametrize(
    "parent", ["", "/", "/kubepods/podx", ".slice", "-a.slice", "a-.slice", "a--b.slice", "a:b.slice", "a b.slice"]
)
def test_what_is_no_slice_is_refused_by_field(parent: str) -> None:
    with pytest.raises(InvalidInput, match=r"linux\.cgroup_parent"):
        cgroup_paths.place_container(parent, "id", systemd=True)


@pytest.mark.parametrize(
    ("recorded", "path"),
    [("a-b.slice", "/a.slice/a-b.slice"), ("/a.slice/x.scope", "/a.slice/x.scope"), ("/pods/x.slice", "/pods/x.slice")],
)
def test_records_hold_paths_or_the_name_of_a_slice(recorded: str, path: str) -> None:
    assert cgroup_paths.recorded_path(recorded) == path

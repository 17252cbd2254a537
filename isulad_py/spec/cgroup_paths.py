"""Where a container's cgroup lies, and how an OCI runtime is told (OCI runtime spec, config-linux, cgroupsPath)."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from isulad_py.model.errors import InvalidInput

SCOPE_PREFIX: Final = "isulad"
_FIELD: Final = "linux.cgroup_parent"


class CgroupPlacement(Struct, frozen=True, kw_only=True):
    oci_path: str
    """`cgroupsPath` of the OCI spec: a path, or `slice:prefix:name` for the systemd driver."""
    path: str
    """What `ContainerRecord.cgroup_path` holds: below the root of each hierarchy, whatever the driver."""


def place_container(cgroup_parent: str, container_id: str, *, systemd: bool) -> CgroupPlacement:
    """The container's own cgroup below its pod's. Raises InvalidInput naming `linux.cgroup_parent`."""
    if not systemd:
        path = f"{clean_path(cgroup_parent).rstrip('/')}/{container_id}"
        return CgroupPlacement(oci_path=path, path=path)
    slice_ = slice_name(cgroup_parent)
    return CgroupPlacement(
        oci_path=f"{slice_}:{SCOPE_PREFIX}:{container_id}",
        path=f"{expand_slice(slice_)}/{SCOPE_PREFIX}-{container_id}.scope",
    )


def parent_path(cgroup_parent: str, *, systemd: bool) -> str:
    """The pod's cgroup below the root of each hierarchy: a slice's name resolved, a path cleaned."""
    return expand_slice(slice_name(cgroup_parent)) if systemd else clean_path(cgroup_parent)


def recorded_path(recorded: str) -> str:
    """What `PodRecord.cgroup_path` or `ContainerRecord.cgroup_path` names, below the root of each hierarchy: a path, or
    for a pod under the systemd driver the name of its slice."""
    if recorded.endswith(".slice") and "/" not in recorded:
        return expand_slice(slice_name(recorded))
    return clean_path(recorded)


def runtime_path(oci_path: str) -> str:
    """Where a runtime puts a container whose spec says so (`CgroupPlacement.oci_path`), below each hierarchy's root;
    empty for what this module never says."""
    slice_, colon, scope = oci_path.partition(":")
    if colon and slice_.endswith(".slice"):
        return f"{expand_slice(slice_)}/{scope.replace(':', '-', 1)}.scope"
    return oci_path.rstrip("/") if oci_path.startswith("/") else ""


def clean_path(cgroup_parent: str) -> str:
    """An absolute path without empty parts. Raises InvalidInput for one that climbs."""
    parts = [part for part in cgroup_parent.split("/") if part not in {"", "."}]
    if ".." in parts or any("\0" in part or "\n" in part for part in parts):
        raise InvalidInput(f"{_FIELD} {cgroup_parent!r}: must be a path without '..'")
    return "/" + "/".join(parts)


def slice_name(cgroup_parent: str) -> str:
    """The slice unit that the systemd driver is given: the last part, as a kubelet and docker's users write it.

    Raises InvalidInput for what systemd would not take as the name of a slice (systemd.slice(5)).
    """
    name = cgroup_parent.rstrip("/").rpartition("/")[2]
    stem = name.removesuffix(".slice")
    malformed = stem == name or not stem or stem.startswith("-") or stem.endswith("-") or "--" in stem
    if (malformed and name != "-.slice") or ":" in name or not name.isprintable() or " " in name:
        raise InvalidInput(f"{_FIELD} {cgroup_parent!r}: must be the name of a slice for the systemd driver")
    return name


def expand_slice(name: str) -> str:
    """The path of a slice: `a-b.slice` lies in `a.slice`; the root slice `-.slice` is the root itself, empty."""
    if name == "-.slice":
        return ""
    parts = name.removesuffix(".slice").split("-")
    return "".join("/" + "-".join(parts[: end + 1]) + ".slice" for end in range(len(parts)))

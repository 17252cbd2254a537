from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isulad_py.model.container import ImageSpec, Mount, Propagation
from isulad_py.model.errors import InvalidInput, Unsupported
from isulad_py.model.pod import PodEnvironment
from isulad_py.model.security import IdMapping, NamespaceMode, UserNamespace
from isulad_py.spec import mounts, schema
from isulad_py.spec.inputs import Handler
from tests.fakes.spec_inputs import ENVIRONMENT

ABLE = Handler(recursive_read_only=True, idmap_mounts=True)
IMAGES = {"/img": "/views/c-0/sub"}


def made(mount: Mount, handler: Handler = ABLE) -> schema.Mount:
    (found,) = mounts.requested([mount], IMAGES, handler)
    return found


def wanted(**fields: Any) -> Mount:
    return Mount(**{"container_path": "/data", "host_path": "/srv/data", **fields})


def by_path(found: list[schema.Mount]) -> dict[str, schema.Mount]:
    return {mount.destination: mount for mount in found}


def test_sys_and_cgroups_are_writable_for_a_privileged_container_only() -> None:
    for privileged, mode in ((False, "ro"), (True, "rw")):
        found = by_path(mounts.base(privileged=privileged))
        assert found["/sys"].options[-1] == mode
        assert found["/sys/fs/cgroup"].options[-1] == mode
    assert list(found) == ["/proc", "/dev", "/dev/pts", "/dev/mqueue", "/sys", "/sys/fs/cgroup"]


def test_the_pods_files_are_bound_as_the_root_is() -> None:
    for readonly, mode in ((False, "rw"), (True, "ro")):
        found = by_path(mounts.from_pod(ENVIRONMENT, readonly=readonly))
        assert found["/etc/hosts"].source == "/run/pods/p/hosts"
        assert found["/etc/hosts"].options == ("rbind", "rprivate", mode)
        assert found["/dev/shm"].source == "/run/pods/p/shm"
        assert "rw" in found["/dev/shm"].options


def test_a_pod_in_the_hosts_ipc_namespace_has_the_hosts_shm() -> None:
    (shm,) = mounts.from_pod(PodEnvironment(), readonly=False)
    assert shm.source == "/dev/shm"


@pytest.mark.parametrize(
    ("mount", "options"),
    [
        (wanted(), ("rbind", "rprivate", "rw")),
        (wanted(readonly=True), ("rbind", "rprivate", "ro")),
        (wanted(propagation=Propagation.HOST_TO_CONTAINER), ("rbind", "rslave", "rw")),
        (wanted(propagation=Propagation.BIDIRECTIONAL), ("rbind", "rshared", "rw")),
        (wanted(readonly=True, recursive_read_only=True), ("rbind", "rprivate", "rro")),
        (wanted(mount_options=("noexec", "nosuid")), ("rbind", "rprivate", "rw", "noexec", "nosuid")),
    ],
)
def test_options(mount: Mount, options: tuple[str, ...]) -> None:
    found = made(mount)
    assert (found.type, found.source, found.destination, found.options) == ("bind", "/srv/data", "/data", options)


def test_an_image_volume_is_read_only() -> None:
    found = made(Mount(container_path="/img", image=ImageSpec(image="a:1")))
    assert (found.source, found.options[-1]) == ("/views/c-0/sub", "ro")


def test_id_mappings_of_a_mount_are_passed_on() -> None:
    mapping = (IdMapping(host_id=100, container_id=0, length=5),)
    found = made(wanted(uid_mappings=mapping, gid_mappings=mapping))
    assert found.uid_mappings == found.gid_mappings == (schema.LinuxIdMapping(container_id=0, host_id=100, size=5),)


USERS = UserNamespace(
    mode=NamespaceMode.POD,
    uids=(IdMapping(host_id=100, container_id=0, length=5),),
    gids=(IdMapping(host_id=200, container_id=0, length=5),),
)


def test_an_image_has_its_pods_ids_whatever_the_runtime_can_do() -> None:
    image = Mount(container_path="/img", image=ImageSpec(image="a:1"), uid_mappings=USERS.uids, gid_mappings=USERS.gids)
    views = {"/img": "/views/c-0"}
    (found,) = mounts.requested([image], views, Handler(), USERS)
    assert (found.source, found.uid_mappings, found.gid_mappings) == ("/views/c-0", (), ())
    others = UserNamespace(mode=NamespaceMode.POD, uids=USERS.uids, gids=USERS.uids)
    for users in (None, others):
        with pytest.raises(Unsupported, match=r"config\.mounts\[0\]\.uidMappings: not those of the pod"):
            mounts.requested([image], views, ABLE, users)


def test_terminals_belong_to_their_group_where_that_is_mapped() -> None:
    def options(users: UserNamespace | None) -> tuple[str, ...]:
        return next(m.options for m in mounts.base(users, privileged=False) if m.type == "devpts")

    assert "gid=5" in options(None)
    assert "gid=5" not in options(USERS)
    wide = UserNamespace(mode=NamespaceMode.POD, gids=(IdMapping(host_id=200, container_id=0, length=6),))
    assert "gid=5" in options(wide)


@pytest.mark.parametrize(
    ("mount", "field"),
    [
        (wanted(container_path="data"), r"config\.mounts\[0\]\.container_path"),
        (wanted(container_path=""), "container_path"),
        (wanted(container_path="/"), "container_path"),
        (wanted(container_path="/a/../../etc"), "container_path"),
        (wanted(host_path="srv"), "host_path"),
        (wanted(host_path=""), "host_path"),
        (wanted(host_path="/a\0b"), "host_path"),
        (wanted(mount_options=("bind",)), "mount_options"),
        (wanted(recursive_read_only=True), "recursive_read_only: needs readonly"),
        (
            wanted(recursive_read_only=True, readonly=True, propagation=Propagation.BIDIRECTIONAL),
            "recursive_read_only: needs private",
        ),
        (wanted(image=ImageSpec(image="a")), "host_path and image"),
        (wanted(host_path="", image=ImageSpec(image="a")), "image: not mounted"),
    ],
)
def test_bad_requests_are_refused_by_field(mount: Mount, field: str) -> None:
    with pytest.raises(InvalidInput, match=field):
        made(mount)


@pytest.mark.parametrize(
    ("mount", "field"),
    [
        (wanted(readonly=True, recursive_read_only=True), "recursive_read_only"),
        (wanted(uid_mappings=(IdMapping(host_id=1, container_id=0, length=1),)), "uidMappings"),
    ],
)
def test_what_the_runtime_cannot_do_is_refused_by_field(mount: Mount, field: str) -> None:
    with pytest.raises(Unsupported, match=field):
        made(mount, Handler())


def bound(path: str, source: str = "/s") -> schema.Mount:
    return schema.Mount(destination=path, source=source)


def test_a_request_takes_the_place_of_a_default() -> None:
    found = mounts.combined([bound("/proc"), bound("/etc/hosts")], [bound("/etc/hosts", "/mine")])
    assert [(mount.destination, mount.source) for mount in found] == [("/proc", "/s"), ("/etc/hosts", "/mine")]


def test_a_request_for_dev_takes_the_place_of_all_below_it() -> None:
    found = mounts.combined(
        [bound("/dev"), bound("/dev/pts"), bound("/dev/shm"), bound("/sys")], [bound("/dev", "/dev")]
    )
    assert [(mount.destination, mount.source) for mount in found] == [("/sys", "/s"), ("/dev", "/dev")]


def test_of_two_requests_for_one_path_the_last_wins() -> None:
    found = mounts.combined([], [bound("/a", "/1"), bound("/b"), bound("/a", "/2")])
    assert [(mount.destination, mount.source) for mount in found] == [("/b", "/s"), ("/a", "/2")]


def test_parents_come_before_children_and_others_keep_their_order() -> None:
    found = mounts.combined([bound("/proc")], [bound("/z/y/x"), bound("/z/y"), bound("/b"), bound("/a/c")])
    assert [mount.destination for mount in found] == ["/proc", "/b", "/z/y", "/a/c", "/z/y/x"]


PATHS = st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts)))


@given(defaults=PATHS, requests=PATHS)
def test_no_mount_ever_hides_an_earlier_one_below_it(defaults: list[str], requests: list[str]) -> None:
    found = mounts.combined([bound(path) for path in dict.fromkeys(defaults)], [bound(path) for path in requests])
    paths = [mount.destination for mount in found]
    assert sorted(paths) == sorted(set(defaults) | set(requests))
    for index, path in enumerate(paths):
        assert not any(earlier.startswith(path + "/") for earlier in paths[:index])


@pytest.mark.parametrize(
    ("modes", "expected"),
    [
        ((Propagation.PRIVATE,), ""),
        ((Propagation.PRIVATE, Propagation.HOST_TO_CONTAINER), "rslave"),
        ((Propagation.BIDIRECTIONAL, Propagation.HOST_TO_CONTAINER), "rshared"),
    ],
)
def test_the_roots_propagation_follows_the_widest(modes: tuple[Propagation, ...], expected: str) -> None:
    assert mounts.root_propagation([wanted(propagation=mode) for mode in modes]) == expected


def test_anonymous_volumes_are_bound_where_the_image_says() -> None:
    (volume,) = mounts.anonymous_volumes({"/var/lib/x": "/graph/volumes/1"})
    assert (volume.destination, volume.source, volume.options[-1]) == ("/var/lib/x", "/graph/volumes/1", "rw")


def test_volumes_of_an_image_that_nothing_else_is_mounted_on() -> None:
    declared = ("/var/lib/x/", "/var//lib/x", "/data", "/dev", "/dev/shm", "/proc", "/etc/hosts", "/b")
    asked = [Mount(container_path="/data/", host_path="/h")]
    assert mounts.volume_paths(declared, asked) == ("/var/lib/x", "/b")
    assert mounts.volume_paths((), asked) == ()
    pods = mounts.from_pod(
        PodEnvironment(hostname_path="/1", hosts_path="/2", resolv_path="/3", shm_path="/4"), readonly=False
    )
    assert {mount.destination for mount in pods} == mounts.FROM_POD


@pytest.mark.parametrize(
    "declared", [("data",), ("/a/../b",), ("/",), ("/a\0",), [f"/{number}" for number in range(65)]]
)
def test_volumes_that_cannot_be(declared: Sequence[str]) -> None:
    with pytest.raises(InvalidInput, match="image config: volumes"):
        mounts.volume_paths(declared, ())

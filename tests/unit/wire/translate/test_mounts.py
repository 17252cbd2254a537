from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from isulad_py.api.runtime import v1 as cri
from isulad_py.model.container import Device, ImageSpec, Mount, Propagation
from isulad_py.model.errors import InvalidInput
from isulad_py.model.security import IdMapping
from isulad_py.wire.translate import mounts

WORD = st.text("abc", min_size=1, max_size=4)
PATH = WORD.map("/".__add__)
MAPPINGS = st.lists(st.builds(IdMapping, host_id=st.just(1), container_id=st.just(2), length=st.just(3)), max_size=1)


@given(
    st.builds(
        Mount,
        container_path=PATH,
        host_path=PATH,
        readonly=st.booleans(),
        selinux_relabel=st.booleans(),
        propagation=st.sampled_from(Propagation),
        uid_mappings=st.shared(MAPPINGS.map(tuple), key="ids"),
        gid_mappings=st.shared(MAPPINGS.map(tuple), key="ids"),
        image=st.none() | st.builds(ImageSpec, image=WORD, annotations=st.dictionaries(WORD, WORD, max_size=1)),
        image_sub_path=st.just("") | WORD,
        mount_options=st.lists(WORD, max_size=1).map(tuple),
        recursive_read_only=st.booleans(),
    )
)
def test_mounts_go_out_and_come_back(mount: Mount) -> None:
    if mount.recursive_read_only:
        mount = replace(mount, readonly=True, propagation=Propagation.PRIVATE)
    of_an_image = mount.image is not None
    mount = replace(mount, readonly=True, host_path="") if of_an_image else replace(mount, image_sub_path="")
    assert mounts.mount(cri.Mount().parse(bytes(mounts.mount_message(mount))), "m") == mount


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"host_path": "/h"}, r"^m\.container_path is empty"),
        ({"container_path": "v", "host_path": "/h"}, r"^m\.container_path: 'v' is not an absolute path"),
        ({"container_path": "/v"}, r"^m\.host_path is empty"),
        ({"container_path": "/v", "host_path": "h"}, r"^m\.host_path: 'h' is not an absolute path"),
        ({"container_path": "/v\0", "host_path": "/h"}, r"^m\.container_path has control"),
        ({"container_path": "/v/../w", "host_path": "/h"}, r"^m\.container_path: '/v/\.\./w' has a part that climbs"),
        (
            {"container_path": "/v", "host_path": "/h", "image": cri.ImageSpec(image="i"), "readonly": True},
            r"^m\.host_path: given beside image",
        ),
        (
            {"container_path": "/v", "host_path": "/h", "mount_options": ["nodev"] * 4097},
            r"^m\.mount_options: 4097 are",
        ),
        (
            {"container_path": "/v", "host_path": "/h", "uid_mappings": [cri.IdMapping(length=1)]},
            r"^m\.gidMappings is empty, though",
        ),
        (
            {"container_path": "/v", "host_path": "/h", "gid_mappings": [cri.IdMapping(length=0)]},
            r"^m\.gidMappings\[0\]\.length: 0",
        ),
        ({"container_path": "/v", "host_path": "/h", "propagation": 3}, r"^m\.propagation: 3"),
        ({"container_path": "/v", "host_path": "/h", "recursive_read_only": True}, r"^m\.recursive_read_only needs"),
        (
            {
                "container_path": "/v",
                "host_path": "/h",
                "recursive_read_only": True,
                "readonly": True,
                "propagation": cri.MountPropagation.PROPAGATION_BIDIRECTIONAL,
            },
            r"^m\.recursive_read_only needs",
        ),
        (
            {"container_path": "/v", "host_path": "/h", "image_sub_path": "a"},
            r"^m\.image_sub_path is given without image",
        ),
        (
            {"container_path": "/v", "image": cri.ImageSpec(image="i")},
            r"^m\.readonly: is false, but an image volume cannot be written",
        ),
        (
            {"container_path": "/v", "image": cri.ImageSpec(image="i"), "image_sub_path": "a/../../b"},
            r"^m\.image_sub_path: .* climbs",
        ),
        (
            {"container_path": "/v", "image": cri.ImageSpec(image="i"), "image_sub_path": "/b"},
            r"^m\.image_sub_path: .* not a relative path",
        ),
    ],
)
def test_refusals_name_the_field(fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InvalidInput, match=complaint):
        mounts.mount(cri.Mount(**fields), "m")


def test_devices() -> None:
    plain = mounts.device(cri.Device(host_path="/dev/null"), "d")
    assert plain == Device(container_path="/dev/null", host_path="/dev/null")
    whole = mounts.device(cri.Device(container_path="/dev/x", host_path="/dev/null", permissions="rw"), "d")
    assert whole == Device(container_path="/dev/x", host_path="/dev/null", permissions="rw")
    with pytest.raises(InvalidInput, match=r"^d\.host_path is empty"):
        mounts.device(cri.Device(container_path="/dev/x"), "d")
    with pytest.raises(InvalidInput, match=r"^d\.container_path: .* climbs"):
        mounts.device(cri.Device(container_path="/dev/../x", host_path="/dev/null"), "d")
    with pytest.raises(InvalidInput, match=r"^d\.permissions: 'rx'"):
        mounts.device(cri.Device(host_path="/dev/null", permissions="rx"), "d")

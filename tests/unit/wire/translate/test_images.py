from __future__ import annotations

import betterproto
import pytest

from isulad_py.api.runtime import v1 as cri
from isulad_py.model.container import ImageSpec
from isulad_py.model.errors import InvalidInput
from isulad_py.model.ids import ImageId
from isulad_py.model.image import Credentials, ImageConfig, ImageRecord
from isulad_py.model.stats import FilesystemUsage
from isulad_py.wire.translate import images


def test_an_image_must_be_named() -> None:
    with pytest.raises(InvalidInput, match=r"^image\.image is empty"):
        images.image_spec(cri.ImageSpec(), "image")
    with pytest.raises(InvalidInput, match=r"^image\.image has control"):
        images.image_spec(cri.ImageSpec(image="a\nb"), "image")


def test_a_whole_specification(codec: str) -> None:
    message = cri.ImageSpec(
        image="busybox", annotations={"a": "b"}, user_specified_image="docker.io/busybox", runtime_handler="crun"
    )
    assert images.image_spec(cri.ImageSpec().parse(bytes(message)), "image") == ImageSpec(
        image="busybox", annotations={"a": "b"}, user_specified_image="docker.io/busybox", runtime_handler="crun"
    )


def test_credentials_that_say_nothing_are_none(codec: str) -> None:
    assert images.credentials(cri.PullImageRequest().parse(b"").auth) is None
    assert images.credentials(cri.PullImageRequest().parse(b"\x12\x00").auth) is None
    found = images.credentials(cri.AuthConfig(username="u", password="p", registry_token="t"))
    assert found == Credentials(username="u", password="p", registry_token="t")
    others = cri.AuthConfig(auth="dTpw", server_address="https://reg", identity_token="i")
    assert images.credentials(others) == Credentials(auth="dTpw", server_address="https://reg", identity_token="i")
    assert "p" not in repr(found).removeprefix("Credentials(...)")


def record(user: str) -> ImageRecord:
    return ImageRecord(
        id=ImageId("sha256:i"),
        repo_tags=("a:1",),
        repo_digests=("a@sha256:d",),
        size_bytes=9,
        pinned=True,
        config=ImageConfig(user=user),
    )


@pytest.mark.parametrize(
    ("user", "uid", "username"),
    [
        ("", None, ""),
        ("0", 0, ""),
        ("1002", 1002, ""),
        ("1003:users", 1003, ""),
        ("www-data", None, "www-data"),
        ("www-data:100", None, "www-data"),
        ("9" * 5000, None, "9" * 5000),
        ("²", None, "²"),
    ],
)
def test_the_user_of_an_image(codec: str, user: str, uid: int | None, username: str) -> None:
    item = cri.Image().parse(bytes(images.image_item(record(user))))
    assert (item.uid.value if betterproto.serialized_on_wire(item.uid) else None) == uid
    assert item.username == username


def test_a_list_item(codec: str) -> None:
    item = cri.Image().parse(bytes(images.image_item(record("app"))))
    assert item == cri.Image(
        id="sha256:i",
        repo_tags=["a:1"],
        repo_digests=["a@sha256:d"],
        size=9,
        username="app",
        pinned=True,
        spec=cri.ImageSpec(image="a@sha256:d", image_ref="sha256:i"),
    )


def test_a_file_system_that_is_empty_is_not_unknown(codec: str) -> None:
    usage = FilesystemUsage(timestamp=1, mountpoint="/g", used_bytes=0, inodes_used=2)
    message = cri.FilesystemUsage().parse(bytes(images.filesystem_usage(usage)))
    assert betterproto.serialized_on_wire(message.used_bytes)
    assert (message.fs_id.mountpoint, message.inodes_used.value, message.timestamp) == ("/g", 2, 1)

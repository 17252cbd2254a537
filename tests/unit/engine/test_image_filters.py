from __future__ import annotations

import pytest

from isulad_py.engine.image_filters import ImageFilter, select
from isulad_py.model.errors import NotFound
from isulad_py.model.ids import ImageId
from isulad_py.model.image import ImageConfig, ImageRecord

OLD = ImageRecord(
    id=ImageId("sha256:old"),
    repo_tags=("docker.io/library/busybox:1",),
    created_at=1,
    config=ImageConfig(labels={"a": ""}),
)
MIDDLE = ImageRecord(id=ImageId("sha256:middle"), repo_digests=("r.example/x@sha256:0",), created_at=2)
NEW = ImageRecord(
    id=ImageId("sha256:new"), repo_tags=("r.example/app:2",), created_at=3, config=ImageConfig(labels={"a": "b"})
)
ALL = {"old": OLD, "middle": MIDDLE, "new": NEW}


def require(name: str) -> ImageRecord:
    if name not in ALL:
        raise NotFound(name)
    return ALL[name]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (ImageFilter(), [OLD, MIDDLE, NEW]),
        (ImageFilter(dangling=True), [MIDDLE]),
        (ImageFilter(dangling=False), [OLD, NEW]),
        (ImageFilter(labels=(("a", None),)), [OLD, NEW]),
        (ImageFilter(labels=(("a", "b"),)), [NEW]),
        (ImageFilter(before="new"), [OLD, MIDDLE]),
        (ImageFilter(since="old", before="new"), [MIDDLE]),
        (ImageFilter(reference="busybox"), [OLD]),
        (ImageFilter(reference="*:2"), [NEW]),
        (ImageFilter(reference="docker.io/library/busybox"), []),
        (ImageFilter(reference="r.example/*"), [NEW]),
        (ImageFilter(reference="[!b]*", dangling=False), [NEW]),
    ],
)
def test_what_is_left(wanted: ImageFilter, found: list[ImageRecord]) -> None:
    assert select(ALL.values(), wanted, require) == found


def test_an_image_that_the_filter_names_must_be_there() -> None:
    with pytest.raises(NotFound, match="absent"):
        select(ALL.values(), ImageFilter(since="absent"), require)

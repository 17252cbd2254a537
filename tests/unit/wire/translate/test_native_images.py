from __future__ import annotations

import json
from typing import Any

import pytest

from isulad_py.api import images as native
from isulad_py.api.isulad import v1 as own
from isulad_py.engine.progress import PullState
from isulad_py.model.errors import InvalidInput, Unsupported
from isulad_py.model.ids import ChainId, Digest, ImageId
from isulad_py.model.image import Credentials, ImageRecord, Layer
from isulad_py.ports.images import PullProgress
from isulad_py.wire.translate import native_images

RECORD = ImageRecord(
    id=ImageId("sha256:" + "1" * 64),
    repo_tags=("docker.io/library/app:1", "r.example/app:2"),
    repo_digests=("docker.io/library/app@sha256:" + "2" * 64,),
    layers=(Layer(chain_id=ChainId("sha256:" + "3" * 64), diff_id=Digest("sha256:" + "4" * 64)),),
    size_bytes=5,
    created_at=1_700_000_000_000_000_000,
    raw_config=b'{"config":{"Cmd":["sh"]}}',
)


def test_an_entry_for_each_name() -> None:
    entries = list(native_images.image_entries(RECORD))
    assert [entry.name for entry in entries] == ["app:1", "r.example/app:2"]
    assert {entry.target.digest for entry in entries} == {RECORD.id}
    assert entries[0].created_at.timestamp() == 1_700_000_000


@pytest.mark.parametrize("created_at", [-1, 0, 2**63 - 1])
def test_an_image_of_any_time_can_be_listed(created_at: int) -> None:
    [entry] = native_images.image_entries(ImageRecord(id=RECORD.id, created_at=created_at))
    assert native.Image().parse(bytes(entry)).name == ""
    assert json.loads(native_images.inspection(ImageRecord(id=RECORD.id, created_at=created_at)))


def test_inspection() -> None:
    image = json.loads(native_images.inspection(RECORD))["image"]
    assert image["id"] == "1" * 64
    assert image["repo_tags"] == ["app:1", "r.example/app:2"]
    assert image["repo_digests"] == ["app@sha256:" + "2" * 64]
    assert (image["created"], image["top_layer"]) == ("2023-11-14T22:13:20Z", "3" * 64)
    assert image["spec"] == {"config": {"Cmd": ["sh"]}}


@pytest.mark.parametrize("raw", [b"", b"\xff", b"{", b"[" * 100_000])
def test_an_image_without_a_readable_configuration(raw: bytes) -> None:
    assert not json.loads(native_images.inspection(ImageRecord(id=RECORD.id, raw_config=raw)))["image"]["spec"]


def test_progress_there_and_back() -> None:
    layer = PullProgress(step="downloading", digest="sha256:" + "a" * 64, done_bytes=3, total_bytes=9)
    state = PullState(step="downloading", layers=(layer,))
    assert native_images.pull_state(parsed(native_images.own_pull_answer(state))) == state
    document = json.loads(native_images.pull_answer(state, "app:1").progress_data)
    assert document == {"progresses": [{"id": "a" * 12, "total": 9, "current": 3}]}
    last = native_images.pull_state(parsed(native_images.own_pull_answer(PullState(step="done", image=RECORD))))
    assert last.image == native_images.listed(native_images.images.image_item(RECORD))
    answer = native_images.pull_answer(PullState(step="done", image=RECORD), "app:1")
    assert (answer.image_ref, json.loads(answer.progress_data)) == ("app:1", {"image": "app:1", "progresses": []})


def parsed(message: own.PullResponse) -> own.PullResponse:
    return own.PullResponse().parse(bytes(message))


@pytest.mark.parametrize(
    ("filters", "words"),
    [
        ({"size": "1"}, "'size' is none of"),
        ({"label": ""}, r"filters\[label\] is empty"),
        ({"before": "a\nb"}, "control"),
        ({"dangling": "perhaps"}, "neither true nor false"),
    ],
)
def test_filters_that_are_none(filters: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        native_images.image_filter(filters)


def test_filters() -> None:
    found = native_images.image_filter({"dangling": "True", "label": "a=b=c", "since": "x"})
    assert (found.dangling, found.labels, found.since) == (True, (("a", "b=c"),), "x")
    assert native_images.image_filter({"label": "a", "dangling": "0"}).labels == (("a", None),)


def test_kinds_of_archives() -> None:
    for kind in ("", "docker", "oci"):
        native_images.load_type(kind)
    with pytest.raises(Unsupported):
        native_images.load_type("embedded")
    with pytest.raises(InvalidInput):
        native_images.load_type("zip")


def test_a_pull_needs_a_name_and_no_password() -> None:
    request: Any = native.PullImageRequest(image=native.ImageSpec(image="app:1"))
    assert native_images.pull_of(request)[1] is None
    request.auth = native.AuthConfig(username="u", password="p")
    assert native_images.pull_of(request)[1] == Credentials(username="u", password="p")
    with pytest.raises(InvalidInput, match=r"image\.image is empty"):
        native_images.pull_of(native.PullImageRequest())

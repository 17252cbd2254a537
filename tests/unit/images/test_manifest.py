"""Manifests and configurations, apart from what test_adapter.py tries over the wire."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isulad_py.images import manifest
from isulad_py.model.errors import EngineError, Unsupported
from isulad_py.model.ids import Digest
from tests.images import make_image, make_index, tar_layer

IMAGE = make_image([tar_layer([])])


def test_a_manifest_and_an_index() -> None:
    parsed = manifest.parse_document(IMAGE.document, IMAGE.media_type)
    assert isinstance(parsed, manifest.Manifest)
    assert parsed.config.digest == IMAGE.image_id
    index = manifest.parse_document(make_index([IMAGE]).document, "application/json; charset=utf-8")
    assert isinstance(index, manifest.Index)
    assert index.manifests[0].digest == IMAGE.digest


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=9), st.lists, max_leaves=5))
def test_any_value_anywhere_is_read_or_refused(value: object) -> None:
    document = json.loads(IMAGE.document)
    places = (document, document["config"], document["layers"][0])
    for place in places:
        for key in list(place):
            kept, place[key] = place[key], value
            with contextlib.suppress(EngineError):
                manifest.parse_document(json.dumps(document).encode(), IMAGE.media_type)
            place[key] = kept


def test_chain_ids() -> None:
    """The values are those of the specification's formula."""
    first, second = (Digest("sha256:" + letter * 64) for letter in "ab")
    assert manifest.chain_ids([]) == ()
    chain = manifest.chain_ids([first, second, second])
    assert str(chain[0]) == first
    assert str(chain[1]) == manifest.digest_of(f"{first} {second}".encode())
    assert str(chain[2]) == manifest.digest_of(f"{chain[1]} {second}".encode())


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("1970-01-01T00:00:01Z", 1_000_000_000),
        ("2023-11-14T22:13:20.123456789Z", 1_700_000_000_123_456_789),
        ("2023-11-14T23:13:20.5+01:00", 1_700_000_000_500_000_000),
        ("2023-11-14T22:13:20", 1_700_000_000_000_000_000),
        ("0001-01-01T00:00:00Z", 0),
        ("", 0),
        ("yesterday", 0),
    ],
)
def test_times(text: str, nanoseconds: int) -> None:
    assert manifest.parse_time(text) == nanoseconds


def test_a_configuration_of_nothing_but_null() -> None:
    body = json.dumps({"config": None, "created": None, "rootfs": {"type": "layers", "diff_ids": []}}).encode()
    parsed = manifest.parse_configuration(body, 0)
    assert (parsed.config.cmd, parsed.os, parsed.architecture, parsed.created_at) == ((), "linux", "", 0)


def test_what_go_writes_as_null_is_empty() -> None:
    """Images FROM scratch."""
    document = json.loads(IMAGE.document)
    document["layers"] = None
    parsed = manifest.parse_document(json.dumps(document).encode(), IMAGE.media_type)
    assert isinstance(parsed, manifest.Manifest)
    assert parsed.layers == []
    body = json.dumps({"rootfs": {"type": "layers", "diff_ids": None}}).encode()
    assert manifest.parse_configuration(body, 0).diff_ids == ()


def test_an_index_of_thousands_is_refused_before_it_is_read() -> None:
    """Its entries would not even be descriptors."""
    body = json.dumps({"schemaVersion": 2, "manifests": [7] * (manifest.MAX_ENTRIES + 1)}).encode()
    with pytest.raises(Unsupported, match="index: 1001 images; 1000 are the limit"):
        manifest.parse_document(body, manifest.OCI_INDEX)

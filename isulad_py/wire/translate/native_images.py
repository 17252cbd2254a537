"""Images as iSulad's client and `isulad image` ask for them and see them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from isulad_py.api import images as native
from isulad_py.api.isulad import v1 as own
from isulad_py.api.runtime import v1 as cri
from isulad_py.engine.image_filters import ImageFilter
from isulad_py.engine.progress import PullState
from isulad_py.model.container import ImageSpec
from isulad_py.model.errors import InvalidInput, Unsupported
from isulad_py.model.ids import ImageId
from isulad_py.model.image import Credentials, ImageRecord
from isulad_py.model.reference import familiar
from isulad_py.ports.images import PullProgress
from isulad_py.wire.translate import checks, images

FILTERS: Final = ("before", "dangling", "label", "reference", "since")
_LAYER_ID: Final = 12
"""Characters of a layer's digest by which iSulad's client tells layers apart."""
_NANOSECONDS: Final = 1_000_000_000
_YEAR_9999: Final = 253_402_300_800


def image_filter(filters: Mapping[str, str]) -> ImageFilter:
    for key, value in filters.items():
        if key not in FILTERS:
            raise InvalidInput(f"filters: {key[:80]!r} is none of {', '.join(FILTERS)}")
        checks.required_name(value, f"filters[{key}]")
    dangling = filters.get("dangling", "").lower()
    if dangling not in {"", "true", "false", "1", "0"}:
        raise InvalidInput(f"filters[dangling]: {dangling[:80]!r} is neither true nor false")
    label, equals, value = filters.get("label", "").partition("=")
    return ImageFilter(
        dangling=dangling in {"true", "1"} if dangling else None,
        labels=((label, value if equals else None),) if label else (),
        before=filters.get("before", ""),
        since=filters.get("since", ""),
        reference=filters.get("reference", ""),
    )


def image_entries(record: ImageRecord) -> Iterator[native.Image]:
    """One for each of its tags, or one without a name."""
    for tag in record.repo_tags or ("",):
        entry = native.Image(
            name=familiar(tag),
            labels=dict(record.config.labels),
            target=native.Descriptor(digest=record.id, size=record.size_bytes),
        )
        if 0 <= record.created_at < _YEAR_9999 * _NANOSECONDS:
            entry.created_at = datetime.fromtimestamp(record.created_at / _NANOSECONDS, UTC)
        yield entry


def load_type(value: str) -> None:
    """Archives tell their form themselves."""
    if value == "embedded":
        raise Unsupported("type: embedded images are not supported")
    if value not in {"", "docker", "oci"}:
        raise InvalidInput(f"type: {value[:80]!r} is neither docker nor embedded")


def pull_of(request: native.PullImageRequest) -> tuple[ImageSpec, Credentials | None]:
    spec = ImageSpec(
        image=checks.required_name(request.image.image, "image.image"), annotations=request.image.annotations
    )
    credentials = Credentials(username=request.auth.username, password=request.auth.password)
    return spec, None if credentials == Credentials() else credentials


def pull_answer(state: PullState, name: str) -> native.PullImageResponse:
    """`name` is that of the image, for the last message."""
    document: dict[str, Any] = {
        "progresses": [
            {
                "id": layer.digest.rpartition(":")[2][:_LAYER_ID],
                "total": layer.total_bytes,
                "current": layer.done_bytes,
            }
            for layer in state.layers
        ]
    }
    if state.image is None:
        return native.PullImageResponse(progress_data=msgspec.json.encode(document))
    return native.PullImageResponse(image_ref=name, progress_data=msgspec.json.encode({"image": name, **document}))


def own_pull_answer(state: PullState) -> own.PullResponse:
    layers = [
        own.LayerProgress(digest=layer.digest, done_bytes=layer.done_bytes, total_bytes=layer.total_bytes)
        for layer in state.layers
    ]
    if state.image is None:
        return own.PullResponse(step=state.step, layers=layers)
    return own.PullResponse(step=state.step, layers=layers, image=images.image_item(state.image))


def pull_state(answer: own.PullResponse) -> PullState:
    """The way back, for who asks a daemon."""
    layers = tuple(
        PullProgress(step=answer.step, digest=each.digest, done_bytes=each.done_bytes, total_bytes=each.total_bytes)
        for each in answer.layers
    )
    image = listed(answer.image) if answer.image.id else None
    return PullState(step=answer.step, layers=layers, image=image)


def listed(image: cri.Image) -> ImageRecord:
    """What a list tells of an image."""
    return ImageRecord(
        id=ImageId(image.id),
        repo_tags=tuple(image.repo_tags),
        repo_digests=tuple(image.repo_digests),
        size_bytes=image.size,
    )


def inspection(record: ImageRecord) -> str:
    """What `inspect` prints. Keys are iSulad's; `spec` is the image's configuration as it came."""
    document = {
        "image": {
            "id": record.id.removeprefix("sha256:"),
            "repo_tags": [familiar(tag) for tag in record.repo_tags],
            "repo_digests": [familiar(digest) for digest in record.repo_digests],
            "size": record.size_bytes,
            "created": _time(record.created_at),
            "loaded": _time(record.pulled_at),
            "os": record.os,
            "architecture": record.architecture,
            "top_layer": record.layers[-1].chain_id.removeprefix("sha256:") if record.layers else "",
            "layers": [layer.diff_id for layer in record.layers],
            "spec": _configuration(record.raw_config),
        }
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=4).decode()


def _configuration(raw: bytes) -> object:
    try:
        return msgspec.json.decode(raw or b"{}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None  # of an image that came before its configuration was kept


def _time(nanoseconds: int) -> str:
    if not 0 <= nanoseconds < _YEAR_9999 * _NANOSECONDS:
        return ""
    return datetime.fromtimestamp(nanoseconds / _NANOSECONDS, UTC).isoformat().replace("+00:00", "Z")

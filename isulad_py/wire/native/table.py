"""Every method of iSulad's services, and of ours, by its path."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from isulad_py.api import images as native
from isulad_py.api.isulad import v1 as own
from isulad_py.wire.codec import Answer
from isulad_py.wire.methods import Method, Service, bind
from isulad_py.wire.native.archive_servicer import ArchiveServicer
from isulad_py.wire.native.image_servicer import NativeImageServicer
from isulad_py.wire.native.services import NativeServices
from isulad_py.wire.status import Outcome, isulad_class, shown_by_isula


def native_methods(services: NativeServices) -> dict[str, Method]:
    servicer = NativeImageServicer(services=services)
    return {
        **_as_isula_expects(native.ImagesServiceBase(), bind(native.ImagesServiceBase(), servicer, package="images")),
        **bind(own.ImagesBase(), ArchiveServicer(services=services), package="isulad.v1"),
    }


def _as_isula_expects(service: Service, methods: dict[str, Method]) -> dict[str, Method]:
    """Errors in the answers themselves, and where those have no place for one, with a status whose message it shows."""
    replies: dict[str, Any] = {path: handler.reply_type for path, handler in service.__mapping__().items()}

    def told(path: str) -> Method:
        def in_words(outcome: Outcome) -> Answer:
            answer: Answer = replies[path](cc=isulad_class(outcome), errmsg=outcome.message)
            return answer

        method = methods[path]
        return replace(method, refused=shown_by_isula if method.streaming is not None else in_words)

    return {path: told(path) for path in methods}

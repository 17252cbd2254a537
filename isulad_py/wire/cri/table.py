"""Every method of CRI by its path, under both names of the API."""

from __future__ import annotations

from typing import Final

from isulad_py.api.runtime import v1 as cri
from isulad_py.wire.cri.checkpoint_servicer import CheckpointServicer
from isulad_py.wire.cri.image_servicer import ImageServicer
from isulad_py.wire.cri.runtime_servicer import RuntimeServicer
from isulad_py.wire.cri.services import Lists, Services
from isulad_py.wire.cri.stats_servicer import StatsServicer
from isulad_py.wire.cri.stream_servicer import StreamServicer
from isulad_py.wire.methods import Method, bind

VERSIONS: Final = ("v1", "v1alpha2")
"""Every field of v1alpha2 has the same number and wire type in v1, so that one set of messages serves both."""


def cri_methods(services: Services) -> dict[str, Method]:
    lists = Lists()
    images = ImageServicer(services=services, lists=lists)
    stats = StatsServicer(services=services, lists=lists)
    streams = StreamServicer(services=services)
    checkpoints = CheckpointServicer(services=services)
    table: dict[str, Method] = {}
    for version in VERSIONS:
        runtime = RuntimeServicer(services=services, lists=lists, api_version=version)
        table |= bind(cri.RuntimeServiceBase(), runtime, stats, streams, checkpoints, package=f"runtime.{version}")
        table |= bind(cri.ImageServiceBase(), images, package=f"runtime.{version}")
    return table

"""Image references, as docker and containerd normalise them."""

from __future__ import annotations

from msgspec import Struct

from isulad_py.model.ids import Digest


class Reference(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`host/path[:tag][@digest]`, normalised: `busybox` is `docker.io/library/busybox:latest`."""

    host: str
    path: str
    tag: str = ""
    digest: Digest = Digest("")

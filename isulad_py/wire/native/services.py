"""What the native servicers forward to."""

from __future__ import annotations

from dataclasses import dataclass

from isulad_py.engine.archives import Archives
from isulad_py.engine.images import Images
from isulad_py.engine.pulls import Pulls


@dataclass(frozen=True, kw_only=True)
class NativeServices:
    images: Images
    archives: Archives
    pulls: Pulls

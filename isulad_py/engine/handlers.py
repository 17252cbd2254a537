"""Runtime handlers by name (CRI RunPodSandboxRequest.runtime_handler)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from msgspec import Struct

from isulad_py.model.errors import InvalidInput


class Traits(Struct, frozen=True, kw_only=True):
    """What is different for the pods of one handler."""

    annotations: tuple[str, ...] = ()
    """Which the runtime is given: keys, or beginnings that end in `*`."""
    pause: bool | None = None
    """Whether each has a pause container; None as all others."""
    seccomp: bytes | None = None
    """The default profile; None is the one of all others."""


PLAIN: Final = Traits()
_NONE: Final[Mapping[str, Traits]] = {}


class Handlers:
    def __init__(self, *, names: Collection[str], default: str, traits: Mapping[str, Traits] = _NONE) -> None:
        self.names = tuple(names)
        self.default = default
        self._traits = dict(traits)

    def traits(self, handler: str) -> Traits:
        """Plain ones for a handler that is not configured any more."""
        return self._traits.get(handler or self.default, PLAIN)

    def resolve(self, handler: str) -> str:
        """The runtime's name; empty is the default. InvalidInput for one that is not configured."""
        if not handler:
            return self.default
        if handler not in self.names:
            raise InvalidInput(f"runtime_handler: {handler} is not configured; there are {', '.join(self.names)}")
        return handler

"""Runtime handlers by name (CRI RunPodSandboxRequest.runtime_handler)."""

from __future__ import annotations

from collections.abc import Collection

from isulad_py.model.errors import InvalidInput


class Handlers:
    def __init__(self, *, names: Collection[str], default: str) -> None:
        self.names = tuple(names)
        self.default = default

    def resolve(self, handler: str) -> str:
        """The runtime's name; empty is the default. InvalidInput for one that is not configured."""
        if not handler:
            return self.default
        if handler not in self.names:
            raise InvalidInput(f"runtime_handler: {handler} is not configured; there are {', '.join(self.names)}")
        return handler

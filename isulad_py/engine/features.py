"""What each runtime can do, and what it cannot do on this host."""

from __future__ import annotations

import msgspec

from isulad_py.engine.handlers import Handlers
from isulad_py.model.errors import Unsupported
from isulad_py.model.security import NamespaceOptions
from isulad_py.ports.runtime import ContainerRuntime, HandlerFeatures
from isulad_py.ports.storage import RootFilesystems


class Features:
    """Asked of the runtime each time: it asks its program anew only where that was replaced."""

    def __init__(self, *, runtime: ContainerRuntime, rootfs: RootFilesystems, handlers: Handlers) -> None:
        self._runtime = runtime
        self._rootfs = rootfs
        self._handlers = handlers

    async def of(self, handler: str) -> HandlerFeatures:
        """Raises HostFailure where the runtime cannot be run."""
        return await self._runtime.features(self._handlers.resolve(handler))

    async def promised(self, handler: str) -> HandlerFeatures:
        """As Status tells them: user namespaces only where pods have them together with their volumes (CRI,
        RuntimeHandlerFeatures). Raises as `of`."""
        features = await self.of(handler)
        whole = features.user_namespaces and features.idmap_mounts and not await self._rootfs.users_obstacle()
        return msgspec.structs.replace(features, user_namespaces=whole)

    async def check_users(self, options: NamespaceOptions, handler: str) -> None:
        """Raises Unsupported naming the field, and what is in the way, for a pod that wants users of its own where it
        cannot have them. Volumes are another matter: those that need a runtime with id-mapped mounts say so."""
        if options.own_users is None:
            return
        field = "config.linux.security_context.namespace_options.userns_options"
        features = await self.of(handler)
        if not features.user_namespaces:
            runtime = f"runtime {features.name} {features.version}".rstrip()
            raise Unsupported(f"{field}: {runtime} offers no user namespaces, or none that are safe for the host")
        obstacle = await self._rootfs.users_obstacle()
        if obstacle:
            raise Unsupported(f"{field}: {obstacle}")

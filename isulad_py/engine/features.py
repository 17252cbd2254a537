"""What each runtime can do, and what it cannot do on this host."""

from __future__ import annotations

import msgspec

from isulad_py.engine.handlers import Handlers
from isulad_py.model.errors import Unsupported
from isulad_py.model.security import NamespaceOptions
from isulad_py.ports.runtime import ContainerRuntime, HandlerFeatures
from isulad_py.ports.storage import RootFilesystems


class FeatureCache:
    """Asked once: a program start for each Status call would be too dear."""

    def __init__(self, *, runtime: ContainerRuntime, rootfs: RootFilesystems, handlers: Handlers) -> None:
        self._runtime = runtime
        self._rootfs = rootfs
        self._handlers = handlers
        self._features: dict[str, HandlerFeatures] = {}

    async def of(self, handler: str) -> HandlerFeatures:
        """Raises HostFailure where the runtime cannot be run."""
        name = self._handlers.resolve(handler)
        if name not in self._features:
            self._features[name] = await self._runtime.features(name)
        return self._features[name]

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
            raise Unsupported(f"{field}: runtime {features.name} does not tell of user namespaces among its features")
        obstacle = await self._rootfs.users_obstacle()
        if obstacle:
            raise Unsupported(f"{field}: {obstacle}")

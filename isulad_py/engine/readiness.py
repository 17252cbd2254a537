"""RuntimeReady and NetworkReady with their reasons, and what `crictl info` shows."""

from __future__ import annotations

import msgspec

from isulad_py.engine.features import Features
from isulad_py.engine.handlers import Handlers
from isulad_py.engine.registry import Registry
from isulad_py.model.errors import EngineError
from isulad_py.model.facts import HostFacts
from isulad_py.ports.network import Network
from isulad_py.ports.runtime import ContainerRuntime, HandlerFeatures


class Condition(msgspec.Struct, frozen=True, kw_only=True):
    """CRI RuntimeCondition."""

    status: bool
    reason: str = ""
    message: str = ""


class EngineStatus(msgspec.Struct, frozen=True, kw_only=True):
    runtime_ready: Condition
    network_ready: Condition
    handlers: tuple[HandlerFeatures, ...] = ()


class Readiness:
    def __init__(
        self,
        *,
        runtime: ContainerRuntime,
        network: Network,
        handlers: Handlers,
        features: Features,
        registry: Registry,
        facts: HostFacts,
        config: msgspec.Raw,
    ) -> None:
        self._runtime = runtime
        self._network = network
        self._handlers = handlers
        self._registry = registry
        self._facts = facts
        self._config = config
        self._features = features

    async def status(self) -> EngineStatus:
        network = self._network.status()
        return EngineStatus(
            runtime_ready=await self._runtime_ready(),
            network_ready=Condition(
                status=network.ready,
                reason="" if network.ready else network.reason or "NetworkPluginNotReady",
                message=network.message,
            ),
            handlers=await self._all_features(),
        )

    async def _runtime_ready(self) -> Condition:
        """By the programs that are there now: they may have gone since the start."""
        try:
            # Not from the cache. The runtime asks its program anew only where that was replaced.
            await self._runtime.features(self._handlers.default)
        except EngineError as error:
            return Condition(status=False, reason="RuntimeUnusable", message=str(error))
        obstacle = await self._runtime.monitor_obstacle()
        if obstacle:
            return Condition(status=False, reason="MonitorUnusable", message=obstacle)
        return Condition(status=True)

    async def _all_features(self) -> tuple[HandlerFeatures, ...]:
        """The default handler also under the empty name, as kubelets look it up. One that cannot be asked has none."""
        found = []
        for name in self._handlers.names:
            try:
                features = await self._features.promised(name)
            except EngineError:
                features = HandlerFeatures(name=name)
            found.append(features)
            if name == self._handlers.default:
                found.append(msgspec.structs.replace(features, name=""))
        return tuple(found)

    async def info(self) -> dict[str, str]:
        """Verbose Status: effective configuration, state of the network, versions, features, counts."""
        network = self._network.status()
        values = {
            "config": self._config,
            "cni": msgspec.Raw(msgspec.json.encode(network)),
            "versions": msgspec.Raw(
                msgspec.json.encode({**await self._runtime.versions(), "kernel": self._facts.kernel})
            ),
            "features": msgspec.Raw(msgspec.json.encode(await self._all_features())),
            "host": msgspec.Raw(msgspec.json.encode(self._facts)),
            "counts": msgspec.Raw(
                msgspec.json.encode({"pods": len(self._registry.pods), "containers": len(self._registry.containers)})
            ),
        }
        return {name: bytes(value).decode() for name, value in values.items()}

"""The pods' network as it is now: read from the directory, judged, and read again when something changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final

import structlog
from msgspec import Struct

from isulad_py.host import blocking
from isulad_py.host.inotify import DirectoryWatch
from isulad_py.model.errors import EngineError, InvalidInput
from isulad_py.model.network import NetworkStatus
from isulad_py.network import conflist, directory, request, result
from isulad_py.network.conflist import NetworkConfig, Plugin
from isulad_py.network.directory import Loaded
from isulad_py.network.invoke import PluginCall, PluginInvoker

log = structlog.get_logger(__name__)

NOT_READY: Final = "NetworkPluginNotReady"
"""The reason that kubelets and operators know."""
PROBE_SECONDS: Final = 10.0
"""For VERSION and STATUS, which only look."""
QUIET_SECONDS: Final = 0.1
"""A change is looked at once nothing has followed it for so long."""
QUIET_ROUNDS: Final = 10
LOOK_AGAIN_SECONDS: Final = 5.0
"""While not ready: what is missing may be a plugin, or lie where inotify does not reach."""
STATUS_SECONDS: Final = 10.0
REST_SECONDS: Final = 30.0


class _Judgement(Struct, frozen=True, kw_only=True):
    """Of one configuration with the plugins that are installed: valid until either changes."""

    document: str
    identities: tuple[str, ...]
    config: NetworkConfig | None
    fault: str = ""


class ConfigWatch:
    """Owner of the current configuration and of NetworkReady.

    Not ready until `reload` or `run` has had its first look.
    """

    def __init__(
        self, *, conf_dir: str, plugins: PluginInvoker, on_change: Callable[[NetworkStatus], None] | None = None
    ) -> None:
        self._conf_dir = conf_dir
        self._plugins = plugins
        self._on_change = on_change
        self._reloading = asyncio.Lock()
        self._judged: _Judgement | None = None
        self.config: NetworkConfig | None = None
        """What new attachments use; None while there is no valid one."""
        self.status = NetworkStatus(ready=False, reason=NOT_READY, message=f"{conf_dir} has not been read yet")

    async def reload(self) -> None:
        """Looks at the directory and at the plugins now. What is wrong there goes to the status, it is never raised."""
        async with self._reloading:
            loaded = await blocking.run(directory.load, self._conf_dir)
            fault = await self._judge(loaded)
            if not fault and self.config is not None and self.config.since("1.1.0"):
                fault = await self._ask_status(self.config)
            self._publish(loaded, fault)

    async def _judge(self, loaded: Loaded) -> str:
        """Sets the configuration for new attachments, or says why there is none."""
        if loaded.config is None:
            self.config = None
            return "; ".join((f"no valid network configuration in {self._conf_dir}", *loaded.findings[:5]))
        types = [plugin.type for plugin in loaded.config.plugins]
        identities = tuple(self._plugins.identity(name) for name in types)
        missing = [self._plugins.absence(name) for name, found in zip(types, identities, strict=True) if not found]
        if missing:
            self.config = None
            return "; ".join(dict.fromkeys(missing))
        judged = self._judged
        document = f"{loaded.config.versions}{loaded.config.document()}"
        if judged is None or (judged.document, judged.identities) != (document, identities):
            self._judged = judged = await self._settle(loaded.config, document, identities)
        self.config = judged.config
        return judged.fault

    async def _settle(self, config: NetworkConfig, document: str, identities: tuple[str, ...]) -> _Judgement:
        speaks = await asyncio.gather(*(self._ask_versions(plugin, config.version) for plugin in config.plugins))
        try:
            settled = conflist.settle(config, speaks)
        except InvalidInput as error:
            return _Judgement(document=document, identities=identities, config=None, fault=str(error))
        return _Judgement(document=document, identities=identities, config=settled)

    async def _ask_versions(self, plugin: Plugin, version: str) -> frozenset[str]:
        """Empty where the plugin does not say: then ADD will."""
        try:
            return result.versions(await self._ask(request.version_call(plugin.type, version)))
        except (EngineError, TimeoutError) as error:
            log.warning("plugin does not tell its versions", plugin=plugin.type, error=str(error))
            return frozenset()

    async def _ask_status(self, config: NetworkConfig) -> str:
        """What the first unready plugin says. It keeps nobody from trying: attachments go on (spec, STATUS)."""
        for plugin in config.plugins:
            try:
                await self._ask(request.status_call(config, plugin))
            except TimeoutError:
                return f"plugin {plugin.type} (STATUS): no answer within {PROBE_SECONDS:g} s"
            except EngineError as error:
                return str(error)
        return ""

    async def _ask(self, call: PluginCall) -> bytes:
        async with asyncio.timeout(PROBE_SECONDS):
            return await self._plugins.invoke(call)

    def _publish(self, loaded: Loaded, fault: str) -> None:
        config = self.config or loaded.config
        status = NetworkStatus(
            ready=not fault,
            reason=NOT_READY if fault else "",
            message=fault,
            config_name=config.name if config else "",
            config_path=loaded.path,
            cni_version=config.version if config else "",
            plugins=tuple(plugin.type for plugin in config.plugins) if config else (),
            findings=loaded.findings,
        )
        if status == self.status:
            return
        self.status = status
        log.info("network configuration", ready=status.ready, path=status.config_path, message=status.message)
        for finding in status.findings:
            log.warning("network configuration passed over", finding=finding)
        if self._on_change is not None:
            self._on_change(status)

    async def run(self) -> None:
        """Keeps the configuration as the directory has it, until cancelled."""
        changed = asyncio.Event()
        watch = _watch(changed.set)
        try:
            while True:
                changed.clear()
                if watch is not None:
                    self._aim(watch)
                await self.reload()
                if await _set_within(changed, self._pause()):
                    await _until_quiet(changed)
        finally:
            if watch is not None:
                watch.close()

    def _pause(self) -> float:
        if not self.status.ready:
            return LOOK_AGAIN_SECONDS
        return STATUS_SECONDS if self.config is not None and self.config.since("1.1.0") else REST_SECONDS

    def _aim(self, watch: DirectoryWatch) -> None:
        """At the directory and the folder of its network; while it is missing, at where it will come into being."""
        try:
            watch.aim(_targets(Path(self._conf_dir), self.config.name if self.config else ""))
        except EngineError as error:  # gone in between: the next look comes by time
            log.info("network configuration directory is not watched", error=str(error))


def _watch(on_change: Callable[[], None]) -> DirectoryWatch | None:
    try:
        return DirectoryWatch(on_change)
    except EngineError as error:
        log.warning("changes of the network configuration are seen late", error=str(error))
        return None


def _targets(conf_dir: Path, network: str) -> dict[str, str]:
    if conf_dir.is_dir():
        folder = conf_dir / network
        return {str(conf_dir): "", **({str(folder): ""} if network and folder.is_dir() else {})}
    below, ancestor = conf_dir, conf_dir.parent
    while not ancestor.is_dir():
        below, ancestor = ancestor, ancestor.parent
    return {str(ancestor): below.name}


async def _set_within(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False


async def _until_quiet(changed: asyncio.Event) -> None:
    """A tool that writes file after file is let finish, but not for ever."""
    for _ in range(QUIET_ROUNDS):
        changed.clear()
        if not await _set_within(changed, QUIET_SECONDS):
            return

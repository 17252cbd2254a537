"""Implements ports.network.Network by CNI plugins (CNI spec 1.1, section 3)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection, Iterator, Mapping
from typing import Final

import structlog
from msgspec import structs

from isulad_py.host import blocking
from isulad_py.host.files import read_limited, write_atomic
from isulad_py.host.namespaces import is_pinned, run_in_netns
from isulad_py.host.tasks import to_the_end
from isulad_py.model.errors import (
    DataLoss,
    EngineError,
    FailedPrecondition,
    HostFailure,
    InvalidInput,
    NotFound,
    Unavailable,
)
from isulad_py.model.network import Attachment, NetworkResult, NetworkStatus
from isulad_py.model.stats import InterfaceSample
from isulad_py.network import arguments, conflist, counters, request, result
from isulad_py.network.conflist import NetworkConfig
from isulad_py.network.gate import Gate
from isulad_py.network.invoke import ByType, ExecInvoker, Measure, PluginInvoker
from isulad_py.network.request import IFNAME, Parameters
from isulad_py.network.watch import ConfigWatch

log = structlog.get_logger(__name__)

DEFAULT_TIMEOUT_SECONDS: Final = 60.0
POD_CIDR_LIMIT_BYTES: Final = 4096


class CniNetwork:
    """The pods' network as the directory's first valid configuration describes it.

    `watch` is to be run in the background for as long as the daemon lives. Pods are served in parallel; calls for one
    pod are ordered by the caller.
    """

    def __init__(
        self,
        *,
        conf_dir: str,
        bin_dirs: tuple[str, ...],
        plugin_timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
        pod_cidr_path: str = "",
        served: Mapping[str, PluginInvoker] | None = None,
        measure: Measure | None = None,
    ) -> None:
        """`pod_cidr_path` is where the pod CIDR outlives the daemon: a kubelet sends it only when it changes. `served`
        names the plugin types that are not processes."""
        rest = ExecInvoker(bin_dirs=bin_dirs, timeout_seconds=plugin_timeout_seconds)
        self._plugins = ByType(served=served or {}, rest=rest, measure=measure or _unmeasured)
        self._watch = ConfigWatch(conf_dir=conf_dir, plugins=self._plugins)
        self._timeout_seconds = plugin_timeout_seconds
        self._pod_cidr_path = pod_cidr_path
        self._pod_cidr = _read_pod_cidr(pod_cidr_path) if pod_cidr_path else ""
        self._gate = Gate()
        self._newcomers: list[set[str]] = []
        """For each GC that waits: the pods that came since it was asked for."""

    def status(self) -> NetworkStatus:
        return self._watch.status

    async def reload(self) -> None:
        """Looks at the configuration directory now (start, SIGHUP)."""
        await self._watch.reload()

    async def watch(self) -> None:
        """Follows the configuration directory until cancelled."""
        await self._watch.run()

    async def set_pod_cidr(self, cidr: str) -> None:
        """An empty one, as a kubelet that has none yet sends it, changes nothing."""
        pod_cidr = ",".join(arguments.subnets(cidr))
        if not pod_cidr or pod_cidr == self._pod_cidr:
            return
        if self._pod_cidr_path:
            await blocking.run(write_atomic, self._pod_cidr_path, pod_cidr.encode())
        self._pod_cidr = pod_cidr

    def prepare(self, attachment: Attachment) -> Attachment:
        """Also raises InvalidInput where the pod asks for what no plugin can be told (ports, bandwidth, names)."""
        config = self._watch.config
        if config is None:
            raise Unavailable(f"network: {self._watch.status.message}")
        prepared = structs.replace(attachment, config=config.document(), pod_cidr=self._pod_cidr)
        _parameters(prepared, attachment.netns_path)
        return prepared

    async def attach(self, attachment: Attachment) -> NetworkResult:
        if not attachment.config:
            raise FailedPrecondition(f"network of pod {attachment.pod_id}: not prepared")
        config = _recorded(attachment)
        parameters = _parameters(attachment, attachment.netns_path)
        for newcomers in self._newcomers:
            newcomers.add(attachment.pod_id)
        async with self._gate.shared():
            self._require_plugins(config)
            try:
                return await self._add(config, parameters)
            except BaseException as error:
                failures = await to_the_end(
                    self._delete(config, _parameters(attachment, _live(attachment)), ""),
                    name=f"undo the network of {attachment.pod_id}",
                )
                if isinstance(error, EngineError):
                    error.cleanup.extend(failures)
                raise

    async def detach(self, attachment: Attachment, result: NetworkResult | None) -> None:
        if not attachment.config:  # ADD never ran without one
            return
        config = _recorded(attachment)
        previous = result.raw if result is not None and config.since("0.4.0") else ""
        async with self._gate.shared():
            failures = await self._delete(config, _parameters(attachment, _live(attachment)), previous)
        if failures:
            failures[0].cleanup.extend(failures[1:])
            raise failures[0]

    async def check(self, attachment: Attachment, result: NetworkResult) -> None:
        """Raises HostFailure in the words of the plugin that is not content."""
        config = _recorded(attachment)
        if config.disable_check or not config.since("0.4.0"):
            return
        parameters = _parameters(attachment, attachment.netns_path)
        for plugin in config.plugins:
            with _naming(config):
                await self._plugins.invoke(request.attachment_call(config, plugin, "CHECK", parameters, result.raw))

    async def collect(self, live: Collection[Attachment]) -> None:
        """Of the current network, and where its version has GC. Raises Unavailable where pods come and go so fast that
        there is no moment for it, HostFailure with what the plugins say."""
        config = self._watch.config
        if config is None or config.disable_gc or not config.since("1.1.0"):
            return
        names = {document: _network_name(document) for document in {attachment.config for attachment in live}}
        valid = {attachment.pod_id for attachment in live if names[attachment.config] in ("", config.name)}
        newcomers: set[str] = set()
        self._newcomers.append(newcomers)
        try:
            async with asyncio.timeout(self._timeout_seconds) as patience, self._gate.exclusive():
                patience.reschedule(None)
                await self._collect(config, valid | newcomers)
        except TimeoutError as error:
            raise Unavailable(f"network {config.name}: no moment without ADD or DEL to collect in") from error
        finally:
            self._newcomers.remove(newcomers)

    async def _collect(self, config: NetworkConfig, valid: Collection[str]) -> None:
        failures: list[EngineError] = []
        for plugin in config.plugins:
            try:
                await self._plugins.invoke(request.gc_call(config, plugin, valid))
            except EngineError as error:
                failures.append(error)
        if failures:
            raise HostFailure(f"network {config.name}: {'; '.join(map(str, failures))}") from failures[0]

    async def interfaces(self, netns_path: str) -> tuple[InterfaceSample, ...]:
        return counters.parse(await run_in_netns(netns_path, counters.read_table))

    def _require_plugins(self, config: NetworkConfig) -> None:
        """Before the first one runs: a chain that cannot end leaves nothing to undo."""
        for plugin in config.plugins:
            if not self._plugins.identity(plugin.type):
                raise HostFailure(f"network {config.name}: {self._plugins.absence(plugin.type)}")

    async def _add(self, config: NetworkConfig, parameters: Parameters) -> NetworkResult:
        previous = ""
        for plugin in config.plugins:
            call = request.attachment_call(config, plugin, "ADD", parameters, previous)
            with _naming(config):
                output = await self._plugins.invoke(call)
            with _naming(config, call.what()):
                previous = result.link(output, config.version)
        with _naming(config):
            return result.conclude(previous, IFNAME)

    async def _delete(self, config: NetworkConfig, parameters: Parameters, previous: str) -> list[EngineError]:
        """The whole chain in reverse, to its end: what one plugin fails to undo must not keep the others' things."""
        failures: list[EngineError] = []
        for plugin in reversed(config.plugins):
            call = request.attachment_call(config, plugin, "DEL", parameters, previous)
            try:
                with _naming(config):
                    await self._plugins.invoke(call)
            except EngineError as error:
                failures.append(error)
        return failures


def _unmeasured(_room: str, _operation: str) -> contextlib.AbstractContextManager[None]:
    return contextlib.nullcontext()


def _read_pod_cidr(path: str) -> str:
    try:
        return ",".join(arguments.subnets(read_limited(path, POD_CIDR_LIMIT_BYTES).decode(errors="replace")))
    except NotFound:
        return ""
    except EngineError as error:
        log.warning("pod CIDR of the former daemon is not known", error=str(error))
        return ""


def _recorded(attachment: Attachment) -> NetworkConfig:
    try:
        return conflist.parse(attachment.config.encode())
    except InvalidInput as error:
        raise DataLoss(f"network of pod {attachment.pod_id}: recorded configuration: {error}") from error


def _network_name(document: str) -> str:
    """Empty where it cannot be told: such an attachment counts as valid in every network."""
    try:
        return conflist.parse(document.encode()).name
    except InvalidInput:
        return ""


def _parameters(attachment: Attachment, netns: str) -> Parameters:
    return Parameters(
        container_id=attachment.pod_id,
        netns=netns,
        args=arguments.cni_args(attachment),
        capability_args=arguments.capability_args(attachment),
    )


def _live(attachment: Attachment) -> str:
    """The path of the namespace for DEL: empty once it is gone, as the spec wants it (also for a plain file that a
    reboot left, which plugins would take for an error)."""
    try:
        return attachment.netns_path if is_pinned(attachment.netns_path) else ""
    except EngineError:
        return attachment.netns_path


@contextlib.contextmanager
def _naming(config: NetworkConfig, what: str = "") -> Iterator[None]:
    """Puts the network (and the call) before what went wrong."""
    try:
        yield
    except EngineError as error:
        raise type(error)(f"network {config.name}: {what}{': ' if what else ''}{error}") from error

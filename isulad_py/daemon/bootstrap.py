"""Configuration to object graph: the only place that names concrete adapters. Leaves first, each with its closing step
on the next line; the order of the sections is the start order, its reverse the stop order."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import structlog
from msgspec import Struct

from isulad_py.config.schema import Config
from isulad_py.daemon.adapters import Adapters, open_adapters, reload_images
from isulad_py.daemon.lifecycle import Lifecycle, Serving
from isulad_py.daemon.reloading import Read, Reloader
from isulad_py.daemon.services import Services, build_services
from isulad_py.daemon.streaming import start_streaming
from isulad_py.host import blocking
from isulad_py.host.files import remove_file, write_atomic
from isulad_py.host.memory import settle
from isulad_py.streaming.health import Conditions, HealthServer
from isulad_py.telemetry.logs import LevelSwitch
from isulad_py.telemetry.loop_lag import LoopLag
from isulad_py.telemetry.metrics import Metrics, Population
from isulad_py.wire.cri.services import Services as CriServices
from isulad_py.wire.cri.table import cri_methods
from isulad_py.wire.interceptor import Interceptor
from isulad_py.wire.listener import UnixListener
from isulad_py.wire.methods import Method
from isulad_py.wire.native.services import NativeServices
from isulad_py.wire.native.table import native_methods
from isulad_py.wire.server import UNDO_SECONDS, Server

log = structlog.get_logger(__name__)

LEFTOVER_SECONDS: Final = 10.0
FIRST_SWEEP_SECONDS: Final = 10.0


class Start(Struct, frozen=True, kw_only=True):
    """What the process brings to the graph."""

    config: Config
    read: Read
    """Reads the configuration again, for SIGHUP."""
    level: LevelSwitch
    metrics: Metrics
    sockets: Mapping[str, socket.socket]
    """Inherited listeners by path."""
    environment: Mapping[str, str]


async def assemble_daemon(start: Start, lifecycle: Lifecycle) -> Serving:
    config, metrics = start.config, start.metrics
    progress = Progress()
    # Health first: a start that takes long (recovery of many containers) can be watched.
    await _start_health(start, lifecycle, progress)
    adapters = await open_adapters(config, lifecycle, environment=start.environment, measure=metrics.operation)
    services = build_services(config, adapters, lifecycle.background, metrics.pull_finished)
    await services.recovery.run()
    await services.leftovers.clear(LEFTOVER_SECONDS)
    lifecycle.essential.start(services.sweeper.run(), name="sweeper")
    # A kubelet finds the names of half-made pods free, unless what has to be undone hangs: nobody waits for that.
    await services.sweeper.first_round(FIRST_SWEEP_SECONDS)
    await _start_serving(start, lifecycle, adapters, services)
    progress.services = services
    callbacks = reload_callbacks(start, registries=partial(reload_images, adapters))
    reloader = Reloader(config, read=start.read, apply=callbacks)
    return Serving(status=f"serving on {', '.join(config.hosts)}", reload=reloader.reload, settle=settle)


class Progress:
    """What the health endpoint may tell while the daemon starts, and once it serves."""

    def __init__(self) -> None:
        self.services: Services | None = None

    async def conditions(self) -> Conditions:
        if self.services is None:
            return {"start": "recovery is under way"}
        status = await self.services.readiness.status()
        told = {"runtime": status.runtime_ready, "network": status.network_ready}
        return {name: "" if it.status else it.message or it.reason for name, it in told.items()}

    def population(self) -> Population:
        if self.services is None:
            return Population()
        registry = self.services.registry
        return Population(
            pods=Counter(pod.state.value for pod in registry.pods.values()),
            containers=Counter(container.state.value for container in registry.containers.values()),
            images=len(self.services.images.list()),
            stream_sessions=self.services.opener.sessions,
        )


async def _start_serving(start: Start, lifecycle: Lifecycle, adapters: Adapters, services: Services) -> None:
    """Streams, and CRI and the native services on every address of `hosts`; a listener that the service manager hands
    over comes before a new one."""
    config = start.config
    sessions = await start_streaming(config, lifecycle, services, adapters.clock)
    methods = cri_methods(
        CriServices(
            pods=services.pods,
            containers=services.containers,
            queries=services.queries,
            exec=services.exec,
            sessions=sessions,
            images=services.images,
            stats=services.stats,
            metrics=services.metrics,
            events=services.events,
            readiness=services.readiness,
            checkpoints=services.checkpoints,
            pod_checkpoints=services.pod_checkpoints,
            network=adapters.network,
            clock=adapters.clock,
            systemd_cgroup=config.systemd_cgroup,
        )
    )
    methods |= native_methods(NativeServices(images=services.images, archives=services.archives, pulls=services.pulls))
    interceptor = Interceptor(methods=offered(methods, config), metrics=start.metrics, clock=adapters.clock)
    server = Server(answer=interceptor, tasks=lifecycle.background)
    seconds = config.drain_timeout + UNDO_SECONDS
    lifecycle.on_close("calls", partial(server.stop, config.drain_timeout), seconds=seconds)
    for address in config.hosts:
        path = address.removeprefix("unix://")
        inherited = start.sockets.get(path)
        if inherited is not None:
            await server.start(inherited)
            continue
        listener = UnixListener(path, group=config.group)
        opened = listener.open()
        lifecycle.on_close("listener", partial(blocking.run, listener.remove))
        await server.start(opened)


def offered(methods: Mapping[str, Method], config: Config) -> dict[str, Method]:
    """What the configuration leaves of all methods; clients are told that the others are not implemented."""
    return {
        path: method
        for path, method in methods.items()
        if (config.enable_cri_v1 or not path.startswith("/runtime.v1."))
        and (config.enable_pod_events or method.short_name != "GetContainerEvents")
    }


async def _start_health(start: Start, lifecycle: Lifecycle, progress: Progress) -> None:
    lag = LoopLag(start.metrics.loop_lag)
    lag.start()
    lifecycle.on_close("loop lag", lag.stop)
    if start.config.metrics_port < 0:
        return
    health = HealthServer(metrics=start.metrics, population=progress.population, ready=progress.conditions)
    lifecycle.on_close("health", health.close)
    port = await health.start(start.config.metrics_port)
    port_file = f"{start.config.state}/health.port"
    lifecycle.on_close("health.port", partial(blocking.run, remove_file, port_file))
    write_atomic(port_file, f"{port}\n".encode())
    log.info("health endpoint", address=f"http://127.0.0.1:{port}")


def reload_callbacks(start: Start, *, registries: Callable[[Config], None]) -> dict[str, Callable[[Config], None]]:
    """One for each key that `config.keys` calls reloadable (a test compares)."""
    reach = (
        "registries",
        "registry-mirrors",
        "insecure-registries",
        "insecure-skip-verify-enforce",
        "registry-auth-file",
        "signature-policy",
    )
    return {
        "log-level": lambda config: start.level.set(config.log_level),
        **dict.fromkeys(reach, registries),
    }

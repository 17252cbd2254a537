"""Configuration to object graph: the only place that names concrete adapters. Leaves first, each with its closing step
on the next line; the order of the sections is the start order, its reverse the stop order."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping

import structlog
from msgspec import Struct

from isulad_py.config.schema import Config
from isulad_py.daemon.failpoint import record_failpoint
from isulad_py.daemon.lifecycle import Lifecycle, Serving
from isulad_py.daemon.reloading import Read, Reloader
from isulad_py.host.files import remove_file, write_atomic
from isulad_py.host.memory import settle
from isulad_py.streaming.health import Conditions, HealthServer
from isulad_py.telemetry.logs import LevelSwitch
from isulad_py.telemetry.loop_lag import LoopLag
from isulad_py.telemetry.metrics import Metrics, Population

log = structlog.get_logger(__name__)


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
    config = start.config
    record_failpoint(start.environment)

    # Health first: a start that takes long (recovery of many containers) can be watched.
    await _start_health(start, lifecycle)

    # Leaves: clock, host facts
    # Adapters: records, layers and root file systems, network, runtime, images
    # Engine: registry, services, recovery
    # Wire: servicers on config.hosts, `start.sockets` before new ones

    callbacks = reload_callbacks(start, registries=lambda config: None)
    reloader = Reloader(config, read=start.read, apply=callbacks)
    return Serving(status=f"serving on {', '.join(config.hosts)}", reload=reloader.reload, settle=settle)


async def _start_health(start: Start, lifecycle: Lifecycle) -> None:
    lag = LoopLag(start.metrics.loop_lag)
    lag.start()
    lifecycle.on_close("loop lag", lag.stop)
    if start.config.metrics_port < 0:
        return
    health = HealthServer(metrics=start.metrics, population=Population, ready=_nothing_to_wait_for)
    lifecycle.on_close("health", health.close)
    port = await health.start(start.config.metrics_port)
    port_file = f"{start.config.state}/health.port"
    lifecycle.on_close("health.port", lambda: remove_file(port_file))
    write_atomic(port_file, f"{port}\n".encode())
    log.info("health endpoint", address=f"http://127.0.0.1:{port}")


async def _nothing_to_wait_for() -> Conditions:
    return {}


def reload_callbacks(start: Start, *, registries: Callable[[Config], None]) -> dict[str, Callable[[Config], None]]:
    """One for each key that `config.keys` calls reloadable (a test compares)."""
    reach = ("registries", "registry-mirrors", "insecure-registries", "insecure-skip-verify-enforce")
    return {
        "log-level": lambda config: start.level.set(config.log_level),
        **dict.fromkeys(reach, registries),
    }

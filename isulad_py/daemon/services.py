"""The engine's services over the adapters, leaves first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

from isulad_py.config.keys import KEYS
from isulad_py.config.schema import Config
from isulad_py.daemon.adapters import Adapters
from isulad_py.engine.archives import Archives
from isulad_py.engine.checkpoints import Checkpoints
from isulad_py.engine.containers import Containers
from isulad_py.engine.events import Events
from isulad_py.engine.exec import Exec
from isulad_py.engine.exits import Exits
from isulad_py.engine.features import Features
from isulad_py.engine.handlers import Handlers, Traits
from isulad_py.engine.images import Images, PullReport, report_nothing
from isulad_py.engine.locks import Locks
from isulad_py.engine.pause import PauseContainers
from isulad_py.engine.pod_cgroups import PodCgroups
from isulad_py.engine.pod_checkpoints import PodCheckpoints
from isulad_py.engine.pod_metrics import PodMetrics
from isulad_py.engine.pods import Pods
from isulad_py.engine.pulls import Pulls
from isulad_py.engine.queries import Queries
from isulad_py.engine.readiness import Readiness
from isulad_py.engine.recovery import Leftovers, Recovery
from isulad_py.engine.registry import Registry
from isulad_py.engine.restores import Restores
from isulad_py.engine.specs import Specs
from isulad_py.engine.stats import Stats
from isulad_py.engine.streams import StreamOpener
from isulad_py.engine.sweeper import Sweeper
from isulad_py.engine.updates import Updates
from isulad_py.host.files import read_limited
from isulad_py.model.errors import EngineError, InvalidInput
from isulad_py.model.handlers import RuntimeHandler
from isulad_py.ports.tasks import Tasks
from isulad_py.spec import seccomp
from isulad_py.spec.inputs import Defaults, Ulimit

SECCOMP_LIMIT_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Services:
    registry: Registry
    queries: Queries
    pods: Pods
    containers: Containers
    exec: Exec
    opener: StreamOpener
    images: Images
    archives: Archives
    pulls: Pulls
    stats: Stats
    metrics: PodMetrics
    events: Events
    readiness: Readiness
    checkpoints: Checkpoints
    pod_checkpoints: PodCheckpoints
    recovery: Recovery
    leftovers: Leftovers
    sweeper: Sweeper


@dataclass(frozen=True, kw_only=True)
class _Foundation:
    """What the services stand on, together."""

    registry: Registry
    handlers: Handlers
    features: Features
    locks: Locks
    events: Events
    exits: Exits
    images: Images
    cgroups: PodCgroups
    specs: Specs
    updates: Updates


def build_services(config: Config, adapters: Adapters, tasks: Tasks, on_pull: PullReport = report_nothing) -> Services:
    base = _foundation(config, adapters, tasks, on_pull)
    containers = _containers(adapters, base, tasks)
    pods = _pods(config, adapters, base, containers, tasks)
    checkpoints = _checkpoints(adapters, base, tasks)
    queries = Queries(registry=base.registry, runtime=adapters.runtime)
    stats = Stats(
        queries=queries,
        sampler=adapters.sampler,
        rootfs=adapters.rootfs,
        network=adapters.network,
        clock=adapters.clock,
    )
    exec_ = Exec(registry=base.registry, runtime=adapters.runtime, specs=base.specs)
    return Services(
        registry=base.registry,
        queries=queries,
        pods=pods,
        containers=containers,
        exec=exec_,
        opener=StreamOpener(
            registry=base.registry,
            exec_=exec_,
            specs=base.specs,
            runtime=adapters.streams,
            session_limit=config.stream_session_limit,
        ),
        images=base.images,
        archives=Archives(images=base.images, files=adapters.archives),
        pulls=Pulls(images=base.images, tasks=tasks),
        stats=stats,
        metrics=PodMetrics(
            queries=queries, sampler=adapters.sampler, rootfs=adapters.rootfs, stats=stats, clock=adapters.clock
        ),
        events=base.events,
        readiness=Readiness(
            runtime=adapters.runtime,
            network=adapters.network,
            handlers=base.handlers,
            features=base.features,
            registry=base.registry,
            facts=adapters.facts,
            config=msgspec.Raw(effective_config(config)),
        ),
        checkpoints=checkpoints,
        pod_checkpoints=PodCheckpoints(
            registry=base.registry,
            checkpoints=checkpoints,
            pods=pods,
            containers=containers,
            files=adapters.checkpoint_files,
            handlers=base.handlers,
            tasks=tasks,
        ),
        recovery=Recovery(
            registry=base.registry,
            images=base.images,
            updates=base.updates,
            pods=pods,
            checkpoints=checkpoints,
            exits=base.exits,
            runtime=adapters.runtime,
            environments=adapters.environments,
            clock=adapters.clock,
            boot_id=adapters.facts.boot_id,
        ),
        leftovers=Leftovers(
            registry=base.registry,
            runtime=adapters.runtime,
            environments=adapters.environments,
            rootfs=adapters.rootfs,
            layers=adapters.layers,
            network=adapters.network,
            images=base.images,
            checkpoints=adapters.checkpoint_files,
            tasks=tasks,
        ),
        sweeper=Sweeper(
            registry=base.registry, containers=containers, pods=pods, images=base.images, clock=adapters.clock
        ),
    )


def _foundation(config: Config, adapters: Adapters, tasks: Tasks, on_pull: PullReport) -> _Foundation:
    clock, runtime = adapters.clock, adapters.runtime
    registry = Registry(records=adapters.records)
    traits = {name: handler_traits(handler) for name, handler in adapters.handlers.items()}
    handlers = Handlers(names=adapters.handlers, default=config.default_runtime, traits=traits)
    features = Features(runtime=runtime, rootfs=adapters.rootfs, handlers=handlers)
    locks = Locks()
    events = Events(registry=registry, clock=clock)
    images = Images(
        records=adapters.records,
        registry=registry,
        source=adapters.source,
        layers=adapters.layers,
        rootfs=adapters.rootfs,
        tasks=tasks,
        clock=clock,
        handlers=handlers,
        sandbox_image=config.pod_sandbox_image,
        on_pull=on_pull,
    )
    cgroups = PodCgroups(
        environments=adapters.environments, default_parent=config.cgroup_root, systemd=config.systemd_cgroup
    )
    specs = Specs(
        registry=registry,
        images=images,
        layers=adapters.layers,
        rootfs=adapters.rootfs,
        runtime=runtime,
        hostfiles=adapters.hostfiles,
        identities=adapters.identities,
        injections=adapters.injections,
        profiles=adapters.profiles,
        cgroups=cgroups,
        features=features,
        handlers=handlers,
        facts=adapters.facts,
        defaults=spec_defaults(config, apparmor=adapters.profiles.default_name() if adapters.facts.apparmor else ""),
    )
    return _Foundation(
        registry=registry,
        handlers=handlers,
        features=features,
        locks=locks,
        events=events,
        exits=Exits(registry=registry, runtime=runtime, events=events, locks=locks, tasks=tasks, clock=clock),
        images=images,
        cgroups=cgroups,
        specs=specs,
        updates=Updates(registry=registry, runtime=runtime, specs=specs, locks=locks, tasks=tasks),
    )


def _checkpoints(adapters: Adapters, base: _Foundation, tasks: Tasks) -> Checkpoints:
    return Checkpoints(
        registry=base.registry,
        runtime=adapters.runtime,
        checkpointer=adapters.checkpointer,
        files=adapters.checkpoint_files,
        rootfs=adapters.rootfs,
        tasks=tasks,
        clock=adapters.clock,
    )


def _containers(adapters: Adapters, base: _Foundation, tasks: Tasks) -> Containers:
    restores = Restores(
        images=base.images,
        runtime=adapters.runtime,
        checkpointer=adapters.checkpointer,
        files=adapters.checkpoint_files,
    )
    return Containers(
        registry=base.registry,
        runtime=adapters.runtime,
        rootfs=adapters.rootfs,
        restores=restores,
        updates=base.updates,
        specs=base.specs,
        exits=base.exits,
        events=base.events,
        handlers=base.handlers,
        locks=base.locks,
        tasks=tasks,
        clock=adapters.clock,
        boot_id=adapters.facts.boot_id,
    )


def _pods(config: Config, adapters: Adapters, base: _Foundation, containers: Containers, tasks: Tasks) -> Pods:
    pause = PauseContainers(
        images=base.images,
        rootfs=adapters.rootfs,
        runtime=adapters.runtime,
        specs=base.specs,
        handlers=base.handlers,
        tasks=tasks,
        always=config.pod_sandbox_mode == "pause",
        boot_id=adapters.facts.boot_id,
    )
    return Pods(
        registry=base.registry,
        containers=containers,
        environments=adapters.environments,
        network=adapters.network,
        pause=pause,
        cgroups=base.cgroups,
        exits=base.exits,
        events=base.events,
        handlers=base.handlers,
        features=base.features,
        tasks=tasks,
        clock=adapters.clock,
        boot_id=adapters.facts.boot_id,
    )


def spec_defaults(config: Config, *, apparmor: str = "") -> Defaults:
    """What every container gets that asks for nothing else; `apparmor` names a profile."""
    ulimits = tuple(
        Ulimit(name=limit.name, hard=limit.hard, soft=limit.soft) for limit in config.default_ulimits.values()
    )
    umask = 0o022 if config.native_umask == "normal" else 0o027
    return Defaults(ulimits=ulimits, umask=umask, seccomp=_seccomp_profile(config.seccomp_profile), apparmor=apparmor)


def handler_traits(handler: RuntimeHandler) -> Traits:
    return Traits(
        annotations=handler.annotations,
        pause=handler.sandbox_mode == "pause" if handler.sandbox_mode else None,
        seccomp=_seccomp_profile(handler.seccomp_profile, f"runtimes: {handler.name}: "),
    )


def _seccomp_profile(path: str, where: str = "") -> bytes | None:
    """Read and checked at the start, so that a broken profile is not found out by the first container."""
    if not path:
        return None
    try:
        profile = read_limited(path, SECCOMP_LIMIT_BYTES)
        seccomp.parse(profile)
    except EngineError as error:
        raise InvalidInput(f"{where}seccomp-profile: {path}: {error}") from error
    return profile


def effective_config(config: Config) -> bytes:
    """daemon.json as it is in force; a key is spelt as in the file."""
    values = msgspec.to_builtins(config)
    return msgspec.json.encode({key.name: values[key.attribute] for key in KEYS})

"""Concrete adapters from the configuration; each closing step on the line after its opening."""

from __future__ import annotations

import urllib.request
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from isulad_py.config.runtimes import runtime_handlers
from isulad_py.config.schema import Config
from isulad_py.config.storage_options import container_size_bytes
from isulad_py.config.validate import find_program
from isulad_py.daemon.failpoint import failpoint_in
from isulad_py.daemon.lifecycle import Lifecycle
from isulad_py.engine.undo import UNDO
from isulad_py.host.clock import SystemClock
from isulad_py.host.facts import read_facts
from isulad_py.images.adapter import RegistryImages
from isulad_py.images.archives import ArchiveImages
from isulad_py.images.checkpoints import CheckpointDirectory
from isulad_py.images.options import RegistryOptions, upstream_of
from isulad_py.model.facts import HostFacts
from isulad_py.model.handlers import RuntimeHandler
from isulad_py.network.adapter import CniNetwork
from isulad_py.runtime.adapter import OciRuntime, Options
from isulad_py.runtime.apparmor import KernelProfiles
from isulad_py.runtime.cgroup_sampler import CgroupFiles
from isulad_py.runtime.cgroups import CgroupTree
from isulad_py.runtime.checkpoints import RuntimeCheckpoints
from isulad_py.runtime.hostfiles import HostPaths
from isulad_py.runtime.identity import RootfsIdentities
from isulad_py.runtime.injections import InjectionFiles, Places
from isulad_py.runtime.sandbox import HostEnvironments
from isulad_py.runtime.streams import RuntimeStreams
from isulad_py.storage.external_rootfs import ExternalRootFilesystems
from isulad_py.storage.layers import LayerStore
from isulad_py.storage.records import SqliteRecords
from isulad_py.storage.root_filesystems import NodeRootFilesystems
from isulad_py.storage.rootfs import OverlayRootFilesystems

UNDO_SECONDS: Final = 30.0
"""For calls whose clients have gone, to undo what they began; what remains is the next start's."""

Measure = Callable[[str, str], AbstractContextManager[None]]
"""Times an operation of a room."""


@dataclass(frozen=True, kw_only=True)
class Adapters:
    clock: SystemClock
    facts: HostFacts
    handlers: Mapping[str, RuntimeHandler]
    records: SqliteRecords
    layers: LayerStore
    rootfs: NodeRootFilesystems
    source: RegistryImages
    archives: ArchiveImages
    network: CniNetwork
    runtime: OciRuntime
    streams: RuntimeStreams
    checkpointer: RuntimeCheckpoints
    checkpoint_files: CheckpointDirectory
    environments: HostEnvironments
    sampler: CgroupFiles
    hostfiles: HostPaths
    identities: RootfsIdentities
    injections: InjectionFiles
    profiles: KernelProfiles


async def open_adapters(
    config: Config, lifecycle: Lifecycle, *, environment: Mapping[str, str], measure: Measure
) -> Adapters:
    """Raises whatever keeps the daemon from starting: a damaged database, a full disk."""
    clock, facts, tasks = SystemClock(), read_facts(), lifecycle.background
    failpoint = failpoint_in("records", environment)
    records = await SqliteRecords.open(Path(config.graph, "isulad.db"), now_ns=clock.now_ns, failpoint=failpoint)
    lifecycle.on_close("records", records.close)
    failpoint = failpoint_in("layers", environment)
    layers = await LayerStore.open(config.graph, tasks=tasks, clock=clock, boot_id=facts.boot_id, failpoint=failpoint)
    limit_bytes = container_size_bytes(config.storage_opts)
    overlay = await OverlayRootFilesystems.open(layers=layers, tasks=tasks, clock=clock, limit_bytes=limit_bytes)
    external = await ExternalRootFilesystems.open(config.graph, state=config.state)
    rootfs = NodeRootFilesystems(overlay=overlay, external=external)
    source = RegistryImages(layers=layers, options=registry_options(config), clock=clock)
    lifecycle.on_close("registry connections", source.close)
    handlers = runtime_handlers(config, find_program)
    options = Options(state=config.state, monitor=config.monitor, criu=config.criu, create_seconds=config.start_timeout)
    runtime = OciRuntime(handlers=handlers, facts=facts, clock=clock, options=options)
    streams = runtime.streams()
    lifecycle.on_close("attach connections", streams.close)
    cgroups = CgroupTree(facts, systemd=config.systemd_cgroup, clock=clock)
    network = CniNetwork(
        conf_dir=config.cni_conf_dir,
        bin_dirs=config.cni_bin_dir,
        plugin_timeout_seconds=config.cni_plugin_timeout,
        pod_cidr_path=f"{config.state}/pod-cidr",
        measure=measure,
    )
    await network.reload()
    lifecycle.essential.start(network.watch(), name="cni-watch")
    # Once more, so that what these tasks still do finds records and connections open.
    lifecycle.on_close("background tasks", lifecycle.background.close)
    lifecycle.on_close("undoing", partial(lifecycle.background.wait_for, {UNDO}), seconds=UNDO_SECONDS)
    return Adapters(
        clock=clock,
        facts=facts,
        handlers=handlers,
        records=records,
        layers=layers,
        rootfs=rootfs,
        source=source,
        archives=ArchiveImages(layers=layers, scratch=config.graph, policy_file=config.signature_policy),
        network=network,
        runtime=runtime,
        streams=streams,
        checkpointer=runtime.checkpoints(),
        checkpoint_files=CheckpointDirectory(config.graph),
        environments=HostEnvironments(
            state_dir=config.state,
            cgroups=cgroups,
            unprivileged_ports=config.enable_unprivileged_ports,
            unprivileged_icmp=config.enable_unprivileged_icmp,
        ),
        sampler=CgroupFiles(facts, now_ns=clock.now_ns),
        hostfiles=HostPaths(),
        identities=RootfsIdentities(),
        injections=InjectionFiles(injection_places(config)),
        profiles=KernelProfiles(),
    )


def injection_places(config: Config) -> Places:
    return Places(
        cdi_dirs=config.cdi_spec_dirs if config.enable_cdi else None,
        hook_spec=config.hook_spec,
        hook_dirs=config.hooks_dir,
    )


def reload_images(adapters: Adapters, config: Config) -> None:
    """For what is pulled, loaded and imported from now on."""
    adapters.source.reload(registry_options(config))
    adapters.archives.policy_file = config.signature_policy


def registry_options(config: Config) -> RegistryOptions:
    """`registry-mirrors` are iSulad's mirrors of docker.io; `registries` has those of any host. What it says of
    docker.io's certificates is meant for who answers in its place, too."""
    mirrors = {host: entry.mirrors for host, entry in config.registries.items() if entry.mirrors}
    if config.registry_mirrors:
        mirrors["docker.io"] = (*config.registry_mirrors, *mirrors.get("docker.io", ()))
    entries = {name: entry for host, entry in config.registries.items() for name in (host, upstream_of(host))}
    insecure = [host for host, entry in entries.items() if entry.insecure]
    return RegistryOptions(
        mirrors=mirrors,
        insecure_hosts=(*config.insecure_registries, *insecure),
        skip_verify=config.insecure_skip_verify_enforce,
        certs_dir=config.certs_dir,
        ca_files={host: entry.ca_file for host, entry in entries.items() if entry.ca_file},
        auth_file=config.registry_auth_file,
        policy_file=config.signature_policy,
        proxies=urllib.request.getproxies_environment(),
    )

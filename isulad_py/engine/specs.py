"""Gathers what an OCI spec is made from: users, mounts, devices, profiles; `spec` makes it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

import msgspec

from isulad_py.engine.features import Features
from isulad_py.engine.handlers import Handlers
from isulad_py.engine.images import Images
from isulad_py.engine.pod_cgroups import PodCgroups
from isulad_py.engine.registry import Registry
from isulad_py.model.container import ContainerConfig, ContainerRecord, Identity, Mount
from isulad_py.model.errors import FailedPrecondition, InvalidInput, Unsupported
from isulad_py.model.facts import HostFacts
from isulad_py.model.ids import ImageId
from isulad_py.model.image import ImageRecord
from isulad_py.model.lifecycle import can_exec
from isulad_py.model.pod import PodConfig, PodRecord, PodUsers
from isulad_py.model.resources import Resources
from isulad_py.model.security import NamespaceMode, NamespaceOptions, ProfileKind, SecurityProfile
from isulad_py.ports.apparmor import AppArmorProfiles
from isulad_py.ports.hostfiles import HostFiles
from isulad_py.ports.identity import Identities
from isulad_py.ports.injections import Injections
from isulad_py.ports.runtime import ContainerRuntime
from isulad_py.ports.storage import Layers, RootFilesystems
from isulad_py.spec.annotations import passed_on
from isulad_py.spec.apparmor import profile_name
from isulad_py.spec.build import build_container, build_exec, build_pause, check_request
from isulad_py.spec.capabilities import capability_sets
from isulad_py.spec.cdi import wanted_devices
from isulad_py.spec.inputs import ContainerInputs, Defaults, Handler, PauseInputs
from isulad_py.spec.mounts import volume_paths
from isulad_py.spec.process import oom_score_adj, working_dir
from isulad_py.spec.resources import linux_resources
from isulad_py.spec.seccomp import parse as parse_seccomp

PAUSE_SECURITY: Final = SecurityProfile(kind=ProfileKind.RUNTIME_DEFAULT)


class Built(msgspec.Struct, frozen=True, kw_only=True):
    """A spec, and what of it goes into the record."""

    spec: bytes
    identity: Identity
    mounts: tuple[Mount, ...]
    cgroup_path: str


class ImageVolume(msgspec.Struct, frozen=True, kw_only=True):
    """An image that is mounted into a container."""

    source: str
    image_id: ImageId


class Specs:
    def __init__(
        self,
        *,
        registry: Registry,
        images: Images,
        layers: Layers,
        rootfs: RootFilesystems,
        runtime: ContainerRuntime,
        hostfiles: HostFiles,
        identities: Identities,
        injections: Injections,
        profiles: AppArmorProfiles,
        cgroups: PodCgroups,
        features: Features,
        handlers: Handlers,
        facts: HostFacts,
        defaults: Defaults,
    ) -> None:
        self._registry = registry
        self._images = images
        self._layers = layers
        self._rootfs = rootfs
        self._runtime = runtime
        self._hostfiles = hostfiles
        self._identities = identities
        self._injections = injections
        self._profiles = profiles
        self._cgroups = cgroups
        self._features = features
        self._handlers = handlers
        self._facts = facts
        self._defaults = defaults

    async def check_pod(self, config: PodConfig) -> None:
        """Raises InvalidInput or Unsupported naming the field for profiles that no pause container could have: also
        where the pod needs none, which no client can tell."""
        security = config.security
        if security.apparmor is not None:
            await self._require_apparmor(security.apparmor, privileged=False)
        profile = await self._seccomp(security.seccomp, privileged=security.privileged)
        if profile is not None:
            parse_seccomp(profile)

    async def check_container(self, config: ContainerConfig, pod: PodRecord) -> None:
        """Raises as `container`, for what can be told before anything is made."""
        security = config.security
        check_request(config, pod)
        self._target_pidns(security.namespaces, pod)
        capability_sets(security.capabilities, privileged=security.privileged, host=self._facts)
        linux_resources(self.effective(config.resources), self._facts)
        await self._require_apparmor(security.apparmor, privileged=security.privileged)
        await self._seccomp(security.seccomp, privileged=security.privileged)

    async def container(self, record: ContainerRecord, pod: PodRecord, image: ImageRecord, rootfs: str) -> Built:
        """Raises InvalidInput naming the field for what the host or the image does not have."""
        config = record.config
        security = config.security
        user = await self._identities.resolve(rootfs, image.config.user, security)
        mounts = await self._hostfiles.resolve_mounts(config.mounts)
        placement = self._cgroups.place(record.id, pod)
        declared = volume_paths(image.config.volumes, config.mounts)
        anonymous = () if config.external_rootfs else declared  # that root is the host's, and what is written there too
        volumes = await self._mount_images(record, pod)
        inputs = ContainerInputs(
            config=msgspec.structs.replace(config, mounts=mounts, resources=self.effective(config.resources)),
            pod=pod,
            image=image.config,
            host=self._facts,
            rootfs_path=rootfs,
            cgroups_path=placement.oci_path,
            image_name=record.image_name,
            identity=user.identity,
            home=user.home,
            handler=await self._handler(record.runtime_handler),
            defaults=self._defaults_of(record.runtime_handler),
            annotations=self._passed_on(record.runtime_handler, {**pod.config.annotations, **config.annotations}),
            pod_pidns_path=pod.environment.pidns_path,
            target_pidns_path=self._target_pidns(security.namespaces, pod),
            seccomp_profile=await self._seccomp(security.seccomp, privileged=security.privileged),
            devices=await self._hostfiles.resolve_devices(config.devices),
            host_devices=await self._hostfiles.all_devices() if security.privileged else (),
            image_mounts={path: volume.source for path, volume in volumes.items()},
            volume_dirs=self._rootfs.volumes(record.id, anonymous),
            edits=await self._injections.devices(wanted_devices(config), user.identity),
            hooks=await self._injections.hooks(),
        )
        spec = build_container(inputs)
        await self._hostfiles.make_sources(mounts)  # only now: a request that is refused makes nothing
        directories = (working_dir(config.working_dir, image.config.working_dir), *declared)
        await self._hostfiles.ensure_directories(rootfs, directories, _on_host(user.identity, pod.users))
        if anonymous:
            await self._rootfs.fill_volumes(record.id, anonymous)
        shown = tuple(_with_image_ref(mount, volumes) for mount in mounts)
        return Built(spec=spec, identity=user.identity, mounts=shown, cgroup_path=placement.path)

    async def pause(self, pod: PodRecord, image: ImageRecord, rootfs: str) -> bytes:
        """The spec of a pod's pause container."""
        security = pod.config.security
        await self._require_apparmor(security.apparmor, privileged=False)
        return build_pause(
            PauseInputs(
                pod=pod,
                image=image.config,
                host=self._facts,
                rootfs_path=rootfs,
                cgroups_path=self._cgroups.place(pod.id, pod).oci_path,
                handler=await self._handler(pod.runtime_handler),
                defaults=self._defaults_of(pod.runtime_handler),
                annotations=self._passed_on(pod.runtime_handler, pod.config.annotations),
                seccomp_profile=await self._seccomp(security.seccomp, privileged=security.privileged),
            )
        )

    async def exec_process(self, record: ContainerRecord, cmd: tuple[str, ...], *, terminal: bool) -> bytes:
        """The OCI process of an exec: the container's own user, environment and limits, another command."""
        return build_exec(await self._runtime.bundle_spec(record.id), cmd, terminal=terminal)

    def stdio_uid(self, record: ContainerRecord) -> int | None:
        """Of an exec: who has to own its pipes (ports.runtime.Launch)."""
        pod = self._registry.pods.get(record.pod_id)
        return pod.users.ids.host_uid(record.identity.uid) if pod is not None and pod.users is not None else None

    def effective(self, resources: Resources) -> Resources:
        """What is handed to the runtime: the score that this daemon may give, no limit of swap where none is kept, and
        no limits of zero for hugepage sizes that this host does not account (kubelets send one for every size of the
        host, also where there is no such hierarchy)."""
        if resources.oom_score_adj:
            score = oom_score_adj(resources.oom_score_adj, self._facts)
            resources = msgspec.structs.replace(resources, oom_score_adj=score)
        if not self._facts.swap_accounting:
            resources = msgspec.structs.replace(resources, memory_swap_limit_bytes=0)
        if "hugetlb" in self._facts.cgroup_controllers:
            return resources
        wanted = [limit for limit in resources.hugepage_limits if limit.limit_bytes]
        if wanted:
            raise Unsupported("linux.resources.hugepage_limits: this host has no hugetlb controller")
        return msgspec.structs.replace(resources, hugepage_limits=())

    def check_limits(self, resources: Resources) -> None:
        """Raises InvalidInput or Unsupported naming the field for limits that contradict each other, or the host."""
        linux_resources(resources, self._facts, field="linux")
        oom_score_adj(resources.oom_score_adj, self._facts)

    async def release(self, container_id: str) -> None:
        """Gives image volumes back. Idempotent; works from the id alone."""
        views = await self._layers.views()
        await asyncio.gather(*(self._layers.release(key) for key in views if key.startswith(f"{container_id}-")))

    async def _handler(self, name: str) -> Handler:
        features = await self._features.of(name)
        return Handler(
            recursive_read_only=features.recursive_read_only_mounts,
            idmap_mounts=features.idmap_mounts,
            user_namespaces=features.user_namespaces,
            reads_id_maps=features.reads_id_maps,
        )

    def _defaults_of(self, handler: str) -> Defaults:
        profile = self._handlers.traits(handler).seccomp
        return self._defaults if profile is None else msgspec.structs.replace(self._defaults, seccomp=profile)

    def _passed_on(self, handler: str, annotations: Mapping[str, str]) -> dict[str, str]:
        return passed_on(self._handlers.traits(handler).annotations, annotations)

    def _target_pidns(self, namespaces: NamespaceOptions, pod: PodRecord) -> str:
        """The PID namespace of the container that a debugging container joins."""
        if namespaces.pid is not NamespaceMode.TARGET:
            return ""
        target = self._registry.containers.find(namespaces.target_id)
        field = "config.linux.security_context.namespace_options.target_id"
        if target is None or target.pod_id != pod.id:
            raise InvalidInput(f"{field}: no container {namespaces.target_id} in the pod")
        if not can_exec(target.state):
            raise FailedPrecondition(f"{field}: container {target.id} is not running")
        return f"/proc/{target.processes.pid}/ns/pid"

    async def _seccomp(self, profile: SecurityProfile | None, *, privileged: bool) -> bytes | None:
        if profile is None or profile.kind is not ProfileKind.LOCALHOST or privileged:
            return None
        return await self._hostfiles.read_profile(profile.localhost_ref)

    async def _require_apparmor(self, profile: SecurityProfile | None, *, privileged: bool) -> None:
        name = profile_name(profile, privileged=privileged, host=self._facts, default=self._defaults.apparmor)
        if name:
            await self._profiles.require(name)

    async def _mount_images(self, record: ContainerRecord, pod: PodRecord) -> dict[str, ImageVolume]:
        """Image volumes, read-only, by container path (CRI Mount.image)."""
        found = {}
        for index, mount in enumerate(record.config.mounts):
            if mount.image is None:
                continue
            image = self._images.require(mount.image.image)
            chain = tuple(layer.chain_id for layer in image.layers)
            path = await self._layers.view(f"{record.id}-{index}", chain, pod.users)
            source = await self._hostfiles.within(path, mount.image_sub_path, index)
            found[mount.container_path] = ImageVolume(source=source, image_id=image.id)
        return found


def _on_host(identity: Identity, users: PodUsers | None) -> Identity:
    """Who the user is to the host's file systems."""
    if users is None:
        return identity
    uid, gid = users.ids.owner(identity.uid, identity.gid)
    return msgspec.structs.replace(identity, uid=uid, gid=gid)


def _with_image_ref(mount: Mount, volumes: Mapping[str, ImageVolume]) -> Mount:
    """As the status shows it: with the image's identity (CRI ImageSpec.image_ref)."""
    if mount.image is None:
        return mount
    image = msgspec.structs.replace(mount.image, image_ref=volumes[mount.container_path].image_id)
    return msgspec.structs.replace(mount, image=image)

from __future__ import annotations

import pytest

from isulad_py.engine.features import Features
from isulad_py.engine.handlers import Handlers
from isulad_py.model.errors import Unsupported
from isulad_py.model.security import IdMapping, NamespaceMode, NamespaceOptions, UserNamespace
from isulad_py.ports.runtime import HandlerFeatures
from tests.fakes.runtime import FakeRuntime
from tests.fakes.storage import MemoryLayers, MemoryRootFilesystems

IDS = (IdMapping(host_id=100_000, container_id=0, length=65536),)
MAPPED = NamespaceOptions(userns=UserNamespace(mode=NamespaceMode.POD, uids=IDS, gids=IDS))
HANDLERS = Handlers(names=("new", "old", "odd"), default="new")


@pytest.fixture
def rootfs() -> MemoryRootFilesystems:
    return MemoryRootFilesystems(MemoryLayers())


@pytest.fixture
def features(rootfs: MemoryRootFilesystems) -> Features:
    runtime = FakeRuntime(now_ns=lambda: 1, handlers=HANDLERS.names)
    runtime.features_by_handler = {
        "new": HandlerFeatures(name="new", user_namespaces=True, idmap_mounts=True),
        "old": HandlerFeatures(name="old", user_namespaces=True),
        "odd": HandlerFeatures(name="odd", idmap_mounts=True),
    }
    return Features(runtime=runtime, rootfs=rootfs, handlers=HANDLERS)


@pytest.mark.parametrize(("handler", "promised"), [("", True), ("new", True), ("old", False), ("odd", False)])
async def test_user_namespaces_are_promised_only_together_with_volumes(
    features: Features, rootfs: MemoryRootFilesystems, handler: str, *, promised: bool
) -> None:
    assert (await features.promised(handler)).user_namespaces is promised
    rootfs.obstacle = "no"
    assert not (await features.promised(handler)).user_namespaces


@pytest.mark.parametrize("handler", ["new", "old"])
async def test_a_pod_needs_no_more_than_the_namespace(
    features: Features, rootfs: MemoryRootFilesystems, handler: str
) -> None:
    await features.check_users(MAPPED, handler)
    rootfs.obstacle = "this kernel is too old"
    with pytest.raises(
        Unsupported, match=r"^config\.linux\.security_context\.namespace_options\.userns_options: this k"
    ):
        await features.check_users(MAPPED, handler)


async def test_a_runtime_that_has_none_is_named(features: Features) -> None:
    with pytest.raises(Unsupported, match=r"userns_options: runtime odd offers no user namespaces"):
        await features.check_users(MAPPED, "odd")


@pytest.mark.parametrize(
    "options", [NamespaceOptions(), NamespaceOptions(userns=UserNamespace(mode=NamespaceMode.NODE))]
)
async def test_the_hosts_users_need_nothing(
    features: Features, rootfs: MemoryRootFilesystems, options: NamespaceOptions
) -> None:
    rootfs.obstacle = "no"
    await features.check_users(options, "odd")


async def test_a_runtime_that_was_replaced_can_do_what_the_new_one_can(rootfs: MemoryRootFilesystems) -> None:
    runtime = FakeRuntime(now_ns=lambda: 1, handlers=HANDLERS.names)
    features = Features(runtime=runtime, rootfs=rootfs, handlers=HANDLERS)
    assert not (await features.of("")).recursive_read_only_mounts
    runtime.features_by_handler["new"] = HandlerFeatures(name="new", recursive_read_only_mounts=True)
    assert (await features.of("")).recursive_read_only_mounts

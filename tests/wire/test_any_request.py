"""Any request gets an answer: in time, never UNKNOWN or INTERNAL, and with nothing left behind.

The engine is the real one, on fakes; tests/integration/node/test_any_request.py asks a whole node the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from grpclib.const import Status
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isulad_py.api import images as native
from isulad_py.api.runtime import v1 as cri
from isulad_py.wire import codec
from isulad_py.wire.cri.table import cri_methods
from isulad_py.wire.methods import Method
from isulad_py.wire.native.services import NativeServices
from isulad_py.wire.native.table import native_methods
from isulad_py.wire.status import engine_error, outcome_of
from tests.any_request import near
from tests.fakes.services import FakeEngine
from tests.unit.engine.node import IMAGE, Node, World
from tests.wire.engine import cri_services
from tests.wire.native import native_services

SECONDS = 20
TABLE = {
    method.short_name: method
    for path, method in cri_methods(FakeEngine().services()).items()
    if ".v1." in path and not method.endless
}
ANYTHING: Any = None
"""Services to make tables of, which nobody asks."""
NATIVE = sorted(native_methods(NativeServices(images=ANYTHING, archives=ANYTHING, pulls=ANYTHING)))
THOROUGH = {
    "RunPodSandbox": 150,
    "CreateContainer": 200,
    "UpdateContainerResources": 60,
    "RestorePod": 40,
    "PullImage": 40,
}
"""Examples for calls that bring configurations; the others have few fields."""


def requests(name: str, pod_id: str, container_id: str) -> Callable[[], Any]:
    """What a kubelet would ask."""
    kind: Any = TABLE[name].request

    def build() -> Any:
        message = kind()
        for field, value in (("pod_sandbox_id", pod_id), ("container_id", container_id), ("cmd", ["true"])):
            if field in kind._betterproto.meta_by_field_name:
                setattr(message, field, value)
        if name in {"RunPodSandbox", "RestorePod"}:
            message.config = cri.PodSandboxConfig(
                metadata=cri.PodSandboxMetadata(name="any", namespace="ns", uid="u"), log_directory="/var/log/pods/any"
            )
        if name == "CreateContainer":
            metadata = cri.ContainerMetadata(name="any")
            message.config = cri.ContainerConfig(metadata=metadata, image=cri.ImageSpec(image=IMAGE), command=["true"])
        if name == "UpdateContainerResources":
            message.linux = cri.LinuxContainerResources(cpu_shares=2)
        if name in {"PullImage", "RemoveImage", "ImageStatus"}:
            message.image = cri.ImageSpec(image=IMAGE)
        return message

    return build


async def ask(method: Method, data: bytes) -> Status:
    """As the interceptor has it, but that an error which is nobody's is raised."""
    try:
        async with asyncio.timeout(SECONDS):
            request = await codec.decode(data, method.request)
            if method.unary is not None:
                codec.encode(await method.unary(request))
            elif method.streaming is not None:
                with method.streaming(request) as answers:
                    [codec.encode(answer) async for answer in answers]
    except Exception as error:
        known = engine_error(error)
        if known is None:
            raise
        outcome = outcome_of(known)
        assert outcome.message
        return outcome.status
    return Status.OK


async def tell(node: Node, name: str, data: st.DataObject) -> None:
    pod_id = await node.run_pod("first")
    container_id = await node.run_container(pod_id, name="first")
    # Windows is refused as a whole, and would be half of all fields.
    message = data.draw(near(requests(name, pod_id, container_id), but=lambda path: "windows" in path[:-1]))
    method = next(m for m in cri_methods(cri_services(node)).values() if m.short_name == name)
    status = await ask(method, bytes(message))
    assert status not in {Status.UNKNOWN, Status.INTERNAL}


async def scene(name: str, data: st.DataObject) -> None:
    world = World()
    async with world.daemon() as node:
        await node.pull()
        await tell(node, name, data)
        for pod_id in list(node.services.registry.pods):
            await node.services.pods.remove(pod_id)
        assert not any(world.traces().values())


@pytest.mark.parametrize("name", TABLE)
def test_any_request(name: str) -> None:
    @settings(max_examples=THOROUGH.get(name, 8), deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        asyncio.run(scene(name, data))

    check()


FIELDS = {
    "name": IMAGE,
    "id": IMAGE,
    "src_name": IMAGE,
    "dest_name": "other:1",
    "file": "/root.tar",
    "path": "/root.tar",
    "tag": "made:1",
    "format": "oci-archive",
    "search_name": "busybox",
}


def native_request(method: Method) -> Callable[[], Any]:
    kind: Any = method.request

    def build() -> Any:
        known = kind._betterproto.meta_by_field_name
        message = kind(**{name: value for name, value in FIELDS.items() if name in known})
        if "image" in known:
            spec = kind._betterproto.cls_by_field.get("image")
            message.image = spec(image=IMAGE) if spec is native.ImageSpec else IMAGE
        return message

    return build


async def native_scene(path: str, data: st.DataObject) -> None:
    async with World().daemon() as node:
        await node.pull()
        method = native_methods(native_services(node))[path]
        message = data.draw(near(native_request(method)))
        assert await ask(method, bytes(message)) not in {Status.UNKNOWN, Status.INTERNAL}


@pytest.mark.parametrize("path", NATIVE)
def test_any_request_of_a_native_service(path: str) -> None:
    @settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        asyncio.run(native_scene(path, data))

    check()

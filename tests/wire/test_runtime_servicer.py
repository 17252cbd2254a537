"""Each RPC of RuntimeService through a real channel: what it answers, and what it hands to the engine."""

from __future__ import annotations

from typing import Any

import grpc
import pytest

from isulad_py.model.container import ExitFact
from isulad_py.model.events import EventKind
from isulad_py.model.resources import Resources
from isulad_py.ports.runtime import ExecResult
from isulad_py.wire import encodings
from tests.wire.conftest import Served


def pod_config(client: Any, **fields: Any) -> Any:
    return client.m.PodSandboxConfig(metadata={"name": "web", "namespace": "ns", "uid": "u"}, **fields)


def container_config(client: Any, **fields: Any) -> Any:
    return client.m.ContainerConfig(metadata={"name": "main"}, image={"image": "busybox"}, **fields)


@pytest.mark.parametrize("package", ["runtime.v1", "runtime.v1alpha2"])
async def test_version(served: Served, package: str) -> None:
    client = served.connect(package)
    answer = await client.runtime.Version(client.m.VersionRequest())
    assert (answer.version, answer.runtime_name, answer.runtime_version) == ("0.1.0", "isulad-py", "0.1.0")
    assert answer.runtime_api_version == package.partition(".")[2]


async def test_status(client: Any) -> None:
    answer = await client.runtime.Status(client.m.StatusRequest())
    assert [(c.type, c.status, c.reason) for c in answer.status.conditions] == [
        ("RuntimeReady", True, ""),
        ("NetworkReady", False, "NetworkPluginNotReady"),
    ]
    assert [handler.name for handler in answer.runtime_handlers] == ["", "runc"]
    assert answer.features.supplemental_groups_policy
    assert not answer.info
    verbose = await client.runtime.Status(client.m.StatusRequest(verbose=True))
    assert dict(verbose.info) == {"config": "{}"}


async def test_runtime_config(client: Any) -> None:
    answer = await client.runtime.RuntimeConfig(client.m.RuntimeConfigRequest())
    assert answer.linux.cgroup_driver == client.m.CGROUPFS


async def test_update_runtime_config(served: Served, client: Any) -> None:
    request = client.m.UpdateRuntimeConfigRequest(
        runtime_config={"network_config": {"pod_cidr": "10.4.0.0/24,fd00::/64"}}
    )
    await client.runtime.UpdateRuntimeConfig(request)
    await client.runtime.UpdateRuntimeConfig(client.m.UpdateRuntimeConfigRequest())
    assert served.engine.pod_cidr == "10.4.0.0/24,fd00::/64"


async def test_a_pods_life(served: Served, client: Any) -> None:
    config = pod_config(client, labels={"a": "b"}, annotations={"c": "d"})
    answer = await client.runtime.RunPodSandbox(client.m.RunPodSandboxRequest(config=config, runtime_handler="crun"))
    pod_id = answer.pod_sandbox_id
    listed = await client.runtime.ListPodSandbox(client.m.ListPodSandboxRequest())
    assert [(item.id, item.state, dict(item.labels), item.runtime_handler) for item in listed.items] == [
        (pod_id, client.m.SANDBOX_READY, {"a": "b"}, "crun")
    ]
    await client.runtime.StopPodSandbox(client.m.StopPodSandboxRequest(pod_sandbox_id=pod_id[:12]))
    listed = await client.runtime.ListPodSandbox(client.m.ListPodSandboxRequest())
    assert listed.items[0].state == client.m.SANDBOX_NOTREADY
    for _ in range(2):
        await client.runtime.RemovePodSandbox(client.m.RemovePodSandboxRequest(pod_sandbox_id=pod_id))
        await client.runtime.StopPodSandbox(client.m.StopPodSandboxRequest(pod_sandbox_id=pod_id))
    listed = await client.runtime.ListPodSandbox(client.m.ListPodSandboxRequest())
    assert not listed.items


async def test_pod_status(served: Served, client: Any) -> None:
    pod = served.engine.add_pod()
    container = served.engine.add_container(pod)
    request = client.m.PodSandboxStatusRequest(pod_sandbox_id=pod.id[:10])
    answer = await client.runtime.PodSandboxStatus(request)
    assert (answer.status.id, answer.status.network.ip) == (pod.id, "10.9.0.2")
    assert [status.id for status in answer.containers_statuses] == [container.id]
    assert answer.timestamp
    assert not answer.info
    request.verbose = True
    answer = await client.runtime.PodSandboxStatus(request)
    assert pod.id in answer.info["info"]


async def test_pods_are_filtered(served: Served, client: Any) -> None:
    ready = served.engine.add_pod("a")
    stopped = served.engine.add_pod("b", stopping_at=1)

    async def ids(**wanted: Any) -> set[str]:
        answer = await client.runtime.ListPodSandbox(client.m.ListPodSandboxRequest(filter=wanted))
        return {item.id for item in answer.items}

    assert await ids() == {ready.id, stopped.id}
    assert await ids(state={}) == {ready.id}
    assert await ids(state={"state": client.m.SANDBOX_NOTREADY}) == {stopped.id}
    assert await ids(id=stopped.id[:8]) == {stopped.id}
    assert await ids(label_selector={"no": "such"}) == set()


async def test_streamed_lists_are_the_lists(served: Served, client: Any) -> None:
    pods = [served.engine.add_pod(f"p{number}") for number in range(3)]
    container = served.engine.add_container(pods[0])
    m = client.m

    async def collect(call: Any, field: str) -> list[str]:
        return [item.id async for answer in call for item in getattr(answer, field)]

    stream = client.runtime.StreamPodSandboxes
    assert await collect(stream(m.StreamPodSandboxesRequest()), "pod_sandboxes") == [pod.id for pod in pods]
    wanted = {"id": pods[1].id}
    assert await collect(stream(m.StreamPodSandboxesRequest(filter=wanted)), "pod_sandboxes") == [pods[1].id]
    listed = client.runtime.StreamContainers(m.StreamContainersRequest())
    assert await collect(listed, "containers") == [container.id]
    none = client.runtime.StreamContainers(m.StreamContainersRequest(filter={"id": "zz"}))
    assert await collect(none, "containers") == []


async def test_a_streamed_list_comes_in_several_messages(
    served: Served, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encodings, "CHUNK_BYTES", 1000)
    pods = [served.engine.add_pod(f"p{number}") for number in range(40)]
    answers = [answer async for answer in client.runtime.StreamPodSandboxes(client.m.StreamPodSandboxesRequest())]
    assert len(answers) > 2
    assert [item.id for answer in answers for item in answer.pod_sandboxes] == [pod.id for pod in pods]


async def test_a_streamed_list_refuses_what_the_list_does(client: Any) -> None:
    request = client.m.StreamPodSandboxesRequest(filter={"state": {"state": 77}})
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await client.runtime.StreamPodSandboxes(request).read()
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "filter.state.state" in (caught.value.details() or "")


async def test_a_containers_life(served: Served, client: Any) -> None:
    pod = served.engine.add_pod()
    request = client.m.CreateContainerRequest(
        pod_sandbox_id=pod.id,
        config=container_config(client, labels={"a": "b"}, linux={"resources": {"cpu_shares": 2}}),
        sandbox_config=pod_config(client),
    )
    container_id = (await client.runtime.CreateContainer(request)).container_id
    await client.runtime.StartContainer(client.m.StartContainerRequest(container_id=container_id))
    status = client.m.ContainerStatusRequest(container_id=container_id[:12])
    answer = (await client.runtime.ContainerStatus(status)).status
    assert (answer.state, answer.resources.linux.cpu_shares) == (client.m.CONTAINER_RUNNING, 2)
    await client.runtime.StopContainer(client.m.StopContainerRequest(container_id=container_id, timeout=30))
    answer = (await client.runtime.ContainerStatus(status)).status
    assert (answer.state, answer.exit_code, answer.reason) == (client.m.CONTAINER_EXITED, 143, "Error")
    assert served.engine.grace_seconds == [30]
    for _ in range(2):
        await client.runtime.RemoveContainer(client.m.RemoveContainerRequest(container_id=container_id))
        await client.runtime.StopContainer(client.m.StopContainerRequest(container_id=container_id))
    assert not (await client.runtime.ListContainers(client.m.ListContainersRequest())).containers


async def test_verbose_container_status(served: Served, client: Any) -> None:
    container = served.engine.add_container(served.engine.add_pod())
    request = client.m.ContainerStatusRequest(container_id=container.id, verbose=True)
    answer = await client.runtime.ContainerStatus(request)
    assert container.id in answer.info["info"]


async def test_containers_are_filtered(served: Served, client: Any) -> None:
    pod, other = served.engine.add_pod("a"), served.engine.add_pod("b")
    created = served.engine.add_container(pod, "c")
    running = served.engine.add_container(pod, "r", started_at=1)
    exited = served.engine.add_container(other, "x", exit=ExitFact(exit_code=0, finished_at=1))

    async def ids(**wanted: Any) -> set[str]:
        answer = await client.runtime.ListContainers(client.m.ListContainersRequest(filter=wanted))
        return {item.id for item in answer.containers}

    assert await ids() == {created.id, running.id, exited.id}
    assert await ids(state={}) == {created.id}
    assert await ids(state={"state": client.m.CONTAINER_RUNNING}) == {running.id}
    assert await ids(pod_sandbox_id=other.id) == {exited.id}
    assert await ids(id=running.id) == {running.id}


async def test_lists_follow_every_change(served: Served, client: Any) -> None:
    """Encodings are kept with their records, and never longer than these are true."""
    pod = served.engine.add_pod()
    container = served.engine.add_container(pod)

    async def states() -> list[int]:
        answer = await client.runtime.ListContainers(client.m.ListContainersRequest())
        return [item.state for item in answer.containers]

    assert await states() == [client.m.CONTAINER_CREATED]
    served.engine.change(container, started_at=1)
    assert await states() == [client.m.CONTAINER_RUNNING]
    second = served.engine.add_container(pod, "second")
    assert await states() == [client.m.CONTAINER_RUNNING, client.m.CONTAINER_CREATED]
    del served.engine.registry.containers[second.id]
    assert await states() == [client.m.CONTAINER_RUNNING]


async def test_update_container_resources(served: Served, client: Any) -> None:
    container = served.engine.add_container(served.engine.add_pod())
    request = client.m.UpdateContainerResourcesRequest(container_id=container.id, linux={"cpuset_cpus": "0-1"})
    await client.runtime.UpdateContainerResources(request)
    assert served.engine.registry.containers[container.id].resources == Resources(cpuset_cpus="0-1")


@pytest.mark.parametrize(
    ("fields", "name"), [({"annotations": {"a": "b"}}, "annotations"), ({"windows": {"cpu_count": 1}}, "windows")]
)
async def test_an_update_refuses_by_name_what_it_does_not_know(
    served: Served, client: Any, fields: dict[str, Any], name: str
) -> None:
    container = served.engine.add_container(served.engine.add_pod())
    request = client.m.UpdateContainerResourcesRequest(container_id=container.id, linux={"cpu_shares": 2}, **fields)
    with pytest.raises(grpc.aio.AioRpcError, match=f"{name} is not supported") as caught:
        await client.runtime.UpdateContainerResources(request)
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_update_pod_sandbox_resources(served: Served, client: Any) -> None:
    pod = served.engine.add_pod()
    request = client.m.UpdatePodSandboxResourcesRequest(
        pod_sandbox_id=pod.id, overhead={"cpu_shares": 2}, resources={"cpu_shares": 8}
    )
    await client.runtime.UpdatePodSandboxResources(request)
    only = client.m.UpdatePodSandboxResourcesRequest(pod_sandbox_id=pod.id, resources={"cpu_shares": 9})
    await client.runtime.UpdatePodSandboxResources(only)
    record = served.engine.registry.pods[pod.id]
    assert (record.overhead, record.resources) == (Resources(cpu_shares=2), Resources(cpu_shares=9))


async def test_reopen_container_log(served: Served, client: Any) -> None:
    container = served.engine.add_container(served.engine.add_pod())
    await client.runtime.ReopenContainerLog(client.m.ReopenContainerLogRequest(container_id=container.id))
    assert served.engine.faults.calls["containers.reopen_log"] == 1


async def test_exec_sync(served: Served, client: Any) -> None:
    container = served.engine.add_container(served.engine.add_pod())
    served.engine.exec_result = ExecResult(exit_code=3, stdout=b"\xff\0out", stderr=b"err")
    request = client.m.ExecSyncRequest(container_id=container.id, cmd=["sh", "-c", "exit 3"], timeout=7)
    answer = await client.runtime.ExecSync(request)
    assert (answer.exit_code, answer.stdout, answer.stderr) == (3, b"\xff\0out", b"err")
    request.timeout = 0
    await client.runtime.ExecSync(request)
    assert served.engine.commands == [(("sh", "-c", "exit 3"), 7), (("sh", "-c", "exit 3"), None)]


async def test_output_that_fills_an_answer_still_arrives(served: Served, client: Any) -> None:
    container = served.engine.add_container(served.engine.add_pod())
    limit = 16 * 1024 * 1024
    served.engine.exec_result = ExecResult(exit_code=0, stdout=b"o" * limit, stderr=b"e" * limit)
    answer = await client.runtime.ExecSync(client.m.ExecSyncRequest(container_id=container.id, cmd=["yes"]))
    assert len(answer.stdout) == len(answer.stderr) == limit // 2 - 512


async def test_container_events(served: Served, client: Any) -> None:
    pod = served.engine.add_pod()
    container = served.engine.add_container(pod, started_at=1)
    stream = client.runtime.GetContainerEvents(client.m.GetEventsRequest())
    await stream.initial_metadata()
    served.engine.events.announce(EventKind.STARTED, container.id, pod.id)
    served.engine.events.announce(EventKind.STOPPED, pod.id, pod.id)
    first, second = await stream.read(), await stream.read()
    assert (first.container_id, first.container_event_type) == (container.id, client.m.CONTAINER_STARTED_EVENT)
    assert first.pod_sandbox_status.metadata.name == "web"
    assert [status.id for status in first.containers_statuses] == [container.id]
    assert (second.container_id, second.container_event_type) == (pod.id, client.m.CONTAINER_STOPPED_EVENT)
    stream.cancel()
    await served.tasks.settle()
    assert served.engine.subscribed == 0

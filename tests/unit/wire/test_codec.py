from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isulad_py.api.runtime import v1 as cri
from isulad_py.model.errors import InvalidInput, ResourceExhausted
from isulad_py.wire import codec


@given(st.binary(max_size=200))
def test_bytes_that_are_no_message_are_invalid(data: bytes) -> None:
    try:
        codec.decode_now(data, cri.CreateContainerRequest)
    except InvalidInput:
        return


def test_counting_follows_the_messages() -> None:
    config = cri.ContainerConfig(mounts=[cri.Mount(container_path="/a")] * 3, labels={"a": "b"})
    request = cri.CreateContainerRequest(pod_sandbox_id="p", config=config)
    # pod id, config, three mounts with a path each, a label with key and value
    assert codec.count_fields(bytes(request), cri.CreateContainerRequest) == 2 + 3 * 2 + 3
    assert codec.count_fields(b"\xff" * 99, cri.CreateContainerRequest) == 0
    groups = cri.LinuxContainerSecurityContext(supplemental_groups=[2**40] * 500_000)
    with pytest.raises(ResourceExhausted):
        codec.count_fields(bytes(groups), cri.LinuxContainerSecurityContext)


async def test_the_environment_of_a_namespace_of_two_thousand_services() -> None:
    """enableServiceLinks gives seven variables for each."""
    envs = [cri.KeyValue(key=f"SERVICE_{n}_PORT", value=b"tcp://10.0.0.1:80") for n in range(14_000)]
    data = bytes(cri.CreateContainerRequest(config=cri.ContainerConfig(envs=envs)))
    assert len((await codec.decode(data, cri.CreateContainerRequest)).config.envs) == 14_000


async def test_small_and_large_requests_are_read_alike() -> None:
    for count in (1, 100, 2000):
        config = cri.ContainerConfig(envs=[cri.KeyValue(key=f"K{number}", value=b"v") for number in range(count)])
        found = await codec.decode(bytes(config), cri.ContainerConfig)
        assert [env.key for env in found.envs] == [env.key for env in config.envs]


async def test_large_rubbish_is_invalid() -> None:
    with pytest.raises(InvalidInput, match="not a valid ContainerConfig"):
        await codec.decode(b"\xff" * 100_000, cri.ContainerConfig)


def test_what_is_encoded_passes_through() -> None:
    assert codec.encode(b"abc") == b"abc"
    assert codec.encode(cri.VersionRequest(version="1")) == b"\x0a\x011"


@given(st.lists(st.text(max_size=300), max_size=4), st.sampled_from([1, 15, 16, 3000]))
def test_elements_join_to_a_list(names: list[str], number: int) -> None:
    items = [bytes(cri.PodSandbox(id=name)) for name in names]
    joined = b"".join(codec.element(1, item) for item in items)
    assert [item.id for item in cri.ListPodSandboxResponse().parse(joined).items] == names
    skipped = b"".join(codec.element(number + 1, item) for item in items)
    assert cri.ListPodSandboxResponse().parse(skipped).items == []

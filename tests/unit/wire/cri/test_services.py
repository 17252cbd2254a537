from __future__ import annotations

from isulad_py.api.runtime import v1 as cri
from isulad_py.model.ids import ImageId
from isulad_py.model.image import ImageRecord
from isulad_py.wire.cri.services import Lists
from tests.fakes.services import FakeEngine


async def test_joined_elements_are_the_messages_of_list_calls() -> None:
    engine, lists = FakeEngine(), Lists()
    pod = engine.add_pod()
    container = engine.add_container(pod)
    image = ImageRecord(id=ImageId("sha256:1"))
    pods = cri.ListPodSandboxResponse().parse(await lists.pods.join([pod, pod], complete=True))
    assert [item.id for item in pods.items] == [pod.id] * 2
    containers = cri.ListContainersResponse().parse(await lists.containers.join([container], complete=True))
    assert [item.id for item in containers.containers] == [container.id]
    images = cri.ListImagesResponse().parse(await lists.images.join([image], complete=True))
    assert [item.id for item in images.images] == ["sha256:1"]

"""What the CRI servicers forward to."""

from __future__ import annotations

from dataclasses import dataclass

from isulad_py.engine.checkpoints import Checkpoints
from isulad_py.engine.containers import Containers
from isulad_py.engine.events import Events
from isulad_py.engine.exec import Exec
from isulad_py.engine.images import Images
from isulad_py.engine.pod_checkpoints import PodCheckpoints
from isulad_py.engine.pod_metrics import PodMetrics
from isulad_py.engine.pods import Pods
from isulad_py.engine.queries import Queries
from isulad_py.engine.readiness import Readiness
from isulad_py.engine.sessions import Sessions
from isulad_py.engine.stats import Stats
from isulad_py.model.container import ContainerRecord
from isulad_py.model.image import ImageRecord
from isulad_py.model.pod import PodRecord
from isulad_py.ports.clock import Clock
from isulad_py.ports.network import Network
from isulad_py.wire.encodings import Encodings
from isulad_py.wire.translate import containers, images, pods


@dataclass(frozen=True, kw_only=True)
class Services:
    """The engine, as CRI needs it."""

    pods: Pods
    containers: Containers
    queries: Queries
    exec: Exec
    sessions: Sessions
    images: Images
    stats: Stats
    metrics: PodMetrics
    events: Events
    readiness: Readiness
    checkpoints: Checkpoints
    pod_checkpoints: PodCheckpoints
    network: Network
    clock: Clock
    systemd_cgroup: bool
    """The cgroup driver that clients have to follow."""


class Lists:
    """Encodings of all that is listed, shared by the versions of the API. Each is field 1 of what it is part of."""

    def __init__(self) -> None:
        self.pods: Encodings[PodRecord] = Encodings(pods.pod_item)
        self.containers: Encodings[ContainerRecord] = Encodings(containers.container_item)
        self.images: Encodings[ImageRecord] = Encodings(images.image_item)
        self.pod_attributes: Encodings[PodRecord] = Encodings(pods.pod_attributes)
        self.container_attributes: Encodings[ContainerRecord] = Encodings(containers.container_attributes)

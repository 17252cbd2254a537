"""The real engine behind the servicers, on fakes."""

from __future__ import annotations

from typing import Any, cast

from isulad_py.engine.sessions import Sessions, Tokens
from isulad_py.wire.cri.services import Services
from tests.unit.engine.node import Node


def cri_services(node: Node) -> Services:
    services, world = node.services, node.world
    tokens = Tokens(clock=cast("Any", world.clock))
    sessions = Sessions(registry=services.registry, exec_=services.exec, tokens=tokens, base_url="http://127.0.0.1:1")
    return Services(
        pods=services.pods,
        containers=services.containers,
        queries=services.queries,
        exec=services.exec,
        sessions=sessions,
        images=services.images,
        stats=services.stats,
        metrics=services.metrics,
        events=services.events,
        readiness=services.readiness,
        checkpoints=services.checkpoints,
        pod_checkpoints=services.pod_checkpoints,
        network=cast("Any", world.network),
        clock=cast("Any", world.clock),
        systemd_cgroup=False,
    )

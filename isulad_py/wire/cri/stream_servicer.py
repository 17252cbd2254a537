"""The part of RuntimeService that hands out addresses of streams."""

from __future__ import annotations

from isulad_py.api.runtime import v1 as cri
from isulad_py.wire.cri.services import Services
from isulad_py.wire.translate import calls


class StreamServicer:
    def __init__(self, *, services: Services) -> None:
        self._sessions = services.sessions

    async def exec(self, request: cri.ExecRequest) -> cri.ExecResponse:
        container_id, command = calls.container_id(request.container_id), calls.command(request.cmd)
        return cri.ExecResponse(url=self._sessions.exec(container_id, command, calls.wishes(request)))

    async def attach(self, request: cri.AttachRequest) -> cri.AttachResponse:
        container_id = calls.container_id(request.container_id)
        return cri.AttachResponse(url=self._sessions.attach(container_id, calls.wishes(request)))

    async def port_forward(self, request: cri.PortForwardRequest) -> cri.PortForwardResponse:
        pod_id = calls.pod_id(request.pod_sandbox_id)
        return cri.PortForwardResponse(url=self._sessions.port_forward(pod_id, tuple(request.port)))

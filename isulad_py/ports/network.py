"""The pod network."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from isulad_py.model.network import Attachment, NetworkResult, NetworkStatus
from isulad_py.model.stats import InterfaceSample


class Network(Protocol):
    def status(self) -> NetworkStatus:
        """As last seen by the directory watch; never blocks."""
        ...

    def prepare(self, attachment: Attachment) -> Attachment:
        """The attachment with the configuration that `attach` will use, to be recorded before it runs. Raises
        Unavailable with the reason while there is no valid configuration."""
        ...

    async def attach(self, attachment: Attachment) -> NetworkResult:
        """ADD of the whole chain (CNI spec, section 4).

        A failed or cancelled chain is undone with DEL before this raises.
        """
        ...

    async def detach(self, attachment: Attachment, result: NetworkResult | None) -> None:
        """DEL of the whole chain, with the recorded configuration and result, also when the namespace is gone.

        Idempotent.
        """
        ...

    async def check(self, attachment: Attachment, result: NetworkResult) -> None: ...

    async def collect(self, live: Collection[Attachment]) -> None:
        """GC: lets plugins drop whatever belongs to none of `live` (CNI spec 1.1)."""
        ...

    async def set_pod_cidr(self, cidr: str) -> None:
        """UpdateRuntimeConfig's pod CIDR (comma-separated for dual stack): the `ipRanges` capability."""
        ...

    async def interfaces(self, netns_path: str) -> tuple[InterfaceSample, ...]:
        """Counters of the namespace's interfaces, the pod's own first and loopback last, read in process."""
        ...

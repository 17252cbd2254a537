"""Where the network's contract is tried: in memory, and on Debian's plugins."""

from __future__ import annotations

import ipaddress
import json
import secrets
import shutil
from pathlib import Path
from typing import Any, Protocol

from isulad_py.host import namespaces
from isulad_py.host.namespaces import NewNamespaces
from isulad_py.model.network import Attachment
from isulad_py.network.adapter import CniNetwork
from isulad_py.ports.network import Network
from tests.fakes.network import FakeNetwork
from tests.stand.mark import cni_bin_dir, run
from tests.stand.network import free_subnet


class Place(Protocol):
    @property
    def network(self) -> Network: ...

    def pod(self, **keys: Any) -> Attachment:
        """A new pod with a network namespace of its own, not prepared yet."""
        ...

    def held(self) -> set[str]:
        """Ids of the pods that the network keeps anything for."""
        ...

    def lose_netns(self, attachment: Attachment) -> None: ...

    def break_address(self, attachment: Attachment) -> None: ...

    async def lose_config(self) -> None: ...

    async def restore_config(self) -> None: ...


def attachment(netns_path: str, **keys: Any) -> Attachment:
    known = {"name": "web", "namespace": "default", "uid": secrets.token_hex(8), "netns_path": netns_path}
    return Attachment(pod_id=secrets.token_hex(32), **{**known, **keys})


class FakePlace:
    def __init__(self) -> None:
        self.network = FakeNetwork()

    def pod(self, **keys: Any) -> Attachment:
        return attachment(f"/fake/{secrets.token_hex(4)}", **keys)

    def held(self) -> set[str]:
        return set(self.network.attached)

    def lose_netns(self, attachment: Attachment) -> None:
        self.network.lost.add(attachment.netns_path)

    def break_address(self, attachment: Attachment) -> None:
        self.network.broken.add(attachment.pod_id)

    async def lose_config(self) -> None:
        self.network.unready = "no valid network configuration"

    async def restore_config(self) -> None:
        self.network.unready = ""


class CniPlace:
    """A bridge and subnets of its own; every trace bears the bridge's name or a pod's id."""

    def __init__(self, root: Path, *, plugins: tuple[dict[str, Any], ...] = (), bin_dirs: tuple[str, ...] = ()) -> None:
        self._root = root
        self.bridge = f"t{secrets.token_hex(5)}"
        self.subnet = free_subnet()
        self.subnet6 = f"fd{secrets.token_hex(1)}:{secrets.token_hex(2)}:{secrets.token_hex(2)}::/64"
        self.gateway = str(ipaddress.ip_network(self.subnet)[1])
        self.conf = root / "net.d"
        for folder in (self.conf, root / "ns"):
            folder.mkdir()
        self._pods: list[Attachment] = []
        self.config: dict[str, Any] = {
            "cniVersion": "1.0.0",
            "name": self.bridge,
            "plugins": [self._bridge_plugin(), {"type": "portmap", "capabilities": {"portMappings": True}}, *plugins],
        }
        self.put()
        self.network = CniNetwork(conf_dir=str(self.conf), bin_dirs=(*bin_dirs, str(cni_bin_dir())))

    def _bridge_plugin(self) -> dict[str, Any]:
        ipam = {
            "type": "host-local",
            "dataDir": str(self._root / "ipam"),
            "ranges": [[{"subnet": self.subnet}], [{"subnet": self.subnet6}]],
            "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}],
        }
        return {"type": "bridge", "bridge": self.bridge, "isGateway": True, "hairpinMode": True, "ipam": ipam}

    def put(self) -> None:
        (self.conf / "10.conflist").write_text(json.dumps(self.config))

    def pod(self, **keys: Any) -> Attachment:
        path = str(self._root / "ns" / secrets.token_hex(4))
        namespaces.create(NewNamespaces(net_path=path))
        self._pods.append(attachment(path, **keys))
        return self._pods[-1]

    def held(self) -> set[str]:
        """From host-local's files, one for each address, which begins with the container's id."""
        folder = self._root / "ipam" / self.bridge
        files = folder.iterdir() if folder.is_dir() else ()
        return {path.read_text().split()[0] for path in files if not path.name.startswith(("lock", "last_reserved"))}

    def links(self) -> set[str]:
        """What is plugged into the bridge."""
        folder = Path("/sys/class/net", self.bridge, "brif")
        return {path.name for path in folder.iterdir()} if folder.is_dir() else set()

    def rules(self, attachment: Attachment) -> list[str]:
        """Packet filter rules that name the pod."""
        return [line for line in run(["iptables-save", "-t", "nat"]).splitlines() if attachment.pod_id in line]

    def lose_netns(self, attachment: Attachment) -> None:
        namespaces.release(attachment.netns_path)

    def break_address(self, attachment: Attachment) -> None:
        run(["nsenter", f"--net={attachment.netns_path}", "ip", "address", "flush", "dev", "eth0"])

    async def lose_config(self) -> None:
        (self.conf / "10.conflist").unlink()
        await self.network.reload()

    async def restore_config(self) -> None:
        self.put()
        await self.network.reload()

    async def close(self) -> None:
        """Also after a test that failed half-way."""
        await self.restore_config()
        held = self.held()
        for pod in self._pods:
            if pod.pod_id in held:
                await self.network.detach(self.network.prepare(pod), None)
            namespaces.release(pod.netns_path)
        if Path("/sys/class/net", self.bridge).exists():
            run(["ip", "link", "delete", self.bridge], check=False)
        shutil.rmtree(self._root / "ipam", ignore_errors=True)

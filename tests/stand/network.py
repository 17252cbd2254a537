"""A CNI network of a stand's own: its bridge, its subnet, its address book."""

from __future__ import annotations

import ipaddress
import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.stand.mark import Mark, cni_bin_dir, run


@dataclass(frozen=True)
class StandNetwork:
    name: str
    bridge: str
    subnet: str
    conf_dir: Path
    bin_dir: Path
    conflist: dict[str, Any]


def routed_networks() -> list[ipaddress.IPv4Network]:
    """What this machine's IPv4 routes lead to, the default route left out."""
    found = []
    for line in Path("/proc/net/route").read_text(encoding="ascii").splitlines()[1:]:
        fields = line.split()
        target, mask = (int.from_bytes(bytes.fromhex(fields[i]), "little") for i in (1, 7))
        if mask:
            found.append(ipaddress.IPv4Network((target, bin(mask).count("1")), strict=False))
    return found


def free_subnet() -> str:
    """A /23 (room for 500 pods) of 10.128.0.0/9 to which no route leads."""
    taken = routed_networks()
    for _ in range(200):
        subnet = ipaddress.IPv4Network(f"10.{128 + secrets.randbelow(127)}.{2 * secrets.randbelow(128)}.0/23")
        if not any(subnet.overlaps(other) for other in taken):
            return str(subnet)
    raise OSError("no free subnet found in 10.128.0.0/9")


@contextmanager
def stand_network(mark: Mark, folder: Path, suffix: str = "") -> Iterator[StandNetwork]:
    """Write a conflist as a node has one (bridge, host-local, portmap); the bridge goes when the stand goes."""
    bridge = f"{mark.word}{suffix}"
    subnet = free_subnet()
    conflist: dict[str, Any] = {
        "cniVersion": "0.4.0",
        "name": bridge,
        "plugins": [
            {
                "type": "bridge",
                "bridge": bridge,
                "isGateway": True,
                "ipMasq": True,
                "hairpinMode": True,
                "ipam": {
                    "type": "host-local",
                    "dataDir": str(folder / "ipam"),
                    "ranges": [[{"subnet": subnet}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ],
    }
    conf_dir = folder / "net.d"
    conf_dir.mkdir(parents=True)
    (conf_dir / "10-stand.conflist").write_text(json.dumps(conflist, indent=2), encoding="utf-8")
    try:
        yield StandNetwork(bridge, bridge, subnet, conf_dir, cni_bin_dir(), conflist)
    finally:
        if Path("/sys/class/net", bridge).exists():
            run(["ip", "link", "delete", bridge], check=False)

"""A node whose disk outlives the machine's boots: graph, addresses and network configuration stay, the rest is gone."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from isulad_py.host.files import write_atomic
from tests import images
from tests.stand.daemon import stand_daemon
from tests.stand.disk import mounts_below
from tests.stand.mark import Mark
from tests.stand.network import StandNetwork, stand_network
from tests.stand.node import Node
from tests.stand.registry import registry

MARK = Mark("lasting", Path("/var/lib/lasting"))
STATE = Path("/run/lasting")
HOST = "lasting.example"
"""What images are named after: the registry behind it has another port at each boot."""
IMAGE = f"{HOST}/test/busybox:latest"
NOTES = MARK.root / "notes.json"


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def note(**facts: Any) -> None:
    """For a later boot, whatever happens to this one."""
    write_atomic(str(NOTES), json.dumps({**notes(), **facts}).encode(), durable=True)


def notes() -> dict[str, Any]:
    return dict(json.loads(NOTES.read_text())) if NOTES.exists() else {}


@contextlib.contextmanager
def _network() -> Iterator[StandNetwork]:
    """The same one at each boot."""
    kept = MARK.root / "network.json"
    if kept.exists():
        fields = json.loads(kept.read_text())
        yield StandNetwork(**{**fields, "conf_dir": Path(fields["conf_dir"]), "bin_dir": Path(fields["bin_dir"])})
        return
    with stand_network(MARK, MARK.root / "cni") as made:
        kept.write_text(json.dumps(dataclasses.asdict(made), default=str))
        yield made


@contextlib.contextmanager
def lasting_node() -> Iterator[Node]:
    """Its daemon is not stopped in order, and pods stay: the machine's end is the end of all."""
    for folder in (MARK.root / "graph", STATE):
        folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        # In memory: its own records need not outlive anything.
        host = stack.enter_context(registry(Path("/run/registry")))
        images.push(host, "test/busybox", "latest", images.busybox_image())
        images.push(host, "test/pause", "latest", images.busybox_image(config={"Cmd": ["sleep", "2147483647"]}))
        keys = {
            "registries": {HOST: {"mirrors": [f"http://{host}"]}},
            "pod_sandbox_image": f"{HOST}/test/pause:latest",
        }
        network = stack.enter_context(_network())
        daemon = stack.enter_context(stand_daemon(MARK, MARK.root / "graph", STATE, network, **keys))
        node = Node(MARK, daemon, network, host, MARK.root / "graph", STATE, IMAGE)
        stack.callback(node.reconnect)
        yield node
        daemon.kill()


def left_on_disk() -> list[str]:
    """What a node without pods must not have in its graph and its address book."""
    found = [f"mount {point}" for point in mounts_below(MARK.root)]
    for folder in ("overlay/containers", "overlay/ingest"):
        path = MARK.root / "graph" / folder
        found += [str(entry) for entry in path.iterdir()] if path.exists() else []
    return found

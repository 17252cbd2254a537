"""From a plugin's configuration to one call of it (CNI spec, section 3, "deriving request configuration"). Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from isulad_py.network.conflist import NetworkConfig, Plugin
from isulad_py.network.invoke import PluginCall

IFNAME: Final = "eth0"
"""The pod's interface on its network."""
_OURS: Final = ("capabilities", "prevResult")
_RESERVED_PREFIX: Final = "cni.dev/"


class Parameters(Struct, frozen=True, kw_only=True):
    """What concerns one attachment, the same for each plugin of the chain."""

    container_id: str
    netns: str
    args: str
    capability_args: dict[str, Any]


def attachment_call(
    config: NetworkConfig, plugin: Plugin, command: str, parameters: Parameters, previous: str
) -> PluginCall:
    """ADD, DEL or CHECK. `previous` is the prevResult (JSON), or empty for none."""
    keys = _keys(config, plugin)
    runtime = {name: value for name, value in parameters.capability_args.items() if name in plugin.capabilities}
    if runtime:
        keys["runtimeConfig"] = runtime
    if previous:
        keys["prevResult"] = Raw(previous.encode())
    return PluginCall(
        plugin=plugin.type,
        command=command,
        config=msgspec.json.encode(keys),
        container_id=parameters.container_id,
        netns=parameters.netns,
        ifname=IFNAME,
        args=parameters.args,
    )


def gc_call(config: NetworkConfig, plugin: Plugin, valid: Collection[str]) -> PluginCall:
    """GC with the ids of the containers whose attachments are still valid."""
    keys = _keys(config, plugin)
    attachments = [{"containerID": container_id, "ifname": IFNAME} for container_id in sorted(valid)]
    keys["cni.dev/valid-attachments"] = attachments
    # The first plugins with GC were built with this name in their library: to them, its absence would read as "none".
    keys["cni.dev/attachments"] = attachments
    return PluginCall(plugin=plugin.type, command="GC", config=msgspec.json.encode(keys))


def status_call(config: NetworkConfig, plugin: Plugin) -> PluginCall:
    return PluginCall(plugin=plugin.type, command="STATUS", config=msgspec.json.encode(_keys(config, plugin)))


def version_call(plugin: str, version: str) -> PluginCall:
    return PluginCall(plugin=plugin, command="VERSION", config=msgspec.json.encode({"cniVersion": version}))


def _keys(config: NetworkConfig, plugin: Plugin) -> dict[str, Any]:
    kept: Mapping[str, Raw] = {
        key: value for key, value in plugin.keys.items() if key not in _OURS and not key.startswith(_RESERVED_PREFIX)
    }
    return {**kept, "cniVersion": config.version, "name": config.name}

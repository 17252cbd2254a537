"""Network configurations: parse, validate, keep (CNI spec 1.1, section 1). Pure.

What a plugin's author wrote is kept byte for byte: only the keys that the protocol itself owns are looked at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from isulad_py.model.errors import InvalidInput

SPOKEN: Final = ("0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0")
"""Versions of the CNI spec that this adapter speaks, oldest first."""
SUFFIXES: Final = (".conf", ".conflist", ".json")
NATIVE_PREFIX: Final = "isulacni-"
"""Files that belong to `isula network`, never to pods."""
DOCUMENT_LIMIT_BYTES: Final = 1024 * 1024
PLUGIN_LIMIT: Final = 64

_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]{0,199}")
_TYPE = re.compile(r"[^/\\\x00-\x1f\x7f]{1,255}")

T = TypeVar("T")


class Plugin(Struct, frozen=True, kw_only=True):
    """One plugin configuration object."""

    type: str
    capabilities: frozenset[str]
    keys: dict[str, Raw]
    """Every key as written."""


class NetworkConfig(Struct, frozen=True, kw_only=True):
    name: str
    versions: tuple[str, ...]
    """Those that the configuration supports and we speak, newest first; the first one is used."""
    plugins: tuple[Plugin, ...]
    disable_check: bool = False
    disable_gc: bool = False

    @property
    def version(self) -> str:
        return self.versions[0]

    def since(self, version: str) -> bool:
        """Whether the version in use is `version` or newer."""
        return SPOKEN.index(self.version) >= SPOKEN.index(version)

    def document(self) -> str:
        """This configuration as one list, its plugins inlined and its version settled; `parse` gives it back."""
        return msgspec.json.encode(
            {
                "cniVersion": self.version,
                "name": self.name,
                "disableCheck": self.disable_check,
                "disableGC": self.disable_gc,
                "loadOnlyInlinedPlugins": True,
                "plugins": [plugin.keys for plugin in self.plugins],
            }
        ).decode()


class _Head(Struct, frozen=True, rename="camel"):
    name: str
    cni_version: str | UnsetType = UNSET
    cni_versions: list[str] | UnsetType = UNSET
    disable_check: bool | str = False
    disable_gc: bool | str = field(default=False, name="disableGC")
    load_only_inlined_plugins: bool | str = False
    type: str | UnsetType = UNSET
    plugins: list[Raw] | UnsetType = UNSET


class _PluginHead(Struct, frozen=True):
    type: str
    capabilities: dict[str, bool] = {}


def no_siblings(_name: str) -> Sequence[tuple[str, bytes]]:
    return ()


def parse(data: bytes, siblings: Callable[[str], Sequence[tuple[str, bytes]]] = no_siblings) -> NetworkConfig:
    """A configuration list, or a single plugin's configuration as a list of one.

    `siblings` gives the files of the folder named like the network (spec 1.1: plugins aggregated from there); it is
    asked only where the list allows that. Raises InvalidInput naming the key.
    """
    head = _decode(data, _Head, "")
    if not _NAME.fullmatch(head.name):
        raise InvalidInput(f"name: {head.name[:80]!r} is not a network name")
    versions = _versions(head)
    if head.type is not UNSET and head.plugins is UNSET:
        return NetworkConfig(name=head.name, versions=versions, plugins=(_plugin(data, ""),))
    inlined_only = _flag(head.load_only_inlined_plugins, "loadOnlyInlinedPlugins")
    if head.plugins is UNSET and inlined_only:
        raise InvalidInput("plugins: missing, although loadOnlyInlinedPlugins is set")
    plugins = [_plugin(bytes(raw), f"plugins[{i}]") for i, raw in enumerate(_plugin_list(head.plugins))]
    if not inlined_only:
        plugins += [_plugin(content, name) for name, content in siblings(head.name)]
    if not plugins:
        raise InvalidInput("plugins: none")
    if len(plugins) > PLUGIN_LIMIT:
        raise InvalidInput(f"plugins: {len(plugins)} are more than {PLUGIN_LIMIT}")
    return NetworkConfig(
        name=head.name,
        versions=versions,
        plugins=tuple(plugins),
        disable_check=_flag(head.disable_check, "disableCheck"),
        disable_gc=_flag(head.disable_gc, "disableGC"),
    )


def settle(config: NetworkConfig, speaks: Sequence[frozenset[str]]) -> NetworkConfig:
    """The configuration at its newest version that each plugin speaks (spec 1.1, "version considerations").

    `speaks` has one entry for each plugin; an empty one is "not known". Raises InvalidInput naming the plugin that
    speaks none of the versions.
    """
    versions = config.versions
    for plugin, spoken in zip(config.plugins, speaks, strict=True):
        common = tuple(version for version in versions if not spoken or version in spoken)
        if not common:
            wanted = ", ".join(versions)
            raise InvalidInput(f"plugin {plugin.type}: speaks {', '.join(sorted(spoken))}, cniVersion is {wanted}")
        versions = common
    return msgspec.structs.replace(config, versions=versions)


def _decode(data: bytes, kind: type[T], where: str) -> T:
    """Raises InvalidInput for all that JSON can be wrong in: syntax, encoding, types, size, depth."""
    prefix = f"{where}: " if where else ""
    if len(data) > DOCUMENT_LIMIT_BYTES:
        raise InvalidInput(f"{prefix}larger than {DOCUMENT_LIMIT_BYTES} bytes")
    try:
        data.decode()  # values that stay raw are not decoded by msgspec, and would be refused only in the record
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{prefix}{error}") from error
    except RecursionError as error:
        raise InvalidInput(f"{prefix}nested too deeply") from error


def _versions(head: _Head) -> tuple[str, ...]:
    named = [] if head.cni_versions is UNSET else list(head.cni_versions)
    if head.cni_version is not UNSET:
        named.append(head.cni_version)
    if not named:
        raise InvalidInput("cniVersion: missing")
    spoken = tuple(version for version in reversed(SPOKEN) if version in named)
    if not spoken:
        raise InvalidInput(f"cniVersion: {', '.join(named)[:80]!r} is not in {SPOKEN[0]} to {SPOKEN[-1]}")
    return spoken


def _plugin_list(plugins: list[Raw] | UnsetType) -> list[Raw]:
    if plugins is UNSET:
        return []
    if not plugins:
        raise InvalidInput("plugins: empty")
    if len(plugins) > PLUGIN_LIMIT:
        raise InvalidInput(f"plugins: {len(plugins)} are more than {PLUGIN_LIMIT}")
    return plugins


def _plugin(data: bytes, where: str) -> Plugin:
    prefix = f"{where}." if where else ""
    head = _decode(data, _PluginHead, where)
    if not _TYPE.fullmatch(head.type) or head.type in (".", ".."):
        raise InvalidInput(f"{prefix}type: {head.type[:80]!r} is not a file name")
    return Plugin(
        type=head.type,
        capabilities=frozenset(name for name, on in head.capabilities.items() if on),
        keys=_decode(data, dict[str, Raw], where),
    )


def _flag(value: bool | str, key: str) -> bool:
    """A boolean; the reference library also takes the words, so files in the world have them."""
    if isinstance(value, bool):
        return value
    if value.lower() not in ("true", "false"):
        raise InvalidInput(f"{key}: {value[:80]!r} is neither true nor false")
    return value.lower() == "true"

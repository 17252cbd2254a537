"""What plugins print: results of ADD, errors, versions (CNI spec, section 5). Pure."""

from __future__ import annotations

import ipaddress
from typing import Final, TypeVar

import msgspec
from msgspec import Raw, Struct

from isulad_py.model.errors import HostFailure
from isulad_py.model.network import NetworkResult
from isulad_py.network.conflist import SPOKEN

TRY_AGAIN_LATER: Final = 11
UNKNOWN_CONTAINER: Final = 3
"""The plugin holds nothing for this container: for DEL, success."""
_WORDS_LIMIT: Final = 2000

T = TypeVar("T")


class PluginError(Struct, frozen=True, kw_only=True):
    """A plugin's error object."""

    code: int = 0
    msg: str = ""
    details: str = ""

    def words(self) -> str:
        text = ": ".join(part for part in (self.msg, self.details) if part)
        return f"{text[:_WORDS_LIMIT]} (code {self.code})"


class _Interface(Struct, frozen=True):
    name: str
    sandbox: str | None = None


class _Address(Struct, frozen=True):
    address: str
    gateway: str | None = None
    interface: int | None = None


class _Result(Struct, frozen=True, rename="camel"):
    cni_version: str = ""
    interfaces: list[_Interface] | None = None
    ips: list[_Address] | None = None


class _Versions(Struct, frozen=True, rename="camel"):
    supported_versions: list[str]


def link(output: bytes, version: str) -> str:
    """One plugin's answer to ADD, checked, as the next one's prevResult. Raises HostFailure saying what is wrong.

    Versions before 1.0 also carried the family of each address; all later forms only add keys, so one shape reads all.
    """
    result = _decode(output, _Result)
    _checked(result)
    if not result.cni_version:
        keys = _decode(output, dict[str, Raw])
        return msgspec.json.encode({**keys, "cniVersion": version}).decode()
    if result.cni_version not in SPOKEN:
        raise HostFailure(f"result has cniVersion {result.cni_version[:40]!r}")
    return msgspec.json.format(output, indent=-1).decode()  # plugins print it indented; it is kept in a record


def conclude(raw: str, ifname: str) -> NetworkResult:
    """The chain's last answer as the pod's addresses, in the order of the result.

    Addresses of host-side interfaces are not the pod's; those on `ifname` come before any others. Raises HostFailure
    where there is none: a pod without an address would be torn down and made again by the kubelet without end.
    """
    found = _checked(_decode(raw.encode(), _Result))
    own = [address for name, address in found if name in ("", ifname)]
    chosen = own or [address for _, address in found]
    if not chosen:
        raise HostFailure(f"result has no address for {ifname}")
    interface = ifname if own else found[0][0]
    return NetworkResult(ips=tuple(dict.fromkeys(chosen)), interface=interface, raw=raw)


def _checked(result: _Result) -> list[tuple[str, str]]:
    """(interface, address) of what lies in the pod; the interface is empty where the plugin names none."""
    interfaces = result.interfaces or []
    found: list[tuple[str, str]] = []
    for i, entry in enumerate(result.ips or []):
        try:
            address = ipaddress.ip_interface(entry.address).ip
            if entry.gateway:
                ipaddress.ip_address(entry.gateway)
        except ValueError as error:
            raise HostFailure(f"result has ips[{i}]: {error}") from error
        if "/" not in entry.address or "%" in entry.address:
            raise HostFailure(f"result has ips[{i}].address: {entry.address[:80]!r} is not in CIDR notation")
        if entry.interface is None:
            found.append(("", str(address)))
            continue
        if not 0 <= entry.interface < len(interfaces):
            raise HostFailure(f"result has ips[{i}].interface: {entry.interface} of {len(interfaces)} interfaces")
        interface = interfaces[entry.interface]
        if interface.sandbox:
            found.append((interface.name, str(address)))
    return found


def error_object(output: bytes) -> PluginError | None:
    """The error object in a failed plugin's output, or None where it printed something else."""
    try:
        error = _decode(output, PluginError)
    except HostFailure:
        return None
    return error if error.code or error.msg else None


def versions(output: bytes) -> frozenset[str]:
    """The answer to VERSION; empty where it makes no sense: ADD will tell."""
    try:
        return frozenset(_decode(output, _Versions).supported_versions)
    except HostFailure:
        return frozenset()


def _decode(output: bytes, kind: type[T]) -> T:
    try:
        output.decode()
        return msgspec.json.decode(output, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise HostFailure(f"output is not what it must be: {error}") from error
    except RecursionError as error:
        raise HostFailure("output is nested too deeply") from error

"""What plugins are told about one pod: CNI_ARGS and capability arguments (CNI's CONVENTIONS). Pure.

All of it is derived from the attachment, so that DEL says the same as ADD did.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

from isulad_py.model.errors import InvalidInput
from isulad_py.model.network import Attachment, PortMapping, Protocol

EXTENSION: Final = "extension.network.kubernetes.io/cni"
"""Its value becomes one argument; keys below it, `KEY=VALUE` each (iSulad)."""
EXTENSION_ARGUMENT: Final = "CNI_MUTLINET_EXTENSION"
"""Spelt as iSulad spells it: plugins look for this."""
INGRESS: Final = ("kubernetes.io/ingress-bandwidth",)
EGRESS: Final = ("kubernetes.io/egress-bandwidth", "kubernetes.io/engress-bandwidth")
"""The second one is iSulad's spelling."""
BURST_BITS: Final = 2**31 - 1
"""Kubernetes names a rate only; its own shaping never limited bursts."""

_UNPLAIN = re.compile(r"[;=\x00-\x1f\x7f]")
_QUANTITY = re.compile(
    r"(?P<number>\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:(?P<suffix>[KMGTPE]i|[numkMGTPE])|[eE](?P<exponent>[+-]?\d{1,2}))?",
    re.ASCII,
)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


def cni_args(attachment: Attachment) -> str:
    """CNI_ARGS. Raises InvalidInput where a name would smuggle in a further argument."""
    pairs = {
        "IgnoreUnknown": "1",
        "K8S_POD_NAMESPACE": _plain("namespace", attachment.namespace),
        "K8S_POD_NAME": _plain("name", attachment.name),
        "K8S_POD_INFRA_CONTAINER_ID": _plain("pod id", attachment.pod_id),
        "K8S_POD_UID": _plain("uid", attachment.uid),
    }
    for annotation, value in sorted(attachment.annotations.items()):
        if annotation == EXTENSION and not _UNPLAIN.search(value):
            pairs.setdefault(EXTENSION_ARGUMENT, value)
        elif annotation.startswith(f"{EXTENSION}args/"):
            key, _, given = value.partition("=")
            if key and value.count("=") == 1 and not _UNPLAIN.search(key + given):
                pairs.setdefault(key, given)
    return ";".join(f"{key}={value}" for key, value in pairs.items())


def capability_args(attachment: Attachment) -> dict[str, Any]:
    """Everything we can tell, by capability; each plugin gets what its configuration declares.

    Raises InvalidInput naming the field or the annotation.
    """
    offered = {
        "portMappings": [_port(i, m) for i, m in enumerate(attachment.port_mappings) if m.host_port],
        "bandwidth": _bandwidth(attachment.annotations),
        "ipRanges": [[{"subnet": subnet}] for subnet in subnets(attachment.pod_cidr)],
        "dns": _dns(attachment),
        "cgroupPath": attachment.cgroup_path,
    }
    return {name: value for name, value in offered.items() if value}


def subnets(cidr: str) -> tuple[str, ...]:
    """The parts of a pod CIDR, comma-separated for dual stack. Raises InvalidInput."""
    parts = [part.strip() for part in cidr.split(",")] if cidr.strip() else []
    try:
        return tuple(str(ipaddress.ip_network(part, strict=False)) for part in parts if _has_prefix(part))
    except ValueError as error:
        raise InvalidInput(f"pod_cidr: {error}") from error


def _has_prefix(part: str) -> bool:
    if "/" not in part:
        raise ValueError(f"{part[:80]!r} has no prefix length")
    return True


def _plain(field: str, value: str) -> str:
    if _UNPLAIN.search(value):
        raise InvalidInput(f"{field}: {value[:80]!r} cannot be passed to a CNI plugin")
    return value


def _port(index: int, mapping: PortMapping) -> dict[str, Any]:
    where = f"port_mappings[{index}]"
    for name, port in (("host_port", mapping.host_port), ("container_port", mapping.container_port)):
        if not 1 <= port <= 65535:
            raise InvalidInput(f"{where}.{name}: {port} is not in 1 to 65535")
    entry: dict[str, Any] = {
        "hostPort": mapping.host_port,
        "containerPort": mapping.container_port,
        "protocol": Protocol(mapping.protocol).name.lower(),
    }
    if mapping.host_ip:
        try:
            ipaddress.ip_address(mapping.host_ip)
        except ValueError as error:
            raise InvalidInput(f"{where}.host_ip: {error}") from error
        entry["hostIP"] = mapping.host_ip
    return entry


def _bandwidth(annotations: Mapping[str, str]) -> dict[str, int]:
    limits: dict[str, int] = {}
    for direction, names in (("ingress", INGRESS), ("egress", EGRESS)):
        name = next((name for name in names if name in annotations), None)
        if name is not None:
            limits[f"{direction}Rate"] = bits_per_second(annotations[name], name)
            limits[f"{direction}Burst"] = BURST_BITS
    return limits


def bits_per_second(text: str, annotation: str) -> int:
    """A Kubernetes quantity as a rate, within the bounds that Kubernetes itself sets (1k to 1P)."""
    match = _QUANTITY.fullmatch(text.strip().removeprefix("+"))
    if match is None:
        raise InvalidInput(f"annotation {annotation}: {text[:40]!r} is not a quantity such as 10M")
    number = match["number"]
    value = Fraction(f"0{number}" if number.startswith(".") else number.removesuffix("."))
    suffix = match["suffix"] or ""
    if suffix in _BINARY:
        value *= 2 ** _BINARY[suffix]
    else:
        value *= Fraction(10) ** (int(match["exponent"]) if match["exponent"] else _DECIMAL.get(suffix, 0))
    if not 1000 <= value <= 10**15:
        raise InvalidInput(f"annotation {annotation}: {text[:40]!r} is not in 1k to 1P")
    return -int(-value // 1)


def _dns(attachment: Attachment) -> dict[str, list[str]]:
    if attachment.dns is None:
        return {}
    lists = {
        "servers": attachment.dns.servers,
        "searches": attachment.dns.searches,
        "options": attachment.dns.options,
    }
    return {name: list(entries) for name, entries in lists.items() if entries}

"""Pod sandboxes: configuration in; list items and statuses out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from isulad_py.api.runtime import v1 as cri
from isulad_py.model.errors import InvalidInput
from isulad_py.model.network import Dns, PortMapping, Protocol
from isulad_py.model.pod import PodConfig, PodMetadata, PodRecord, PodState
from isulad_py.wire.translate import checks, presence, resources, security

HOSTNAME_MAX: Final = 64
"""The kernel's limit (sethostname(2))."""
MOST_PORTS: Final = 1024
"""Each takes a plugin about 20 ms in each direction."""
MOST_DNS_WORDS: Final = 256
MOST_SYSCTLS: Final = 1024


def pod_config(message: cri.PodSandboxConfig, field: str = "config") -> PodConfig:
    """The model of a whole configuration; InvalidInput names the field, starting with `field`."""
    presence.required(message, field)
    checks.unsupported(presence.given(message.windows), f"{field}.windows")
    linux = message.linux
    return PodConfig(
        metadata=_metadata(presence.required(message.metadata, f"{field}.metadata"), f"{field}.metadata"),
        hostname=_hostname(message.hostname, f"{field}.hostname"),
        log_directory=checks.straight_or_empty(message.log_directory, f"{field}.log_directory"),
        dns=_dns(message.dns_config, f"{field}.dns_config"),
        port_mappings=_port_mappings(message.port_mappings, f"{field}.port_mappings"),
        labels=checks.keyed(message.labels, f"{field}.labels"),
        annotations=checks.keyed(message.annotations, f"{field}.annotations"),
        cgroup_parent=_cgroup_parent(linux.cgroup_parent, f"{field}.linux.cgroup_parent"),
        security=security.pod_security(linux.security_context, f"{field}.linux.security_context"),
        sysctls=_sysctls(linux.sysctls, f"{field}.linux.sysctls"),
        overhead=resources.resources_if_given(linux.overhead, f"{field}.linux.overhead"),
        resources=resources.resources_if_given(linux.resources, f"{field}.linux.resources"),
    )


def pod_config_if_given(message: cri.PodSandboxConfig, field: str) -> PodConfig | None:
    return pod_config(message, field) if presence.given(message) else None


def _metadata(message: cri.PodSandboxMetadata, field: str) -> PodMetadata:
    return PodMetadata(
        name=checks.required_name(message.name, f"{field}.name"),
        uid=checks.name(message.uid, f"{field}.uid"),
        namespace=checks.name(message.namespace, f"{field}.namespace"),
        attempt=message.attempt,
    )


def _hostname(value: str, field: str) -> str:
    if len(value.encode()) > HOSTNAME_MAX:
        raise InvalidInput(f"{field} is longer than {HOSTNAME_MAX} bytes")
    if any(letter.isspace() or not letter.isprintable() or letter == "/" for letter in value):
        raise InvalidInput(f"{field}: {value!r} has characters that no hostname has")
    return value


def _dns(message: cri.DnsConfig, field: str) -> Dns | None:
    """Absent means that the host's resolv.conf is used; an empty one is an empty resolv.conf."""
    if not presence.given(message):
        return None
    return Dns(
        servers=_words(message.servers, f"{field}.servers"),
        searches=_words(message.searches, f"{field}.searches"),
        options=_words(message.options, f"{field}.options"),
    )


def _words(values: Sequence[str], field: str) -> tuple[str, ...]:
    """Of a line of resolv.conf(5). Servers need not be addresses: a kubelet passes on what the host's file has."""
    found = checks.names(values, field, most=MOST_DNS_WORDS)
    for index, word in enumerate(found):
        if not word or any(letter.isspace() or not letter.isprintable() for letter in word):
            raise InvalidInput(f"{field}[{index}]: {word[:80]!r} is not one word")
    return found


def _port_mappings(messages: Sequence[cri.PortMapping], field: str) -> tuple[PortMapping, ...]:
    checks.at_most(MOST_PORTS, messages, field)
    taken: dict[tuple[Protocol, str, int], int] = {}
    found = tuple(_port_mapping(mapping, f"{field}[{index}]") for index, mapping in enumerate(messages))
    for index, each in enumerate(found):
        # The same mapping twice says nothing new: two containers may both name it.
        place = (each.protocol, each.host_ip, each.host_port)
        if each.host_port and taken.setdefault(place, each.container_port) != each.container_port:
            raise InvalidInput(f"{field}[{index}].host_port: {each.host_port} leads to another container_port already")
    return found


def _port_mapping(message: cri.PortMapping, field: str) -> PortMapping:
    found = PortMapping(
        protocol=checks.member(Protocol, message.protocol, f"{field}.protocol"),
        container_port=checks.port(message.container_port, f"{field}.container_port"),
        host_port=checks.port(message.host_port, f"{field}.host_port"),
        host_ip=checks.address(message.host_ip, f"{field}.host_ip"),
    )
    if found.host_port and not found.container_port:
        raise InvalidInput(f"{field}.container_port is 0, though host_port is given")
    return found


def _cgroup_parent(value: str, field: str) -> str:
    if ".." in checks.path(value, field).split("/"):
        raise InvalidInput(f"{field}: {value!r} climbs out of its hierarchy")
    return value


def _sysctls(values: dict[str, str], field: str) -> dict[str, str]:
    checks.at_most(MOST_SYSCTLS, values, field)
    for key, value in values.items():
        if ".." in checks.required_name(key, field):
            raise InvalidInput(f"{field}: {key!r} is not a sysctl")
        checks.name(value.replace("\t", " "), f"{field}[{key}]")
    return values


def _metadata_message(metadata: PodMetadata) -> cri.PodSandboxMetadata:
    return cri.PodSandboxMetadata(
        name=metadata.name, uid=metadata.uid, namespace=metadata.namespace, attempt=metadata.attempt
    )


def _state(record: PodRecord) -> cri.PodSandboxState:
    """CRI has two states; what is being made or removed is not ready."""
    ready = record.state is PodState.READY
    return cri.PodSandboxState(cri.PodSandboxState.SANDBOX_READY if ready else cri.PodSandboxState.SANDBOX_NOTREADY)


def pod_item(record: PodRecord) -> cri.PodSandbox:
    """As ListPodSandbox shows it."""
    return cri.PodSandbox(
        id=record.id,
        metadata=_metadata_message(record.config.metadata),
        state=_state(record),
        created_at=record.created_at,
        labels=record.config.labels,
        annotations=record.config.annotations,
        runtime_handler=record.runtime_handler,
    )


def pod_status(record: PodRecord) -> cri.PodSandboxStatus:
    options = security.namespaces_message(record.config.security.namespaces)
    return cri.PodSandboxStatus(
        id=record.id,
        metadata=_metadata_message(record.config.metadata),
        state=_state(record),
        created_at=record.created_at,
        network=_network(record),
        linux=cri.LinuxPodSandboxStatus(namespaces=cri.Namespace(options=options)),
        labels=record.config.labels,
        annotations=record.config.annotations,
        runtime_handler=record.runtime_handler,
    )


def _network(record: PodRecord) -> cri.PodSandboxNetworkStatus:
    """Addresses of its own; none for a pod on the host's network."""
    ips = record.network.ips if record.network is not None and not record.config.host_network else ()
    return cri.PodSandboxNetworkStatus(
        ip=ips[0] if ips else "", additional_ips=[cri.PodIp(ip=address) for address in ips[1:]]
    )


def pod_attributes(record: PodRecord) -> cri.PodSandboxAttributes:
    return cri.PodSandboxAttributes(
        id=record.id,
        metadata=_metadata_message(record.config.metadata),
        labels=record.config.labels,
        annotations=record.config.annotations,
    )

"""Checks of registries and of the storage driver."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from isulad_py.config.findings import Finding, Severity
from isulad_py.config.schema import Config
from isulad_py.config.storage_options import SIZE_OPTIONS, container_size_bytes

_HOST: Final = re.compile(r"(\[[0-9a-fA-F:]+\]|[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?)(:\d{1,5})?")
PORT_MAX: Final = 65535
_ACCEPTED_OPTIONS: Final = frozenset({"overlay2.override_kernel_check", "overlay2.skip_mount_home"})
"""About kernels and mounts that we never have to work around: accepted without a word."""
_IDLE_OPTIONS: Final = frozenset({"overlay2.mountopt"})


def check(config: Config, exists: Callable[[str], bool]) -> Iterator[Finding]:
    yield from _driver(config)
    yield from _hosts(config)
    yield from _registries(config, exists)


def _driver(config: Config) -> Iterator[Finding]:
    if config.storage_driver not in {"overlay2", "overlay"}:
        message = f"{config.storage_driver!r} is not supported"
        yield Finding(id="not-supported", key="storage-driver", message=message, hint="overlay2 is")
    for option in config.storage_opts:
        name, equals, _ = option.partition("=")
        if name in _IDLE_OPTIONS:
            message = f"{name} has no effect here"
            yield Finding(id="no-effect", key="storage-opts", message=message, severity=Severity.WARNING)
        elif name not in {*_ACCEPTED_OPTIONS, *SIZE_OPTIONS} or not equals:
            hint = f"one of {' '.join(sorted({*_ACCEPTED_OPTIONS, *_IDLE_OPTIONS, *SIZE_OPTIONS}))}, each with =VALUE"
            yield Finding(id="bad-value", key="storage-opts", message=f"no such option {option!r}", hint=hint)
    try:
        container_size_bytes(config.storage_opts)
    except ValueError as error:
        yield Finding(id="bad-value", key="storage-opts", message=str(error), hint="such as overlay2.size=10G")


def _hosts(config: Config) -> Iterator[Finding]:
    """A mirror may carry a scheme and a path, an insecure registry may be a network; else it is a host with or without
    a port."""
    hosts = [("insecure-registries", host, host) for host in config.insecure_registries if not _is_network(host)]
    hosts += [("registries", host, host) for host in config.registries]
    mirrors = [("registry-mirrors", mirror) for mirror in config.registry_mirrors]
    mirrors += [("registries", mirror) for entry in config.registries.values() for mirror in entry.mirrors]
    hosts += [(key, mirror, re.sub(r"^https?://", "", mirror).partition("/")[0]) for key, mirror in mirrors]
    for key, written, host in hosts:
        if not _is_host(host):
            message = f"{written!r} is no registry host"
            yield Finding(id="bad-value", key=key, message=message, hint="such as registry.example.org:5000")


def _is_host(text: str) -> bool:
    port = match[3] if (match := _HOST.fullmatch(text)) else None
    return match is not None and (not port or int(port[1:]) <= PORT_MAX)


def _is_network(text: str) -> bool:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return True


def _registries(config: Config, exists: Callable[[str], bool]) -> Iterator[Finding]:
    for host, entry in config.registries.items():
        if not entry.ca_file:
            continue
        if not Path(entry.ca_file).is_absolute():
            message = f"{host}: ca-file {entry.ca_file!r} is not an absolute path"
            yield Finding(id="bad-value", key="registries", message=message)
        elif not exists(entry.ca_file):
            yield Finding(id="missing-file", key="registries", message=f"{host}: no file {entry.ca_file}")
    if config.insecure_skip_verify_enforce:
        message = "no registry's certificate is verified"
        yield Finding(id="exposed", key="insecure-skip-verify-enforce", message=message, severity=Severity.WARNING)

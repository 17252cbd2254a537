"""Checks of a whole configuration: impossible values, contradictions, programs and files that are not there."""

from __future__ import annotations

import grp
import ipaddress
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from isulad_py.config import validate_injections, validate_runtimes, validate_storage
from isulad_py.config.findings import Finding, Severity
from isulad_py.config.keys import KEYS, Effect
from isulad_py.config.log_options import NAMES, read_files, read_mode, read_size
from isulad_py.config.schema import Config

PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
LOG_LEVELS: Final = ("FATAL", "ALERT", "CRIT", "ERROR", "WARN", "NOTICE", "INFO", "DEBUG", "TRACE")
SOCKET_PATH_BYTES: Final = 107
"""sun_path is 108 bytes with its terminator (unix(7))."""


def find_program(name: str) -> str | None:
    """Absolute path of an executable, or None. A service manager may start us with no PATH worth the name."""
    return shutil.which(name, path=PATH)


def group_exists(name: str) -> bool:
    try:
        grp.getgrnam(name)
    except KeyError:
        return False
    return True


class Host(Struct, frozen=True, kw_only=True):
    """What the checks ask of the machine."""

    find_program: Callable[[str], str | None] = find_program
    exists: Callable[[str], bool] = os.path.exists
    group_exists: Callable[[str], bool] = group_exists


Check = Callable[[Config, Host], Iterator[Finding]]


def validate(config: Config, given: Mapping[str, str], host: Host) -> tuple[Finding, ...]:
    """Every finding; `given` (from `load`) tells which keys were set, and where."""
    found = [finding for check in _CHECKS for finding in check(config, host)]
    found.extend(_without_effect(config, given))
    return tuple(_placed(finding, given) for finding in found)


def _placed(finding: Finding, given: Mapping[str, str]) -> Finding:
    return Finding(
        id=finding.id,
        key=finding.key,
        message=finding.message,
        hint=finding.hint,
        severity=finding.severity,
        source=given.get(finding.key, ""),
    )


def _without_effect(config: Config, given: Mapping[str, str]) -> Iterator[Finding]:
    defaults = Config()
    for key in KEYS:
        value = getattr(config, key.attribute)
        if key.name not in given or not value or value == getattr(defaults, key.attribute):
            continue
        if key.effect is Effect.NONE:
            message = f"has no effect here ({key.meaning})"
            yield Finding(id="no-effect", key=key.name, message=message, severity=Severity.WARNING)
        elif key.effect is Effect.REFUSED:
            message = f"not supported ({key.meaning}); starting would leave that protection out"
            yield Finding(id="not-supported", key=key.name, message=message, hint="remove the key to start without it")


def _listeners(config: Config, host: Host) -> Iterator[Finding]:
    if not 1 <= len(config.hosts) <= 10:
        yield Finding(id="bad-value", key="hosts", message=f"has {len(config.hosts)} addresses, not 1 to 10")
    for address in config.hosts:
        path = address.removeprefix("unix://")
        if path == address:
            hint = "write unix:///var/run/isulad.sock"
            yield Finding(id="not-supported", key="hosts", message=f"{address!r} is not a unix socket", hint=hint)
        elif not path.startswith("/"):
            yield Finding(id="bad-value", key="hosts", message=f"{address!r} has no absolute path")
        elif len(os.fsencode(path)) > SOCKET_PATH_BYTES:
            message = f"{address!r} is longer than {SOCKET_PATH_BYTES} bytes, the bound of a socket's path"
            yield Finding(id="bad-value", key="hosts", message=message)
    if config.group and not host.group_exists(config.group):
        message = f"no group {config.group!r}: the socket will belong to root"
        hint = f"groupadd --system {config.group}"
        if config.group != Config().group:
            yield Finding(id="bad-value", key="group", message=message, hint=hint, severity=Severity.WARNING)


def _ports(config: Config, _host: Host) -> Iterator[Finding]:
    stream, metrics = config.websocket_server_listening_port, config.metrics_port
    key = "websocket-server-listening-port"
    if stream != 0 and not 1024 <= stream <= 49151:
        yield Finding(id="bad-value", key=key, message=f"{stream} is not 0 or a port from 1024 to 49151")
    if not -1 <= metrics <= 65535:
        yield Finding(id="bad-value", key="metrics-port", message=f"{metrics} is not -1, 0 or a port up to 65535")
    if stream == metrics > 0:
        yield Finding(id="conflict", key="metrics-port", message=f"{metrics} is also {key}")
    try:
        address = ipaddress.ip_address(config.stream_server_address)
    except ValueError:
        message = f"{config.stream_server_address!r} is not an IP address"
        yield Finding(id="bad-value", key="stream-server-address", message=message)
        return
    if not address.is_loopback:
        message = f"{address} can be reached from other machines; a one-time token is all that guards it"
        yield Finding(id="exposed", key="stream-server-address", message=message, severity=Severity.WARNING)


def _tls(config: Config, host: Host) -> Iterator[Finding]:
    files = config.tls_config
    needed = {"CertFile": files.cert_file, "KeyFile": files.key_file} if config.tls else {}
    if config.tls_verify:
        if not config.tls:
            yield Finding(id="conflict", key="tls-verify", message="is of no use without tls")
        needed["CAFile"] = files.ca_file
    for name, path in needed.items():
        if not path:
            yield Finding(id="bad-value", key="tls-config", message=f"has no {name}")
        elif not host.exists(path):
            yield Finding(id="missing-file", key="tls-config", message=f"{name} {path} does not exist")


def _places(config: Config, host: Host) -> Iterator[Finding]:
    absolute = {
        "graph",
        "state",
        "pidfile",
        "cni-conf-dir",
        "certs-dir",
        "hook-spec",
        "seccomp-profile",
        "registry-auth-file",
        "signature-policy",
    }
    for key in KEYS:
        value = getattr(config, key.attribute)
        if key.name in absolute and value and not Path(value).is_absolute():
            yield Finding(id="bad-value", key=key.name, message=f"{value!r} is not an absolute path")
    graph, state = Path(os.path.normpath(config.graph)), Path(os.path.normpath(config.state))
    for name, root in (("graph", graph), ("state", state)):
        if root == Path("/") or not getattr(config, name):
            yield Finding(id="bad-value", key=name, message="must be a directory of its own")
    if graph.is_relative_to(state) or state.is_relative_to(graph):
        message = f"{config.state} and graph ({config.graph}) lie in each other"
        yield Finding(id="conflict", key="state", message=message, hint="one must survive a reboot, the other must not")
    for name, path in (("seccomp-profile", config.seccomp_profile), ("signature-policy", config.signature_policy)):
        if path and not host.exists(path):
            yield Finding(id="missing-file", key=name, message=f"no file {path}")


def _times(config: Config, _host: Host) -> Iterator[Finding]:
    for key in ("stream-idle-timeout", "start-timeout", "cni-plugin-timeout", "drain-timeout"):
        seconds = getattr(config, key.replace("-", "_"))
        if not 0 < seconds <= 7 * 24 * 3600:
            yield Finding(id="bad-value", key=key, message=f"{seconds:g} s is not between 0 and 7 days")
    if not 1 <= config.stream_session_limit <= 65536:
        message = f"{config.stream_session_limit} is not between 1 and 65536"
        yield Finding(id="bad-value", key="stream-session-limit", message=message)


def _logs(config: Config, _host: Host) -> Iterator[Finding]:
    if config.log_level.upper() not in LOG_LEVELS:
        message = f"{config.log_level!r} is no level"
        yield Finding(id="bad-value", key="log-level", message=message, hint=f"one of {' '.join(LOG_LEVELS)}")
    yield from _one_of("log-driver", config.log_driver, ("stderr", "stdout", "file"))
    yield from _one_of("log-format", config.log_format, ("auto", "json", "console"))
    for name in config.log_opts.keys() - set(NAMES):
        hint = f"one of {' '.join(NAMES)}"
        yield Finding(id="unknown-key", key="log-opts", message=f"no such option {name!r}", hint=hint)
    for name, read in (("log-file-mode", read_mode), ("max-file", read_files), ("max-size", read_size)):
        try:
            read(config.log_opts)
        except ValueError as error:
            yield Finding(id="bad-value", key="log-opts", message=f"{name}: {error}")
    directory = config.log_opts.get("log-path")
    if directory and not Path(directory).is_absolute():
        yield Finding(id="bad-value", key="log-opts", message=f"log-path: {directory!r} is not an absolute path")


def _network(config: Config, host: Host) -> Iterator[Finding]:
    yield from _one_of("network-plugin", config.network_plugin, ("cni",))
    for directory in config.cni_bin_dir:
        if not Path(directory).is_absolute():
            yield Finding(id="bad-value", key="cni-bin-dir", message=f"{directory!r} is not an absolute path")
    if not any(host.exists(directory) for directory in config.cni_bin_dir):
        message = f"none of {', '.join(config.cni_bin_dir) or 'them'} exists: no pod network until one does"
        hint = "Debian: apt install containernetworking-plugins"
        yield Finding(id="missing-file", key="cni-bin-dir", message=message, hint=hint, severity=Severity.WARNING)


def _one_of(key: str, value: str, allowed: tuple[str, ...]) -> Iterator[Finding]:
    if value not in allowed:
        yield Finding(id="bad-value", key=key, message=f"{value!r} is not one of {', '.join(allowed)}")


_CHECKS: Final[tuple[Check, ...]] = (
    _listeners,
    _ports,
    _tls,
    _places,
    _times,
    _logs,
    _network,
    lambda config, host: validate_runtimes.check(config, host.find_program),
    lambda config, host: validate_storage.check(config, host.exists),
    lambda config, host: validate_injections.check(config, host.exists),
)

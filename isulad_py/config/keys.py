"""The table of configuration keys: name, flag, effect, meaning. Plain tuples, so that `--help` costs no other import.

Names, flags and meanings are iSulad's where it has the key; `schema.Config` holds types and defaults.
"""

from __future__ import annotations

import enum
from typing import Final, NamedTuple


class Kind(enum.Enum):
    """How a value is written."""

    TEXT = "text"
    BOOL = "bool"
    INT = "int"
    LIST = "list"
    """JSON list of strings; a flag that may be repeated."""
    MAP = "map"
    """JSON object; a repeatable flag NAME=VALUE."""
    PATHS = "paths"
    """Directories in one string (separated by , ; or :) or a list; an empty one is the default."""
    DURATION = "duration"
    """Seconds as a number, or a string such as 500ms, 30s, 2m, 1h."""
    OBJECT = "object"
    """JSON object with fixed fields; a flag FIELD=VALUE."""


class Effect(enum.Enum):
    WORKS = "works"
    NONE = "no effect yet"
    """Accepted for the sake of existing files; a value other than the default is reported as a warning."""
    REFUSED = "refused"
    """A protection that would silently be missing: asking for it is an error until it exists."""


class Key(NamedTuple):
    name: str
    kind: Kind
    meaning: str
    effect: Effect = Effect.WORKS
    flag: str = ""
    """Long flag without dashes, where it is not the name."""
    short: str = ""
    reloads: bool = False
    """SIGHUP applies a new value; other keys need a restart."""

    @property
    def attribute(self) -> str:
        """Its name in `schema.Config`."""
        return self.name.replace("-", "_").replace(".", "_")

    @property
    def flags(self) -> tuple[str, ...]:
        return (*((f"-{self.short}",) if self.short else ()), f"--{self.flag or self.name}")


_T, _B, _I, _L, _M, _P, _D, _O = (
    Kind.TEXT,
    Kind.BOOL,
    Kind.INT,
    Kind.LIST,
    Kind.MAP,
    Kind.PATHS,
    Kind.DURATION,
    Kind.OBJECT,
)
_NONE, _REFUSED = Effect.NONE, Effect.REFUSED

KEYS: Final[tuple[Key, ...]] = (
    # Listening
    Key("hosts", _L, "addresses to listen on; unix:// only, at most 10", flag="host", short="H"),
    Key("group", _T, "group that owns the socket (mode 0660); root where the group does not exist", short="G"),
    Key("enable-cri-v1", _B, "serve runtime.v1 beside runtime.v1alpha2"),
    Key("enable-pod-events", _B, "serve GetContainerEvents"),
    Key("websocket-server-listening-port", _I, "port of exec, attach and port-forward; 0 picks a free one"),
    Key("stream-server-address", _T, "address of the streaming port; loopback, because the kubelet proxies to it"),
    Key("stream-idle-timeout", _D, "end of a session on which nothing moves, pings included"),
    Key("stream-session-limit", _I, "sessions of exec, attach and port-forward at once"),
    Key("metrics-port", _I, "port of /healthz, /readyz and /metrics on 127.0.0.1; 0 picks a free one, -1 turns it off"),
    Key("tls", _B, "TLS on the streaming port"),
    Key("tls-verify", _B, "clients of the streaming port must show a certificate", flag="tlsverify"),
    Key("tls-config", _O, "CertFile and KeyFile of the streaming port, CAFile of its clients"),
    Key("authorization-plugin", _T, "plugin that authorises calls", _REFUSED),
    # Places
    Key("graph", _T, "persistent root: records, images, writable layers", short="g"),
    Key("state", _T, "volatile root: namespaces, bundles, sockets; must not survive a reboot", short="S"),
    Key("pidfile", _T, "pid of the running daemon; the default follows `state`", short="p"),
    # Logs of the daemon
    Key("log-level", _T, "FATAL ALERT CRIT ERROR WARN NOTICE INFO DEBUG or TRACE", short="l", reloads=True),
    Key("log-driver", _T, "stderr, stdout or file"),
    Key("log-format", _T, "json, console, or auto: console on a terminal"),
    Key("log-opts", _M, "for the file driver: log-path, log-file-mode, max-file, max-size", flag="log-opt"),
    # Runtimes
    Key("default-runtime", _T, "runtime of pods that name no handler"),
    Key("runtimes", _M, "OCI runtimes by name: path, runtime-args"),
    Key("cri-runtimes", _M, "runtime handler of CRI to a name in `runtimes`", flag="cri-runtime"),
    Key("cri-sandboxers", _M, "sandboxer endpoint by handler", _NONE),
    Key("monitor", _T, "conmon, the monitor of each container: a path, or a name to look up"),
    Key("criu", _T, "CRIU, which takes and restores checkpoints: criu or its path; empty for no checkpoints"),
    Key("pod-sandbox-mode", _T, "namespaces: pinned without a process; pause: held by a pause container"),
    Key("pod-sandbox-image", _T, "image of the pause container, where a pod needs one; never collected"),
    Key("systemd-cgroup", _B, "cgroups are made by systemd"),
    Key("cgroup-parent", _T, "cgroup of pods that name none; default /isulad, or system.slice with systemd-cgroup"),
    Key("seccomp-profile", _T, "file that replaces the built-in default profile (docker or OCI form)"),
    Key("native.umask", _T, "umask in containers: secure (0027) or normal (0022)"),
    Key("hook-spec", _T, "file of OCI hooks (the object `hooks` of the OCI specification) for every container"),
    Key("hooks-dir", _L, "directories of oci-hooks(5) files; of two with one name, the later directory's counts"),
    Key("start-timeout", _D, "bound of one container start"),
    Key("default-ulimits", _M, "limits of every container by name: Name, Hard, Soft", flag="default-ulimit"),
    Key("container-log", _O, "driver and opts of containers that are not made through CRI", _NONE),
    Key("cpu-rt-period", _I, "real-time period of the parent cgroup in microseconds", _NONE),
    Key("cpu-rt-runtime", _I, "real-time share of the parent cgroup in microseconds", _NONE),
    Key("selinux-enabled", _B, "SELinux labels for containers", _REFUSED),
    Key("userns-remap", _T, "user namespace for every container, uid:gid:size", _REFUSED),
    Key("sup-groups", _L, "supplementary groups of the daemon", _NONE),
    # Images and storage
    Key("storage-driver", _T, "overlay2 (also written overlay)"),
    Key(
        "storage-opts",
        _L,
        "overlay2.NAME=VALUE; overlay2.size bounds each container",
        flag="storage-opt",
        short="s",
    ),
    Key("storage-enable-remote-layer", _B, "layers in directories that other hosts fill", _NONE),
    Key("registries", _M, "registry host to mirrors, insecure, ca-file", reloads=True),
    Key("registry-mirrors", _L, "mirrors of docker.io in order; http:// in front means plain HTTP", reloads=True),
    Key(
        "insecure-registries",
        _L,
        "hosts or networks that may be asked without a valid certificate, or over plain HTTP",
        flag="insecure-registry",
        reloads=True,
    ),
    Key("insecure-skip-verify-enforce", _B, "verify no registry's certificate", reloads=True),
    Key("certs-dir", _T, "by registry host: HOST/hosts.toml, and *.crt, *.cert, *.key"),
    Key("registry-auth-file", _T, "docker's config.json: logins of registries for pulls that bring none", reloads=True),
    Key("signature-policy", _T, "containers-policy.json: accept and reject images by name", reloads=True),
    Key("use-decrypted-key", _B, "client keys in certs-dir are not encrypted", _NONE),
    Key("image-layer-check", _B, "verify layers when they are used", _NONE),
    # Network
    Key("network-plugin", _T, "cni (an empty value means the same)"),
    Key("cni-bin-dir", _P, "where CNI plugins are looked up, in order"),
    Key("cni-conf-dir", _T, "where CNI configurations are read, the first in order is the pod network"),
    Key("cni-plugin-timeout", _D, "bound of one plugin call"),
    Key("enable-unprivileged-ports", _B, "any user in a pod with a network of its own may listen below port 1024"),
    Key("enable-unprivileged-icmp", _B, "any user in a pod with a network of its own may ping without CAP_NET_RAW"),
    # The daemon itself
    Key("drain-timeout", _D, "how long a stopping daemon lets running calls finish"),
    Key("engine", _T, "parsed by iSulad and unused", _NONE),
    Key("enable-plugins", _T, "plugins for every container", _NONE),
    Key("enable-cdi", _B, "CDI devices, by CRI's CDI_devices and by annotations cdi.k8s.io/*"),
    Key("cdi-spec-dirs", _L, "where CDI specifications (.json, .yaml) are read; later directories win"),
    Key("nri-support", _B, "NRI plugins", _NONE),
    Key("disable-connections", _B, "NRI: refuse plugins that were started outside", _NONE),
    Key("plugin-config-path", _T, "NRI: configuration of plugins", _NONE),
    Key("plugin-path", _T, "NRI: plugins to start", _NONE),
    Key("nri-socket-path", _T, "NRI: socket for plugins", _NONE),
    Key("plugin-registration-timeout", _D, "NRI: bound of a registration", _NONE),
    Key("plugin-requst-timeout", _D, "NRI: bound of a request (iSulad's spelling)", _NONE),
)

BY_NAME: Final[dict[str, Key]] = {key.name: key for key in KEYS}
BY_ATTRIBUTE: Final[dict[str, Key]] = {key.attribute: key for key in KEYS}

"""The frozen configuration: one attribute for each key of `keys`, with - and . turned into _."""

from __future__ import annotations

from msgspec import Struct, field


class RuntimeEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """One OCI runtime with runc's command line."""

    path: str = ""
    """Absolute, or a name to look up; empty means the entry's own name."""
    runtime_args: tuple[str, ...] = ()
    """Global arguments, before the command."""
    annotations: tuple[str, ...] = ()
    """Of pods and containers, which the runtime is given: keys, or beginnings that end in *."""
    sandbox_mode: str = ""
    """As `pod-sandbox-mode`, for its pods; empty is that one's."""
    seccomp_profile: str = ""
    """As `seccomp-profile`, for its containers; empty is that one's."""


class RegistryEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """How one registry host is reached."""

    mirrors: tuple[str, ...] = ()
    """Tried in order before the host itself; http:// in front means plain HTTP."""
    insecure: bool = False
    """An invalid certificate, or plain HTTP, is taken."""
    ca_file: str = ""


class Sandboxer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    name: str = ""
    address: str = ""
    image_type: str = ""


class Ulimit(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="pascal"):
    name: str
    hard: int
    soft: int


class ContainerLog(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    driver: str = "json-file"
    opts: dict[str, str] = {}


class TlsConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    ca_file: str = field(name="CAFile", default="")
    cert_file: str = field(name="CertFile", default="")
    key_file: str = field(name="KeyFile", default="")


class Config(Struct, frozen=True, kw_only=True):
    """What the daemon was told, validated: facts only, no live object. Times are seconds."""

    hosts: tuple[str, ...] = ("unix:///var/run/isulad.sock",)
    group: str = "isula"
    enable_cri_v1: bool = True
    enable_pod_events: bool = True
    websocket_server_listening_port: int = 10350
    stream_server_address: str = "127.0.0.1"
    stream_idle_timeout: float = 4 * 3600.0
    stream_session_limit: int = 128
    metrics_port: int = 9090
    tls: bool = False
    tls_verify: bool = False
    tls_config: TlsConfig = TlsConfig()
    authorization_plugin: str = ""

    graph: str = "/var/lib/isulad"
    state: str = "/var/run/isulad"
    pidfile: str = "/var/run/isulad.pid"

    log_level: str = "INFO"
    log_driver: str = "stderr"
    log_format: str = "auto"
    log_opts: dict[str, str] = {}

    default_runtime: str = "runc"
    runtimes: dict[str, RuntimeEntry] = {}
    cri_runtimes: dict[str, str] = {}
    cri_sandboxers: dict[str, Sandboxer] = {}
    monitor: str = "conmon"
    criu: str = "criu"
    pod_sandbox_mode: str = "namespaces"
    pod_sandbox_image: str = "registry.k8s.io/pause:3.10"
    systemd_cgroup: bool = False
    cgroup_parent: str = ""
    seccomp_profile: str = ""
    native_umask: str = "normal"  # what Kubernetes images expect; iSulad's packaged file says so too
    hook_spec: str = ""
    hooks_dir: tuple[str, ...] = ()
    start_timeout: float = 120.0
    default_ulimits: dict[str, Ulimit] = {}
    container_log: ContainerLog = ContainerLog()
    cpu_rt_period: int = 0
    cpu_rt_runtime: int = 0
    selinux_enabled: bool = False
    userns_remap: str = ""
    sup_groups: tuple[int, ...] = ()

    storage_driver: str = "overlay2"
    storage_opts: tuple[str, ...] = ()
    storage_enable_remote_layer: bool = False
    registries: dict[str, RegistryEntry] = {}
    registry_mirrors: tuple[str, ...] = ()
    insecure_registries: tuple[str, ...] = ()
    insecure_skip_verify_enforce: bool = False
    certs_dir: str = "/etc/isulad/certs.d"
    registry_auth_file: str = ""
    signature_policy: str = ""
    use_decrypted_key: bool = True
    image_layer_check: bool = False

    network_plugin: str = "cni"
    cni_bin_dir: tuple[str, ...] = ("/opt/cni/bin", "/usr/lib/cni")
    cni_conf_dir: str = "/etc/cni/net.d"
    cni_plugin_timeout: float = 60.0
    enable_unprivileged_ports: bool = True
    enable_unprivileged_icmp: bool = True

    drain_timeout: float = 10.0
    engine: str = ""
    enable_plugins: str = ""
    enable_cdi: bool = False
    cdi_spec_dirs: tuple[str, ...] = ("/etc/cdi", "/var/run/cdi")
    nri_support: bool = False
    disable_connections: bool = False
    plugin_config_path: str = "/etc/nri/conf.d"
    plugin_path: str = "/opt/nri/plugins"
    nri_socket_path: str = "/var/run/nri/nri.sock"
    plugin_registration_timeout: float = 5.0
    plugin_requst_timeout: float = 2.0

    @property
    def cgroup_root(self) -> str:
        """`cgroup-parent`, or its default for the cgroup driver."""
        return self.cgroup_parent or ("system.slice" if self.systemd_cgroup else "/isulad")

from __future__ import annotations

from typing import Any

import pytest

from isulad_py.config.findings import Severity, errors
from isulad_py.config.keys import BY_ATTRIBUTE
from isulad_py.config.schema import Config, RegistryEntry, RuntimeEntry, TlsConfig, Ulimit
from isulad_py.config.validate import Host, find_program, validate

COMPLETE = Host(find_program=lambda name: f"/bin/{name}", exists=lambda path: True, group_exists=lambda name: True)


def found(host: Host = COMPLETE, **values: Any) -> list[tuple[str, str]]:
    given = {BY_ATTRIBUTE[name].name: "file" for name in values}
    return [(finding.id, finding.key) for finding in validate(Config(**values), given, host)]


def test_the_defaults_are_sound() -> None:
    assert found() == []


@pytest.mark.parametrize(
    ("name", "value", "key"),
    [
        ("hosts", (), "hosts"),
        ("hosts", tuple(f"unix:///{n}" for n in range(11)), "hosts"),
        ("hosts", ("tcp://127.0.0.1:2375",), "hosts"),
        ("hosts", ("unix://relative",), "hosts"),
        ("hosts", ("unix:///" + 107 * "x",), "hosts"),
        ("graph", "relative", "graph"),
        ("graph", "/", "graph"),
        ("state", "", "state"),
        ("graph", "/var/run/isulad/graph", "state"),
        ("pidfile", "isulad.pid", "pidfile"),
        ("websocket_server_listening_port", 80, "websocket-server-listening-port"),
        ("websocket_server_listening_port", 50000, "websocket-server-listening-port"),
        ("metrics_port", 65536, "metrics-port"),
        ("metrics_port", 10350, "metrics-port"),
        ("stream_server_address", "localhost", "stream-server-address"),
        ("stream_session_limit", 0, "stream-session-limit"),
        ("drain_timeout", 0.0, "drain-timeout"),
        ("cni_plugin_timeout", -1.0, "cni-plugin-timeout"),
        ("log_level", "LOUD", "log-level"),
        ("log_driver", "journald", "log-driver"),
        ("log_format", "xml", "log-format"),
        ("log_opts", {"max-siz": "1MB"}, "log-opts"),
        ("log_opts", {"max-size": "1KB"}, "log-opts"),
        ("log_opts", {"max-file": "0"}, "log-opts"),
        ("log_opts", {"log-file-mode": "9"}, "log-opts"),
        ("log_opts", {"log-path": "logs"}, "log-opts"),
        ("default_runtime", "kata", "default-runtime"),
        ("runtimes", {"a b": RuntimeEntry(path="/x")}, "runtimes"),
        ("pod_sandbox_mode", "vm", "pod-sandbox-mode"),
        ("pod_sandbox_image", "a b", "pod-sandbox-image"),
        ("cgroup_parent", "/../x", "cgroup-parent"),
        ("default_ulimits", {"nofile": Ulimit(name="nproc", soft=1, hard=2)}, "default-ulimits"),
        ("default_ulimits", {"nofile": Ulimit(name="nofile", soft=3, hard=2)}, "default-ulimits"),
        ("storage_driver", "devicemapper", "storage-driver"),
        ("storage_opts", ("dm.fs=ext4",), "storage-opts"),
        ("registry_mirrors", ("not a host",), "registry-mirrors"),
        ("insecure_registries", ("http://x",), "insecure-registries"),
        ("registries", {"x/y z": RegistryEntry()}, "registries"),
        ("registries", {"x": RegistryEntry(mirrors=("!",))}, "registries"),
        ("registries", {"x": RegistryEntry(ca_file="ca")}, "registries"),
        ("network_plugin", "kubenet", "network-plugin"),
        ("cni_bin_dir", ("bin",), "cni-bin-dir"),
        ("native_umask", "022", "native.umask"),
        ("authorization_plugin", "authz-broker", "authorization-plugin"),
        ("userns_remap", "1:1:1", "userns-remap"),
        ("selinux_enabled", True, "selinux-enabled"),
    ],
)
def test_impossible_values(name: str, value: Any, key: str) -> None:
    findings = validate(Config(**{name: value}), {BY_ATTRIBUTE[name].name: "file"}, COMPLETE)
    assert key in {finding.key for finding in errors(findings)}


def test_a_systemd_parent_is_a_slice() -> None:
    assert found(systemd_cgroup=True, cgroup_parent="/kube") == [("bad-value", "cgroup-parent")]
    assert found(systemd_cgroup=True, cgroup_parent="kube.slice") == []


def test_missing_programs_are_all_named() -> None:
    bare = Host(find_program=lambda name: None, exists=lambda path: True, group_exists=lambda name: True)
    assert found(bare, runtimes={"kata": RuntimeEntry(path="/opt/kata")}) == [
        ("missing-program", "monitor"),
        ("missing-program", "runtimes"),
        ("missing-program", "default-runtime"),
    ]


def test_missing_files() -> None:
    bare = Host(find_program=lambda name: name, exists=lambda path: False, group_exists=lambda name: False)
    findings = validate(
        Config(seccomp_profile="/s.json", registries={"x": RegistryEntry(ca_file="/ca")}, group="who"), {}, bare
    )
    assert [(finding.key, finding.severity) for finding in findings] == [
        ("group", Severity.WARNING),
        ("seccomp-profile", Severity.ERROR),
        ("cni-bin-dir", Severity.WARNING),
        ("registries", Severity.ERROR),
    ]


def test_tls_needs_its_files() -> None:
    files = TlsConfig(cert_file="/c", key_file="/k", ca_file="/a")
    assert found(tls=True, tls_verify=True, tls_config=files) == []
    assert found(tls_verify=True, tls_config=files) == [("conflict", "tls-verify")]
    assert found(tls=True, tls_verify=True) == 3 * [("bad-value", "tls-config")]
    bare = Host(find_program=lambda name: name, exists=lambda path: path not in {"/c", "/a"})
    assert found(bare, tls=True, tls_verify=True, tls_config=files) == 2 * [("missing-file", "tls-config")]


def test_only_what_was_asked_for_and_has_no_effect_is_warned_of() -> None:
    findings = validate(Config(nri_support=True, enable_cdi=False), {"nri-support": "f", "enable-cdi": "f"}, COMPLETE)
    (finding,) = findings
    assert (finding.id, finding.key, finding.severity) == ("no-effect", "nri-support", Severity.WARNING)
    assert finding.source == "f"


def test_warnings_do_not_stop_the_start() -> None:
    config = Config(
        stream_server_address="0.0.0.0",
        insecure_skip_verify_enforce=True,
        storage_opts=("overlay2.mountopt=nodev", "overlay2.override_kernel_check=true"),
        cri_runtimes={"kata": "io.containerd.kata.v2"},
    )
    findings = validate(config, {}, COMPLETE)
    assert len(findings) == 4
    assert errors(findings) == []


def test_programs_are_found_without_a_path_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert find_program("sh")
    assert find_program("no-such-program-anywhere") is None

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isulad_py.config.findings import FLAG, Severity
from isulad_py.config.keys import BY_NAME
from isulad_py.config.load import LIMIT_BYTES, Loaded, load
from isulad_py.config.schema import Config, RegistryEntry


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "daemon.json"


def read(file: Path, content: object, **flags: str | list[str]) -> Loaded:
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return load(str(file), {name.replace("_", "-"): value for name, value in flags.items()})


def ids(loaded: Loaded) -> list[tuple[str, str]]:
    return [(finding.id, finding.key) for finding in loaded.findings]


def test_nothing_given_is_the_defaults(file: Path) -> None:
    for content in ("{}", "", " \n"):
        loaded = read(file, content)
        assert loaded.config == Config()
        assert loaded.findings == ()


def test_a_named_file_must_exist(tmp_path: Path) -> None:
    assert ids(load(str(tmp_path / "none.json"), {})) == [("unreadable", "")]
    assert ids(load(str(tmp_path), {})) == [("unreadable", "")]


def test_flags_override_the_file(file: Path) -> None:
    loaded = read(file, {"graph": "/file", "log-level": "ERROR"}, graph="/flag")
    assert (loaded.config.graph, loaded.config.log_level) == ("/flag", "ERROR")
    assert loaded.given == {"graph": FLAG, "log-level": str(file)}


def test_lists_and_tables_accumulate(file: Path) -> None:
    content = {"registry-mirrors": ["a"], "registries": {"x": {"insecure": True}}, "log-opts": {"max-file": "2"}}
    loaded = read(file, content, registry_mirrors=["b"], registries=["y=m"], log_opts=["max-size=1MB"])
    assert loaded.config.registry_mirrors == ("a", "b")
    assert loaded.config.registries == {"x": RegistryEntry(insecure=True), "y": RegistryEntry(mirrors=("m",))}
    assert loaded.config.log_opts == {"max-file": "2", "max-size": "1MB"}


def test_hosts_and_ulimits_may_be_given_in_one_place_only(file: Path) -> None:
    content = {"hosts": ["unix:///a"], "default-ulimits": {"nofile": {"Name": "nofile", "Soft": 1, "Hard": 2}}}
    loaded = read(file, content, hosts=["unix:///b"], default_ulimits=["nofile=1:2"])
    assert ids(loaded) == [("conflict", "hosts"), ("conflict", "default-ulimits")]


def test_all_findings_come_at_once_and_the_rest_is_kept(file: Path) -> None:
    loaded = read(file, {"graf": "/g", "graph": 7, "hosts": "x", "metrics-port": "9", "state": "/s"}, tls="maybe")
    assert ids(loaded) == [
        ("unknown-key", "graf"),
        ("wrong-type", "hosts"),
        ("wrong-type", "metrics-port"),
        ("wrong-type", "tls"),
        ("wrong-type", "graph"),
    ]
    assert loaded.config.state == "/s"
    assert loaded.config.graph == Config().graph
    assert {finding.source for finding in loaded.findings} == {str(file), FLAG}


def test_a_near_name_is_suggested(file: Path) -> None:
    (finding,) = read(file, {"registry-mirror": []}).findings
    assert "registry-mirrors" in finding.hint
    assert str(finding).startswith(f"error: {file}: registry-mirror: no such key (did you mean")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"graph": "/g",}', "line 1, column 16"),
        ('{\n  "graph": oops\n}', "line 2, column 12"),
        ('{\n  "graph": "/g"', "line 2, column 16"),
    ],
)
def test_a_syntax_error_is_placed(file: Path, text: str, place: str) -> None:
    findings = read(file, text).findings
    assert [finding.id for finding in findings] == ["syntax"]
    assert findings[0].message.startswith(place)


def test_bytes_that_are_no_text(file: Path) -> None:
    file.write_bytes(b'{"graph": "\xff\xfe"}')
    assert ids(load(str(file), {})) == [("syntax", "")]


@pytest.mark.parametrize("text", ["[]", "7", '"x"', "null", "[" * 100_000])
def test_only_an_object_will_do(file: Path, text: str) -> None:
    assert [finding.id for finding in read(file, text).findings] == ["syntax"]


def test_an_endless_file_is_refused(file: Path) -> None:
    with file.open("wb") as out:
        out.truncate(LIMIT_BYTES + 1)
    assert ids(load(str(file), {})) == [("unreadable", "")]


def test_isulads_packaged_file_loads_in_silence(file: Path) -> None:
    packaged = {
        "group": "isula",
        "default-runtime": "runc",
        "graph": "/var/lib/isulad",
        "state": "/var/run/isulad",
        "log-level": "ERROR",
        "log-driver": "stdout",
        "log-opts": {"log-file-mode": "0600", "log-path": "/var/lib/isulad", "max-file": "1", "max-size": "30KB"},
        "pidfile": "/var/run/isulad.pid",
        "pod-sandbox-image": "",
        "network-plugin": "",
        "cni-bin-dir": "",
        "cni-conf-dir": "",
        "storage-opts": ["overlay2.override_kernel_check=true"],
        "cri-runtimes": {"kata": "io.containerd.kata.v2"},
        "start-timeout": "2m",
        "image-layer-check": False,
        "use-decrypted-key": True,
    }
    loaded = read(file, packaged)
    assert loaded.findings == ()
    assert loaded.config.cni_conf_dir == Config().cni_conf_dir
    assert loaded.config.network_plugin == "cni"


def test_the_pid_file_follows_the_state(file: Path) -> None:
    assert read(file, {"state": "/x/state"}).config.pidfile == "/x/state.pid"
    assert read(file, {"state": "/x/state", "pidfile": "/p"}).config.pidfile == "/p"
    assert read(file, {}).config.pidfile == "/var/run/isulad.pid"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(sorted(BY_NAME)), JSON, max_size=6))
def test_no_value_breaks_the_reader(content: dict[str, object]) -> None:
    import tempfile

    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(content, file)
        file.flush()
        loaded = load(file.name, {})
    assert {finding.id for finding in loaded.findings} <= {"wrong-type", "syntax"}
    assert all(finding.severity is Severity.ERROR for finding in loaded.findings)

from __future__ import annotations

from isulad_py.config.runtimes import runtime_handlers
from isulad_py.config.schema import Config, RuntimeEntry
from isulad_py.model.handlers import RuntimeHandler


def find(name: str) -> str | None:
    return None if name == "crun" else f"/usr/bin/{name}" if "/" not in name else name


def test_built_in_configured_and_renamed_runtimes() -> None:
    config = Config(
        runtimes={"debug": RuntimeEntry(path="/opt/runc", runtime_args=("--debug",)), "runsc": RuntimeEntry()},
        cri_runtimes={"gvisor": "runsc", "kata": "io.containerd.kata.v2"},
        systemd_cgroup=True,
    )
    found = runtime_handlers(config, find)
    assert set(found) == {"runc", "debug", "runsc", "gvisor"}
    assert found["debug"] == RuntimeHandler(name="debug", path="/opt/runc", args=("--debug",), systemd_cgroup=True)
    assert found["gvisor"].path == found["runsc"].path == "/usr/bin/runsc"


def test_an_entry_may_replace_a_built_in_one() -> None:
    found = runtime_handlers(Config(runtimes={"runc": RuntimeEntry(path="/opt/runc")}), find)
    assert found["runc"].path == "/opt/runc"


def test_what_is_different_for_its_pods_goes_with_an_entry() -> None:
    entry = RuntimeEntry(annotations=("a.*",), sandbox_mode="pause", seccomp_profile="/p.json")
    found = runtime_handlers(Config(runtimes={"kata": entry}, cri_runtimes={"vm": "kata"}), find)
    for name in ("kata", "vm"):
        handler = found[name]
        assert (handler.annotations, handler.sandbox_mode, handler.seccomp_profile) == (("a.*",), "pause", "/p.json")
    assert found["runc"] == RuntimeHandler(name="runc", path="/usr/bin/runc")

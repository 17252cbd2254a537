from __future__ import annotations

from isulad_py.config.findings import Finding, Severity
from isulad_py.config.schema import Config
from isulad_py.daemon.reloading import Reloader


def reloader(new: Config, *findings: Finding) -> tuple[Reloader, list[tuple[str, Config]]]:
    applied: list[tuple[str, Config]] = []
    apply = {name: lambda config, name=name: applied.append((name, config)) for name in ("log-level", "registries")}
    return Reloader(Config(), read=lambda: (new, findings), apply=apply), applied


def test_only_what_changed_is_applied() -> None:
    made, applied = reloader(Config(log_level="DEBUG", graph="/elsewhere"))
    made.reload()
    assert applied == [("log-level", Config(log_level="DEBUG"))]
    assert made.config == Config(log_level="DEBUG")
    made.reload()
    assert len(applied) == 1


def test_keys_that_share_a_callback_share_one_call() -> None:
    calls: list[Config] = []
    new = Config(log_level="DEBUG", registry_mirrors=("m",))
    names = ("log-level", "registry-mirrors")
    Reloader(Config(), read=lambda: (new, ()), apply=dict.fromkeys(names, calls.append)).reload()
    assert calls == [new]


def test_an_error_changes_nothing() -> None:
    made, applied = reloader(Config(log_level="DEBUG"), Finding(id="unknown-key", key="x", message="no such key"))
    made.reload()
    assert applied == []
    assert made.config == Config()


def test_a_warning_does_not_hinder() -> None:
    warning = Finding(id="no-effect", key="x", message="idle", severity=Severity.WARNING)
    made, applied = reloader(Config(log_level="DEBUG"), warning)
    made.reload()
    assert len(applied) == 1

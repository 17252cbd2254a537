from __future__ import annotations

from isulad_py.api.runtime.v1 import VersionRequest
from isulad_py.config.keys import KEYS
from isulad_py.config.schema import Config
from isulad_py.daemon.bootstrap import Start, offered, reload_callbacks
from isulad_py.telemetry.logs import LEVELS, LevelSwitch
from isulad_py.telemetry.metrics import Metrics
from isulad_py.wire.methods import Method


def start() -> Start:
    config = Config()
    return Start(
        config=config,
        read=lambda: (config, ()),
        level=LevelSwitch(),
        metrics=Metrics(version="0"),
        sockets={},
        environment={},
    )


def test_every_reloadable_key_is_applied_by_somebody() -> None:
    assert set(reload_callbacks(start(), registries=lambda config: None)) == {key.name for key in KEYS if key.reloads}


def test_the_level_of_the_log_follows() -> None:
    made = start()
    reload_callbacks(made, registries=lambda config: None)["log-level"](Config(log_level="debug"))
    assert made.level.value == LEVELS["DEBUG"]


def test_what_the_configuration_switches_off_is_not_offered() -> None:
    names = ("runtime.v1.RuntimeService/Version", "runtime.v1.RuntimeService/GetContainerEvents")
    both = (*names, *(name.replace("v1", "v1alpha2") for name in names))
    methods = {f"/{name}": Method(name=name, request=VersionRequest) for name in both}
    assert set(offered(methods, Config())) == set(methods)
    assert set(offered(methods, Config(enable_cri_v1=False))) == {f"/{name}" for name in both[2:]}
    assert set(offered(methods, Config(enable_pod_events=False))) == {f"/{both[0]}", f"/{both[2]}"}

from __future__ import annotations

from isulad_py.config.keys import KEYS
from isulad_py.config.schema import Config
from isulad_py.daemon.bootstrap import Start, reload_callbacks
from isulad_py.telemetry.logs import LEVELS, LevelSwitch
from isulad_py.telemetry.metrics import Metrics


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

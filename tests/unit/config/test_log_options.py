from __future__ import annotations

from isulad_py.config.log_options import LogOptions, log_options
from isulad_py.config.schema import Config


def test_defaults_lie_under_the_graph_root() -> None:
    assert log_options(Config(graph="/g/")) == LogOptions(path="/g/isulad.log", mode=0o600, files=7, size_bytes=1 << 20)


def test_everything_set() -> None:
    options = {"log-path": "/l", "log-file-mode": "0640", "max-file": "1", "max-size": "30KB"}
    assert log_options(Config(log_opts=options)) == LogOptions(
        path="/l/isulad.log", mode=0o640, files=1, size_bytes=30720
    )

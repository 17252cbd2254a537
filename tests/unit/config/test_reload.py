from __future__ import annotations

from isulad_py.config.reload import difference, merged
from isulad_py.config.schema import Config


def test_what_may_change_and_what_needs_a_restart() -> None:
    old, new = Config(), Config(log_level="DEBUG", registry_mirrors=("m",), graph="/g")
    found = difference(old, new)
    assert found.reloadable == ("log-level", "registry-mirrors")
    assert found.restart == ("graph",)
    assert merged(old, new) == Config(log_level="DEBUG", registry_mirrors=("m",))

from __future__ import annotations

import pytest

from isulad_py.engine.handlers import Handlers
from isulad_py.model.errors import InvalidInput


def test_the_empty_name_is_the_default_and_the_unknown_is_refused() -> None:
    handlers = Handlers(names=("runc", "crun"), default="runc")
    assert handlers.resolve("") == "runc"
    assert handlers.resolve("crun") == "crun"
    with pytest.raises(InvalidInput, match="runtime_handler: kata"):
        handlers.resolve("kata")

from __future__ import annotations

import pytest

from isulad_py.engine.handlers import PLAIN, Handlers, Traits
from isulad_py.model.errors import InvalidInput


def test_the_empty_name_is_the_default_and_the_unknown_is_refused() -> None:
    handlers = Handlers(names=("runc", "crun"), default="runc")
    assert handlers.resolve("") == "runc"
    assert handlers.resolve("crun") == "crun"
    with pytest.raises(InvalidInput, match="runtime_handler: kata"):
        handlers.resolve("kata")


def test_traits_are_of_a_handler_and_plain_for_others() -> None:
    traits = Traits(annotations=("a",), pause=True)
    handlers = Handlers(names=("runc", "kata"), default="kata", traits={"kata": traits})
    assert handlers.traits("") == handlers.traits("kata") == traits
    assert handlers.traits("runc") == handlers.traits("gone") == PLAIN

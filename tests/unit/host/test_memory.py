from __future__ import annotations

import gc

from isulad_py.host.memory import settle, tune_allocator


def test_what_is_alive_is_frozen() -> None:
    tune_allocator()
    try:
        settle()
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()

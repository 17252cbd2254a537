"""What holds for every test."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Final

import pytest
from hypothesis import HealthCheck, settings

# Tests never time: a busy machine must not fail one.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

_PR_SET_CHILD_SUBREAPER: Final = 36


@pytest.fixture(autouse=True)
def _no_orphans_for_later_tests() -> Iterator[None]:
    """The runtime makes its process a subreaper. Here that process is pytest, which would collect the monitors of a
    killed daemon, and never bury them."""
    yield
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)

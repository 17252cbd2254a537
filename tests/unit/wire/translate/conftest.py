from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext

import pytest

from tests.cri_messages import pure_codec


@pytest.fixture(params=["rust", "pure"])
def codec(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each of betterproto's codecs in turn."""
    with pure_codec() if request.param == "pure" else nullcontext():
        yield request.param

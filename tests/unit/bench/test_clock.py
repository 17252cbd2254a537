from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.clock import Limit, Samples, quantile


def test_no_values_have_no_quantile() -> None:
    assert quantile([], 0.9) is None


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0.01, 1))
def test_at_least_the_share_of_all_is_not_above_the_quantile(values: list[float], share: float) -> None:
    found = quantile(values, share)
    assert found in values
    assert sum(value <= found for value in values) >= share * len(values) - 1e-9


def test_p90_of_ten_is_the_ninth() -> None:
    assert quantile([float(n) for n in range(10, 0, -1)], 0.9) == 9.0


def test_a_step_that_fails_leaves_no_sample() -> None:
    samples = Samples()
    with pytest.raises(OSError, match="refused"), samples.timed("step"):
        raise OSError("refused")
    assert samples.by_step == {}
    assert samples.median("step") is None


def test_samples_keep_the_order_of_their_steps() -> None:
    one, other = Samples(), Samples()
    one.add("first", 1)
    other.add("second", 2)
    other.add("first", 3)
    one.extend(other)
    assert list(one.by_step) == ["first", "second"]
    assert one.median("first") == 2


def test_a_limit_that_is_over_allows_nothing() -> None:
    assert not Limit(-1).allows(0)

from __future__ import annotations

import betterproto
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isulad_py.api.runtime import v1 as cri
from isulad_py.wire import protobuf


@given(st.integers(-(2**63), 2**63 - 1))
def test_integers(value: int) -> None:
    assert protobuf.varint(value) == betterproto.encode_varint(value)
    assert cri.PodSandboxStatus().parse(protobuf.number(4, value)).created_at == value


@given(st.integers(0, 2**64 - 1))
def test_boxed_integers(value: int) -> None:
    found = cri.CpuUsage().parse(protobuf.boxed(2, value)).usage_core_nano_seconds
    assert betterproto.serialized_on_wire(found)
    assert found.value == value


def test_no_value_and_a_negative_one() -> None:
    assert protobuf.boxed(2, None) == b""
    zero = bytes(cri.CpuUsage(usage_core_nano_seconds=cri.UInt64Value(value=0)))
    assert protobuf.boxed(2, -5) == protobuf.boxed(2, 0) == zero


@given(st.floats(allow_nan=False))
def test_reals(value: float) -> None:
    assert cri.PsiData().parse(protobuf.real(2, value)).avg10 == value


@given(st.text())
def test_texts(value: str) -> None:
    assert cri.PodSandboxMetadata().parse(protobuf.text(3, value)).namespace == value
    assert cri.Metric().parse(protobuf.texts(4, ("", value))).label_values == ["", value]


def test_zero_and_empty_are_left_out() -> None:
    assert protobuf.number(1, 0) == protobuf.real(1, 0.0) == protobuf.text(1, "") == b""


@pytest.mark.parametrize("size", [0, 127, 128, 70_000])
def test_messages(size: int) -> None:
    name = "n" * size
    found = cri.ListPodSandboxResponse().parse(protobuf.message(1, protobuf.text(1, name), protobuf.number(3, 1)))
    assert [(item.id, int(item.state)) for item in found.items] == [(name, 1)]


def test_high_field_numbers() -> None:
    assert cri.ContainerStatus().parse(protobuf.number(19, 7)).stop_signal == 7

"""The generated messages: complete, and with presence that both codecs agree on."""

from __future__ import annotations

import betterproto

from isulad_py.api.runtime import v1 as cri


def test_every_rpc_of_cri_v1_is_there() -> None:
    assert len(cri.RuntimeServiceBase().__mapping__()) == 37
    assert len(cri.ImageServiceBase().__mapping__()) == 6


def test_a_present_empty_message_is_not_an_absent_one() -> None:
    present = cri.LinuxSandboxSecurityContext().parse(b"\x4a\x00")
    assert betterproto.serialized_on_wire(present.seccomp)
    assert not betterproto.serialized_on_wire(present.apparmor)


def test_repeated_numbers_are_read_packed_and_unpacked() -> None:
    packed = cri.LinuxSandboxSecurityContext().parse(b"\x2a\x02\x01\x02")
    unpacked = cri.LinuxSandboxSecurityContext().parse(b"\x28\x01\x28\x02")
    assert packed.supplemental_groups == unpacked.supplemental_groups == [1, 2]


def test_fields_of_a_later_cri_are_skipped() -> None:
    assert cri.VersionRequest().parse(b"\x0a\x011\xba\x3e\x03new").version == "1"

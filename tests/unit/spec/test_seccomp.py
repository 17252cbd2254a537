from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import UNSET, Raw

from isulad_py.model.errors import InvalidInput, Unsupported
from isulad_py.model.security import ProfileKind, SecurityProfile
from isulad_py.spec import seccomp
from isulad_py.spec.capabilities import DEFAULT
from tests.fakes.facts import host_facts

HOST = host_facts(kernel="6.1.0-13-amd64")
RUNTIME_DEFAULT = SecurityProfile(kind=ProfileKind.RUNTIME_DEFAULT)
UNCONFINED = SecurityProfile(kind=ProfileKind.UNCONFINED)
LOCALHOST = SecurityProfile(kind=ProfileKind.LOCALHOST, localhost_ref="/p.json")


def made(asked: SecurityProfile | None = RUNTIME_DEFAULT, **changes: Any) -> dict[str, Any]:
    options: dict[str, Any] = {"privileged": False, "capabilities": DEFAULT, "host": HOST, **changes}
    found = seccomp.filter_for(asked, **options)
    assert isinstance(found, Raw)
    return dict(json.loads(bytes(found)))


def actions(profile: dict[str, Any], name: str) -> list[str]:
    return [rule["action"] for rule in profile["syscalls"] if name in rule["names"]]


def resolved(profile: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return made(LOCALHOST, localhost=json.dumps(profile).encode(), **changes)


def test_unconfined_and_privileged_get_none_and_who_says_nothing_too() -> None:
    for asked, privileged in ((None, False), (UNCONFINED, False), (RUNTIME_DEFAULT, True), (LOCALHOST, True)):
        assert seccomp.filter_for(asked, privileged=privileged, capabilities=(), host=HOST) is UNSET


def test_the_default_follows_the_capabilities() -> None:
    assert actions(made(), "mount") == []
    assert actions(made(capabilities=("CAP_SYS_ADMIN",)), "mount") == ["SCMP_ACT_ALLOW"]
    assert actions(made(), "chroot") == ["SCMP_ACT_ALLOW"]


def test_new_namespaces_need_sys_admin() -> None:
    plain = made()
    (clone,) = [rule for rule in plain["syscalls"] if "clone" in rule["names"]]
    assert clone["args"] == [{"index": 0, "value": 0x7E020000, "op": "SCMP_CMP_MASKED_EQ"}]
    (clone3,) = [rule for rule in plain["syscalls"] if "clone3" in rule["names"]]
    assert (clone3["action"], clone3["errnoRet"]) == ("SCMP_ACT_ERRNO", 38)
    admin = made(capabilities=("CAP_SYS_ADMIN",))
    assert actions(admin, "clone3") == ["SCMP_ACT_ALLOW"]
    assert not any("args" in rule for rule in admin["syscalls"] if "clone" in rule["names"])


def test_an_s390_gets_its_own_order_of_arguments() -> None:
    profile = made(host=host_facts(machine="s390x"))
    (clone,) = [rule for rule in profile["syscalls"] if "clone" in rule["names"]]
    assert clone["args"][0]["index"] == 1
    assert profile["architectures"] == ["SCMP_ARCH_S390X", "SCMP_ARCH_S390"]


def test_the_default_follows_machine_and_kernel() -> None:
    assert made()["architectures"] == ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86"]
    assert actions(made(), "arch_prctl") == ["SCMP_ACT_ALLOW"]
    arm = made(host=host_facts(machine="aarch64", kernel="4.4.0"))
    assert actions(arm, "arch_prctl") == []
    assert actions(arm, "ptrace") == []
    assert actions(made(), "ptrace") == ["SCMP_ACT_ALLOW"]


def test_a_configured_default_takes_the_place_of_the_built_in_one() -> None:
    assert made(default=b'{"defaultAction":"SCMP_ACT_LOG"}') == {"defaultAction": "SCMP_ACT_LOG"}


def test_an_oci_profile_passes_through() -> None:
    profile = {
        "defaultAction": "SCMP_ACT_ALLOW",
        "defaultErrnoRet": 1,
        "architectures": ["SCMP_ARCH_X86_64"],
        "flags": ["SECCOMP_FILTER_FLAG_LOG"],
        "syscalls": [
            {
                "names": ["chmod"],
                "action": "SCMP_ACT_ERRNO",
                "errnoRet": 13,
                "args": [{"index": 1, "value": 2**64 - 1, "valueTwo": 3, "op": "SCMP_CMP_MASKED_EQ"}],
            }
        ],
    }
    assert resolved(profile) == profile


def test_dockers_additions_are_resolved() -> None:
    profile = {
        "defaultAction": "SCMP_ACT_ERRNO",
        "archMap": [
            {"architecture": "SCMP_ARCH_AARCH64", "subArchitectures": None},
            {"architecture": "SCMP_ARCH_X86_64", "subArchitectures": ["SCMP_ARCH_X86", "SCMP_ARCH_X32"]},
        ],
        "syscalls": [
            {"name": "read", "action": "SCMP_ACT_ALLOW", "args": None, "comment": "old form"},
            {"names": ["a"], "action": "SCMP_ACT_ALLOW", "includes": {"minKernel": "6.2"}},
            {"names": ["b"], "action": "SCMP_ACT_ALLOW", "includes": {"minKernel": "6.1", "arches": ["amd64", "x32"]}},
            {"names": ["c"], "action": "SCMP_ACT_ALLOW", "excludes": {"caps": ["CAP_CHOWN", "CAP_BPF"]}},
            {"names": ["d"], "action": "SCMP_ACT_ALLOW", "includes": {"caps": ["CAP_CHOWN", "CAP_BPF"]}},
            {"names": ["e"], "action": "SCMP_ACT_ALLOW", "excludes": {"minKernel": "5.0"}},
        ],
    }
    found = resolved(profile)
    assert found["architectures"] == ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"]
    assert [rule["names"] for rule in found["syscalls"]] == [["read"], ["b"]]


def with_rule(rule: dict[str, Any]) -> bytes:
    rules = [{"action": "SCMP_ACT_LOG", **rule}]
    return json.dumps({"defaultAction": "SCMP_ACT_LOG", "syscalls": rules}).encode()


@pytest.mark.parametrize(
    ("profile", "words"),
    [
        (b"{", "profile"),
        (b"[]", "profile"),
        (b"{}", "defaultAction"),
        (b'{"defaultAction":"ALLOW"}', "defaultAction"),
        (
            b'{"defaultAction":"SCMP_ACT_LOG","architectures":["SCMP_ARCH_ARM"],"archMap":[{"architecture":"b"}]}',
            "archMap",
        ),
        (b'{"defaultAction":"SCMP_ACT_LOG","architectures":["SCMP_ARCH_Z80"]}', r"architectures\[0\]"),
        (b'{"defaultAction":"SCMP_ACT_LOG","flags":["SECCOMP_FILTER_FLAG_MAGIC"]}', r"flags\[0\]"),
        (with_rule({"names": ["a"], "action": "NO"}), r"syscalls\[0\]\.action"),
        (with_rule({}), r"syscalls\[0\]\.names"),
        (with_rule({"names": ["a"], "args": [{"index": 6, "value": 1, "op": "SCMP_CMP_EQ"}]}), "index"),
        (with_rule({"names": ["a"], "args": [{"index": 0, "value": 1, "op": "EQ"}]}), "op"),
        (with_rule({"names": ["a"], "includes": {"minKernel": "new"}}), "kernel version"),
    ],
)
def test_a_bad_profile_is_refused_with_what_is_wrong(profile: bytes, words: str) -> None:
    with pytest.raises(InvalidInput, match=rf"linux\.security_context\.seccomp.*{words}"):
        seccomp.filter_for(LOCALHOST, privileged=False, capabilities=(), host=HOST, localhost=profile)


def test_a_missing_localhost_profile_is_refused() -> None:
    with pytest.raises(InvalidInput, match="localhost_ref"):
        seccomp.filter_for(LOCALHOST, privileged=False, capabilities=(), host=HOST)


def test_a_kernel_without_seccomp_refuses_what_is_asked_for_only() -> None:
    host = host_facts(seccomp=False)
    assert seccomp.filter_for(None, privileged=False, capabilities=(), host=host) is UNSET
    with pytest.raises(Unsupported, match="seccomp"):
        seccomp.filter_for(RUNTIME_DEFAULT, privileged=False, capabilities=(), host=host)

from __future__ import annotations

import msgspec

from isulad_py.spec.seccomp_profile import Argument, Profile, Seccomp, Syscall


def test_what_is_optional_is_left_out() -> None:
    assert msgspec.json.encode(Seccomp(default_action="SCMP_ACT_LOG")) == b'{"defaultAction":"SCMP_ACT_LOG"}'


def test_zero_values_of_an_argument_are_written() -> None:
    rule = Syscall(names=("a",), action="x", errno_ret=0, args=(Argument(index=0, value=0, op="o"),))
    assert msgspec.json.decode(msgspec.json.encode(rule)) == {
        "names": ["a"],
        "action": "x",
        "errnoRet": 0,
        "args": [{"index": 0, "value": 0, "op": "o"}],
    }


def test_nulls_where_docker_writes_them_are_read() -> None:
    document = b'{"defaultAction":"x","archMap":null,"syscalls":[{"names":["a"],"action":"y","args":null}]}'
    assert msgspec.json.decode(document, type=Profile).syscalls is not None

from __future__ import annotations

import msgspec

from isulad_py.spec import schema


def test_required_numbers_are_written_when_zero_and_optional_ones_left_out() -> None:
    assert msgspec.json.encode(schema.User(uid=0, gid=0)) == b'{"uid":0,"gid":0}'
    process = schema.Process(user=schema.User(uid=0, gid=0), cwd="/", args=("a",), oom_score_adj=0)
    assert msgspec.json.decode(msgspec.json.encode(process)) == {
        "user": {"uid": 0, "gid": 0},
        "cwd": "/",
        "args": ["a"],
        "oomScoreAdj": 0,
    }


def test_names_are_those_of_the_specification() -> None:
    mapping = schema.LinuxIdMapping(container_id=0, host_id=1, size=2)
    assert msgspec.json.encode(mapping) == b'{"containerID":0,"hostID":1,"size":2}'
    linux = schema.Linux(cgroups_path="/a", rootfs_propagation="rslave", mount_label="l", masked_paths=("/b",))
    assert set(msgspec.json.decode(msgspec.json.encode(linux))) == {
        "cgroupsPath",
        "rootfsPropagation",
        "mountLabel",
        "maskedPaths",
    }

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isulad_py.model.container import Identity
from isulad_py.model.errors import InvalidInput
from isulad_py.model.image import ImageConfig
from isulad_py.spec import process
from isulad_py.spec.inputs import Ulimit
from tests.fakes.facts import host_facts

IMAGE = ImageConfig(entrypoint=("/entry", "-e"), cmd=("cmd",))


@pytest.mark.parametrize(
    ("command", "args", "image", "expected"),
    [
        ((), (), IMAGE, ("/entry", "-e", "cmd")),
        ((), ("a",), IMAGE, ("/entry", "-e", "a")),
        (("c",), (), IMAGE, ("c",)),
        (("c",), ("a",), IMAGE, ("c", "a")),
        ((), (), ImageConfig(cmd=("sh",)), ("sh",)),
        ((), ("a",), ImageConfig(cmd=("sh",)), ("a",)),
        ((), (), ImageConfig(entrypoint=("/e",)), ("/e",)),
    ],
)
def test_command_replaces_all_and_args_replace_the_images_cmd(
    command: tuple[str, ...], args: tuple[str, ...], image: ImageConfig, expected: tuple[str, ...]
) -> None:
    assert process.arguments(command, args, image) == expected


@pytest.mark.parametrize("command", [(), ("",)])
def test_nothing_to_run_is_refused(command: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInput, match=r"config\.command"):
        process.arguments(command, (), ImageConfig())


def test_a_nul_byte_in_an_argument_is_refused_by_place() -> None:
    with pytest.raises(InvalidInput, match=r"command\[1\]"):
        process.arguments(("a", "b\0c"), (), ImageConfig())


def test_the_environment_has_defaults_that_image_and_request_override_in_place() -> None:
    found = process.environment(
        (("HOSTNAME", "mine"), ("NEW", "")), ("PATH=/opt/bin", "A=1"), hostname="web-0", home="/root", tty=True
    )
    assert found == ("PATH=/opt/bin", "HOSTNAME=mine", "TERM=xterm", "HOME=/root", "A=1", "NEW=")


def test_an_image_may_leave_out_the_value_but_not_the_key() -> None:
    assert process.environment((), ("EMPTY", "=x", "B=a=b"))[1:] == ("EMPTY=", "B=a=b")


@pytest.mark.parametrize(("key", "value"), [("", "x"), ("A=B", "x"), ("A\0", "x"), ("A", "x\0")])
def test_impossible_variables_are_refused_by_place(key: str, value: str) -> None:
    with pytest.raises(InvalidInput, match=r"config\.envs\[1\]\.(key|value)"):
        process.environment((("FINE", ""), (key, value)), ())


NAMES = st.text(st.characters(exclude_characters="=\0", exclude_categories=["Cs"]), min_size=1, max_size=5)
VALUES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=5)
PAIRS = st.lists(st.tuples(NAMES, VALUES), max_size=8)


@given(image=PAIRS, request=PAIRS)
def test_the_request_wins_over_the_image_and_each_key_comes_once(image: Any, request: Any) -> None:
    found = process.environment(request, [f"{key}={value}" for key, value in image])
    merged = dict(entry.split("=", 1) for entry in found)
    assert len(merged) == len(found)
    assert merged == {"PATH": process.PATH, **dict(image), **dict(request)}
    order = list(dict.fromkeys(["PATH", *(key for key, _ in image), *(key for key, _ in request)]))
    assert list(merged) == order


@pytest.mark.parametrize(
    ("requested", "image", "expected"),
    [("", "", "/"), ("", "/srv", "/srv"), ("", "srv", "/srv"), ("/w/", "/srv", "/w")],
)
def test_the_working_directory(requested: str, image: str, expected: str) -> None:
    assert process.working_dir(requested, image) == expected


def test_a_relative_working_directory_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"config\.working_dir"):
        process.working_dir("srv", "")


def test_the_user_carries_groups_and_umask() -> None:
    user = process.user(Identity(uid=7, gid=8, supplemental_groups=(9,)), 0o027)
    assert (user.uid, user.gid, user.additional_gids, user.umask) == (7, 8, (9,), 0o027)


@pytest.mark.parametrize(
    ("identity", "field"),
    [
        (Identity(uid=-1), "run_as_user"),
        (Identity(gid=2**32 - 1), "run_as_group"),
        (Identity(supplemental_groups=(2**32,)), "supplemental_groups"),
    ],
)
def test_impossible_ids_are_refused(identity: Identity, field: str) -> None:
    with pytest.raises(InvalidInput, match=field):
        process.user(identity, None)


@pytest.mark.parametrize(
    ("asked", "own", "can_lower", "expected"),
    [(-997, 0, True, -997), (-997, 0, False, 0), (-997, -500, False, -500), (1000, 0, False, 1000), (0, -999, True, 0)],
)
def test_the_oom_score_is_clamped_where_it_cannot_be_lowered(
    asked: int, own: int, can_lower: bool, expected: int
) -> None:
    host = host_facts(oom_score_adj=own, can_lower_oom_score=can_lower)
    assert process.oom_score_adj(asked, host) == expected


@pytest.mark.parametrize("asked", [-1001, 1001])
def test_an_oom_score_out_of_range_is_refused(asked: int) -> None:
    with pytest.raises(InvalidInput, match="oom_score_adj"):
        process.oom_score_adj(asked, host_facts())


def test_limits_are_named_as_the_kernel_does() -> None:
    found = process.rlimits([Ulimit(name="nofile", hard=20, soft=10), Ulimit(name="RLIMIT_CORE", hard=-1, soft=0)])
    assert [(limit.type, limit.hard, limit.soft) for limit in found] == [
        ("RLIMIT_CORE", 2**64 - 1, 0),
        ("RLIMIT_NOFILE", 20, 10),
    ]


@pytest.mark.parametrize(
    "ulimit",
    [
        Ulimit(name="files", hard=1, soft=1),
        Ulimit(name="nofile", hard=1, soft=2),
        Ulimit(name="nofile", hard=-2, soft=-2),
    ],
)
def test_impossible_limits_are_refused_by_name(ulimit: Ulimit) -> None:
    with pytest.raises(InvalidInput, match=f"ulimit {ulimit.name}"):
        process.rlimits([ulimit])

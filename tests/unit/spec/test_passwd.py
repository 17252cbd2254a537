from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isulad_py.model.container import Identity
from isulad_py.model.errors import FailedPrecondition, InvalidInput
from isulad_py.model.identity import ResolvedUser
from isulad_py.model.security import ContainerSecurity, GroupsPolicy
from isulad_py.spec import passwd

PASSWD = b"""root:x:0:0:root:/root:/bin/sh
# a comment
broken:x:many:1::/
huge:x:99999999999999999999:1::/
high:x:4294967295:1::/
negative:x:-5:1::/
short:x:7
web:x:1000:1001:Web:/srv/web:/bin/false
web:x:2000:2001:a second one:/other:/bin/false
nohome:x:1100:1100
12:x:1200:1200::/twelve
\xff\xfe:x:1300:1300::/odd
+::::::
nul\0:x:1:1::/
"""
GROUP = b"""root:x:0:
wheel:x:10:root
staff:x:50:web,,nohome
web:x:1001:
extra:x:60:web
broken:x:zero:web
nomembers:x:70
"""


def resolve(image_user: str = "", **security: object) -> ResolvedUser:
    return passwd.resolve(image_user, ContainerSecurity(**security), passwd=PASSWD, group=GROUP)  # type: ignore[arg-type]


def ids(user: ResolvedUser) -> tuple[int, int, tuple[int, ...]]:
    return user.identity.uid, user.identity.gid, user.identity.supplemental_groups


def test_nobody_named_is_root_with_its_groups() -> None:
    assert resolve() == ResolvedUser(
        identity=Identity(uid=0, gid=0, supplemental_groups=(0, 10)), username="root", home="/root"
    )


@pytest.mark.parametrize(
    ("image_user", "expected"),
    [
        ("web", (1000, 1001, (50, 60, 1001))),
        ("1000", (1000, 1001, (50, 60, 1001))),
        ("web:staff", (1000, 50, (50, 60))),
        ("web:7", (1000, 7, (7, 50, 60))),
        ("1000:staff", (1000, 50, (50, 60))),
        ("1000:7", (1000, 7, (7, 50, 60))),
        ("5000", (5000, 0, (0,))),
        ("5000:60", (5000, 60, (60,))),
        ("web:", (1000, 1001, (50, 60, 1001))),
        (":staff", (0, 50, (10, 50))),
        ("12", (12, 0, (0,))),
    ],
)
def test_the_images_user_in_every_form(image_user: str, expected: tuple[int, int, tuple[int, ...]]) -> None:
    assert ids(resolve(image_user)) == expected


@pytest.mark.parametrize(
    "image_user", ["nobody", "broken", "huge", "high", "negative", "short", "web:nogroup", "a:b:c"]
)
def test_an_image_whose_user_does_not_exist_is_at_fault_itself(image_user: str) -> None:
    with pytest.raises(FailedPrecondition, match="user of the image"):
        resolve(image_user)


def test_the_request_wins_over_the_image() -> None:
    assert ids(resolve("web", run_as_user=0)) == (0, 0, (0, 10))
    assert ids(resolve("web", run_as_user=1100, run_as_group=5)) == (1100, 5, (5, 50))
    assert ids(resolve("", run_as_username="web")) == (1000, 1001, (50, 60, 1001))
    assert ids(resolve("", run_as_username="web", run_as_user=0, run_as_group=0)) == (1000, 0, (0, 50, 60))


@pytest.mark.parametrize(
    ("security", "field"),
    [
        ({"run_as_user": -1}, "run_as_user"),
        ({"run_as_user": 1 << 31}, "run_as_user"),
        ({"run_as_user": 1, "run_as_group": -1}, "run_as_group"),
        ({"run_as_group": 1}, "run_as_group"),
        ({"run_as_username": "nobody"}, "run_as_username"),
        ({"run_as_username": "web:nogroup"}, "run_as_username"),
        ({"run_as_username": "a:b:c"}, "run_as_username"),
        ({"run_as_username": "a\nb"}, "run_as_username"),
        ({"supplemental_groups": (-1,)}, "supplemental_groups"),
        ({"supplemental_groups": tuple(range(70000))}, "supplemental_groups"),
    ],
)
def test_a_wrong_request_is_refused_by_field(security: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInput, match=rf"security_context\.{field}"):
        resolve(**security)


def test_run_as_group_needs_a_user_also_where_the_image_has_one() -> None:
    with pytest.raises(InvalidInput, match="run_as_group"):
        resolve("web", run_as_group=5)


def test_strict_leaves_out_what_the_image_grants() -> None:
    strict = GroupsPolicy.STRICT
    assert ids(resolve("web", supplemental_groups=(1234,))) == (1000, 1001, (50, 60, 1001, 1234))
    assert ids(resolve("web", supplemental_groups=(1234,), groups_policy=strict)) == (1000, 1001, (1001, 1234))


def test_an_image_without_files_knows_ids_only() -> None:
    user = passwd.resolve("", ContainerSecurity(run_as_user=65535), passwd=b"", group=b"")
    assert user == ResolvedUser(identity=Identity(uid=65535, gid=0, supplemental_groups=(0,)))
    with pytest.raises(FailedPrecondition):
        passwd.resolve("web", ContainerSecurity(), passwd=b"", group=b"")


def test_home_and_name_come_from_the_first_entry() -> None:
    assert (resolve("web").username, resolve("web").home) == ("web", "/srv/web")
    assert resolve("1100").home == ""


@given(passwd_text=st.binary(max_size=300), group_text=st.binary(max_size=300), image_user=st.text(max_size=20))
def test_no_content_breaks_it(passwd_text: bytes, group_text: bytes, image_user: str) -> None:
    try:
        user = passwd.resolve(image_user, ContainerSecurity(), passwd=passwd_text, group=group_text)
    except FailedPrecondition:
        return
    assert 0 <= user.identity.uid <= passwd.MAX_ID
    assert user.identity.gid in user.identity.supplemental_groups

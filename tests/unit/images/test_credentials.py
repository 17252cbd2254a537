"""CRI's AuthConfig and docker's config.json."""

from __future__ import annotations

import base64
import json

import pytest

from isulad_py.images.credentials import ANONYMOUS, Login, decode_auth, login_of, parse_auth_file, serves
from isulad_py.model.errors import FailedPrecondition, InvalidInput
from isulad_py.model.image import Credentials


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_nothing_is_anonymous() -> None:
    assert login_of(None) == login_of(Credentials()) == login_of(Credentials(server_address="x")) == ANONYMOUS
    assert ANONYMOUS.anonymous
    assert ANONYMOUS.basic == ""


@pytest.mark.parametrize(
    ("credentials", "login"),
    [
        (Credentials(username="u", password="p"), Login(username="u", password="p")),
        (Credentials(auth=encoded("u:p:q")), Login(username="u", password="p:q")),
        (Credentials(auth=encoded("u:p"), username="v", password="w"), Login(username="v", password="w")),
        (Credentials(identity_token="i", auth="!"), Login(identity_token="i")),
        (Credentials(registry_token="r"), Login(registry_token="r")),
    ],
)
def test_forms(credentials: Credentials, login: Login) -> None:
    assert login_of(credentials) == login


@pytest.mark.parametrize("text", ["!", "dXNlcg==", "/w=="])
def test_what_cannot_be_read_is_the_requests_fault(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"auth\.auth") as caught:
        decode_auth(text)
    assert text not in str(caught.value)


def test_a_login_never_shows_itself() -> None:
    login = Login(username="u", password="hunter2", identity_token="hunter2", registry_token="hunter2")
    assert "hunter2" not in repr(login) + str(login) + login.fingerprint
    assert login.fingerprint != Login(username="u", password="hunter2").fingerprint


@pytest.mark.parametrize(
    ("address", "host", "yes"),
    [
        ("quay.io", "quay.io", True),
        ("https://quay.io/v2/", "quay.io", True),
        ("quay.io/team", "quay.io", True),
        ("QUAY.io", "quay.IO", True),
        ("quay.io:443", "quay.io", False),
        ("https://index.docker.io/v1/", "registry-1.docker.io", True),
        ("docker.io", "registry-1.docker.io", True),
        ("docker.io", "evil-docker.io", False),
        ("io", "quay.io", False),
    ],
)
def test_whom_an_address_serves(address: str, host: str, yes: bool) -> None:
    assert serves(address, host) is yes


def test_dockers_file() -> None:
    auths = {"https://index.docker.io/v1/": {"auth": encoded("a:b")}, "quay.io": {"identitytoken": "t"}}
    data = json.dumps({"auths": auths, "credHelpers": {"x": "y"}}).encode()
    assert parse_auth_file(data, "registry-1.docker.io") == Login(username="a", password="b")
    assert parse_auth_file(data, "quay.io") == Login(identity_token="t")
    assert parse_auth_file(data, "ghcr.io") == ANONYMOUS
    for broken in (b"", b"[]", b'{"auths": []}'):
        with pytest.raises(FailedPrecondition, match="file of registry credentials"):
            parse_auth_file(broken, "quay.io")


def test_a_bad_entry_is_the_files_fault() -> None:
    data = json.dumps({"auths": {"quay.io": {"auth": "?"}}}).encode()
    with pytest.raises(FailedPrecondition, match=r"file of registry credentials: auth\.auth: not base64"):
        parse_auth_file(data, "quay.io")


@pytest.mark.parametrize(
    ("path", "name"),
    [("team/app", "team"), ("team/deep/app", "deep"), ("teams/app", "host"), ("app", "host"), ("", "host")],
)
def test_the_longest_path_that_begins_the_repository(path: str, name: str) -> None:
    """containers-auth.json(5)."""
    keys = {
        "quay.io/team": "team",
        "quay.io/other/app": "other",
        "https://quay.io/v2/": "host",
        "quay.io/team/deep": "deep",
    }
    data = json.dumps({"auths": {key: {"username": user, "password": "p"} for key, user in keys.items()}}).encode()
    assert parse_auth_file(data, "quay.io", path).username == name


def test_a_token_that_no_header_can_carry() -> None:
    with pytest.raises(InvalidInput, match=r"auth\.registry_token"):
        login_of(Credentials(registry_token="a\nb"))

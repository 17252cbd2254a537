"""Challenges answered: Basic, tokens, and services of tokens that fail."""

from __future__ import annotations

from typing import Any

import pytest

from isulad_py.model.errors import (
    DataLoss,
    EngineError,
    PermissionDenied,
    ResourceExhausted,
    Unauthenticated,
    Unavailable,
)
from isulad_py.model.image import Credentials
from isulad_py.model.reference import parse
from isulad_py.ports.images import PullRequest
from tests.unit.images.stand import (
    GIVEN,
    LOGIN,
    Stand,
    answering,
    encoded,
    refused,
    small_image,
)


@pytest.mark.parametrize("tokens", [False, True])
@pytest.mark.parametrize(
    "credentials",
    [
        GIVEN,
        Credentials(auth=encoded("user:hunter2")),
        Credentials(auth=encoded("user:hunter2\0\0")),
        Credentials(username="user", password="hunter2", auth=encoded("other:x")),
    ],
)
async def test_forms_of_credentials(stand: Stand, credentials: Credentials, tokens: bool) -> None:
    stand.registry.login, stand.registry.tokens = LOGIN, tokens
    name = stand.registry.put("app", "v1", small_image())
    await stand.pull(name, credentials=credentials)


async def test_an_identity_token_is_exchanged(stand: Stand) -> None:
    stand.registry.login, stand.registry.tokens = ("", "refresh-me"), True
    name = stand.registry.put("app", "v1", small_image())
    await stand.pull(name, credentials=Credentials(identity_token="refresh-me"))
    assert stand.registry.count("POST /token") == 1
    with pytest.raises(Unauthenticated, match="credentials are not accepted"):
        await stand.pull(name, credentials=Credentials(identity_token="old"))


async def test_a_registry_token_is_sent_as_it_is(stand: Stand) -> None:
    stand.registry.tokens = True
    name = stand.registry.put("app", "v1", small_image())
    await stand.pull(name, credentials=Credentials(registry_token="good"))
    assert stand.registry.count("/token") == 0
    with pytest.raises(Unauthenticated, match="registry token is not accepted"):
        await stand.pull(name, credentials=Credentials(registry_token="bad"))


async def test_an_anonymous_token_serves_the_whole_pull_and_the_next(stand: Stand) -> None:
    stand.registry.tokens = True
    name = stand.registry.put("team/app", "v1", small_image("a", "b"))
    source = stand.source()
    for tag in ("v1", "v1"):
        await source.pull(PullRequest(reference=parse(name.replace("v1", tag))))
    (asked,) = [line for line in stand.registry.seen if "/token" in line]
    assert "scope=repository:team/app:pull" in asked
    assert "service=fake" in asked


async def test_a_token_that_was_withdrawn_is_fetched_anew(stand: Stand) -> None:
    stand.registry.tokens = True
    name = stand.registry.put("app", "v1", small_image())
    source = stand.source()
    await source.pull(PullRequest(reference=parse(name)))
    stand.registry.token_answer = {"access_token": "newer"}
    await source.pull(PullRequest(reference=parse(name)))
    assert stand.registry.count("/token") == 2


async def test_the_login_of_one_is_not_the_login_of_another(stand: Stand) -> None:
    stand.registry.login = LOGIN
    name = stand.registry.put("app", "v1", small_image())
    source = stand.source()
    await source.pull(PullRequest(reference=parse(name), credentials=GIVEN))
    for credentials in (None, Credentials(username="user", password="guess")):
        with pytest.raises(Unauthenticated):
            await source.pull(PullRequest(reference=parse(name), credentials=credentials))


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        ({"status": 500}, Unavailable, "token service .*HTTP 500"),
        ({"status": 403}, PermissionDenied, "token service .*denied"),
        ({"status": 401}, Unauthenticated, "token service .*wants credentials"),
        ({"status": 404}, Unavailable, "token service .*HTTP 404"),
        ({"body": b"<html>"}, DataLoss, "token service: its answer cannot be read"),
        ({"body": b"{}"}, DataLoss, "holds no token"),
        ({"body": b'{"token": "a\\nInjected: yes"}'}, DataLoss, "holds no token"),
        ({"body": b"x" * 300_000}, ResourceExhausted, "300000 bytes"),
    ],
)
async def test_token_services_that_fail(
    stand: Stand, answer: dict[str, Any], kind: type[EngineError], words: str
) -> None:
    name = stand.registry.put("app", "v1", small_image())
    stand.registry.tokens = True
    stand.registry.tricks["token"] = answering(**answer)
    await refused(stand, name, kind, f"resolve: .*{words}")


async def test_a_token_that_is_never_good(stand: Stand) -> None:
    name = stand.registry.put("app", "v1", small_image())
    stand.registry.tokens = True
    stand.registry.tricks["token"] = answering(body=b'{"token": "bad"}')
    await refused(stand, name, Unauthenticated, "needs credentials, or does not exist")
    assert stand.registry.count("/token") == 1


@pytest.mark.parametrize(
    ("challenge", "words"),
    [
        ("", "no scheme at all"),
        ("Negotiate", "negotiate"),
        ("Bearer", "token service: '' is no web address"),
        ('Bearer realm="file:///etc/passwd"', "no web address"),
        ('Bearer realm="http://[::1"', "no address"),
        ('Basic realm="x"', "wants a name and a password"),
        ("Bearer realm=" + "x" * 7000, "no web address"),
    ],
)
async def test_strange_challenges(stand: Stand, challenge: str, words: str) -> None:
    name = stand.registry.put("app", "v1", small_image())
    headers = {"WWW-Authenticate": challenge} if challenge else {}
    stand.registry.tricks["manifest"] = answering(status=401, headers=headers)
    with pytest.raises((Unauthenticated, Unavailable), match=words):
        await stand.pull(name)

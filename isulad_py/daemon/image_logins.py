"""Whom `isulad image pull` tells a registry that we are: from standard input or a file, never from the arguments, which
everybody on the machine can read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, TextIO

from isulad_py.host.files import read_limited
from isulad_py.images.credentials import parse_auth_file
from isulad_py.model.errors import EngineError, InvalidInput, NotFound
from isulad_py.model.image import Credentials
from isulad_py.model.reference import parse

AUTH_FILE_LIMIT: Final = 1024 * 1024
LINE_LIMIT: Final = 64 * 1024


def credentials_from_line(source: TextIO) -> Credentials:
    """Of `USER:PASSWORD`, the first line."""
    user, colon, password = source.readline(LINE_LIMIT).rstrip("\r\n").partition(":")
    if not colon or not user:
        raise InvalidInput("--creds: standard input does not begin with a line USER:PASSWORD")
    return Credentials(username=user, password=password)


def credentials_from_file(image: str, path: str, environment: Mapping[str, str]) -> Credentials | None:
    """The login for the image's registry in docker's config.json at `path`; without one, where skopeo and docker keep
    theirs. None where there is none."""
    reference = parse(image)
    for candidate in (path,) if path else _usual(environment):
        try:
            data = read_limited(candidate, AUTH_FILE_LIMIT)
        except NotFound:
            if path:
                raise
            continue
        try:
            login = parse_auth_file(data, reference.host, reference.path)
        except EngineError as error:
            raise type(error)(f"{candidate}: {error}") from error
        if not login.anonymous:
            return Credentials(
                username=login.username,
                password=login.password,
                identity_token=login.identity_token,
                registry_token=login.registry_token,
            )
    return None


def _usual(environment: Mapping[str, str]) -> list[str]:
    """containers-auth.json(5), docker's own last."""
    if given := environment.get("REGISTRY_AUTH_FILE"):
        return [given]
    runtime, home = environment.get("XDG_RUNTIME_DIR"), environment.get("HOME")
    docker = environment.get("DOCKER_CONFIG") or (f"{home}/.docker" if home else "")
    folders = [f"{runtime}/containers/auth.json"] if runtime else []
    return folders + ([str(Path(docker, "config.json"))] if docker else [])

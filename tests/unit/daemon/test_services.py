from __future__ import annotations

import json
from pathlib import Path

import pytest

from isulad_py.config.keys import BY_NAME
from isulad_py.config.schema import Config, Ulimit
from isulad_py.daemon.services import effective_config, spec_defaults
from isulad_py.model.errors import InvalidInput
from isulad_py.spec.inputs import Defaults
from isulad_py.spec.inputs import Ulimit as SpecUlimit


def test_what_every_container_gets() -> None:
    assert spec_defaults(Config()) == Defaults(umask=0o022)
    limits = {"nofile": Ulimit(name="nofile", hard=2, soft=1)}
    found = spec_defaults(Config(native_umask="secure", default_ulimits=limits))
    assert found == Defaults(umask=0o027, ulimits=(SpecUlimit(name="nofile", hard=2, soft=1),))


def test_a_profile_of_ones_own_is_read_and_checked(tmp_path: Path) -> None:
    profile = tmp_path / "profile.json"
    profile.write_text('{"defaultAction": "SCMP_ACT_ALLOW"}')
    assert spec_defaults(Config(seccomp_profile=str(profile))).seccomp == profile.read_bytes()


@pytest.mark.parametrize("content", ["{", '{"defaultAction": "SCMP_ACT_PERHAPS"}', None])
def test_a_profile_that_is_none_keeps_the_daemon_from_starting(tmp_path: Path, content: str | None) -> None:
    profile = tmp_path / "profile.json"
    if content is not None:
        profile.write_text(content)
    with pytest.raises(InvalidInput, match="seccomp-profile"):
        spec_defaults(Config(seccomp_profile=str(profile)))


def test_keys_are_told_as_they_are_written() -> None:
    told = json.loads(effective_config(Config(graph="/g")))
    assert set(told) == set(BY_NAME)
    assert (told["graph"], told["native.umask"]) == ("/g", "normal")

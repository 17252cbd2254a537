"""Names on disk are derived from ids, and never lead elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isulad_py.model.errors import InvalidInput
from isulad_py.model.ids import ChainId, ContainerId
from isulad_py.storage.paths import OverlayPaths, chain_hex, link_name

PATHS = OverlayPaths("/graph/overlay")
CHAIN = ChainId("sha256:" + "0123456789abcdef" * 4)


def test_names() -> None:
    assert PATHS.diff(CHAIN) == f"/graph/overlay/layers/{'0123456789abcdef' * 4}/diff"
    assert PATHS.merged(ContainerId("c1")) == "/graph/overlay/containers/c1/merged"
    assert len(link_name(CHAIN)) == 24


@given(st.binary(min_size=32, max_size=32), st.binary(min_size=32, max_size=32))
def test_short_names_differ_as_the_chains_do(one: bytes, two: bytes) -> None:
    names = {link_name(ChainId(f"sha256:{value.hex()}")) for value in (one, two)}
    assert len(names) == len({one[:15], two[:15]})


@pytest.mark.parametrize("text", ["", "sha256:", "sha256:../../x", "sha256:" + "A" * 64, "md5:" + "0" * 64, "0" * 64])
def test_what_is_no_chain_id_names_nothing(text: str) -> None:
    with pytest.raises(InvalidInput):
        chain_hex(ChainId(text))


@pytest.mark.parametrize("text", ["", ".", "..", "../x", "a/b", "/", ".hidden", "a\0b", "x" * 201, "a\n"])
def test_what_is_no_name_names_nothing(text: str) -> None:
    with pytest.raises(InvalidInput):
        PATHS.container(ContainerId(text))
    with pytest.raises(InvalidInput):
        PATHS.view(text)


def test_directories_are_for_root_only(tmp_path: Path) -> None:
    paths = OverlayPaths(str(tmp_path / "overlay"))
    paths.make()
    paths.make()
    modes = {path.name: path.stat().st_mode & 0o777 for path in Path(paths.root).iterdir()}
    assert modes.pop("empty") == 0o755
    assert modes.pop("containers") == 0o711  # root of a user namespace comes through to its own
    assert set(modes.values()) == {0o700}
    assert Path(paths.root).stat().st_mode & 0o777 == 0o711

"""Layers unpacked and packed again: the same bytes, or an error."""

from __future__ import annotations

import os
import random
import tarfile
from pathlib import Path

import pytest

from isulad_py.images.recipe import Recipe
from isulad_py.images.unpack import BlobFacts, UnpackLimits, unpack
from isulad_py.model.errors import DataLoss, EngineError, NotFound, Unsupported
from isulad_py.model.ids import Digest
from tests.fakes.growth import freely
from tests.images import Dir, Entry, File, Hardlink, Symlink, layer_of, tar

ME = (os.geteuid(), os.getegid())


def file(name: str, data: bytes) -> File:
    return File(name, data, uid=ME[0], gid=ME[1])


def kept(folder: Path, archive: bytes, step: int = 70_000) -> Recipe:
    root, path = folder / "root", folder / "recipe"
    root.mkdir()
    layer = layer_of(archive)
    blob = BlobFacts(digest=Digest(layer.digest), size=len(layer.blob), diff_id=Digest(layer.diff_id))
    chunks = [layer.blob[at : at + step] for at in range(0, len(layer.blob), step)]
    unpack(chunks, blob, str(root), UnpackLimits(), str(path), grow=freely)
    return Recipe(str(path), str(root))


ENTRIES: list[Entry] = [
    Dir("a", uid=ME[0], gid=ME[1]),
    file("a/empty", b""),
    file("a/" + "long" * 60, b"x" * 511),
    file("a/block", b"y" * 512),
    file("a/large", random.Random(1).randbytes(700_000)),
    Hardlink("a/again", "a/large", uid=ME[0], gid=ME[1]),
]


@pytest.mark.parametrize("tail", [b"", b"\0" * 512, b"after the end"])
@pytest.mark.parametrize("step", [100, 70_000])
def test_an_archive_comes_back_as_it_was(tmp_path: Path, tail: bytes, step: int) -> None:
    archive = tar(ENTRIES) + tail
    recipe = kept(tmp_path, archive, step)
    assert b"".join(recipe.archive()) == archive
    assert recipe.size() == len(archive)


@pytest.mark.root
def test_links_and_names_that_lead_through_them(tmp_path: Path) -> None:
    archive = tar([Dir("real"), Symlink("way", "/real"), file("way/f", b"through"), File("gone/.wh.x")])
    assert b"".join(kept(tmp_path, archive).archive()) == archive


@pytest.mark.root
def test_data_that_is_never_on_disk(tmp_path: Path) -> None:
    folder = tarfile.TarInfo("v7/")
    folder.type, folder.size = tarfile.AREGTYPE, 700
    markers = [file("d/.wh.gone", b"why not"), file(".wh..wh.plnk/1.2", b"x" * 600), file("d/.wh..wh..opq", b"y" * 513)]
    archive = tar([file("a", b"first"), *markers, folder, file("b", b"last")])
    assert archive.count(b"\0" * 700)
    for step in (100, 70_000):
        place = tmp_path / str(step)
        place.mkdir()
        recipe = kept(place, archive, step)
        assert b"".join(recipe.archive()) == archive
        assert recipe.size() == len(archive)


@pytest.mark.parametrize(
    "entries",
    [
        [file("a", b"first"), file("b", b"x"), file("./a", b"second one")],
        [file("a", b"longer than"), file("a", b"this")],
        [file("d/a", b"first"), Symlink("d", "elsewhere")],
        [file("a", b"first"), Hardlink("b", "a", uid=ME[0], gid=ME[1]), file("a", b"other")],
    ],
)
def test_what_a_later_entry_replaced_is_not_there_to_be_saved(tmp_path: Path, entries: list[Entry]) -> None:
    own = [info_of(entry) if isinstance(entry, Symlink) else entry for entry in entries]
    archive = tar(own)
    recipe = kept(tmp_path, archive)
    try:
        again = b"".join(recipe.archive())
    except Unsupported as error:
        told: EngineError = error
    else:
        assert again != archive
        told = recipe.lost("it differs")
    assert isinstance(told, Unsupported)
    assert "twice" in str(told)


def test_a_name_that_comes_twice_with_the_same_data(tmp_path: Path) -> None:
    archive = tar([file("a", b"same"), file("b", b"x"), file("a", b"same")])
    assert b"".join(kept(tmp_path, archive).archive()) == archive


def info_of(link: Symlink) -> tarfile.TarInfo:
    info = tarfile.TarInfo(link.name)
    info.type, info.linkname = tarfile.SYMTYPE, link.target
    info.uid, info.gid = ME
    return info


def test_the_other_dialects(tmp_path: Path) -> None:
    for form in (tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT):
        made = tmp_path / f"{form}.tar"
        with tarfile.open(made, "w", format=form) as writer:
            source = tmp_path / "source"
            source.write_bytes(b"z" * 1500)
            writer.add(source, "d/" + "n" * 90)
        folder = tmp_path / str(form)
        folder.mkdir()
        assert b"".join(kept(folder, made.read_bytes()).archive()) == made.read_bytes()


def test_what_is_no_longer_there_is_told(tmp_path: Path) -> None:
    recipe = kept(tmp_path, tar(ENTRIES))
    (tmp_path / "root/a/block").unlink()
    with pytest.raises(DataLoss, match="a/block"):
        list(recipe.archive())
    whole = (tmp_path / "recipe").read_bytes()
    (tmp_path / "recipe").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataLoss, match="cannot be read"):
        recipe.size()
    (tmp_path / "recipe").unlink()
    with pytest.raises(NotFound, match="is not known"):
        recipe.size()

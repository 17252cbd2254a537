"""Checkpoint archives, honest and hostile."""

from __future__ import annotations

import gzip
import io
import json
import os
import stat
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from isulad_py.host.inherit import OPAQUE
from isulad_py.images.checkpoint_read import CheckpointReader, check_owner, facts_of_spec
from isulad_py.images.unpack import UnpackLimits
from isulad_py.model.checkpoint import Checkpointed
from isulad_py.model.errors import (
    Aborted,
    DataLoss,
    EngineError,
    InvalidInput,
    PermissionDenied,
    ResourceExhausted,
)

LIMITS = UnpackLimits()
CONFIG = {"name": "main", "rootfsImageName": "busybox:1", "rootfsImageRef": "sha256:1"}
SPEC = {
    "mounts": [{"destination": "/proc", "type": "proc"}, {"destination": "/data/", "type": "bind", "source": "/x"}],
    "linux": {"namespaces": [{"type": "pid"}, {"type": "mount"}]},
    "process": {"terminal": True},
}
Members = dict[str, bytes | tarfile.TarInfo]


def members(**changes: object) -> Members:
    """Of an honest archive; None takes one away."""
    made: dict[str, Any] = {
        "config.dump": json.dumps(CONFIG).encode(),
        "spec.dump": json.dumps(SPEC).encode(),
        "checkpoint/inventory.img": b"inventory",
        "checkpoint/pages-1.img": b"p" * 5000,
        "checkpoint/descriptors.json": b'["/dev/null","pipe:[1]","pipe:[2]"]',
    }
    made |= {name.replace("__", "/").replace("_DOT_", "."): value for name, value in changes.items()}
    return {name: value for name, value in made.items() if value is not None}


def archive(path: Path, content: Members) -> str:
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as file:
        for name, data in content.items():
            if isinstance(data, tarfile.TarInfo):
                file.addfile(data)
            else:
                info = tarfile.TarInfo(name)
                info.size = len(data)
                file.addfile(info, io.BytesIO(data))
    path.chmod(0o600)
    return str(path)


def layer(*entries: tuple[str, bytes | None]) -> bytes:
    """A small archive of files, and of directories where there is no data."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as file:
        for name, data in entries:
            info = tarfile.TarInfo(name)
            info.uid, info.gid = os.geteuid(), os.getegid()
            if data is None:
                info.type, info.mode = tarfile.DIRTYPE, 0o755
            else:
                info.size = len(data)
            file.addfile(info, io.BytesIO(data or b""))
    return target.getvalue()


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., CheckpointReader]:
    def reader(content: Members, limits: UnpackLimits = LIMITS) -> CheckpointReader:
        return CheckpointReader(archive(tmp_path / "c.tar", content), limits)

    return reader


def test_what_it_says_of_its_container(read: Callable[..., CheckpointReader], tmp_path: Path) -> None:
    reader = read(members())
    assert reader.about == Checkpointed(
        name="main",
        image_name="busybox:1",
        image_ref="sha256:1",
        binds=frozenset({"/data"}),
        namespaces=frozenset({"pid", "mount"}),
        terminal=True,
    )
    target = tmp_path / "images"
    target.mkdir()
    reader.unpack(str(target), lambda: False)
    assert {path.name: path.stat().st_size for path in target.iterdir()} == {
        "inventory.img": 9,
        "pages-1.img": 5000,
        "descriptors.json": 35,
    }
    reader.close()
    reader.close()


def test_names_with_a_dot_in_front(read: Callable[..., CheckpointReader]) -> None:
    content = {f"./{name}": data for name, data in members().items()}
    assert read(content).about.name == "main"


@pytest.mark.parametrize(
    ("content", "kind", "words"),
    [
        (members(config_DOT_dump=None), DataLoss, r"no config\.dump"),
        (members(spec_DOT_dump=None), DataLoss, r"no spec\.dump"),
        (members(checkpoint__inventory_DOT_img=None), DataLoss, "no checkpoint/inventory"),
        (members(checkpoint__descriptors_DOT_json=None), DataLoss, "descriptors"),
        (members(checkpoint__descriptors_DOT_json=b"[]"), DataLoss, "0 descriptors"),
        (members(checkpoint__descriptors_DOT_json=b"\xff"), DataLoss, "descriptors"),
        (members(config_DOT_dump=b"[]"), DataLoss, r"config\.dump"),
        (members(config_DOT_dump=b"{}"), DataLoss, "names no image"),
        (members(config_DOT_dump=b" " * 1_100_000), ResourceExhausted, r"config\.dump"),
        (members(spec_DOT_dump=b'{"mounts":7}'), DataLoss, r"spec\.dump"),
        (members(spec_DOT_dump=b"\xff\xfe"), DataLoss, r"spec\.dump"),
        (members(checkpoint__sub__x=b""), DataLoss, "no directories"),
        ({**members(), "a": b"", "./a": b""}, DataLoss, "comes twice"),
    ],
)
def test_what_is_no_checkpoint(
    read: Callable[..., CheckpointReader], content: Members, kind: type[EngineError], words: str
) -> None:
    with pytest.raises(kind, match=words) as caught:
        read(content)
    assert "archive" in str(caught.value)


def test_an_archive_cut_anywhere_is_refused_or_ends_early(tmp_path: Path) -> None:
    whole = Path(archive(tmp_path / "c.tar", members())).read_bytes()
    target = tmp_path / "images"
    with tarfile.open(tmp_path / "c.tar") as file:
        last = file.getmembers()[-1].offset_data
    for size in range(0, last + 1, 512):
        (tmp_path / "c.tar").write_bytes(whole[: size + 20])
        target.mkdir()
        with pytest.raises(EngineError, match="archive"):
            CheckpointReader(str(tmp_path / "c.tar"), LIMITS).unpack(str(target), lambda: False)
        for path in target.iterdir():
            path.unlink()
        target.rmdir()


def test_compressed_as_a_whole(tmp_path: Path) -> None:
    path = Path(archive(tmp_path / "c.tar", members()))
    whole = gzip.compress(path.read_bytes())
    path.write_bytes(whole)
    assert CheckpointReader(str(path), LIMITS, scratch=str(tmp_path)).about.name == "main"
    path.write_bytes(whole[:-100])
    with pytest.raises(DataLoss, match="gzip"):
        CheckpointReader(str(path), LIMITS, scratch=str(tmp_path))
    assert [each.name for each in tmp_path.iterdir()] == ["c.tar"]


def test_names_that_climb_and_links_lead_nowhere(read: Callable[..., CheckpointReader], tmp_path: Path) -> None:
    link = tarfile.TarInfo("checkpoint/link.img")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/shadow"
    device = tarfile.TarInfo("checkpoint/device.img")
    device.type, device.devmajor, device.devminor = tarfile.BLKTYPE, 8, 0
    content = {**members(), "checkpoint/../../up": b"x", "../out": b"x", "/checkpoint/abs": b"", "l": link, "d": device}
    target = tmp_path / "in/images"
    target.mkdir(parents=True)
    read(content).unpack(str(target), lambda: False)
    assert {path.name for path in target.iterdir()} == {"inventory.img", "pages-1.img", "descriptors.json"}
    assert {path.name for path in tmp_path.iterdir()} == {"in", "c.tar"}


def test_more_than_the_disk_holds(read: Callable[..., CheckpointReader], tmp_path: Path) -> None:
    target = tmp_path / "images"
    target.mkdir()
    with pytest.raises(ResourceExhausted, match="do not fit"):
        read(members(), UnpackLimits(reserve_bytes=1 << 60)).unpack(str(target), lambda: False)
    assert list(target.iterdir()) == []
    with pytest.raises(Aborted):
        read(members()).unpack(str(target), lambda: True)


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_changes_are_filled_in(
    read: Callable[..., CheckpointReader], tmp_path: Path, compress: Callable[[bytes], bytes]
) -> None:
    upper, lower = tmp_path / "upper", tmp_path / "lower"
    upper.mkdir()
    (lower / "root").mkdir(parents=True)
    (lower / "root").chmod(0o700)
    diff = compress(layer(("root/new", b"data"), ("etc", None)))
    read({**members(), "rootfs-diff.tar": diff}).fill(str(upper), [str(lower)])
    assert (upper / "root/new").read_bytes() == b"data"
    assert stat.S_IMODE((upper / "root").stat().st_mode) == 0o700
    assert (upper / "etc").is_dir()


def test_without_changes(read: Callable[..., CheckpointReader], tmp_path: Path) -> None:
    upper = tmp_path / "upper"
    upper.mkdir()
    read(members()).fill(str(upper), [])
    assert list(upper.iterdir()) == []


@pytest.mark.root
def test_what_was_deleted_is_hidden(read: Callable[..., CheckpointReader], tmp_path: Path) -> None:
    upper = tmp_path / "upper"
    upper.mkdir()
    diff = layer(("kept", b"new"), ("made", None), ("w/.wh.other", b""))
    deleted = json.dumps(["/bin/vi", "/kept", "/made"]).encode()
    read({**members(), "rootfs-diff.tar": diff, "deleted.files": deleted}).fill(str(upper), [])
    for name in ("bin/vi", "w/other"):
        state = (upper / name).lstat()
        assert (stat.S_ISCHR(state.st_mode), state.st_rdev) == (True, 0)
    assert (upper / "kept").read_bytes() == b"new"
    assert os.getxattr(upper / "made", OPAQUE) == b"y"


@pytest.mark.parametrize(
    ("content", "kind", "words"),
    [
        ({"rootfs-diff.tar": layer(("../out", b"x"))}, DataLoss, "climbs out"),
        ({"rootfs-diff.tar": b"no archive" * 100}, DataLoss, "tar"),
        ({"rootfs-diff.tar": layer(("f", b"x" * 5000))[:2000]}, DataLoss, "ends"),
        ({"rootfs-diff.tar": gzip.compress(bytes(4_000_000))[:500]}, DataLoss, "gzip"),
        ({"deleted.files": b"{}"}, DataLoss, r"deleted\.files"),
        ({"deleted.files": b'["/../x"]'}, DataLoss, "climbs out"),
        ({"deleted.files": b'["/"]'}, DataLoss, "root"),
        ({"deleted.files": b'["/a\\u0000b"]'}, DataLoss, "NUL"),
        ({"deleted.files": b'["/' + b"x" * 300 + b'"]'}, DataLoss, "name too long"),
    ],
)
def test_hostile_changes(
    read: Callable[..., CheckpointReader], tmp_path: Path, content: Members, kind: type[EngineError], words: str
) -> None:
    upper = tmp_path / "sub/upper"
    upper.mkdir(parents=True)
    with pytest.raises(kind, match=words) as caught:
        read({**members(), **content}).fill(str(upper), [])
    assert str(caught.value).startswith("archive ")
    assert {path.name for path in tmp_path.iterdir()} == {"sub", "c.tar"}


def test_a_link_that_leads_out_is_not_followed(read: Callable[..., CheckpointReader], tmp_path: Path) -> None:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as file:
        link = tarfile.TarInfo("out")
        link.type, link.linkname, link.uid, link.gid = tarfile.SYMTYPE, str(tmp_path), os.geteuid(), os.getegid()
        file.addfile(link)
        inner = tarfile.TarInfo("out/file")
        inner.size, inner.uid, inner.gid = 1, os.geteuid(), os.getegid()
        file.addfile(inner, io.BytesIO(b"x"))
    upper = tmp_path / "sub/upper"
    upper.mkdir(parents=True)
    read({**members(), "rootfs-diff.tar": target.getvalue()}).fill(str(upper), [])
    assert not (tmp_path / "file").exists()
    assert list(upper.rglob("file")) == [upper / str(tmp_path).lstrip("/") / "file"]


def test_bombs(read: Callable[..., CheckpointReader], tmp_path: Path) -> None:
    upper = tmp_path / "upper"
    upper.mkdir()
    bomb = gzip.compress(layer(("f", bytes(3_000_000))))
    content = {**members(), "rootfs-diff.tar": bomb}
    with pytest.raises(ResourceExhausted, match="without end"):
        read(content, UnpackLimits(expansion_grace_bytes=1000, expansion=2)).fill(str(upper), [])
    many = {**members(), "deleted.files": json.dumps([f"/{n}" for n in range(20)]).encode()}
    with pytest.raises(ResourceExhausted, match="more than 10"):
        read(many, UnpackLimits(entries=10)).fill(str(upper), [])


def test_only_what_root_alone_may_write(tmp_path: Path) -> None:
    path = tmp_path / "c.tar"
    path.touch(0o600)
    check_owner(str(path))
    for mode in (0o620, 0o602):
        path.chmod(mode)
        with pytest.raises(PermissionDenied, match="writable by nobody else"):
            check_owner(str(path))
    for place in (str(tmp_path), str(tmp_path / "none"), "/a\0b", "/dev/null"):
        with pytest.raises(InvalidInput, match="archive"):
            check_owner(place)


@pytest.mark.root
def test_only_what_belongs_to_root(tmp_path: Path) -> None:
    path = tmp_path / "c.tar"
    path.touch(0o600)
    os.chown(path, 1000, 1000)
    with pytest.raises(PermissionDenied, match="must belong to root"):
        check_owner(str(path))


def test_a_spec_without_much_in_it() -> None:
    assert facts_of_spec(b"{}") == (frozenset(), frozenset(), False)
    document = {"mounts": [{"destination": "/a", "options": ["rbind"]}]}
    assert facts_of_spec(json.dumps(document).encode())[0] == {"/a"}

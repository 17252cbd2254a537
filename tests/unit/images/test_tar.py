"""The tar reader: every dialect, against the standard library's; and what hostile archives say."""

from __future__ import annotations

import contextlib
import io
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isulad_py.images.tar import Entry, Kind, TarReader
from isulad_py.model.errors import DataLoss, EngineError, Unsupported

TYPES = {
    Kind.FILE: tarfile.REGTYPE,
    Kind.DIRECTORY: tarfile.DIRTYPE,
    Kind.SYMLINK: tarfile.SYMTYPE,
    Kind.HARDLINK: tarfile.LNKTYPE,
    Kind.CHARACTER: tarfile.CHRTYPE,
    Kind.BLOCK: tarfile.BLKTYPE,
    Kind.FIFO: tarfile.FIFOTYPE,
}


def read(archive: bytes, size: int = 1 << 20) -> list[tuple[Entry, bytes]]:
    reader = TarReader(archive[at : at + size] for at in range(0, len(archive), size))
    found = [(entry, b"".join(map(bytes, reader.data()))) for entry in reader]
    reader.drain()
    return found


def one(archive: bytes) -> tuple[Entry, bytes]:
    (found,) = read(archive)
    return found


def info_of(name: str = "file", **fields: object) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    for key, value in fields.items():
        setattr(info, key, value)
    return info


def archive_of(*members: tuple[tarfile.TarInfo, bytes], form: int = tarfile.PAX_FORMAT) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=form) as archive:
        for info, data in members:
            if info.isreg():
                info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return raw.getvalue()


MEMBERS = st.builds(
    lambda name, kind, link, numbers, data: (
        info_of(
            name,
            type=TYPES[kind],
            linkname=link if kind in {Kind.SYMLINK, Kind.HARDLINK} else "",
            mode=numbers[0],
            uid=numbers[1],
            gid=numbers[2],
            mtime=numbers[3],
            devmajor=numbers[4] if kind in {Kind.CHARACTER, Kind.BLOCK} else 0,
            devminor=numbers[5] if kind in {Kind.CHARACTER, Kind.BLOCK} else 0,
        ),
        data if kind is Kind.FILE else b"",
    ),
    name=st.text("abc/é ", min_size=1, max_size=300).filter(lambda name: not name.endswith("/")),
    kind=st.sampled_from(list(Kind)),
    link=st.text("xyz/é", min_size=1, max_size=300),
    numbers=st.tuples(
        st.integers(0, 0o7777),
        st.integers(0, 1 << 32),
        st.integers(0, 1 << 32),
        st.integers(0, 1 << 34),
        st.integers(0, 0o7777777),
        st.integers(0, 0o7777777),
    ),
    data=st.binary(max_size=1500),
)


@settings(deadline=None, max_examples=200)
@given(st.lists(MEMBERS, max_size=6), st.sampled_from([tarfile.PAX_FORMAT, tarfile.GNU_FORMAT]), st.integers(200, 3000))
def test_reads_what_the_standard_library_writes(
    members: list[tuple[tarfile.TarInfo, bytes]], form: int, size: int
) -> None:
    found = read(archive_of(*members, form=form), size)
    assert len(found) == len(members)
    for (entry, data), (info, wanted) in zip(found, members, strict=True):
        assert entry.name.decode().rstrip("/") == info.name.rstrip("/")
        assert TYPES[entry.kind] == info.type
        assert (entry.mode, entry.uid, entry.gid) == (info.mode, info.uid, info.gid)
        assert entry.mtime_ns == info.mtime * 1_000_000_000
        assert entry.link.decode() == info.linkname
        assert entry.device == (info.devmajor, info.devminor)
        assert (data, entry.size) == (wanted, len(wanted))


@settings(deadline=None, max_examples=300)
@given(st.lists(MEMBERS, min_size=1, max_size=3), st.data())
def test_a_damaged_archive_is_read_or_refused(
    members: list[tuple[tarfile.TarInfo, bytes]], data: st.DataObject
) -> None:
    archive = bytearray(archive_of(*members, form=data.draw(st.sampled_from([tarfile.PAX_FORMAT, tarfile.GNU_FORMAT]))))
    for _ in range(data.draw(st.integers(1, 4))):
        archive[data.draw(st.integers(0, min(len(archive), 3000) - 1))] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        mend_checksums(archive)
    with contextlib.suppress(EngineError):
        read(bytes(archive[: data.draw(st.integers(0, len(archive)))]))


def mend_checksums(archive: bytearray) -> None:
    """So that damage gets past the checksum."""
    for at in range(0, len(archive) - 511, 512):
        if archive[at + 257 : at + 262] == b"ustar":
            archive[at + 148 : at + 156] = b" " * 8
            archive[at + 148 : at + 156] = b"%06o\0 " % sum(archive[at : at + 512])


def test_pax_times_and_attributes() -> None:
    headers = {"mtime": "1700000000.123456789", "SCHILY.xattr.user.note": "välue", "SCHILY.xattr.user.empty": ""}
    entry, _ = one(archive_of((info_of(pax_headers=headers), b"x")))
    assert entry.mtime_ns == 1_700_000_000_123_456_789
    assert entry.xattrs == {"user.note": "välue".encode(), "user.empty": b""}


def test_times_before_1970() -> None:
    assert one(archive_of((info_of(mtime=-5), b""), form=tarfile.GNU_FORMAT))[0].mtime_ns == -5_000_000_000
    assert one(archive_of((info_of(pax_headers={"mtime": "-1.5"}), b"")))[0].mtime_ns == -1_500_000_000


def test_v7_directories_have_a_slash() -> None:
    info = info_of("folder/", type=tarfile.AREGTYPE)
    entry, _ = one(archive_of((info, b""), form=tarfile.USTAR_FORMAT))
    assert entry.kind is Kind.DIRECTORY


def test_global_headers_are_skipped() -> None:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT, pax_headers={"path": "everywhere"}) as archive:
        archive.addfile(info_of("name"))
    assert one(raw.getvalue())[0].name == b"name"


def test_long_ustar_names_have_a_prefix() -> None:
    name = "p" * 100 + "/" + "n" * 90
    assert one(archive_of((info_of(name), b""), form=tarfile.USTAR_FORMAT))[0].name == name.encode()


def test_what_follows_the_end_is_read_for_the_digest_only() -> None:
    taken = []

    def chunks() -> Iterator[bytes]:
        for chunk in (archive_of((info_of(), b"x")), b"junk" * 500, archive_of((info_of("other"), b""))):
            taken.append(chunk)
            yield chunk

    reader = TarReader(chunks())
    assert [entry.name for entry in reader] == [b"file"]
    reader.drain()
    assert len(taken) == 3


def test_an_archive_may_end_without_its_empty_blocks() -> None:
    archive = archive_of((info_of(), b"data"))
    assert one(archive[:1024])[1] == b"data"
    assert one(archive[:516])[1] == b"data"
    assert read(b"") == []


@pytest.mark.parametrize("size", [1, 100, 511, 513, 515])
def test_a_cut_archive_is_refused(size: int) -> None:
    with pytest.raises(DataLoss, match="ends within"):
        read(archive_of((info_of(), b"data"))[:size])


def patched(at: int, value: bytes, base: bytes | None = None) -> bytes:
    archive = bytearray(base or archive_of((info_of(), b"data"), form=tarfile.GNU_FORMAT))
    archive[at : at + len(value)] = value
    mend_checksums(archive)
    return bytes(archive)


def pax(key: str, value: str) -> bytes:
    return archive_of((info_of(pax_headers={key: value}), b"data"))


@pytest.mark.parametrize(
    "archive",
    [
        pytest.param(b"<html>" + bytes(2000), id="not a tar"),
        pytest.param(archive_of((info_of(), b""))[:147] + b"1" + archive_of((info_of(), b""))[148:], id="bad checksum"),
        pytest.param(patched(124, b"99999999999\0"), id="size is not octal"),
        pytest.param(patched(124, b"-0000000001\0"), id="size is negative"),
        pytest.param(patched(124, b"\xff" * 12), id="size is negative, base 256"),
        pytest.param(patched(124, b"\x80" + b"\x7f" * 11), id="size is enormous"),
        pytest.param(patched(136, b"\x80" + b"\x7f" * 11), id="time is enormous"),
        pytest.param(pax("size", "99999999999999999999"), id="pax size is enormous"),
        pytest.param(pax("size", "-1"), id="pax size is negative"),
        pytest.param(pax("uid", "0x10"), id="pax uid is not decimal"),
        pytest.param(pax("mtime", "nan"), id="pax time is no number"),
        pytest.param(pax("mtime", "1e400"), id="pax time is enormous"),
        pytest.param(pax("mtime", "1e-999999999"), id="pax time is tiny"),
        pytest.param(patched(512, b"999 path=x\n", pax("comment", "y" * 30)), id="pax length beyond its header"),
        pytest.param(patched(512, b"3 p", pax("comment", "y" * 30)), id="pax length too short"),
        pytest.param(patched(512, b"path=xxxxx", pax("comment", "y" * 30)), id="pax without length"),
    ],
)
def test_nonsense_is_refused(archive: bytes) -> None:
    if b"e-999999999" in archive:
        assert read(archive)[0][0].mtime_ns == 0
        return
    with pytest.raises(DataLoss, match="tar: "):
        read(archive)


def test_an_enormous_extended_header_is_refused_before_it_is_read() -> None:
    archive = archive_of((info_of("n" * 200), b""), form=tarfile.GNU_FORMAT)
    with pytest.raises(DataLoss, match="2147483648 bytes"):
        read(patched(124, b"20000000000\0", archive))


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(Unsupported, match="unknown kind b'V'"):
        read(patched(156, b"V"))


def sparse_file(path: Path) -> bytes:
    with path.open("wb") as file:
        for offset in (0, 100_000, 300_000, 900_000, 1_500_000, 2_000_000):
            file.seek(offset)
            file.write(b"data at %d" % offset)
        file.truncate(3_000_000)
    return path.read_bytes()


def expand(entry: Entry, stored: bytes) -> bytes:
    assert entry.segments is not None
    content = bytearray(entry.size)
    at = 0
    for offset, length in entry.segments:
        content[offset : offset + length] = stored[at : at + length]
        at += length
    assert at == len(stored)
    return bytes(content)


@pytest.mark.skipif(shutil.which("tar") is None, reason="needs GNU tar")
@pytest.mark.parametrize(
    "form", [["--format=gnu"], ["--format=pax", "--sparse-version=0.1"], ["--format=pax", "--sparse-version=1.0"]]
)
def test_sparse_files_of_gnu_tar(tmp_path: Path, form: list[str]) -> None:
    wanted = sparse_file(tmp_path / "sparse")
    (tmp_path / "after").write_text("next")
    command = ["tar", "-C", str(tmp_path), *form, "--sparse", "-cf", "-", "sparse", "after"]
    archive = subprocess.run(command, capture_output=True, check=True).stdout
    for size in (100, 1 << 20):
        (sparse, stored), (after, text) = read(archive, size)
        assert sparse.name == b"sparse"
        assert len(stored) < 200_000
        assert expand(sparse, stored) == wanted
        assert (after.name, text) == (b"after", b"next")


@pytest.mark.skipif(shutil.which("tar") is None, reason="needs GNU tar")
def test_sparse_format_0_0_is_refused_by_name(tmp_path: Path) -> None:
    sparse_file(tmp_path / "sparse")
    command = ["tar", "-C", str(tmp_path), "--format=pax", "--sparse-version=0.0", "--sparse", "-cf", "-", "sparse"]
    archive = subprocess.run(command, capture_output=True, check=True).stdout
    with pytest.raises(Unsupported, match=r"0\.0"):
        read(archive)


def sparse_headers(text: str, **fields: str) -> bytes:
    headers = {"GNU.sparse.map": text, "GNU.sparse.size": "1000", "GNU.sparse.numblocks": "1", **fields}
    return archive_of((info_of(pax_headers=headers), b"data"))


@pytest.mark.parametrize(
    "archive",
    [
        sparse_headers("0,4,2"),
        sparse_headers("0,4,2,2"),
        sparse_headers("998,4"),
        sparse_headers("0,5"),
        sparse_headers("0,3"),
        sparse_headers("x,4"),
        sparse_headers("0,99999999999999999999"),
        archive_of((info_of(pax_headers={"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}), b"data")),
        archive_of((info_of(pax_headers={"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}), b"1" * 2000)),
        archive_of(
            (info_of(pax_headers={"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}), b"9999999\n" + bytes(2000))
        ),
    ],
)
def test_false_maps_are_refused(archive: bytes) -> None:
    with pytest.raises(DataLoss):
        read(archive)


@pytest.mark.parametrize("make", [lambda: b"x" * 100_000_000], ids=["100 MB"])
def test_data_is_not_copied(make: Callable[[], bytes]) -> None:
    data = make()
    info = info_of()
    info.size = len(data)
    header = info.tobuf(tarfile.GNU_FORMAT)
    reader = TarReader([header, data])
    next(iter(reader))
    (piece,) = reader.data()
    assert piece.obj is data

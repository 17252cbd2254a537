"""PURE: extended headers of tar archives (POSIX pax interchange format) and GNU's maps of sparse files."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Final

from isulad_py.model.errors import DataLoss

XATTR: Final = "SCHILY.xattr."
BLOCK: Final = 512
MAX_SEGMENTS: Final = 1_000_000
"""Of one sparse file: bounds what a map may take of memory."""
_NUMBER: Final = re.compile(rb"[0-9]{1,20}")

Segments = tuple[tuple[int, int], ...]
"""Offset and length of each piece of data of a sparse file, in order."""


def parse_records(data: bytes) -> dict[str, bytes]:
    """The records `<length> <key>=<value>\\n`; a later one of the same key wins. An empty value deletes."""
    records: dict[str, bytes] = {}
    at = 0
    while at < len(data):
        blank = data.find(b" ", at, at + 21)
        if blank < 0:
            if not data[at:].strip(b"\0"):
                break
            raise DataLoss("tar: extended header without a length")
        length = parse_number(data[at:blank], "length of an extended header")
        end = at + length
        if length < blank - at + 3 or end > len(data) or data[end - 1] != 0x0A:
            raise DataLoss("tar: extended header whose length is wrong")
        key, equals, value = data[blank + 1 : end - 1].partition(b"=")
        if not equals or not key or b"\0" in key:
            raise DataLoss("tar: extended header without a key")
        records[key.decode("utf-8", "surrogateescape")] = value
        at = end
    return records


def parse_number(text: bytes, what: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise DataLoss(f"tar: {what} is not a number: {text[:40]!r}")
    number = int(text)
    if number >= 1 << 63:
        raise DataLoss(f"tar: {what} is out of range: {number}")
    return number


def parse_time(text: bytes) -> int:
    """Nanoseconds since 1970 of seconds with a fraction."""
    try:
        seconds = Decimal(text[:64].decode("ascii"))
        if not seconds.is_finite() or abs(seconds) >= 1 << 40:
            raise DataLoss(f"tar: time is out of range: {text[:40]!r}")
        return int(seconds * 1_000_000_000)
    except (InvalidOperation, UnicodeDecodeError) as error:
        raise DataLoss(f"tar: time is not a number: {text[:40]!r}") from error


def xattrs_of(records: dict[str, bytes]) -> dict[str, bytes]:
    """Extended attributes by name."""
    return {key[len(XATTR) :]: value for key, value in records.items() if key.startswith(XATTR)}


def sparse_map_of(records: dict[str, bytes]) -> list[int] | None:
    """The map of GNU's sparse format 0.1, whose numbers are in one record; None where the file is not of that format.

    Format 0.0 repeats its keys, so that they cannot be told from records: it is refused by `check_sparse_version`.
    """
    text = records.get("GNU.sparse.map")
    if text is None:
        return None
    if text.count(b",") >= 2 * MAX_SEGMENTS:
        raise DataLoss("tar: sparse map is too long")
    return [parse_number(number, "sparse map") for number in text.split(b",")] if text else []


def is_sparse_1_0(records: dict[str, bytes]) -> bool:
    """Whether the map is at the beginning of the data (GNU's sparse format 1.0)."""
    return records.get("GNU.sparse.major") == b"1" and records.get("GNU.sparse.minor") == b"0"


def read_sparse_1_0(take: Callable[[int], bytes]) -> tuple[list[int], int]:
    """Reads the map from the beginning of the data; also gives the bytes it took, which are whole blocks."""
    data = bytearray(take(BLOCK))

    def line(at: int) -> tuple[int, int]:
        while (end := data.find(b"\n", at)) < 0:
            if len(data) - at > 32:
                raise DataLoss("tar: sparse map without an end")
            data.extend(take(BLOCK))
        return parse_number(bytes(data[at:end]), "sparse map"), end + 1

    count, at = line(0)
    if count > MAX_SEGMENTS:
        raise DataLoss("tar: sparse map is too long")
    numbers: list[int] = []
    for _ in range(2 * count):
        number, at = line(at)
        numbers.append(number)
    return numbers, len(data)


def segments_of(numbers: list[int], real_size: int, stored_size: int) -> Segments:
    """Pairs of offset and length, checked: in order, without overlap, inside the file, as long as what is stored."""
    if len(numbers) % 2 or len(numbers) > 2 * MAX_SEGMENTS:
        raise DataLoss("tar: sparse map is incomplete or too long")
    segments: list[tuple[int, int]] = []
    end = total = 0
    for offset, length in zip(numbers[::2], numbers[1::2], strict=True):
        if offset < end or offset + length > real_size:
            raise DataLoss("tar: sparse map is out of order or leaves its file")
        end = offset + length
        total += length
        if length:
            segments.append((offset, length))
    if total != stored_size:
        raise DataLoss("tar: sparse map does not match the size of the data")
    return tuple(segments)

"""Which images a client wants to see, as docker's and iSulad's filters say it."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable

from msgspec import Struct

from isulad_py.model.image import ImageRecord
from isulad_py.model.reference import familiar


class ImageFilter(Struct, frozen=True, kw_only=True):
    dangling: bool | None = None
    """Without a tag; None for both."""
    labels: tuple[tuple[str, str | None], ...] = ()
    """All of them; a value of None is any."""
    before: str = ""
    """An image: those made earlier than it."""
    since: str = ""
    """An image: those made later than it."""
    reference: str = ""
    """A pattern (`*`, `?`, `[...]`) for a name, with or without its tag, as people write names."""


def select(
    records: Iterable[ImageRecord], wanted: ImageFilter, require: Callable[[str], ImageRecord]
) -> list[ImageRecord]:
    """`require` finds the images that the filter names, or raises NotFound."""
    before = require(wanted.before).created_at if wanted.before else None
    since = require(wanted.since).created_at if wanted.since else None
    return [
        record
        for record in records
        if (before is None or record.created_at < before)
        and (since is None or record.created_at > since)
        and (wanted.dangling is None or wanted.dangling is not bool(record.repo_tags))
        and all(_has(record, key, value) for key, value in wanted.labels)
        and (not wanted.reference or _named(record, wanted.reference))
    ]


def _has(record: ImageRecord, key: str, value: str | None) -> bool:
    labels = record.config.labels
    return key in labels and value in {None, labels[key]}


def _named(record: ImageRecord, pattern: str) -> bool:
    names = [familiar(tag) for tag in record.repo_tags]
    return any(fnmatch.fnmatchcase(each, pattern) for name in names for each in (name, name.rpartition(":")[0]))

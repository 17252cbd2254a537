"""Patterns of operators' files, in RE2's syntax (github.com/google/re2/wiki/Syntax), which oci-hooks(5) means: the time
that a match takes grows with the text and nothing else, so that no pattern can hold the daemon up."""

from __future__ import annotations

import functools
from typing import Final, Protocol

from isulad_py.model.errors import InvalidInput

MEMORY_LIMIT_BYTES: Final = 1024 * 1024
"""Of one pattern with its automata; beyond it a pattern is refused, a match goes on more slowly."""
_KEPT: Final = 1024


class _Pattern(Protocol):
    def search(self, text: bytes) -> object | None: ...


def check_pattern(pattern: str) -> None:
    """Raises InvalidInput for what is no pattern."""
    _compiled(pattern)


def is_found(pattern: str, text: str) -> bool:
    """Whether the pattern matches anywhere in the text."""
    return _compiled(pattern).search(text.encode(errors="replace")) is not None


@functools.lru_cache(maxsize=_KEPT)
def _compiled(pattern: str) -> _Pattern:
    import re2  # only where there are patterns: it takes 1.5 MiB

    options = re2.Options()
    options.log_errors = False
    options.max_mem = MEMORY_LIMIT_BYTES
    try:
        compiled: _Pattern = re2.compile(pattern.encode(), options)
    except (re2.error, UnicodeError) as error:
        words = error.args[0] if isinstance(error, re2.error) else str(error)
        words = words.decode(errors="replace") if isinstance(words, bytes) else words
        raise InvalidInput(f"when: {pattern!r} is no regular expression: {words}") from error
    return compiled

"""What is wrong, or worth knowing, about a configuration. All of them are reported at once."""

from __future__ import annotations

import enum
from collections.abc import Iterable

from msgspec import Struct

FLAG = "command line"
"""Source of a finding about a flag; others carry the file's path, or nothing for a default."""


class Severity(enum.Enum):
    ERROR = "error"
    """The daemon does not start."""
    WARNING = "warning"


class Finding(Struct, frozen=True, kw_only=True):
    id: str
    """Stable: unknown-key, wrong-type, bad-value, conflict, missing-program, missing-file, no-effect, not-supported,
    exposed, syntax, unreadable."""
    key: str
    """As in daemon.json; empty where the file as a whole is meant."""
    message: str
    hint: str = ""
    severity: Severity = Severity.ERROR
    source: str = ""

    def __str__(self) -> str:
        place = f"{self.source}: " if self.source else ""
        subject = f"{self.key}: " if self.key else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{self.severity.value}: {place}{subject}{self.message}{hint} [{self.id}]"


def errors(findings: Iterable[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.severity is Severity.ERROR]

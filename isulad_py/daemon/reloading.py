"""SIGHUP: the configuration is read again, and what can change without a restart does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import structlog

from isulad_py.config.findings import Finding, Severity, errors
from isulad_py.config.reload import difference, merged
from isulad_py.config.schema import Config

log = structlog.get_logger(__name__)

Read = Callable[[], tuple[Config, Sequence[Finding]]]


class Reloader:
    """Holds the configuration in force. `apply` has one callback for each reloadable key."""

    def __init__(self, config: Config, *, read: Read, apply: Mapping[str, Callable[[Config], None]]) -> None:
        self.config = config
        self._read = read
        self._apply = apply

    def reload(self) -> None:
        """All or nothing: a file with an error changes nothing and is reported."""
        new, findings = self._read()
        for finding in findings:
            write = log.error if finding.severity is Severity.ERROR else log.warning
            write("configuration", finding=str(finding))
        if errors(findings):
            log.error("configuration not reloaded: the former one stays in force")
            return
        changed = difference(self.config, new)
        if changed.restart:
            log.warning("these keys changed, and need a restart", keys=" ".join(changed.restart))
        log.info("configuration reloaded", changed=" ".join(changed.reloadable))
        self.config = merged(self.config, new)
        for apply in dict.fromkeys(self._apply[name] for name in changed.reloadable):
            apply(self.config)

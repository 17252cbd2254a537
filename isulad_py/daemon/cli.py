"""The `isulad` command: flags, findings, exit status. Imports stay inside: `--version` costs no daemon."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TextIO

from isulad_py import __version__
from isulad_py.config.flags import Arguments, FlagError, parse, parser

if TYPE_CHECKING:
    from isulad_py.config.findings import Finding
    from isulad_py.config.schema import Config

START_FAILURE: Final = 1
BAD_FLAGS: Final = 125
"""As iSulad, and docker's client: told apart from whatever else goes wrong."""


def main() -> None:
    """The only place from which the daemon exits."""
    sys.exit(run(sys.argv[1:], out=sys.stdout, err=sys.stderr))


def run(argv: Sequence[str], *, out: TextIO, err: TextIO) -> int:
    """Returns the exit status."""
    if argv[:1] in (["image"], ("image",)):
        from isulad_py.daemon.image_command import run_image

        return run_image(argv[1:], out=out, err=err)
    try:
        arguments = parse(argv)
    except FlagError as error:
        print(f"isulad: {error}\nisulad: see isulad --help", file=err)
        return BAD_FLAGS
    if arguments.help:
        print(parser().format_help(), end="", file=out)
        return 0
    if arguments.version:
        print(f"isulad-py version {__version__}", file=out)
        return 0
    return _configured(arguments, out, err)


def _configured(arguments: Arguments, out: TextIO, err: TextIO) -> int:
    from isulad_py.config.findings import FLAG, Severity, errors

    config, findings = read_config(arguments)
    for finding in findings:
        print(finding, file=out if arguments.validate else err)
    wrong = errors(findings)
    if any(finding.source == FLAG for finding in wrong):
        return BAD_FLAGS
    if wrong:
        return START_FAILURE
    if arguments.validate:
        warnings = sum(finding.severity is Severity.WARNING for finding in findings)
        print(f"the configuration is valid ({warnings} warnings)", file=out)
        return 0
    return load_daemon()(config, read=lambda: read_config(arguments), err=err)


def load_daemon() -> Callable[..., int]:
    """`serve`, with all that it imports. Logs come first, because they keep structlog from importing rich: 5 MB."""
    import isulad_py.telemetry.logs  # noqa: F401
    from isulad_py.daemon.serve import serve

    return serve


def read_config(arguments: Arguments) -> tuple[Config, tuple[Finding, ...]]:
    """File and flags, checked against this machine."""
    from isulad_py.config.load import load
    from isulad_py.config.validate import Host, validate

    loaded = load(arguments.file, arguments.given)
    return loaded.config, (*loaded.findings, *validate(loaded.config, loaded.given, Host()))

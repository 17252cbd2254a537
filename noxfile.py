"""The one menu: `nox -l` lists it. `tests/run` prepares a machine and runs what CI runs.

Sessions run in the environment that nox itself runs in (`.venv`, made by `tests/stand/prepare dev`), so each is quick.
Those marked (root) need root, runc, conmon, CNI plugins and overlayfs.
"""

from __future__ import annotations

import os
import sys

import nox

nox.options.default_venv_backend = "none"
nox.options.sessions = ["checks", "unit"]

PYTHON = ("isulad_py", "tests", "bench", "demo", "docs", "protos", "noxfile.py")
TYPED = (
    "isulad_py",
    "bench",
    "demo",
    "docs/generate.py",
    "protos",
    "noxfile.py",
    *(
        f"tests/{room}"
        for room in ("arch", "fakes", "stand", "vm", "unit/config", "unit/daemon", "unit/telemetry", "unit/streaming")
    ),
)
"""Of the tests, what others build on; their cases may pass wrong types on purpose."""


def _run(session: nox.Session, *arguments: str) -> None:
    """A Python tool of this very environment, whether it is activated or not."""
    session.run(sys.executable, *(() if arguments[0].endswith(".py") else ("-m",)), *arguments, external=True)


@nox.session
def fmt(session: nox.Session) -> None:
    """Write the house format and mend what can be mended."""
    _run(session, "ruff", "format", *PYTHON)
    _run(session, "ruff", "check", "--fix", *PYTHON)


@nox.session
def lint(session: nox.Session) -> None:
    """Format and rules."""
    _run(session, "ruff", "format", "--check", "--quiet", *PYTHON)
    _run(session, "ruff", "check", "--quiet", *PYTHON)


@nox.session
def types(session: nox.Session) -> None:
    """mypy, strict."""
    _run(session, "mypy", *TYPED)


@nox.session
def arch(session: nox.Session) -> None:
    """Import contracts, size budgets, mirrored tests, door-plates."""
    _run(session, "pytest", "-q", "tests/arch", *session.posargs)


@nox.session
def protos(session: nox.Session) -> None:
    """Generate isulad_py/api; `-- --check` only tells whether it has drifted."""
    _run(session, "protos/generate.py", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """Make the parts of the documents that come from the code; `-- --check` only tells whether they have aged."""
    _run(session, "docs/generate.py", *session.posargs)


@nox.session
def checks(session: nox.Session) -> None:
    """All that needs no running: lint, types, drift of generated code and documents."""
    lint(session)
    types(session)
    _run(session, "protos/generate.py", "--check")
    _run(session, "docs/generate.py", "--check")


@nox.session
def unit(session: nox.Session) -> None:
    """Pure and fast."""
    _run(session, "pytest", "-q", "-m", "not root", "tests/unit", *session.posargs)


@nox.session
def wire(session: nox.Session) -> None:
    """Every RPC through an in-memory channel, with fakes."""
    _run(session, "pytest", "-q", "-m", "not root", "tests/wire", *session.posargs)


@nox.session
def contract(session: nox.Session) -> None:
    """One suite a port, on the fake and on the real adapter (root)."""
    _run(session, "pytest", "-q", "tests/contract", *session.posargs)


@nox.session
def integration(session: nox.Session) -> None:
    """Real parts (root)."""
    _run(session, "pytest", "-q", "tests/integration", *session.posargs)


@nox.session
def restart(session: nox.Session) -> None:
    """kill -9 the daemon at every record write, start it again, compare the world (root)."""
    _run(session, "pytest", "-q", "tests/restart", *session.posargs)


@nox.session
def claims(session: nox.Session) -> None:
    """Make the product blind for each field that docs/cri-fields.tsv claims and see its tests fail (root)."""
    _run(session, "tests.claims", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """All that CI runs (root for the whole of it)."""
    checks(session)
    _run(session, "pytest", "-q", *(() if os.geteuid() == 0 else ("-m", "not root")), *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """Floors and this daemon, interleaved, with ratios (root). `-- --help` for more."""
    session.run("bench/run", *session.posargs, external=True)


@nox.session
def vm(session: nox.Session) -> None:
    """systemd, cgroup v2 alone, AppArmor, reboots, power cuts: in an emulated Debian (root to build its disk).
    `-- SUITE ...` for a few of its suites, `-- SUITE -- tests/...` for other tests there; `tests/vm/run` lists them."""
    session.run("tests/vm/run", *session.posargs, external=True)

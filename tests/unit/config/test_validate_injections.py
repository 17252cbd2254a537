from __future__ import annotations

from pathlib import Path

import pytest

from isulad_py.config.findings import Finding, Severity
from isulad_py.config.schema import Config
from isulad_py.config.validate_injections import check

GOOD = '{"version":"1.0.0","hook":{"path":"/bin/h"},"when":{"always":true},"stages":["prestart"]}'


def findings(config: Config, *, programs: bool = True) -> list[Finding]:
    return list(check(config, lambda path: programs))


def test_nothing_configured() -> None:
    assert findings(Config()) == []


def test_good_files(tmp_path: Path) -> None:
    spec = tmp_path / "spec"
    spec.write_text('{"prestart":[{"path":"/bin/h"}]}')
    (tmp_path / "a.json").write_text(GOOD)
    config = Config(hook_spec=str(spec), hooks_dir=(str(tmp_path),), enable_cdi=True)
    assert findings(config) == []
    missing = findings(config, programs=False)
    assert [(one.id, one.key, one.severity) for one in missing] == [
        ("missing-program", "hook-spec", Severity.WARNING),
        ("missing-program", "hooks-dir", Severity.WARNING),
    ]
    assert "/bin/h" in missing[0].message


@pytest.mark.parametrize(
    ("text", "expected"),
    [(None, "missing-file"), ('{"prestart":[{"path":"h"}]}', "bad-value"), ("x" * 300_000, "bad-value")],
)
def test_a_hook_spec_that_cannot_be_used(tmp_path: Path, text: str | None, expected: str) -> None:
    spec = tmp_path / "spec"
    if text is not None:
        spec.write_text(text)
    [found] = findings(Config(hook_spec=str(spec)))
    assert (found.id, found.key, found.severity) == (expected, "hook-spec", Severity.ERROR)
    assert str(spec) in found.message


def test_every_bad_file_of_a_directory_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{")
    (tmp_path / "b.json").write_text(GOOD)
    (tmp_path / "c.json").mkdir()
    found = findings(Config(hooks_dir=(str(tmp_path), str(tmp_path / "none"))))
    assert [(one.id, one.severity) for one in found] == [
        ("bad-value", Severity.ERROR),
        ("missing-file", Severity.ERROR),
        ("missing-file", Severity.WARNING),
    ]
    [wrong] = findings(Config(hooks_dir=(str(tmp_path / "b.json"),)))
    assert wrong.id == "unreadable"


def test_directories_are_absolute() -> None:
    found = findings(Config(hooks_dir=("a",), cdi_spec_dirs=("b",)))
    assert [(one.id, one.key) for one in found] == [("bad-value", "cdi-spec-dirs"), ("bad-value", "hooks-dir")]
    [none] = findings(Config(enable_cdi=True, cdi_spec_dirs=()))
    assert (none.id, none.severity) == ("conflict", Severity.WARNING)

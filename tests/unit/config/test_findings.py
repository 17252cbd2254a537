from __future__ import annotations

from isulad_py.config.findings import Finding, Severity, errors


def test_a_finding_reads_as_one_line() -> None:
    finding = Finding(id="bad-value", key="graph", message="'x' is not absolute", hint="write /x", source="/f.json")
    assert str(finding) == "error: /f.json: graph: 'x' is not absolute (write /x) [bad-value]"
    assert str(Finding(id="syntax", key="", message="broken")) == "error: broken [syntax]"


def test_warnings_are_no_errors() -> None:
    warning = Finding(id="no-effect", key="tls", message="idle", severity=Severity.WARNING)
    assert errors([warning]) == []

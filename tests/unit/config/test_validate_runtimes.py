from __future__ import annotations

from isulad_py.config.findings import Severity
from isulad_py.config.schema import Config, RuntimeEntry
from isulad_py.config.validate_runtimes import check


def test_an_entry_without_a_path_is_looked_up_by_its_name() -> None:
    asked: list[str] = []

    def find(name: str) -> str:
        asked.append(name)
        return name

    assert list(check(Config(default_runtime="runsc", runtimes={"runsc": RuntimeEntry()}), find)) == []
    assert asked == ["conmon", "runsc"]


def test_criu_as_runtimes_look_it_up() -> None:
    for program in ("", "criu", "/opt/x/criu"):
        assert list(check(Config(criu=program), lambda name: name)) == []
    for program in ("/opt/criu-4", "bin/criu", "other"):
        [finding] = check(Config(criu=program), lambda name: name)
        assert (finding.id, finding.key, finding.severity) == ("bad-value", "criu", Severity.ERROR)
    [finding] = check(Config(criu="/opt/x/criu"), lambda name: "" if "criu" in name else name)
    assert (finding.id, finding.key, finding.severity) == ("missing-program", "criu", Severity.WARNING)


def test_handlers_may_name_built_in_runtimes() -> None:
    assert list(check(Config(cri_runtimes={"fast": "crun"}), lambda name: name)) == []


def test_an_entrys_mode_and_annotations_are_checked() -> None:
    def findings(entry: RuntimeEntry) -> list[str]:
        return [finding.message for finding in check(Config(runtimes={"kata": entry}), lambda name: name)]

    assert findings(RuntimeEntry(sandbox_mode="pause", annotations=("a", "b.*", "*"))) == []
    assert findings(RuntimeEntry(sandbox_mode="vm")) == ["kata: sandbox-mode 'vm' is no mode"]
    for pattern in ("", "a*b", "*a"):
        (message,) = findings(RuntimeEntry(annotations=(pattern,)))
        assert message.startswith("kata: annotations: ")

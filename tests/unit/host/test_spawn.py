from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from isulad_py.host.spawn import spawn

PATH = "/usr/bin:/bin"


def outcome(*argv: str, **options: object) -> tuple[int, str]:
    """Exit status and output of a program."""
    reading, writing = os.pipe()
    null = os.open(os.devnull, os.O_RDWR)
    try:
        pid = spawn(argv, stdio=(null, writing, writing), env={"A": "1"}, path=PATH, **options)  # type: ignore[arg-type]
    finally:
        os.close(writing)
        os.close(null)
    with os.fdopen(reading) as output:
        text = output.read()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), text


def test_the_environment_is_what_is_given_and_nothing_else() -> None:
    assert outcome("env") == (0, "A=1\n")


def test_a_directory_and_a_session_of_its_own(tmp_path: Path) -> None:
    assert outcome("pwd", cwd=str(tmp_path)) == (0, f"{tmp_path}\n")
    code, text = outcome("sh", "-c", "cut -d' ' -f1,6 /proc/$$/stat", new_session=True)
    number, session = text.split()
    assert (code, number) == (0, session)


def test_only_the_descriptors_that_are_named_are_passed_on(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w") as leak:
        os.set_inheritable(leak.fileno(), True)
        _, listed = outcome("sh", "-c", "ls /proc/self/fd | tr '\\n' ' '")
        assert str(leak.fileno()) not in listed.split()
        wanted = os.dup(leak.fileno())
        code, _ = outcome("sh", "-c", f"echo hello > /proc/self/fd/{wanted}", pass_fds=(wanted,))
        os.close(wanted)
    assert code == 0
    assert (tmp_path / "file").read_text() == "hello\n"


def test_signals_that_the_interpreter_ignores_are_not_ignored_by_programs() -> None:
    assert signal.getsignal(signal.SIGPIPE) is signal.SIG_IGN
    code, _ = outcome("sh", "-c", "kill -PIPE $$")
    assert code == -signal.SIGPIPE


def test_what_cannot_be_started_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        outcome("no-such-program")
    with pytest.raises(FileNotFoundError):
        outcome(str(tmp_path / "none"))
    (tmp_path / "text").write_text("no program")
    with pytest.raises(PermissionError):
        outcome(str(tmp_path / "text"))
    with pytest.raises(ValueError, match="NUL"):
        outcome("echo", "a\0b")
    with pytest.raises(ValueError, match="stdio"):
        spawn(("true",), stdio=(0, 1, 2), env={}, path=PATH)

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from demo.screen import MIDDLE, WIDTH, fold, size, step

PROJECT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (5 << 20, "5.0 MiB"), (3 << 40, "3072.0 GiB")]
)
def test_sizes_for_people(count: int, text: str) -> None:
    assert size(count) == text


def test_a_step_shows_what_came_of_it_and_its_time(capsys: pytest.CaptureFixture[str]) -> None:
    with step("pod") as shown:
        shown.tell("id 1")
        shown.tell("word " * 30)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("pod         id 1 ")
    assert lines[0].endswith(" ms")
    assert len(lines) > 2
    assert all(len(line) <= WIDTH for line in lines)


@pytest.mark.parametrize(("error", "word"), [(OSError("no"), "failed"), (KeyboardInterrupt("SIGINT"), "interrupted")])
def test_a_step_that_fails_says_so_and_the_failure_goes_on(
    capsys: pytest.CaptureFixture[str], error: BaseException, word: str
) -> None:
    with pytest.raises(type(error)), step("pod"):
        raise error
    assert word in capsys.readouterr().out


def test_a_line_without_blanks_is_folded_as_well() -> None:
    assert all(len(line) <= MIDDLE for line in fold("x" * 200))


def test_a_reader_that_goes_away_does_not_end_the_cleaning_up() -> None:
    code = "import demo.screen as s\nfor _ in range(5000): s.put('x' * 70)\nimport sys; sys.stderr.write('cleaned')"
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=PROJECT, stdout=writer, stderr=subprocess.PIPE, check=False, timeout=30
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"cleaned")

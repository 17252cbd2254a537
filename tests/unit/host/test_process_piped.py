"""Programs on pipes that the caller awaits himself."""

from __future__ import annotations

import signal
from pathlib import Path

from isulad_py.host import process


async def test_its_output_is_collected_and_cut() -> None:
    command = process.Command(argv=("sh", "-c", "cat; echo err >&2; exit 3"), stdin=b"0123456789", limit_bytes=4)
    with process.piped(command) as started:
        code = await started.child.wait()
        await started.drain()
        done = started.completed(command.argv, code)
    assert (done.returncode, done.stdout, done.stderr, done.truncated) == (3, b"0123", b"err\n", True)


async def test_no_descriptor_is_left() -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    with process.piped(process.Command(argv=("sleep", "1000"))) as started:
        started.child.signal(signal.SIGKILL)
        assert await started.child.wait() == -signal.SIGKILL
    assert len(list(Path("/proc/self/fd").iterdir())) == before

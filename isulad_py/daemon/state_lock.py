"""One daemon for one state: locks on both roots and on the pid file, held for as long as the process lives."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

from isulad_py.model.errors import FailedPrecondition, HostFailure

LOCK_NAME = "isulad.lock"


class StateLock:
    """flock(2): the kernel gives it back however the process ends, so that no stale lock is ever in the way."""

    def __init__(self) -> None:
        self._held: list[int] = []
        self._pid_file: Path | None = None

    @classmethod
    def acquire(cls, *, graph: str, state: str, pid_file: str) -> StateLock:
        """Makes the roots where they are missing. Raises FailedPrecondition naming the holder's pid."""
        lock = cls()
        try:
            for root in (graph, state):
                _make_root(Path(root))
                lock._hold(Path(root) / LOCK_NAME, root)
            Path(pid_file).parent.mkdir(parents=True, exist_ok=True)
            lock._hold(Path(pid_file), pid_file)
            lock._pid_file = Path(pid_file)
        except OSError as error:
            lock.release()
            raise HostFailure(f"lock of the state: {error}") from error
        except BaseException:
            lock.release()
            raise
        return lock

    @classmethod
    def acquire_graph(cls, graph: str) -> StateLock:
        """Of the graph alone, which has to be there: for work on images while no daemon runs."""
        lock = cls()
        try:
            lock._hold(Path(graph) / LOCK_NAME, graph)
        except OSError as error:
            lock.release()
            raise HostFailure(f"lock of the graph: {error}") from error
        except BaseException:
            lock.release()
            raise
        return lock

    def _hold(self, path: Path, subject: str) -> None:
        while True:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
            self._held.append(fd)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                pid = os.pread(fd, 32, 0).decode(errors="replace").strip() or "unknown"
                raise FailedPrecondition(f"{subject} is in use by another isulad, pid {pid}") from error
            if _still_there(fd, path):
                break
            os.close(self._held.pop())  # a stopping daemon removed it between our open and our lock
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Idempotent. Removes the pid file while it is still locked; lock files stay, as their names are the lock."""
        if self._pid_file is not None:
            with contextlib.suppress(FileNotFoundError):
                self._pid_file.unlink()
            self._pid_file = None
        while self._held:
            os.close(self._held.pop())


def _make_root(path: Path) -> None:
    """Searchable for everybody, as runtimes in a user namespace have to get to what is theirs; what is in it is not."""
    if not path.is_dir():
        path.mkdir(mode=0o711, parents=True)


def _still_there(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), path.stat())
    except FileNotFoundError:
        return False

"""Files and trees: written whole or not at all, read within a limit. Synchronous: callers on the loop go through
`host.blocking`. Trees are removed by `host.trees`, untrusted roots are entered by `host.confined`.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path
from typing import Final

from isulad_py.host.failures import translate, translated
from isulad_py.model.errors import HostFailure, NotFound, ResourceExhausted

_CHUNK: Final = 64 * 1024


def write_atomic(
    path: str, data: bytes, *, mode: int = 0o644, durable: bool = False, owner: tuple[int, int] | None = None
) -> None:
    """The file at `path` holds either what it held before or all of `data`, whatever happens meanwhile.

    `mode` is exact, whatever the umask; without `owner` (uid, gid) the file is the caller's. `durable` also survives a
    loss of power. Raises ResourceExhausted when the disk is full, with the former file intact.
    """
    parent, name = os.path.split(path)
    temporary = f"{parent or '.'}/.{name}.{secrets.token_hex(4)}"
    with translated("write"):
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
        try:
            try:
                os.fchmod(fd, mode)
                if owner is not None:
                    os.fchown(fd, *owner)
                _write_all(fd, data)
                if durable:
                    os.fsync(fd)
            finally:
                os.close(fd)
            Path(temporary).rename(path)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
            raise
        if durable:
            sync_directory(parent or ".")


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def sync_directory(path: str) -> None:
    """Makes renames, creations and removals in `path` survive a loss of power."""
    with translated("sync"):
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def read_limited(path: str, limit_bytes: int) -> bytes:
    """The content of a regular file. Raises NotFound where there is none, ResourceExhausted where it is longer than
    the limit, HostFailure otherwise (also for a fifo or a device, which could block for ever)."""
    try:
        # O_NONBLOCK: opening a fifo must not wait for its writer; no effect on regular files.
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFound(f"read {path}: no such file") from error
    except OSError as error:
        raise translate("read", error) from error
    try:
        return read_descriptor(fd, path, limit_bytes)
    finally:
        os.close(fd)


def read_descriptor(fd: int, path: str, limit_bytes: int) -> bytes:
    """As `read_limited`, of an open descriptor; `path` is for the messages. Does not close."""
    with translated(f"read {path}"):
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise HostFailure(f"read {path}: not a regular file")
        parts: list[bytes] = []
        size = 0
        while part := os.read(fd, _CHUNK):
            size += len(part)
            if size > limit_bytes:
                raise ResourceExhausted(f"read {path}: longer than {limit_bytes} bytes")
            parts.append(part)
        return b"".join(parts)


def ensure_dir(path: str, mode: int = 0o755) -> None:
    """Makes the directory and its missing parents, each with exactly `mode`. What exists keeps its mode."""
    with translated("make directory"):
        _make_dirs(Path(path), mode)


def _make_dirs(path: Path, mode: int) -> None:
    try:
        path.mkdir(mode)
    except FileExistsError:
        if not path.is_dir():
            raise
        return
    except FileNotFoundError:
        if path.parent == path:
            raise
        _make_dirs(path.parent, mode)
        _make_dirs(path, mode)
        return
    path.chmod(mode)  # the umask must not decide


def remove_file(path: str) -> None:
    """Idempotent."""
    try:
        Path(path).unlink()
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise translate("remove", error) from error

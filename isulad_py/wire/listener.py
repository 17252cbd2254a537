"""The unix socket that clients connect to."""

from __future__ import annotations

import contextlib
import grp
import os
import secrets
import socket
import stat
from pathlib import Path
from typing import Final

import structlog

from isulad_py.model.errors import FailedPrecondition, HostFailure, InvalidInput

log = structlog.get_logger(__name__)

MODE: Final = 0o660
PATH_LIMIT_BYTES: Final = 98
"""unix(7) allows 107; the socket is made under a longer name first."""
BACKLOG: Final = 128


class UnixListener:
    """A listening socket at `path` for root and one group.

    The socket is bound, given its mode and owner, and only then moved to its path: nobody meets it half-made, and one
    that a dead daemon left behind is replaced in one step.
    """

    def __init__(self, path: str, *, group: str = "") -> None:
        """`group` owns the socket; where the host has no such group, root alone can connect."""
        self.path = Path(path)
        self._group = group
        self._inode = 0

    def open(self) -> socket.socket:
        """Raises FailedPrecondition where another process listens or something else is in the way."""
        if len(os.fsencode(self.path)) > PATH_LIMIT_BYTES:
            raise InvalidInput(f"hosts: {self.path} is longer than {PATH_LIMIT_BYTES} bytes")
        _check_free(self.path)
        making = self.path.with_name(f"{self.path.name}.{secrets.token_hex(3)}")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            listener.bind(str(making))
            self._give_away(making)
            listener.listen(BACKLOG)
            self._inode = making.stat().st_ino
            making.rename(self.path)
        except OSError as error:
            listener.close()
            making.unlink(missing_ok=True)
            raise HostFailure(f"listen on {self.path}: {error}") from error
        return listener

    def _give_away(self, making: Path) -> None:
        making.chmod(MODE)
        if not self._group:
            return
        try:
            owner = grp.getgrnam(self._group).gr_gid
        except KeyError:
            log.warning("there is no such group: root alone can connect", group=self._group, path=str(self.path))
            return
        os.chown(making, -1, owner)

    def remove(self) -> None:
        """Removes the path, unless it is another's by now. Idempotent."""
        with contextlib.suppress(FileNotFoundError):
            if self.path.lstat().st_ino == self._inode:
                self.path.unlink()


def _check_free(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise HostFailure(f"listen on {path}: {error}") from error
    if not stat.S_ISSOCK(mode):
        raise FailedPrecondition(f"hosts: {path} exists and is not a socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as probe:
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return
        except BlockingIOError:
            pass  # its backlog is full: somebody lives there
        except OSError as error:
            raise HostFailure(f"listen on {path}: {error}") from error
    raise FailedPrecondition(f"hosts: another process listens on {path}")

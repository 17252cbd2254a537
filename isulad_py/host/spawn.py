"""posix_spawn, called so that nothing else of this process waits for it. Synchronous: for a thread of its own.

`subprocess` holds the interpreter lock from vfork until the new program runs; on a busy machine that is tens of
milliseconds in which the loop stands still (measured: up to 96 ms with 50 pods starting on two CPUs). A foreign
function called through ctypes gives the lock up.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_SIZE_OF_ACTIONS: Final = 128
_SIZE_OF_ATTRIBUTES: Final = 512
"""Both are opaque and smaller with every C library of Linux (glibc: 80 and 336 bytes)."""
_SETSIGMASK: Final = 0x08
_SETSIGDEF: Final = 0x04
_SETSID: Final = 0x80
_SIGNALS_OF_PYTHON: Final = (signal.SIGPIPE, signal.SIGXFSZ)
"""Ignored by the interpreter, and what is ignored stays so in a new program."""


def spawn(  # noqa: PLR0913 - one for each thing that posix_spawn can set
    argv: Sequence[str],
    *,
    stdio: tuple[int, int, int],
    env: Mapping[str, str],
    path: str,
    cwd: str | None = None,
    pass_fds: Sequence[int] = (),
    new_session: bool = False,
) -> int:
    """Starts a program and returns its number; the caller reaps it. Raises OSError, ValueError for a NUL in a word.

    `path` is searched for a name without a slash. The program has the three descriptors of `stdio`, those of `pass_fds`
    under their own numbers, and no other.
    """
    program = _found(argv[0], path)
    words = [os.fsencode(word) for word in argv]
    variables = [os.fsencode(f"{name}={value}") for name, value in env.items()]
    if any(b"\0" in word for word in (*words, *variables)):
        raise ValueError("a word of the command has a NUL in it")
    pid = ctypes.c_int()
    with _actions(stdio, cwd, sorted(pass_fds)) as actions, _attributes(new_session=new_session) as attributes:
        error = _LIBC.posix_spawn(
            ctypes.byref(pid), os.fsencode(program), actions, attributes, _strings(words), _strings(variables)
        )
    if error:
        raise OSError(error, os.strerror(error), program)
    return pid.value


def _found(name: str, path: str) -> str:
    """Raises FileNotFoundError."""
    if "/" in name:
        return name
    for folder in path.split(":"):
        candidate = f"{folder}/{name}"
        if os.access(candidate, os.X_OK):
            return candidate
    raise FileNotFoundError(f"{name} is not in {path}")


def _strings(words: Sequence[bytes]) -> ctypes.Array[ctypes.c_char_p]:
    return (ctypes.c_char_p * (len(words) + 1))(*words, None)


@contextmanager
def _actions(
    stdio: tuple[int, int, int], cwd: str | None, pass_fds: Sequence[int]
) -> Iterator[ctypes.Array[ctypes.c_char]]:
    """What the child does to its descriptors before it becomes the program."""
    actions = ctypes.create_string_buffer(_SIZE_OF_ACTIONS)
    _check(_LIBC.posix_spawn_file_actions_init(actions))
    try:
        for source, target in _moves(stdio):
            _check(_LIBC.posix_spawn_file_actions_adddup2(actions, source, target))
        # Onto itself takes close-on-exec away (POSIX, posix_spawn_file_actions_adddup2). All others of ours are
        # close-on-exec; these closings are for those that a library may have opened otherwise.
        last = max((2, *pass_fds))
        for fd in range(3, last + 1):
            if fd in pass_fds:
                _check(_LIBC.posix_spawn_file_actions_adddup2(actions, fd, fd))
            else:
                _check(_LIBC.posix_spawn_file_actions_addclose(actions, fd))
        if hasattr(_LIBC, "posix_spawn_file_actions_addclosefrom_np"):
            _check(_LIBC.posix_spawn_file_actions_addclosefrom_np(actions, last + 1))
        if cwd is not None:
            _check(_LIBC.posix_spawn_file_actions_addchdir_np(actions, os.fsencode(cwd)))
        yield actions
    finally:
        _LIBC.posix_spawn_file_actions_destroy(actions)


def _moves(stdio: tuple[int, int, int]) -> list[tuple[int, int]]:
    """Which descriptor goes where. Raises ValueError for one below 3: it could be overwritten before it is copied."""
    if any(fd < 3 for fd in stdio):
        raise ValueError("the descriptors of a program's stdio must not be stdio themselves")
    return list(zip(stdio, (0, 1, 2), strict=True))


@contextmanager
def _attributes(*, new_session: bool) -> Iterator[ctypes.Array[ctypes.c_char]]:
    attributes = ctypes.create_string_buffer(_SIZE_OF_ATTRIBUTES)
    _check(_LIBC.posix_spawnattr_init(attributes))
    try:
        flags = _SETSIGDEF | _SETSIGMASK | (_SETSID if new_session else 0)
        _check(_LIBC.posix_spawnattr_setflags(attributes, ctypes.c_short(flags)))
        signals = ctypes.create_string_buffer(128)
        _LIBC.sigemptyset(signals)
        _check(_LIBC.posix_spawnattr_setsigmask(attributes, signals))
        for number in _SIGNALS_OF_PYTHON:
            _LIBC.sigaddset(signals, int(number))
        _check(_LIBC.posix_spawnattr_setsigdefault(attributes, signals))
        yield attributes
    finally:
        _LIBC.posix_spawnattr_destroy(attributes)


def _check(error: int) -> None:
    if error:
        raise OSError(error, os.strerror(error))

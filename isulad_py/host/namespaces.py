"""Namespaces without a process: made by a thread that dies, kept by bind mounts. Synchronous but for `run_in_netns`.

Namespaces belong to threads, and a thread that dies gives its own up: what is bind-mounted from its
/proc/thread-self/ns stays, also after the daemon's death. User namespaces are not made here (`host.user_namespaces`):
the kernel lets only a single-threaded process enter a new one.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeVar

from msgspec import Struct

from isulad_py.host import blocking, libc, mounts, threads
from isulad_py.host.failures import translate, translated
from isulad_py.host.files import remove_file
from isulad_py.model.errors import EngineError, HostFailure, InvalidInput, NotFound

T = TypeVar("T")

_SIOCGIFFLAGS: Final = 0x8913
_SIOCSIFFLAGS: Final = 0x8914
_IFF_UP: Final = 0x1
_NOT_TAKEN: Final = frozenset(
    {errno.EINVAL, errno.ERANGE, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.E2BIG, errno.EACCES}
)
_IFREQ: Final = struct.Struct("16sh22x")


class NewNamespaces(Struct, frozen=True, kw_only=True):
    """What to make: a namespace of each kind that has a path to be pinned at. The directory exists, the file may."""

    user_path: str = ""
    """Only where a process is there already that has one."""
    net_path: str = ""
    ipc_path: str = ""
    uts_path: str = ""
    hostname: str = ""
    """Set in the new UTS namespace; empty keeps a copy of the host's."""
    sysctls: Mapping[str, str] = {}
    """Written inside, once all namespaces are there."""

    def pins(self) -> list[tuple[str, int, str]]:
        """Name below /proc/thread-self/ns, clone flag and path of each namespace asked for."""
        kinds = (
            ("user", libc.CLONE_NEWUSER, self.user_path),
            ("net", libc.CLONE_NEWNET, self.net_path),
            ("ipc", libc.CLONE_NEWIPC, self.ipc_path),
            ("uts", libc.CLONE_NEWUTS, self.uts_path),
        )
        return [kind for kind in kinds if kind[2]]


def create(request: NewNamespaces) -> None:
    """Makes and pins the namespaces, with loopback up. Leaves nothing behind on failure.

    Raises InvalidInput for a sysctl that the kernel does not take, HostFailure or ResourceExhausted for the rest.
    """

    def inside() -> None:
        flags = 0
        for _, flag, _ in request.pins():
            flags |= flag
        with translated("make namespaces"):
            libc.unshare(flags)
        _furnish(request)
        write_sysctls(request.sysctls)
        _pin_all(request.pins(), "/proc/thread-self/ns")

    threads.run_in_fresh_thread(inside, name="namespaces")


def adopt(request: NewNamespaces, holder: int) -> dict[str, str]:
    """As `create`, of the namespaces that the process `holder` is in. Returns the sysctls that are left to do: only who
    is root in its user namespace may set them."""
    denied: dict[str, str] = {}

    def inside() -> None:
        for name, flag, _ in request.pins():
            if flag != libc.CLONE_NEWUSER:
                _enter(f"/proc/{holder}/ns/{name}", flag)
        _furnish(request)
        write_sysctls(request.sysctls, denied)
        _pin_all(request.pins(), f"/proc/{holder}/ns")

    threads.run_in_fresh_thread(inside, name="namespaces")
    return denied


def _furnish(request: NewNamespaces) -> None:
    if request.uts_path and request.hostname:
        with translated("set the hostname"):
            socket.sethostname(request.hostname)
    if request.net_path:
        with translated("bring up the loopback interface"):
            _loopback_up()


def _pin_all(pins: list[tuple[str, int, str]], source: str) -> None:
    try:
        for name, _, path in pins:
            _pin(f"{source}/{name}", path)
    except EngineError as error:
        for _, _, path in pins:
            try:
                release(path)
            except EngineError as failure:
                error.cleanup.append(failure)
        raise


def _pin(source: str, path: str) -> None:
    with translated("pin a namespace at"):
        os.close(os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o444))
    mounts.mount(source, path, flags=mounts.MS_BIND)


def release(path: str) -> None:
    """Gives the pinned namespace up: the kernel ends it with its last user. Idempotent."""
    mounts.unmount(path)
    remove_file(path)


def is_pinned(path: str) -> bool:
    """Whether a namespace is mounted at `path`; false after a reboot, or where the file is gone."""
    try:
        # All namespaces are inodes of one nsfs instance.
        return Path(path).stat().st_dev == Path("/proc/self/ns/net").stat().st_dev
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise translate("inspect", error) from error


def call_in_netns(path: str, work: Callable[[], T]) -> T:
    """Calls `work` in a thread of its own inside the network namespace; an empty path is the host's, in this thread.

    Raises NotFound where the namespace is gone. Sockets made inside keep belonging to it after the thread's end.
    """
    if not path:
        return work()

    def inside() -> T:
        _enter(path, libc.CLONE_NEWNET)
        return work()

    return threads.run_in_fresh_thread(inside, name="netns")


def _enter(path: str, kind: int) -> None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFound(f"namespace {path} is gone") from error
    except OSError as error:
        raise translate("open namespace", error) from error
    try:
        libc.setns(fd, kind)
    except OSError as error:
        if error.errno == errno.EINVAL:  # a plain file: the pin was lost (reboot)
            raise NotFound(f"{path} is not such a namespace") from error
        raise translate(f"enter namespace {path}", error) from error
    finally:
        os.close(fd)


async def run_in_netns(path: str, work: Callable[[], T]) -> T:
    """`call_in_netns` off the loop. `work` must not wait for a peer: make the socket there, and connect on the loop."""
    return await blocking.run(call_in_netns, path, work)


def _loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as control:
        answer = fcntl.ioctl(control, _SIOCGIFFLAGS, _IFREQ.pack(b"lo", 0))
        (_, flags) = _IFREQ.unpack(answer)
        fcntl.ioctl(control, _SIOCSIFFLAGS, _IFREQ.pack(b"lo", flags | _IFF_UP))


def sysctl_path(name: str) -> str:
    """The file of a sysctl named with dots or slashes: the first separator says which (sysctl(8)), so that an
    interface `eth0.1` can be named in `net/ipv4/conf/eth0.1/forwarding` or `net.ipv4.conf.eth0/1.forwarding`.

    Raises InvalidInput for what names no file below /proc/sys.
    """
    dot, slash = name.find("."), name.find("/")
    if dot >= 0 and (slash < 0 or dot < slash):
        name = name.translate(str.maketrans("./", "/."))
    parts = name.split("/")
    if len(parts) < 2 or any(part in {"", ".", ".."} or "\0" in part for part in parts):
        raise InvalidInput(f"sysctl {name!r}: not a name of a sysctl")
    return "/proc/sys/" + name


def write_sysctls(sysctls: Mapping[str, str], denied: dict[str, str] | None = None) -> None:
    """Of the calling thread's namespaces. Raises InvalidInput naming the one that the kernel does not know or take.
    What this process may not set goes into `denied`, where that is given."""
    for name, value in sysctls.items():
        path = sysctl_path(name)
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.write(fd, value.encode(errors="surrogateescape"))
            finally:
                os.close(fd)
        except OSError as error:
            if denied is not None and error.errno in {errno.EACCES, errno.EPERM}:
                denied[name] = value
                continue
            reason = (error.strerror or "").lower()
            # EACCES: visible in every network namespace, but set in the host's only.
            if error.errno in _NOT_TAKEN:
                raise InvalidInput(
                    f"config.linux.sysctls[{name}]: the kernel does not take {value!r}: {reason}"
                ) from error
            raise HostFailure(f"sysctl {name}: {reason}") from error

"""A copy of the mount namespace that lacks one mount, for programs that must not see it. Synchronous."""

from __future__ import annotations

import os
from pathlib import PurePosixPath

from isulad_py.host import libc, mounts, threads
from isulad_py.host.failures import translated


def without(path: str) -> int:
    """A descriptor of the copy, which lives as long as somebody holds or uses it; the caller closes it.

    All other mounts stay peers of this namespace's (mount_namespaces(7)): what is mounted on a shared one here is seen
    there, and the other way round. Raises HostFailure where nothing is mounted at `path`.
    """
    return threads.run_in_fresh_thread(lambda: _without(path), name="mounts")


def _without(path: str) -> int:
    with translated("copy the mounts without"):
        libc.unshare(libc.CLONE_NEWNS)
        # Private, or the unmounting would be repeated by its peers.
        holder = next((str(folder) for folder in PurePosixPath(path).parents if mounts.is_mountpoint(str(folder))), "/")
        libc.mount("", holder, "", mounts.MS_PRIVATE, "")
        libc.umount2(path, mounts.MNT_DETACH)
        return os.open("/proc/thread-self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)

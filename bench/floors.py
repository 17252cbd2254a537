"""The floors: what a pod costs when its parts are called directly, with no engine between.

One pod is: pinned namespaces, the conflist's plugins one by one, an overlay mount, and `runc` on a bundle.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import shutil
import subprocess
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.clock import Samples
from bench.shape import make_mounts, oci_spec
from tests.stand.cgroups import make_cgroup
from tests.stand.mark import find_program

UP = ("namespaces", "CNI ADD", "overlay mount", "runc create", "runc start")
DOWN = ("runc kill, wait", "runc delete", "overlay unmount", "CNI DEL", "namespaces drop")
EXEC = "runc exec"

_libc = ctypes.CDLL(None, use_errno=True)
_FLAGS = {"network": 0x40000000, "ipc": 0x08000000, "uts": 0x04000000}
_FILES = {"network": "net", "ipc": "ipc", "uts": "uts"}
_MS_BIND, _MNT_DETACH = 4096, 2


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def mount(source: str, target: Path, kind: str = "", flags: int = 0, options: str = "") -> None:
    arguments = (source.encode(), str(target).encode(), kind.encode() or None, flags, options.encode() or None)
    _check(_libc.mount(*arguments), f"mount {target}")


def unmount(target: Path) -> None:
    _check(_libc.umount2(str(target).encode(), _MNT_DETACH), f"unmount {target}")


def pin_namespaces(folder: Path) -> dict[str, Path]:
    """New network, IPC and UTS namespaces, made by a thread that ends, held by bind mounts."""
    folder.mkdir()
    pins = {kind: folder / name for kind, name in _FILES.items()}
    for pin in pins.values():
        pin.touch()
    failures: list[OSError] = []

    def make() -> None:
        try:
            _check(_libc.unshare(sum(_FLAGS.values())), "unshare")
            for kind, pin in pins.items():
                mount(f"/proc/thread-self/ns/{_FILES[kind]}", pin, flags=_MS_BIND)
        except OSError as error:
            failures.append(error)

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
    return pins


def drop_namespaces(folder: Path) -> None:
    for name in _FILES.values():
        unmount(folder / name)
        (folder / name).unlink()
    folder.rmdir()


def call_plugin(argv0: Path, command: str, *, container: str, netns: Path, config: dict[str, Any]) -> Any:
    """One CNI plugin call (CNI spec, section 2): environment and stdin in, JSON out."""
    environment = {
        "CNI_COMMAND": command,
        "CNI_CONTAINERID": container,
        "CNI_NETNS": str(netns),
        "CNI_IFNAME": "eth0",
        "CNI_PATH": str(argv0.parent),
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    }
    done = subprocess.run(
        [str(argv0)], input=json.dumps(config).encode(), env=environment, capture_output=True, check=False
    )
    if done.returncode != 0:
        raise OSError(f"{argv0.name} {command}: {(done.stdout or done.stderr).decode(errors='replace').strip()}")
    return json.loads(done.stdout) if done.stdout.strip() else None


@dataclass(frozen=True)
class FloorPlace:
    """Where the floors work: the same kinds of disk that an engine has."""

    disk: Path
    run: Path
    rootfs: Path
    """The unpacked image: the one lower layer of each overlay."""
    conflist: dict[str, Any]
    cni_bin_dir: Path
    cgroup_parent: str
    runtime: str = field(default_factory=lambda: find_program("runc"))
    seccomp: dict[str, Any] | None = None


class FloorPod:
    """One pod made of bare parts; `up`, `execute` and `down` note how long each part took."""

    def __init__(self, place: FloorPlace, name: str) -> None:
        self._place = place
        self._name = name
        self._namespaces = place.run / f"ns-{name}"
        self._layer = place.disk / f"layer-{name}"
        self._bundle = place.run / f"bundle-{name}"
        self._pid_file = self._bundle / "pid"
        self._result: Any = None
        self._cgroup = f"{place.cgroup_parent}/pod-floor-{name}"

    def up(self, samples: Samples) -> None:
        place = self._place
        make_cgroup(self._cgroup)  # a kubelet's work, not an engine's
        binds = make_mounts(self._bundle)
        with samples.timed("namespaces"):
            pins = pin_namespaces(self._namespaces)
        with samples.timed("CNI ADD"):
            self._add()
        with samples.timed("overlay mount"):
            self._mount_rootfs()
        spec = oci_spec(
            rootfs=self._layer / "rootfs",
            hostname=self._name,
            cgroup=f"{self._cgroup}/{self._name}",
            namespaces=pins,
            binds=binds,
            seccomp=place.seccomp,
        )
        (self._bundle / "config.json").write_text(json.dumps(spec), encoding="utf-8")
        with samples.timed("runc create"):
            self._runc("create", "--bundle", str(self._bundle), "--pid-file", str(self._pid_file), self._name)
        with samples.timed("runc start"):
            self._runc("start", self._name)

    def execute(self, samples: Samples) -> None:
        with samples.timed(EXEC):
            self._runc("exec", self._name, "true")

    def exec_command(self, *command: str) -> list[str]:
        """What to run for a command in this container."""
        return [*self._command, "exec", self._name, *command]

    @property
    def address(self) -> str:
        return str(self._result["ips"][0]["address"]).partition("/")[0]

    def down(self, samples: Samples) -> None:
        pidfd = os.pidfd_open(int(self._pid_file.read_text(encoding="ascii")))
        try:
            with samples.timed("runc kill, wait"):
                self._runc("kill", self._name, "KILL")
                if not select.select([pidfd], [], [], 10)[0]:
                    raise OSError(f"the floor container {self._name} does not die")
        finally:
            os.close(pidfd)
        with samples.timed("runc delete"):
            self._runc("delete", self._name)
        with samples.timed("overlay unmount"):
            unmount(self._layer / "rootfs")
            shutil.rmtree(self._layer)
        with samples.timed("CNI DEL"):
            self._delete()
        with samples.timed("namespaces drop"):
            drop_namespaces(self._namespaces)
        shutil.rmtree(self._bundle)

    def clear(self) -> None:
        """After a failure: undo what can be undone; mounts, cgroups and the folder go with the stand."""
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run([*self._command, "delete", "--force", self._name], check=False, **quiet)  # type: ignore[call-overload]
        if self._namespaces.exists():
            try:
                self._delete()
            except OSError as error:
                print(f"floor {self._name}: {error}")

    @property
    def _command(self) -> list[str]:
        return [self._place.runtime, "--root", str(self._place.run / "runc")]

    def _runc(self, *arguments: str) -> None:
        with (self._bundle / "said").open("w+b") as said:
            # A file, not a pipe: the container keeps it open.
            status = subprocess.run(
                [*self._command, *arguments], stdin=subprocess.DEVNULL, stdout=said, stderr=said, check=False
            )
            if status.returncode != 0:
                said.seek(0)
                raise OSError(f"{self._place.runtime} {arguments[0]}: {said.read().decode(errors='replace').strip()}")

    def _mount_rootfs(self) -> None:
        for name in ("upper", "work", "rootfs"):
            (self._layer / name).mkdir(parents=True)
        options = f"lowerdir={self._place.rootfs},upperdir={self._layer / 'upper'},workdir={self._layer / 'work'}"
        mount("overlay", self._layer / "rootfs", kind="overlay", options=options)

    def _chain(self, command: str, plugins: list[dict[str, Any]]) -> None:
        place = self._place
        for plugin in plugins:
            config = {**plugin, "cniVersion": place.conflist["cniVersion"], "name": place.conflist["name"]}
            if self._result is not None:
                config["prevResult"] = self._result
            result = call_plugin(
                place.cni_bin_dir / plugin["type"],
                command,
                container=self._name,
                netns=self._namespaces / "net",
                config=config,
            )
            if command == "ADD":
                self._result = result

    def _add(self) -> None:
        self._chain("ADD", self._place.conflist["plugins"])

    def _delete(self) -> None:
        self._chain("DEL", self._place.conflist["plugins"][::-1])

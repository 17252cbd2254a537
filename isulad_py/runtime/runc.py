"""runc's command line and answers, which crun and others share. Pure.

Errors are asked for as JSON (--log-format json), so that a message is one string, whatever is in it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from isulad_py.model.errors import (
    EngineError,
    FailedPrecondition,
    HostFailure,
    InvalidInput,
    NotFound,
    ResourceExhausted,
)
from isulad_py.model.handlers import RuntimeHandler
from isulad_py.ports.runtime import HandlerFeatures

MESSAGE_LIMIT: Final = 2000
WORD_LIMIT: Final = 300
_WORD: Final = re.compile(r"[^\s\"`]+")
OK_LEVELS: Final = frozenset({"trace", "debug", "info", "warning", "warn", "notice"})


def global_args(handler: RuntimeHandler, root: str, log: str = "") -> list[str]:
    """Before the command. Without `log` errors go to stderr."""
    args = [*handler.args, "--root", root, "--log-format", "json"]
    if log:
        args += ["--log", log]
    if handler.systemd_cgroup:
        args += ["--systemd-cgroup"]
    return args


def exec_args(container_id: str, *, process: str, pid_file: str, options: Sequence[str] = ()) -> list[str]:
    """The runtime leaves when the command runs, with the command's number in `pid_file`."""
    args = ["exec", "--detach"]
    args += ["--pid-file", pid_file]
    args += ["--process", process]
    return [*args, *options, container_id]


def checkpoint_args(container_id: str, *, images: str, work: str) -> list[str]:
    """The container goes on. CRIU reads what else it may do from /etc/criu/runc.conf."""
    args = ["checkpoint", "--leave-running"]
    args += ["--image-path", images]
    args += ["--work-path", work]
    return [*args, container_id]


def delete_args(container_id: str, *, force: bool) -> list[str]:
    """Without force for what has ended: a forced delete waits 100 ms in any case."""
    return ["delete", *(["--force"] if force else []), container_id]


SAFE_CRUN: Final = (1, 24)
"""The first that leaves devices to their owners."""


class Version(Struct, frozen=True, kw_only=True):
    family: str
    """The first word of `--version`: runc, crun, runsc, ..."""
    number: str
    text: str
    parts: frozenset[str] = frozenset()
    """What crun says it is built with: SECCOMP, APPARMOR, CRIU and the like."""


def parse_version(output: bytes) -> Version:
    text = output.decode(errors="replace").strip()
    first = text.splitlines()[0] if text else ""
    number = re.search(r"\d+(\.\d+)+\S*", first)
    family = first.split(" ", 1)[0].lower()
    parts = frozenset(word[1:] for word in text.split() if word.startswith("+"))
    return Version(family=family, number=number.group() if number else "", text=first, parts=parts)


def error_of(output: bytes) -> str:
    """The runtime's last error in its log or on its stderr; where there is none in JSON, its last words."""
    errors: list[str] = []
    others: list[str] = []
    for line in output.decode(errors="replace").splitlines():
        entry = _log_entry(line)
        if entry is None:
            others.append(line.strip())
        elif entry.get("level", "error") not in OK_LEVELS:
            errors.append(str(entry["msg"]).strip())
    return _shortened(errors[-1] if errors else "\n".join(line for line in others if line))[-MESSAGE_LIMIT:]


def _shortened(message: str) -> str:
    """With its long paths abridged: else what is said of them would be beyond the limit."""
    return _WORD.sub(lambda word: _abridged(word[0]), message)


def _abridged(word: str) -> str:
    return word if len(word) <= WORD_LIMIT else f"{word[:100]}...{word[-100:]}"


def _log_entry(line: str) -> dict[str, Any] | None:
    """Also of a line that has no end: the monitor passes on 8 KiB."""
    if not line.startswith("{"):
        return None
    for ending in ("", '"}'):
        try:
            entry = msgspec.json.decode(line.rstrip("\\") + ending)
        except (msgspec.DecodeError, UnicodeError):
            continue
        return entry if isinstance(entry, dict) and "msg" in entry else None
    return None


_UNKNOWN: Final = re.compile(r"container(?: \S+)? does not exist|/status`: No such file or directory")
_STATE: Final = re.compile(
    r"cannot exec in a (?:stopped|paused) container"
    r"|cannot start an already running container|cannot start a container that has stopped"
    r"|that is not stopped|container not (?:running|paused)|cannot be checkpointed in "
    r"|container `[^`]*` is (?:paused|not in|not running)"
    r"|cannot open `[^`]*/exec\.fifo`"
)


_BUSY: Final = re.compile(r"unable to set memory limit|device or resource busy", re.IGNORECASE)
"""An update to less memory than is in use (v1)."""
_REQUEST: Final = re.compile(
    r"executable file (?:`|.*not found)|open executable[: ]|exec: \"[^\"]*(?:\": |$)|exec format error"
    r"|numerical result out of range|(?:failed to write|writing file) .*invalid argument|allowed cpu-shares is"
    r"|unable to set memory limit|memory limit could be too low"
    r"|error mounting .*not a directory|mount `.*`: not a directory|mkdir `.*`: not a directory"
    r"|cannot be mounted because it is"
    # Paths of mounts, devices and hidden files that the image cannot have: as runc says it, and as crun does.
    r"|(?:error mounting|error creating device nodes|can't make)\b.*"
    r"(?:not a directory|read-only file system|file name too long|no such file or directory)"
    r"|(?:mount|mkdir|open|mknod|creat)[a-z]* `.*`: (?:not a directory|read-only file system|file name too long)",
    re.IGNORECASE,
)
"""What the image or the kernel does not have: the same request would fail again."""
_EXHAUSTED: Final = re.compile("no space left on device|disk quota exceeded|too many open files", re.IGNORECASE)
"""ENOSPC is also what the kernel says to one mount too many (fs.mount-max)."""
_UNIFIED: Final = re.compile(r"unified resource|(?:open|write to) `[a-z]+\.[A-Za-z0-9_.]+`", re.IGNORECASE)
"""A file of cgroup v2 by its own name: the kernel has it not, or does not take the value."""
_FIELDS: Final = {
    "cpuset.cpus": "cpuset_cpus",
    "cpuset.mems": "cpuset_mems",
    "cpu.cfs_quota_us": "cpu_quota",
    "cpu.cfs_period_us": "cpu_period",
    "cpu.max": "cpu_quota",
    "cpu-shares": "cpu_shares",
    "memory": "memory_limit_in_bytes",
}
"""CRI's name for what a runtime's words are about."""


def failure(step: str, message: str, *, program: str = "") -> EngineError:
    """The error to raise for a runtime's message: NotFound for a container it does not know, FailedPrecondition where
    its state is in the way, InvalidInput where the request is, ResourceExhausted where the host has no more, else
    HostFailure. `program`, which was to be run, is
    named where the runtime (crun) keeps it to itself."""
    if program and program not in message and "open executable" in message:
        message = message.replace("open executable", f"open executable {program}", 1)
    text = f"{step}: {message or 'the runtime failed without a word'}"
    if _UNKNOWN.search(message):
        return NotFound(text)
    if _STATE.search(message) or (step == "update" and _BUSY.search(message)):
        return FailedPrecondition(text)
    limits = "linux" if step == "update" else "config.linux.resources"
    if _UNIFIED.search(message):
        return InvalidInput(f"{limits}.unified: {text}")
    if _REQUEST.search(message):
        field = next((field for words, field in _FIELDS.items() if words in message), "")
        return InvalidInput(f"{limits}.{field}: {text}" if field and "exec" not in step else text)
    return ResourceExhausted(text) if _EXHAUSTED.search(message) else HostFailure(text)


class _Process(Struct, frozen=True):
    args: tuple[str, ...] = ()


class _Spec(Struct, frozen=True):
    process: _Process = _Process()


def program_of(spec: bytes) -> str:
    """What the container is to run; empty where that cannot be told."""
    try:
        args = msgspec.json.decode(spec, type=_Spec).process.args
    except (msgspec.DecodeError, UnicodeError):
        args = ()
    return args[0] if args else ""


class _State(Struct):
    status: str = ""


def parse_state(output: bytes) -> str:
    """`status` of the OCI runtime spec's state; empty where the answer is no such document."""
    try:
        return msgspec.json.decode(output, type=_State).status
    except (msgspec.DecodeError, UnicodeError):
        return ""


class _Enabled(Struct):
    enabled: bool | None = None


class _MountExtensions(Struct):
    idmap: _Enabled | None = None


class _LinuxFeatures(Struct, rename="camel"):
    namespaces: list[str] | None = None
    seccomp: _Enabled | None = None
    apparmor: _Enabled | None = None
    mount_extensions: _MountExtensions | None = None


class _Features(Struct, rename="camel"):
    """OCI runtime spec, features.md."""

    oci_version_max: str = ""
    mount_options: list[str] | None = None
    linux: _LinuxFeatures | None = None
    annotations: dict[str, str] | None = None


def parse_features(name: str, version: Version, output: bytes) -> HandlerFeatures:
    """All false where the answer cannot be read: a runtime need not have the command. crun's features are known all the
    same: it had them before the command (1.8.6)."""
    try:
        said = msgspec.json.decode(output, type=_Features)
    except (msgspec.DecodeError, UnicodeError):
        if version.family == "crun":
            return _features_of_old_crun(name, version)
        said = _Features()
    linux = said.linux or _LinuxFeatures()
    extensions = linux.mount_extensions or _MountExtensions()
    annotations = said.annotations or {}
    return HandlerFeatures(
        name=name,
        version=version.number,
        recursive_read_only_mounts="rro" in (said.mount_options or ()),
        user_namespaces="user" in (linux.namespaces or ()) and not _gives_away_devices(version),
        idmap_mounts=_on(extensions.idmap),
        # Since 1.2, as the mounts; it then complains about mappings in the container's own log.
        reads_id_maps=version.family == "runc" and _on(extensions.idmap),
        seccomp=_on(linux.seccomp),
        apparmor=_on(linux.apparmor),
        checkpoint=annotations.get("org.opencontainers.runc.checkpoint.enabled") == "true"
        or annotations.get("run.oci.crun.checkpoint.enabled") == "true",
        oci_version_max=said.oci_version_max,
    )


def _features_of_old_crun(name: str, version: Version) -> HandlerFeatures:
    return HandlerFeatures(
        name=name,
        version=version.number,
        recursive_read_only_mounts=not re.match(r"0\.|1\.[0-3](?!\d)", version.number),
        seccomp="SECCOMP" in version.parts,
        apparmor="APPARMOR" in version.parts,
    )


def _gives_away_devices(version: Version) -> bool:
    """crun before 1.24 makes the root of a user namespace the owner of the host's /dev/null, which is the input of its
    containers: that root could shut it for everybody."""
    found = re.match(r"(\d+)\.(\d+)", version.number) if version.family == "crun" else None
    return found is not None and (int(found[1]), int(found[2])) < SAFE_CRUN


def _on(feature: _Enabled | None) -> bool:
    return feature is not None and feature.enabled is True


def monitor_runtime_args(args: Sequence[str]) -> list[str]:
    """The runtime's global arguments as conmon takes them, one option each."""
    return [f"--runtime-arg={arg}" for arg in args]

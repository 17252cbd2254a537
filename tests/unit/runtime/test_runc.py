"""Command lines and answers of OCI runtimes, as data. The messages are what runc 1.1.5 and crun 1.8.1 say."""

from __future__ import annotations

import pytest

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
from isulad_py.runtime import runc


def test_global_arguments_come_before_the_command_with_the_handlers_own_first() -> None:
    handler = RuntimeHandler(name="x", args=("--debug",), systemd_cgroup=True)
    assert runc.global_args(handler, "/r", "/l") == [
        "--debug", "--root", "/r", "--log-format", "json", "--log", "/l", "--systemd-cgroup",
    ]  # fmt: skip
    assert "--log" not in runc.global_args(handler, "/r")


def test_exec_and_delete_arguments() -> None:
    plain = ["exec", "--detach", "--pid-file", "/f", "--process", "/p"]
    assert runc.exec_args("c", process="/p", pid_file="/f") == [*plain, "c"]
    assert runc.exec_args("c", process="/p", pid_file="/f", options=("--cgroup", "x")) == [*plain, "--cgroup", "x", "c"]
    told = ["checkpoint", "--leave-running", "--image-path", "/i", "--work-path", "/w", "c"]
    assert runc.checkpoint_args("c", images="/i", work="/w") == told
    assert runc.delete_args("c", force=False) == ["delete", "c"]
    assert runc.delete_args("c", force=True) == ["delete", "--force", "c"]


@pytest.mark.parametrize(
    ("output", "family", "number"),
    [
        (b"runc version 1.1.5+ds1\ncommit: x\nspec: 1.0.2-dev\n", "runc", "1.1.5+ds1"),
        (b"crun version 1.8.1\nrundir: /run/crun\n", "crun", "1.8.1"),
        (b"runsc version release-20240101.0\n", "runsc", "20240101.0"),
        (b"kata-runtime  : 3.2.0\n", "kata-runtime", "3.2.0"),
        (b"", "", ""),
        (b"\xff\xfe", "\ufffd\ufffd", ""),
    ],
)
def test_versions(output: bytes, family: str, number: str) -> None:
    version = runc.parse_version(output)
    assert (version.family, version.number) == (family, number)


ERROR = b'{"level":"error","msg":"exec failed: boom","time":"2026-01-01T00:00:00Z"}\n'
WARNING = b'{"level":"warning","msg":"odd","time":"2026-01-01T00:00:00Z"}\n'


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (ERROR, "exec failed: boom"),
        (WARNING + ERROR + WARNING, "exec failed: boom"),
        (b'{"msg":"crun says","level":"error"}\n', "crun says"),
        (b'{"msg":"no level"}', "no level"),
        (b"panic: plain\n\n  words\n", "panic: plain\nwords"),
        (b'{"level":"error","msg":"cut off', "cut off"),
        (b'{"level":"error","msg":"cut \\"off\\', 'cut "off'),
        (b'{"level":"error"', '{"level":"error"'),
        (b"[1]\n{}\n", "[1]\n{}"),
        (b"\xff", "\ufffd"),
        (WARNING, ""),
        (b"", ""),
    ],
)
def test_the_last_error_counts(output: bytes, message: str) -> None:
    assert runc.error_of(output) == message


def test_a_long_message_is_cut_at_its_start() -> None:
    assert len(runc.error_of(b"xy " * 10_000 + b"the end")) == runc.MESSAGE_LIMIT
    assert runc.error_of(b"xy " * 10_000 + b"the end").endswith("xy the end")


def test_long_paths_leave_room_for_what_is_said_of_them() -> None:
    path = "/a" * 2000
    said = runc.error_of(f'exec: "{path}": stat {path}: no such file or directory'.encode())
    first, second = (f"{word[:100]}...{word[-100:]}" for word in (path, f"{path}:"))
    assert said == f'exec: "{first}": stat {second} no such file or directory'
    assert type(runc.failure("create", said)) is InvalidInput


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ('error mounting "/t" to rootfs at "/sys/x": mkdir /r/sys/x: read-only file system', InvalidInput),
        ("error creating device nodes: mknod /r/proc/x: no such file or directory", InvalidInput),
        ('can\'t make "/etc/passwd/q" read-only: mount /etc/passwd/q: not a directory', InvalidInput),
        ("mkdirat `/r/a`: File name too long", InvalidInput),
        ("open /r/config.json: no such file or directory", HostFailure),
        ("container does not exist", NotFound),
        ("exec failed: container does not exist", NotFound),
        ("error opening file `/r/x/status`: No such file or directory", NotFound),
        ("exec failed: cannot exec in a paused container (use --ignore-paused to override)", FailedPrecondition),
        ("exec failed: cannot exec in a stopped container", FailedPrecondition),
        ("the container `x` is paused", FailedPrecondition),
        ("cannot start an already running container", FailedPrecondition),
        ("cannot delete container c1 that is not stopped: running", FailedPrecondition),
        ("the container `x` is not in `created` or `stopped` state", FailedPrecondition),
        ("container not running", FailedPrecondition),
        ("container not paused", FailedPrecondition),
        ('unable to start container process: exec: "x": executable file not found in $PATH', InvalidInput),
        ('unable to start container process: exec: "/etc": permission denied', InvalidInput),
        ('unable to start container process: exec: "/x": stat /x: no such file or directory', InvalidInput),
        ("executable file `x` not found in $PATH: No such file or directory", InvalidInput),
        ("executable file `/a: No such file or directory", InvalidInput),
        ('unable to start container process: exec: "/a/path/without/an/e', InvalidInput),
        ("open executable: Permission denied", InvalidInput),
        ('error mounting "/tmp" to rootfs at "/etc/passwd": mount /tmp: not a directory', InvalidInput),
        (
            'error mounting "/tmp" to rootfs at "/proc": "/r/proc" cannot be mounted because it is not of type proc',
            InvalidInput,
        ),
        ("mount `/tmp` to `etc/passwd`: Not a directory", InvalidInput),
        ("mkdir `/etc/passwd/x`: Not a directory", InvalidInput),
        ("unable to apply cgroup configuration: no space left on device", ResourceExhausted),
        ('error mounting "/tmp" to rootfs at "/x": no space left on device', ResourceExhausted),
        ("", HostFailure),
    ],
)
def test_failures_are_classed_and_keep_the_words(message: str, kind: type[EngineError]) -> None:
    error = runc.failure("exec", message)
    assert type(error) is kind
    assert message in str(error)
    assert str(error).startswith("exec: ")


@pytest.mark.parametrize(
    ("message", "named"),
    [
        ("open executable: Permission denied", "open executable /etc: Permission denied"),
        ('exec: "/etc": permission denied', 'exec: "/etc": permission denied'),
        ("mkdir `/x`: Not a directory", "mkdir `/x`: Not a directory"),
    ],
)
def test_a_program_is_named_where_the_runtime_does_not(message: str, named: str) -> None:
    program = runc.program_of(b'{"process": {"args": ["/etc", "x"]}}')
    error = runc.failure("create", message, program=program)
    assert (type(error), str(error)) == (InvalidInput, f"create: {named}")


@pytest.mark.parametrize("spec", [b"", b"{}", b'{"process": {"args": []}}', b'{"process": {"args": 7}}'])
def test_a_spec_may_tell_no_program(spec: bytes) -> None:
    assert runc.program_of(spec) == ""


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ('failed to write "4096": write /c/cpuset.cpus: numerical result out of range', "cpuset_cpus"),
        ("writing file `cpuset.mems`: Invalid argument", "cpuset_mems"),
        ('failed to write "4": write /c/cpu.cfs_quota_us: invalid argument', "cpu_quota"),
        ("error setting cgroup config: the minimum allowed cpu-shares is 2", "cpu_shares"),
        ("unable to set memory limit to 1 (current usage: 2154496, peak usage: 2224128)", "memory_limit_in_bytes"),
        ("OOM: the memory limit could be too low: read from sync socket", "memory_limit_in_bytes"),
        ('unable to set unified resource "memory.high": write memory.high: invalid argument', "unified"),
        ('unified resource "memory.high" value conversion error: strconv.ParseUint: invalid syntax', "unified"),
        ("open `memory.no`: No such file or directory", "unified"),
        ("write to `memory.high`: Invalid argument", "unified"),
    ],
)
def test_a_limit_that_cannot_be_is_the_requests_fault_and_has_its_name(message: str, field: str) -> None:
    error = runc.failure("create", message)
    assert type(error) is InvalidInput
    assert str(error) == f"config.linux.resources.{field}: create: {message}"


def test_a_limit_of_an_update_has_the_updates_name() -> None:
    error = runc.failure("update", 'unable to set unified resource "memory.high": invalid argument')
    assert str(error).startswith("linux.unified: update: ")


@pytest.mark.parametrize(
    "message",
    [
        "unable to set memory limit to 1 (current usage: 2)",
        "writing file `memory.limit_in_bytes`: Device or resource busy",
    ],
)
def test_less_memory_than_is_in_use_is_a_matter_of_state(message: str) -> None:
    assert type(runc.failure("update", message)) is FailedPrecondition


def test_state() -> None:
    assert runc.parse_state(b'{"ociVersion":"1.0.2","id":"c","pid":7,"status":"running"}') == "running"
    assert runc.parse_state(b"rubbish") == ""
    assert runc.parse_state(b'{"status":7}') == ""
    assert runc.parse_state(b"\xff") == ""


VERSION = runc.Version(family="runc", number="1.2.3", text="")


def test_features_of_a_newer_runc() -> None:
    features = runc.parse_features(
        "runc",
        VERSION,
        b'{"ociVersionMax":"1.2.0","mountOptions":["ro","rro"],"linux":{"namespaces":["user","pid"],'
        b'"seccomp":{"enabled":true,"actions":["x"]},"apparmor":{"enabled":false},'
        b'"mountExtensions":{"idmap":{"enabled":true}}},'
        b'"annotations":{"org.opencontainers.runc.checkpoint.enabled":"true"},"unknown":{"x":1}}',
    )
    assert features.recursive_read_only_mounts
    assert features.user_namespaces
    assert features.idmap_mounts
    assert features.reads_id_maps
    assert features.seccomp
    assert not features.apparmor
    assert features.checkpoint
    assert (features.name, features.version, features.oci_version_max) == ("runc", "1.2.3", "1.2.0")


def test_user_namespaces_without_idmapped_mounts() -> None:
    features = runc.parse_features("r", VERSION, b'{"linux":{"namespaces":["user"]}}')
    assert (features.user_namespaces, features.idmap_mounts, features.reads_id_maps) == (True, False, False)
    assert not runc.parse_features("r", VERSION, b'{"linux":{"namespaces":["pid"]}}').user_namespaces


def test_crun_has_user_namespaces_and_wants_their_mappings() -> None:
    crun = runc.Version(family="crun", number="1.24", text="")
    newer = b'{"linux":{"namespaces":["user"],"mountExtensions":{"idmap":{"enabled":true}}}}'
    features = runc.parse_features("c", crun, newer)
    assert (features.user_namespaces, features.idmap_mounts, features.reads_id_maps) == (True, True, False)


@pytest.mark.parametrize("number", ["1.8.1", "1.23.1"])
def test_a_crun_that_gives_away_devices_has_no_user_namespaces(number: str) -> None:
    crun = runc.Version(family="crun", number=number, text="")
    for output in (b"unknown command features", b'{"linux":{"namespaces":["user"]}}'):
        assert not runc.parse_features("c", crun, output).user_namespaces


@pytest.mark.parametrize("output", [b"", b"unknown command features", b"[]", b'{"linux":3}', b"\xff\xff"])
def test_features_that_cannot_be_read_are_none(output: bytes) -> None:
    features = runc.parse_features("r", VERSION, output)
    assert not features.seccomp
    assert features.version == "1.2.3"


def test_monitor_arguments() -> None:
    assert runc.monitor_runtime_args(["--root", "/r"]) == ["--runtime-arg=--root", "--runtime-arg=/r"]


@pytest.mark.parametrize(("number", "recursive"), [("1.8.1", True), ("1.4", True), ("1.14.3", True), ("1.3", False)])
def test_crun_can_do_things_before_it_tells_of_them(number: str, *, recursive: bool) -> None:
    version = runc.parse_version(f"crun version {number}\nspec: 1.0.0\n+SELINUX +APPARMOR +SECCOMP +EBPF".encode())
    features = runc.parse_features("r", version, b"unknown command features\n")
    assert features == HandlerFeatures(
        name="r",
        version=number,
        recursive_read_only_mounts=recursive,
        seccomp=True,
        apparmor=True,
    )
    bare = runc.parse_features("r", runc.parse_version(b"crun version 1.8.1"), b"")
    assert (bare.seccomp, bare.apparmor) == (False, False)

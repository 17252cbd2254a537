"""An OCI runtime and a monitor that need neither root nor namespaces: `oci_program.py runtime|monitor <arguments...>`.

Containers are plain processes that wait on `exec.fifo` until they are started, as runc's do; one whose program has
`missing` in its name cannot be made. Nothing of our own is imported: it has to start fast.
"""

import ctypes
import json
import os
import shutil
import signal
import socket
import sys
from pathlib import Path


def option(arguments: list[str], name: str) -> str:
    return arguments[arguments.index(name) + 1] if name in arguments else ""


def fail(arguments: list[str], message: str) -> None:
    line = json.dumps({"level": "error", "msg": message}) + "\n"
    log = option(arguments, "--log")
    if log:
        with Path(log).open("a", encoding="utf-8") as file:
            file.write(line)
    sys.stderr.write(line)
    sys.exit(1)


def take_terminal(console: str) -> None:
    """A new terminal for this process, the other side of it for whoever listens."""
    master, slave = os.openpty()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.connect(console)
        socket.send_fds(listener, [b"terminal"], [master])
    os.close(master)
    os.login_tty(slave)


def leave_running(args: list[str], pid_file: str, fifo: str = "", console: str = "") -> None:
    """A process of its own, and its number in the file. It does nothing before that is written, not even where we are
    ended meanwhile; we go on when it runs its program or waits for its start. Real runtimes do both, too."""
    written, write = os.pipe()
    ready, begin = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(write)
        if not os.read(written, 1):
            os._exit(1)
        if console:
            take_terminal(console)
        else:
            os.setsid()
        if fifo:
            gate = os.open(fifo, os.O_RDWR)
            os.close(begin)
            os.read(gate, 1)
        os.execvp(args[0], args)
    Path(pid_file).write_text(str(pid))
    os.write(write, b"\0")
    os.close(begin)
    os.read(ready, 1)


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def runtime(arguments: list[str]) -> None:
    if "--version" in arguments:
        print("runc version 0.1.0-simulated\nspec: 1.0.2")
        return
    if "features" in arguments:
        able = {"org.opencontainers.runc.checkpoint.enabled": "true"}
        print(json.dumps({"ociVersionMax": "1.0.2", "linux": {"seccomp": {"enabled": True}}, "annotations": able}))
        return
    state = Path(option(arguments, "--root"), arguments[-1])
    words = {"create", "restore", "checkpoint", "start", "delete", "state", "exec", "update", "pause", "resume"}
    command = next(argument for argument in arguments if argument in words)
    if command in {"create", "restore"}:
        create(arguments, state, waits=command == "create")
        return
    if not state.exists():
        fail(arguments, "container does not exist")
    pid = int((state / "state.json").read_text())
    fifo = state / "exec.fifo"
    if command == "start":
        if not fifo.exists():
            fail(arguments, "cannot start an already running container")
        fifo.write_bytes(b"0")
        fifo.unlink()
    elif command == "delete":
        if runs(pid) and "--force" not in arguments:
            fail(arguments, f"cannot delete container {state.name} that is not stopped: running")
        if runs(pid):
            os.kill(pid, signal.SIGKILL)
        shutil.rmtree(state)
    elif command == "state":
        print(json.dumps({"status": "running" if runs(pid) else "stopped"}))
    elif command == "exec":
        args = json.loads(Path(option(arguments, "--process")).read_text())["args"]
        if "missing" in args[0]:
            fail(arguments, f'exec failed: exec: "{args[0]}": executable file not found in $PATH')
        leave_running(args, option(arguments, "--pid-file"), console=option(arguments, "--console-socket"))
    elif command == "checkpoint":
        checkpoint(arguments, Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"))
    elif command == "update":
        (state / "update.json").write_text(sys.stdin.read())


def checkpoint(arguments: list[str], args: list[bytes]) -> None:
    """What the container runs says how it goes: one with `tcp` cannot be checkpointed, one with `slow` takes ages."""
    work = Path(option(arguments, "--work-path"))
    log = work / "dump.log"
    if b"tcp" in args:
        log.write_text("(00.1) Dumping\n(00.2) Error (criu/sk-inet.c:191): inet: Connected TCP socket\n")
        fail(arguments, "criu failed: type NOTIFY errno 0")
    if b"slow" in args:
        (work / "begun").touch()
        os.chdir(work)
        os.execvp("sleep", ["sleep", "1000"])
    log.write_text(os.environ["PATH"])
    Path(option(arguments, "--image-path"), "inventory.img").touch()


def create(arguments: list[str], state: Path, *, waits: bool) -> None:
    """One that is restored runs at once; where there are no images to restore, it says why in its log."""
    if not waits and not Path(option(arguments, "--image-path"), "inventory.img").exists():
        words = "(00.1) Error (criu/image.c:1): Can't open inventory.img\n"
        Path(option(arguments, "--work-path"), "restore.log").write_text(words)
        fail(arguments, "criu failed: type NOTIFY errno 2")
    args = json.loads(Path(option(arguments, "--bundle"), "config.json").read_text())["process"]["args"]
    if "missing" in args[0]:
        fail(arguments, f'runc create failed: exec: "{args[0]}": executable file not found in $PATH')
    state.mkdir(parents=True)
    if waits:
        os.mkfifo(state / "exec.fifo")
    leave_running(args, option(arguments, "--pid-file"), str(state / "exec.fifo") if waits else "")
    shutil.copy(option(arguments, "--pid-file"), state / "state.json")


def monitor(arguments: list[str]) -> None:
    if "--version" in arguments:
        print("conmon version 0.1.0-simulated")
        return
    sync = int(os.environ["_OCI_SYNCPIPE"])
    os.set_inheritable(sync, False)
    os.read(int(os.environ["_OCI_STARTPIPE"]), 1)
    pid = os.fork()
    if pid:
        Path(option(arguments, "--conmon-pidfile")).write_text(str(pid))
        os._exit(0)
    os.setsid()
    nothing = os.open("/dev/null", os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    keep_container(arguments, sync)


def keep_container(arguments: list[str], sync: int) -> None:
    bundle = option(arguments, "--bundle")
    pid_file = option(arguments, "--container-pidfile")
    path = option(arguments, "--runtime")
    extra = [argument.partition("=")[2] for argument in arguments if argument.startswith("--runtime-arg=")]
    images = option(arguments, "--restore")
    detached = ["--detach", "--image-path", images, "--work-path", bundle] if images else []
    command = ["restore" if images else "create", "--bundle", bundle, "--pid-file", pid_file, *detached]
    command.append(option(arguments, "--cid"))
    out, into = os.pipe()
    runtime_pid = os.fork()
    if runtime_pid == 0:
        os.dup2(into, 2)
        os.execv(path, [path, *extra, *command])
    if os.waitpid(runtime_pid, 0)[1]:
        said = os.read(out, 8191).decode()
        os.write(sync, (json.dumps({"pid": -1, "message": said}) + "\n").encode())
        os._exit(1)
    pid = int(Path(pid_file).read_text())
    os.write(sync, (json.dumps({"pid": pid}) + "\n").encode())
    os.close(sync)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    temporary = Path(bundle, "exit.new")
    temporary.write_text(str(code if code >= 0 else 128 - code))
    temporary.rename(Path(option(arguments, "--persist-dir"), "exit"))
    os._exit(0)


if __name__ == "__main__":
    {"runtime": runtime, "monitor": monitor}[sys.argv[1]](sys.argv[2:])

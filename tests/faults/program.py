"""A program that does what the real one does, but fails, hangs or prints rubbish at the call it is told to.

Stands for an OCI runtime or for conmon: `program.py <control directory> <real program> <arguments...>`, called through
a wrapper that `faulty.FaultyProgram` writes. The control directory has `plan.json`, a list of {command, call, fault},
and gets `calls`, one line for each call of a command: the number of a call is that of its lines. Nothing of our own is
imported: it has to start fast.
"""

import fcntl
import json
import os
import signal
import sys
from pathlib import Path

COMMANDS = {"create", "start", "kill", "delete", "state", "exec", "update", "pause", "resume", "features", "--version"}


def command_of(arguments: list[str]) -> str:
    """The runtime's command; `monitor` for what has none, which is how conmon is called."""
    return next((argument for argument in arguments if argument in COMMANDS), "monitor")


def count(control: str, command: str, arguments: list[str]) -> int:
    with Path(control, "calls").open("a+", encoding="utf-8") as calls:
        fcntl.flock(calls, fcntl.LOCK_EX)
        calls.write(f"{command} {json.dumps(arguments)}\n")
        calls.flush()
        calls.seek(0)
        return sum(line.startswith(f"{command} ") for line in calls)


def fault_for(control: str, command: str, number: int) -> str:
    for entry in json.loads(Path(control, "plan.json").read_text(encoding="utf-8")):
        if entry["command"] == command and entry["call"] in {0, number}:
            return str(entry["fault"])
    return ""


def say(stream: int, text: bytes) -> None:
    os.write(stream, text)


def hang() -> None:
    """Without end, whatever gentle signal comes."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while True:
        signal.pause()


def log_file(arguments: list[str]) -> int:
    if "--log" in arguments:
        return os.open(arguments[arguments.index("--log") + 1], os.O_WRONLY | os.O_APPEND)
    return 2


def commit(fault: str, real: str, arguments: list[str]) -> None:
    """`after-` faults come when the real program has done its work."""
    kind = fault
    if fault.startswith("after-"):
        kind = fault.removeprefix("after-")
        pid = os.fork()
        if pid == 0:
            os.execv(real, [real, *arguments])
        os.waitpid(pid, 0)
    if kind == "hang":
        hang()
    elif kind == "fork-and-hang":
        for _ in range(3):
            if os.fork() == 0:
                os.setsid()
        hang()
    elif kind == "rubbish":
        say(1, b"\xff\xfe{]rubbish\n\x00" * 100)
        say(2, b"\xff\xfe{]rubbish\n\x00" * 100)
        sys.exit(1)
    elif kind == "rubbish-and-success":
        say(1, b"\xff\xfe{]rubbish\n\x00" * 100)
    elif kind == "silent":
        sys.exit(1)
    elif kind == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif kind == "report-rubbish":
        say(int(os.environ["_OCI_SYNCPIPE"]), b'{"pid": "many\xff\n')
    elif kind == "report-nobody":
        say(int(os.environ["_OCI_SYNCPIPE"]), b'{"pid": 4194304}\n')
    elif kind == "report-nothing":
        say(int(os.environ["_OCI_SYNCPIPE"]), b'{"pid": -1}\n')
    else:
        message = json.dumps({"level": "error", "msg": kind}).encode() + b"\n"
        say(log_file(arguments), message)
        sys.exit(1)


def main() -> None:
    control, real, *arguments = sys.argv[1:]
    command = command_of(arguments)
    fault = fault_for(control, command, count(control, command, arguments))
    if fault:
        commit(fault, real, arguments)
    else:
        os.execv(real, [real, *arguments])


if __name__ == "__main__":
    main()

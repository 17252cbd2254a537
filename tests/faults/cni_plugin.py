"""A CNI plugin that behaves, until its control file says otherwise.

`install` puts it into a plugin directory under any name; `FaultyPlugin` tells it what to do on which call and what it
was told. It keeps a file for each container that it has added, as a real one keeps an address: what is left there
after a DEL is a leak. Run as a program it uses the standard library only.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

VERSIONS = ["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"]


class FaultyPlugin:
    """The test's side of one installed plugin."""

    def __init__(self, bin_dir: Path, name: str) -> None:
        self.path = bin_dir / name
        self.folder = bin_dir / f".{name}"

    def tell(self, *rules: dict[str, Any]) -> None:
        """Replaces the rules: {"command": "ADD", "do": "fail", "call": 2, ...}; without "call", on every call."""
        part = self.folder / "control.part"
        part.write_text(json.dumps(rules))
        part.rename(self.folder / "control.json")

    def calls(self, command: str = "") -> list[dict[str, Any]]:
        """What it was started with: {"command", "env", "stdin"}, in order; all but VERSION, or those of one command."""
        log = self.folder / "calls.jsonl"
        calls = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        return [call for call in calls if call["command"] == command or (not command and call["command"] != "VERSION")]

    def held(self) -> set[str]:
        """Ids of the containers that it was asked to add and not, or not successfully, to delete."""
        return {path.name for path in (self.folder / "held").iterdir()}

    def pids(self) -> list[int]:
        """Of the processes that hung here: the plugin and its child."""
        return [int(path.name) for path in (self.folder / "pids").iterdir()]


def install(bin_dir: Path, name: str) -> FaultyPlugin:
    plugin = FaultyPlugin(bin_dir, name)
    for folder in (plugin.folder / "held", plugin.folder / "pids"):
        folder.mkdir(parents=True)
    plugin.tell()
    main = f"runpy.run_path({__file__!r})['main']"
    plugin.path.write_text(f"#!{sys.executable} -IS\nimport runpy\n{main}(__file__)\n")
    plugin.path.chmod(0o755)
    return plugin


def _count(folder: Path, entry: dict[str, Any]) -> int:
    """Logs this call and gives its number among the calls of its command."""
    with (folder / "calls.jsonl").open("a+") as log:
        fcntl.flock(log, fcntl.LOCK_EX)
        log.write(json.dumps(entry) + "\n")
        log.flush()
        log.seek(0)
        return sum(json.loads(line)["command"] == entry["command"] for line in log)


def _address(container_id: str) -> str:
    number = sum(container_id.encode()) % 250 + 2
    return f"192.0.2.{number}/24"


def _answer(config: dict[str, Any]) -> dict[str, Any]:
    if "prevResult" in config:
        return dict(config["prevResult"])
    return {
        "cniVersion": config["cniVersion"],
        "interfaces": [{"name": "host0"}, {"name": "eth0", "sandbox": os.environ["CNI_NETNS"]}],
        "ips": [{"address": _address(os.environ["CNI_CONTAINERID"]), "interface": 1}],
    }


def _hang(folder: Path) -> None:
    with subprocess.Popen(["/bin/sleep", "1000"]) as child:
        for pid in (child.pid, os.getpid()):
            (folder / "pids" / str(pid)).touch()
        while True:
            time.sleep(1000)


def _misbehave(rule: dict[str, Any], folder: Path) -> None:
    """Returns where the plugin is to go on as if nothing were."""
    match rule["do"]:
        case "fail":
            error = {"code": rule.get("code", 100), "msg": rule.get("msg", "told to fail"), "details": "by its test"}
            print(json.dumps(error))
            sys.exit(1)
        case "crash":
            print("last words", file=sys.stderr)
            sys.exit(3)
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "hang":
            _hang(folder)
        case "hang-on":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            _hang(folder)
        case "print":
            sys.stdout.write(rule["text"])
            sys.exit(rule.get("exit", 0))
        case "flood":
            for _ in range(100):
                sys.stdout.write("x" * 1024 * 1024)
            sys.exit(rule.get("exit", 0))
        case "wait":
            # Until the test makes the file: to be in the middle of a call without guessing how long it takes.
            (folder / "waiting").touch()
            while not Path(rule["for"]).exists():
                time.sleep(0.01)


def main(path: str) -> None:
    me = Path(path)
    folder = me.parent / f".{me.name}"
    command = os.environ["CNI_COMMAND"]
    text = sys.stdin.read()
    number = _count(folder, {"command": command, "env": dict(os.environ), "stdin": text})
    container_id = os.environ.get("CNI_CONTAINERID", "")
    if command == "ADD":
        (folder / "held" / container_id).touch()
    for rule in json.loads((folder / "control.json").read_text()):
        if rule["command"] == command and rule.get("call", number) == number:
            _misbehave(rule, folder)
    if command == "ADD":
        print(json.dumps(_answer(json.loads(text)), indent=4))
    elif command == "DEL":
        (folder / "held" / container_id).unlink(missing_ok=True)
    elif command == "VERSION":
        print(json.dumps({"cniVersion": "1.1.0", "supportedVersions": VERSIONS}))

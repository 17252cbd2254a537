"""Make a small image, serve it, and run one pod of it from end to end, beside whatever else runs on this machine.

Exit status: 0 all went well and nothing is left, 1 a step failed or something is left, 2 it cannot run here.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import grpc

from demo import story
from demo.screen import WIDTH, heading, note, put, size, spent, step
from tests import images
from tests.cri_client import Cri, connect
from tests.stand.cgroups import hierarchies
from tests.stand.daemon import StandDaemon, stand_daemon
from tests.stand.disk import memory_disk
from tests.stand.ending import ended_by_signals, leave, uninterrupted
from tests.stand.mark import Mark, make_mark
from tests.stand.network import stand_network
from tests.stand.registry import registry


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="demo/run", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--hold", action="store_true", help="keep the pod until Enter is pressed")
    parser.add_argument("--socket", metavar="unix:///SOCKET", help="show it on another CRI engine, which runs already")
    return parser.parse_args()


def machine() -> str:
    release = Path("/etc/os-release").read_text(encoding="utf-8") if Path("/etc/os-release").exists() else ""
    names = [line.partition("=")[2].strip('"') for line in release.splitlines() if line.startswith("PRETTY_NAME=")]
    version = "v2" if all(each.kind == "cgroup2" for each in hierarchies()) else "v1"
    return f"{(names or ['unknown'])[0]}, Linux {platform.release()}, {platform.machine()}, cgroup {version}"


def serve_image(mark: Mark, stack: ExitStack) -> str:
    with step("image") as shown:
        page = images.tar_layer([images.Dir("www"), images.File("www/index.html", story.PAGE)])
        layers = [images.busybox_layer(), page]
        image = images.make_image(layers, config={"Cmd": ["sh"]})
        shown.tell(f"made of busybox: 2 layers, {size(sum(len(layer.blob) for layer in layers))}")
    with step("registry") as shown:
        host = stack.enter_context(registry(mark.root / "registry"))
        images.push(host, "demo/busybox", "1", image)
        shown.tell(f"docker-registry on {host} serves it")
    return f"{host}/demo/busybox:1"


def start_daemon(mark: Mark, stack: ExitStack, host: str) -> StandDaemon:
    run = stack.enter_context(memory_disk(mark))
    network = stack.enter_context(stand_network(mark, mark.root / "cni"))
    with step("daemon") as shown:
        daemon = stack.enter_context(stand_daemon(mark, mark.root / "graph", run, network, insecure_registries=[host]))
        shown.tell(f"{daemon.address}")
        shown.tell(f"pods get addresses of {network.subnet} on bridge {network.bridge}")
    return daemon


def crash(cri: Cri, pod: story.Pod, daemon: StandDaemon) -> None:
    with step("crash") as shown:
        with uninterrupted():  # cleaning up needs a daemon
            daemon.kill()
            daemon.start()
        shown.tell("daemon killed (SIGKILL) and started again")
        shown.tell(f"container: {story.state_of(cri, pod)}, process {pod.process}")
        story.expect(story.first_process(cri, pod) == pod.process, "the container's process is another one")


def show(options: argparse.Namespace, mark: Mark, stack: ExitStack) -> StandDaemon | None:
    heading("isulad-py: one pod, from end to end, on real parts")
    note(machine(), "machine")
    note(f"{mark.root}", "root")
    image = serve_image(mark, stack)
    daemon = None if options.socket else start_daemon(mark, stack, image.partition("/")[0])
    address = daemon.address if daemon else options.socket
    cri = stack.enter_context(connect(address))
    try:
        tell_pod(options, mark, cri, image=image, daemon=daemon)
    except (grpc.RpcError, story.WrongAnswer, OSError):
        if daemon:
            note(f"The daemon's last words: {daemon.last_words(5)}")
        raise
    return daemon


def tell_pod(options: argparse.Namespace, mark: Mark, cri: Cri, *, image: str, daemon: StandDaemon | None) -> None:
    version = cri.runtime.Version(cri.m.VersionRequest(), timeout=story.SECONDS)
    note(f"{version.runtime_name} {version.runtime_version}, CRI {version.runtime_api_version}", "engine")
    with story.pulled(cri, image):
        pod = story.plan_pod(cri, mark)
        heading("up")
        with story.running(cri, pod, image):
            heading("at work")
            story.fetch_page(pod)
            story.execute(cri, pod, "hostname")
            story.execute(cri, pod, "ip", "-4", "route")
            story.show_log(pod, until="response:200")
            story.show_stats(cri, pod)
            if daemon:
                crash(cri, pod, daemon)
                story.fetch_page(pod)
                story.show_log(pod, until="response:200", times=2, last=1)
            if options.hold:
                story.wait_for_enter(daemon.address if daemon else options.socket)
            heading("down")


def describe(error: BaseException) -> str:
    if isinstance(error, grpc.RpcError) and isinstance(error, grpc.Call):
        return f"{error.code().name}: {error.details()}"
    return f"{type(error).__name__}: {error}"


def main() -> int:
    options = parse()
    if os.geteuid() != 0:
        print("demo: needs root, because it makes namespaces, mounts and a network", file=sys.stderr)
        return 2
    began = time.perf_counter()
    mark = make_mark("id")
    status = 0
    try:
        with ended_by_signals(), ExitStack() as stack:
            show(options, mark, stack)
    except KeyboardInterrupt as interrupt:
        note(f"ended by {interrupt}")
        status = 130
    except (grpc.RpcError, story.WrongAnswer, OSError) as error:
        note(describe(error), "FAILED")
        status = 1
    finally:
        with step("look back") as shown:
            clean = leave(mark, note)
            shown.tell("nothing of ours is left:" if clean else "something was left behind")
            if clean:
                shown.tell("no mount, namespace, process, network link, cgroup, packet filter rule, folder")
    put("-" * WIDTH)
    verdict = {0: "all went well", 130: "interrupted, and cleaned up"}.get(status if clean else 1, "it did not go well")
    put(f"{verdict}, {spent(began)} in all")
    return status or (0 if clean else 1)


if __name__ == "__main__":
    sys.exit(main())

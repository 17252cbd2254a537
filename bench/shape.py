"""What a bench pod is: the same for every engine and for the floors, and close to what a kubelet asks for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

MASKED = ("/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list", "/proc/timer_stats",
          "/proc/sched_debug", "/proc/scsi", "/sys/firmware")  # fmt: skip
READONLY = ("/proc/asound", "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")
COMMAND = ("/bin/sh", "-c", "echo ready; exec sleep 3600")
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "KUBERNETES_PORT": "tcp://10.96.0.1:443",
}
CPU_SHARES = 102
MEMORY_BYTES = 128 * 1024 * 1024
OOM_SCORE_ADJ = 999
CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FSETID", "FOWNER", "MKNOD", "NET_RAW", "SETGID", "SETUID", "SETFCAP",
                "SETPCAP", "NET_BIND_SERVICE", "SYS_CHROOT", "KILL", "AUDIT_WRITE")  # fmt: skip


def make_mounts(folder: Path) -> list[tuple[str, Path]]:
    """The two files a kubelet always mounts: container path and host path."""
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    for target, name in (("/etc/hosts", "hosts"), ("/dev/termination-log", "termination-log")):
        path = folder / name
        path.write_text("127.0.0.1 localhost\n" if name == "hosts" else "", encoding="ascii")
        found.append((target, path))
    return found


def oci_spec(*, rootfs: Path, hostname: str, cgroup: str, namespaces: dict[str, Path], binds: list[tuple[str, Path]],
             seccomp: dict[str, Any] | None) -> dict[str, Any]:  # fmt: skip
    """The runtime spec that an engine would make for the bench container, written out by hand for the floor."""
    capabilities = [f"CAP_{name}" for name in CAPABILITIES]
    mounts: list[dict[str, Any]] = [
        _mount("/proc", "proc", "nosuid", "noexec", "nodev"),
        _mount("/dev", "tmpfs", "nosuid", "strictatime", "mode=755", "size=65536k"),
        _mount("/dev/pts", "devpts", "nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"),
        _mount("/dev/mqueue", "mqueue", "nosuid", "noexec", "nodev"),
        _mount("/dev/shm", "tmpfs", "nosuid", "noexec", "nodev", "mode=1777", "size=65536k"),
        _mount("/sys", "sysfs", "nosuid", "noexec", "nodev", "ro"),
        _mount("/sys/fs/cgroup", "cgroup", "nosuid", "noexec", "nodev", "relatime", "ro"),
        *(
            {"destination": to, "type": "bind", "source": str(path), "options": ["rbind", "rprivate", "rw"]}
            for to, path in binds
        ),
    ]
    linux: dict[str, Any] = {
        "cgroupsPath": cgroup,
        "namespaces": [
            {"type": "pid"},
            {"type": "mount"},
            *({"type": kind, "path": str(path)} for kind, path in namespaces.items()),
        ],
        "maskedPaths": list(MASKED),
        "readonlyPaths": list(READONLY),
        "resources": {
            "devices": [{"allow": False, "access": "rwm"}],
            "cpu": {"shares": CPU_SHARES},
            "memory": {"limit": MEMORY_BYTES},
        },
    }
    if seccomp:
        linux["seccomp"] = seccomp
    return {
        "ociVersion": "1.0.2",
        "process": {
            "user": {"uid": 0, "gid": 0},
            "args": list(COMMAND),
            "env": [f"{name}={value}" for name, value in ENVIRONMENT.items()],
            "cwd": "/",
            "capabilities": dict.fromkeys(("bounding", "effective", "permitted"), capabilities),
            "oomScoreAdj": OOM_SCORE_ADJ,
            "noNewPrivileges": False,
        },
        "root": {"path": str(rootfs)},
        "mounts": mounts,
        "linux": linux,
        "annotations": {"hostname": hostname},
    }


def _mount(target: str, kind: str, *options: str) -> dict[str, Any]:
    return {"destination": target, "type": kind, "source": kind, "options": list(options)}


def pod_config(
    m: Any, *, name: str, uid: str, label: tuple[str, str], cgroup: str, logs: Path, seccomp_default: bool
) -> Any:
    """PodSandboxConfig as a kubelet fills it: PID namespace for each container, DNS, labels, the pod's own cgroup."""
    profile = m.SecurityProfile(profile_type=0 if seccomp_default else 1)
    return m.PodSandboxConfig(
        metadata=m.PodSandboxMetadata(name=name, uid=uid, namespace="bench"),
        hostname=name,
        log_directory=str(logs),
        dns_config=m.DNSConfig(servers=["10.96.0.10"], searches=["bench.svc.cluster.local"], options=["ndots:5"]),
        labels={
            "io.kubernetes.pod.name": name,
            "io.kubernetes.pod.namespace": "bench",
            "io.kubernetes.pod.uid": uid,
            label[0]: label[1],
        },
        annotations={"kubernetes.io/config.source": "api"},
        linux=m.LinuxPodSandboxConfig(
            cgroup_parent=cgroup,
            security_context=m.LinuxSandboxSecurityContext(
                namespace_options=m.NamespaceOption(network=0, pid=1, ipc=0), seccomp=profile
            ),
        ),
    )


def container_config(m: Any, *, name: str, image: str, label: tuple[str, str], mounts: list[tuple[str, Path]],
                     seccomp_default: bool) -> Any:  # fmt: skip
    """ContainerConfig as a kubelet fills it for one small burstable container."""
    return m.ContainerConfig(
        metadata=m.ContainerMetadata(name=name),
        image=m.ImageSpec(image=image),
        command=list(COMMAND),
        envs=[m.KeyValue(key=key, value=value.encode()) for key, value in ENVIRONMENT.items()],
        mounts=[m.Mount(container_path=to, host_path=str(path)) for to, path in mounts],
        labels={"io.kubernetes.container.name": name, label[0]: label[1]},
        annotations={
            "io.kubernetes.container.restartCount": "0",
            "io.kubernetes.container.terminationMessagePolicy": "File",
        },
        log_path=f"{name}.log",
        linux=m.LinuxContainerConfig(
            resources=m.LinuxContainerResources(
                cpu_shares=CPU_SHARES, memory_limit_in_bytes=MEMORY_BYTES, oom_score_adj=OOM_SCORE_ADJ
            ),
            security_context=m.LinuxContainerSecurityContext(
                namespace_options=m.NamespaceOption(network=0, pid=1, ipc=0),
                masked_paths=list(MASKED),
                readonly_paths=list(READONLY),
                seccomp=m.SecurityProfile(profile_type=0 if seccomp_default else 1),
            ),
        ),
    )

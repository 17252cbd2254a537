"""The OCI `process`: command, environment, working directory, user, limits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from isulad_py.model.container import Identity
from isulad_py.model.errors import InvalidInput
from isulad_py.model.facts import HostFacts
from isulad_py.model.image import ImageConfig
from isulad_py.spec import checks
from isulad_py.spec.inputs import Ulimit
from isulad_py.spec.schema import Rlimit, User

PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
TERM: Final = "xterm"
OOM_SCORE_MIN: Final = -1000
OOM_SCORE_MAX: Final = 1000
UNLIMITED: Final = 2**64 - 1

_RLIMITS: Final = """
AS CORE CPU DATA FSIZE LOCKS MEMLOCK MSGQUEUE NICE NOFILE NPROC RSS RTPRIO RTTIME SIGPENDING STACK
"""
RLIMITS: Final = frozenset(_RLIMITS.split())
"""setrlimit(2)."""


def arguments(command: Sequence[str], args: Sequence[str], image: ImageConfig) -> tuple[str, ...]:
    """CRI ContainerConfig.command and .args over the image's: a command replaces entrypoint and cmd both, args replace
    cmd only (as Kubernetes documents it for `command` and `args` of a container)."""
    if command:
        result = (*command, *args)
    elif args:
        result = (*image.entrypoint, *args)
    else:
        result = (*image.entrypoint, *image.cmd)
    if not result or not result[0]:
        raise InvalidInput("config.command: neither the request nor the image says what to run")
    for index, value in enumerate(result):
        checks.text(value, f"config.command[{index}]")
    return result


def environment(
    envs: Sequence[tuple[str, str]],
    image_env: Iterable[str],
    *,
    hostname: str = "",
    home: str = "",
    tty: bool = False,
) -> tuple[str, ...]:
    """Later ones win, at the place of the first: defaults, the image's, the request's."""
    merged: dict[str, str] = {"PATH": PATH}
    if hostname:
        merged["HOSTNAME"] = hostname
    if tty:
        merged["TERM"] = TERM
    if home:
        merged["HOME"] = home
    for entry in image_env:
        key, _, value = checks.text(entry, "image config: env").partition("=")
        if key:
            merged[key] = value
    for index, (key, value) in enumerate(envs):
        if not key or "=" in key:
            raise InvalidInput(f"config.envs[{index}].key: must not be empty or contain '=': {key!r}")
        merged[checks.text(key, f"config.envs[{index}].key")] = checks.text(value, f"config.envs[{index}].value")
    return tuple(f"{key}={value}" for key, value in merged.items())


def working_dir(requested: str, image_dir: str) -> str:
    """An image may say a relative one, which docker and containerd take from the root."""
    if requested:
        return checks.inner_path(requested, "config.working_dir")
    return checks.inner_path("/" + image_dir, "image config: working dir")


def user(identity: Identity, umask: int | None) -> User:
    for name, value in (("run_as_user", identity.uid), ("run_as_group", identity.gid)):
        _check_id(value, f"config.linux.security_context.{name}")
    for group in identity.supplemental_groups:
        _check_id(group, "config.linux.security_context.supplemental_groups")
    return User(uid=identity.uid, gid=identity.gid, additional_gids=identity.supplemental_groups, umask=umask)


def _check_id(value: int, field: str) -> None:
    if not 0 <= value < 2**32 - 1:  # the last one means "no change" to setuid(2)
        raise InvalidInput(f"{field}: {value} is no user or group id")


def oom_score_adj(requested: int, host: HostFacts) -> int:
    """Always written, so that no container inherits the daemon's own. Without CAP_SYS_RESOURCE nothing lower than that
    can be set, and a runtime would refuse the container."""
    if not OOM_SCORE_MIN <= requested <= OOM_SCORE_MAX:
        raise InvalidInput(f"linux.resources.oom_score_adj: {requested} is not within -1000 to 1000")
    return requested if host.can_lower_oom_score else max(requested, host.oom_score_adj)


def rlimits(ulimits: Iterable[Ulimit]) -> tuple[Rlimit, ...]:
    """In the order of their names; a later one of the same name wins."""
    found: Mapping[str, Rlimit] = {limit.type: limit for limit in map(_rlimit, ulimits)}
    return tuple(found[name] for name in sorted(found))


def _rlimit(ulimit: Ulimit) -> Rlimit:
    name = ulimit.name.upper().removeprefix("RLIMIT_")
    if name not in RLIMITS:
        raise InvalidInput(f"ulimit {ulimit.name}: no such limit")
    hard, soft = (
        UNLIMITED if value == -1 else checks.not_negative(value, f"ulimit {ulimit.name}")
        for value in (ulimit.hard, ulimit.soft)
    )
    if soft > hard:
        raise InvalidInput(f"ulimit {ulimit.name}: soft {ulimit.soft} is above hard {ulimit.hard}")
    return Rlimit(type=f"RLIMIT_{name}", hard=hard, soft=soft)

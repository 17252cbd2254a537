"""Signals: CRI's numbers, the kernel's numbers, and the names that images use."""

from __future__ import annotations

from typing import Final

from isulad_py.model.errors import InvalidInput

SIGTERM: Final = 15
RTMIN: Final = 34
"""The C library keeps 32 and 33 for itself (signal(7))."""
RTMAX: Final = 64

KERNEL_NUMBERS: Final[dict[str, int]] = {
    "ABRT": 6,
    "ALRM": 14,
    "BUS": 7,
    "CHLD": 17,
    "CLD": 17,
    "CONT": 18,
    "FPE": 8,
    "HUP": 1,
    "ILL": 4,
    "INT": 2,
    "IO": 29,
    "IOT": 6,
    "KILL": 9,
    "PIPE": 13,
    "POLL": 29,
    "PROF": 27,
    "PWR": 30,
    "QUIT": 3,
    "SEGV": 11,
    "STKFLT": 16,
    "STOP": 19,
    "SYS": 31,
    "TERM": SIGTERM,
    "TRAP": 5,
    "TSTP": 20,
    "TTIN": 21,
    "TTOU": 22,
    "URG": 23,
    "USR1": 10,
    "USR2": 12,
    "VTALRM": 26,
    "WINCH": 28,
    "XCPU": 24,
    "XFSZ": 25,
}
"""Without SIG, in the order of CRI's Signal enumeration, which begins with ABRT at 1; x86, ARM and RISC-V agree."""

_CRI_ORDER: Final[tuple[int, ...]] = (0, *KERNEL_NUMBERS.values(), *range(RTMIN, RTMAX + 1))
"""Kernel number by CRI number: after the named ones come SIGRTMIN to SIGRTMIN+15, then SIGRTMAX-14 to SIGRTMAX."""
_TO_CRI: Final[dict[int, int]] = {kernel: number for number, kernel in reversed(list(enumerate(_CRI_ORDER)))}
"""Of two names for one signal (CHLD and CLD, ABRT and IOT, IO and POLL) the first counts."""


def kernel_number(cri_number: int) -> int:
    """The kernel's number for one of CRI's; 0 stays 0, which is "not given". Raises InvalidInput for an unknown one."""
    if not 0 <= cri_number < len(_CRI_ORDER):
        raise InvalidInput(f"stop_signal: {cri_number} is not a value of Signal")
    return _CRI_ORDER[cri_number]


def cri_number(kernel: int) -> int:
    """CRI's number for one of the kernel's; 0 where CRI has none."""
    return _TO_CRI.get(kernel, 0)


def parse_signal(text: str) -> int:
    """The kernel's number for a name or number as images give them: `SIGTERM`, `term`, `15`, `SIGRTMIN+3`, `RTMAX-1`.

    Raises InvalidInput for anything else.
    """
    name = text.strip().upper().removeprefix("SIG")
    number = KERNEL_NUMBERS.get(name) or _real_time(name)
    if not number and name.isascii() and name.isdigit() and len(name) <= 2:
        number = int(name)
    if not 1 <= number <= RTMAX:
        raise InvalidInput(f"stop signal {text[:40]!r} is not a signal")
    return number


def _real_time(name: str) -> int:
    """RTMIN, RTMIN+n, RTMAX, RTMAX-n; 0 for anything else."""
    base, sign, offset = name[:5], name[5:6], name[6:]
    if base not in {"RTMIN", "RTMAX"}:
        return 0
    start = RTMIN if base == "RTMIN" else RTMAX
    if not sign:
        return start
    if sign != ("+" if base == "RTMIN" else "-") or not (offset.isascii() and offset.isdigit() and len(offset) <= 2):
        return 0
    number = start + int(sign + offset)
    return number if RTMIN <= number <= RTMAX else 0


def stop_signal_number(requested: int, image_signal: str) -> int:
    """The kernel's number of a container's stop signal: what CRI requested, or else the image's, or else SIGTERM.

    An image's signal that nobody can read does not keep its containers from running: it counts as not given.
    """
    if requested:
        return kernel_number(requested)
    if not image_signal:
        return SIGTERM
    try:
        return parse_signal(image_signal)
    except InvalidInput:
        return SIGTERM

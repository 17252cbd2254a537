"""Interface counters of a namespace, from the kernel's table (proc(5), /proc/net/dev)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from isulad_py.model.errors import HostFailure
from isulad_py.model.stats import LOOPBACK, InterfaceSample
from isulad_py.network.request import IFNAME

_TABLE: Final = Path("/proc/thread-self/net/dev")
"""Of the calling thread's namespace; /proc/net would be that of the process."""
_RECEIVE: Final = 0
_TRANSMIT: Final = 8


def read_table() -> str:
    """To be called inside the namespace."""
    return _TABLE.read_text()


def parse(table: str) -> tuple[InterfaceSample, ...]:
    """Every interface, the one that was asked of the plugins first and loopback last: the kernel lists what its modules
    make in each namespace (tunl0) before. Raises HostFailure where the kernel's table is not the one we know."""
    found = [_sample(line) for line in table.splitlines()[2:]]
    return tuple(sorted(found, key=lambda sample: (sample.name != IFNAME, sample.name == LOOPBACK)))


def _sample(line: str) -> InterfaceSample:
    name, _, rest = line.partition(":")
    try:
        values = [int(value) for value in rest.split()]
        return InterfaceSample(
            name=name.strip(),
            rx_bytes=values[_RECEIVE],
            rx_packets=values[_RECEIVE + 1],
            rx_errors=values[_RECEIVE + 2],
            rx_dropped=values[_RECEIVE + 3],
            tx_bytes=values[_TRANSMIT],
            tx_packets=values[_TRANSMIT + 1],
            tx_errors=values[_TRANSMIT + 2],
            tx_dropped=values[_TRANSMIT + 3],
        )
    except (ValueError, IndexError) as error:
        raise HostFailure(f"interface counters: not understood: {line[:120]!r}") from error

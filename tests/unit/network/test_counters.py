from __future__ import annotations

import pytest

from isulad_py.host.namespaces import call_in_netns
from isulad_py.model.errors import HostFailure
from isulad_py.model.stats import InterfaceSample
from isulad_py.network import counters

HEAD = """Inter-|   Receive                                 |  Transmit
 face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo colls carrier compressed
"""


def test_every_interface() -> None:
    table = HEAD + (
        "    lo: 99 9 0 0 0 0 0 0 99 9 0 0 0 0 0 0\n"
        "  eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"
        "eth0.12:18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
    )
    assert counters.parse(table) == (
        InterfaceSample(
            name="eth0",
            rx_bytes=1,
            rx_packets=2,
            rx_errors=3,
            rx_dropped=4,
            tx_bytes=9,
            tx_packets=10,
            tx_errors=11,
            tx_dropped=12,
        ),
        InterfaceSample(name="eth0.12", rx_bytes=2**64 - 1),
        InterfaceSample(name="lo", rx_bytes=99, rx_packets=9, tx_bytes=99, tx_packets=9),
    )


def test_the_pods_own_interface_comes_first_and_loopback_last() -> None:
    names = ("tunl0", "lo", "net1", "eth0", "sit0")
    found = counters.parse(HEAD + "".join(f"{name}: {'1 ' * 16}\n" for name in names))
    assert [sample.name for sample in found] == ["eth0", "tunl0", "net1", "sit0", "lo"]


@pytest.mark.parametrize("line", ["eth0: x", "eth0: 1 2 3", "eth0"])
def test_another_table_is_an_error(line: str) -> None:
    with pytest.raises(HostFailure, match="interface counters"):
        counters.parse(HEAD + line)


def test_the_table_of_this_machine_is_understood() -> None:
    counters.parse(call_in_netns("", counters.read_table))

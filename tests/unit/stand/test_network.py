from __future__ import annotations

import ipaddress

import pytest

from tests.stand import network


def test_a_free_subnet_is_one_that_no_route_leads_to(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = ipaddress.ip_network("10.128.0.0/10")
    monkeypatch.setattr(network, "routed_networks", lambda: [taken])
    assert not any(taken.overlaps(ipaddress.ip_network(network.free_subnet())) for _ in range(20))


def test_where_everything_is_taken_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "routed_networks", lambda: [ipaddress.ip_network("10.0.0.0/8")])
    with pytest.raises(OSError, match="no free subnet"):
        network.free_subnet()

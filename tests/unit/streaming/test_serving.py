"""Which of the protocols serves what; the sessions themselves are tried beside their modules."""

from __future__ import annotations

import json

import pytest

from isulad_py.streaming.upgrade import Refused
from tests import spdy_client
from tests.spdy_client import UpgradeFailed
from tests.unit.streaming.stand import OUTPUT, Stand
from tests.websocket_client import channels, connected


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_spdy_by_either_method(stand: Stand, method: str) -> None:
    client = await spdy_client.connect(stand.exec_url("true", wishes=OUTPUT), "v4.channel.k8s.io", method=method)
    stand.clients.append(client)
    error, *_ = await client.opened("error", "stdout", "stderr")
    assert json.loads(await error.read_all())["status"] == "Success"


async def test_a_tunnel_is_for_port_forward_alone(stand: Stand) -> None:
    with pytest.raises(Exception, match="400"):
        async with connected(stand.exec_url("true"), "SPDY/3.1+v4.channel.k8s.io"):
            pass


async def test_port_forward_is_no_command(stand: Stand) -> None:
    with pytest.raises(UpgradeFailed) as caught:
        await stand.spdy(stand.exec_url("true"), "portforward.k8s.io")
    assert caught.value.status == Refused(403, "").status


async def test_the_same_command_over_both(stand: Stand) -> None:
    client = await stand.spdy(stand.exec_url("echo", "x", wishes=OUTPUT))
    _, stdout, _ = await client.opened("error", "stdout", "stderr")
    assert await stdout.read_all() == b"x\n"
    async with channels(stand.exec_url("echo", "x", wishes=OUTPUT)) as channel_client:
        assert (await channel_client.read_all())[1] == b"x\n"

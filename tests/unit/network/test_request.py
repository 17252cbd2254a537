from __future__ import annotations

import json

from isulad_py.network import conflist, request
from isulad_py.network.request import Parameters

CONFIG = conflist.parse(
    b"""{"cniVersion": "1.1.0", "name": "net", "plugins": [
      {"type": "bridge", "odd": 1e999, "name": "other", "cniVersion": "0.3.1", "prevResult": {"ips": []},
       "cni.dev/valid-attachments": [], "capabilities": {"portMappings": true, "dns": false, "unknown": true}}]}"""
)
(PLUGIN,) = CONFIG.plugins
PARAMETERS = Parameters(
    container_id="abc", netns="/ns", args="A=1", capability_args={"portMappings": [1], "dns": {"servers": []}}
)


def test_the_first_add() -> None:
    call = request.attachment_call(CONFIG, PLUGIN, "ADD", PARAMETERS, "")
    assert b'"odd":1e999' in call.config
    assert json.loads(call.config) == {
        "type": "bridge",
        "odd": float("inf"),
        "name": "net",
        "cniVersion": "1.1.0",
        "runtimeConfig": {"portMappings": [1]},
    }
    assert (call.plugin, call.command, call.container_id, call.netns, call.ifname, call.args) == (
        "bridge",
        "ADD",
        "abc",
        "/ns",
        "eth0",
        "A=1",
    )


def test_the_previous_result_is_handed_on() -> None:
    call = request.attachment_call(CONFIG, PLUGIN, "DEL", PARAMETERS, '{"ips":[{"address":"10.0.0.2/24"}]}')
    assert json.loads(call.config)["prevResult"] == {"ips": [{"address": "10.0.0.2/24"}]}


def test_what_an_administrator_reserved_is_passed_where_we_have_nothing() -> None:
    config = conflist.parse(b'{"cniVersion":"1.0.0","name":"n","type":"x","runtimeConfig":{"a":1},"args":{"b":2}}')
    parameters = Parameters(container_id="abc", netns="/ns", args="", capability_args={"dns": 1})
    call = request.attachment_call(config, config.plugins[0], "ADD", parameters, "")
    assert json.loads(call.config)["runtimeConfig"] == {"a": 1}
    assert json.loads(call.config)["args"] == {"b": 2}


def test_gc_names_the_valid_attachments() -> None:
    call = request.gc_call(CONFIG, PLUGIN, {"b", "a"})
    valid = [{"containerID": "a", "ifname": "eth0"}, {"containerID": "b", "ifname": "eth0"}]
    config = json.loads(call.config)
    assert config["cni.dev/valid-attachments"] == config["cni.dev/attachments"] == valid
    assert (call.command, call.container_id) == ("GC", "")


def test_status_and_version() -> None:
    call = request.status_call(CONFIG, PLUGIN)
    assert call.command == "STATUS"
    assert "runtimeConfig" not in json.loads(call.config)
    assert json.loads(request.version_call("bridge", "1.0.0").config) == {"cniVersion": "1.0.0"}

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from isulad_py.model.network import NetworkStatus
from isulad_py.network.invoke import ExecInvoker
from isulad_py.network.watch import NOT_READY, ConfigWatch, _targets
from tests.faults.cni_plugin import FaultyPlugin, install


class Place:
    """A configuration directory and a plugin directory, and who watches them."""

    def __init__(self, root: Path) -> None:
        self.conf = root / "etc" / "cni" / "net.d"
        self.bin = root / "bin"
        self.bin.mkdir()
        self._changed = asyncio.Event()
        self.statuses: list[NetworkStatus] = []
        self.watch = ConfigWatch(
            conf_dir=str(self.conf),
            plugins=ExecInvoker(bin_dirs=(str(self.bin),), timeout_seconds=60),
            on_change=self._on_change,
        )

    def _on_change(self, status: NetworkStatus) -> None:
        self.statuses.append(status)
        self._changed.set()

    def plugin(self, name: str = "faulty") -> FaultyPlugin:
        return install(self.bin, name)

    def put(self, file: str = "10.conflist", **keys: Any) -> None:
        self.conf.mkdir(parents=True, exist_ok=True)
        known = {"cniVersion": "1.0.0", "name": "net", "plugins": [{"type": "faulty"}]}
        (self.conf / f".{file}").write_text(json.dumps({**known, **keys}))
        (self.conf / f".{file}").rename(self.conf / file)

    async def reload(self) -> NetworkStatus:
        await self.watch.reload()
        return self.watch.status

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        task = asyncio.ensure_future(self.watch.run())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def until(self, words: str = "", *, name: str = "net") -> None:
        """The status says `words`, or is ready with the network `name` where they are empty."""
        async with asyncio.timeout(60):
            while not self._as_wanted(words, name):
                self._changed.clear()
                await self._changed.wait()

    def _as_wanted(self, words: str, name: str) -> bool:
        status = self.watch.status
        return words in status.message if words else status.ready and status.config_name == name


@pytest.fixture
async def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def test_not_ready_before_the_first_look(place: Place) -> None:
    status = place.watch.status
    assert (status.ready, status.reason) == (False, NOT_READY)
    assert "not been read" in status.message


async def test_no_directory(place: Place) -> None:
    status = await place.reload()
    assert not status.ready
    assert status.message == f"no valid network configuration in {place.conf}"


async def test_ready(place: Place) -> None:
    place.plugin()
    place.put()
    assert await place.reload() == NetworkStatus(
        ready=True,
        config_name="net",
        config_path=str(place.conf / "10.conflist"),
        cni_version="1.0.0",
        plugins=("faulty",),
    )


async def test_an_invalid_file_is_the_reason(place: Place) -> None:
    place.put(plugins=[{"type": "a/b"}])
    status = await place.reload()
    assert (status.ready, status.reason) == (False, NOT_READY)
    assert "10.conflist: plugins[0].type: 'a/b' is not a file name" in status.message
    assert place.watch.config is None


async def test_invalid_files_are_told_also_while_ready(place: Place) -> None:
    place.plugin()
    place.put("05.conflist", plugins=[])
    place.put()
    status = await place.reload()
    assert (status.ready, status.message) == (True, "")
    assert status.findings == ("05.conflist: plugins: empty",)


async def test_a_plugin_that_is_not_installed(place: Place) -> None:
    place.put()
    status = await place.reload()
    assert not status.ready
    assert status.message == f"plugin faulty: not found in {place.bin}"
    assert status.config_name == "net"
    assert place.watch.config is None
    place.plugin()
    assert (await place.reload()).ready


async def test_the_version_is_settled_with_the_plugins(place: Place) -> None:
    plugin = place.plugin()
    answer = {"cniVersion": "1.1.0", "supportedVersions": ["0.4.0", "1.0.0"]}
    plugin.tell({"command": "VERSION", "do": "print", "text": json.dumps(answer)})
    place.put(cniVersions=["0.4.0", "1.1.0"])
    assert (await place.reload()).cni_version == "1.0.0"
    assert len(plugin.calls("VERSION")) == 1
    await place.reload()
    assert len(plugin.calls("VERSION")) == 1  # the same file, the same binary
    place.put(cniVersion="1.1.0")
    status = await place.reload()
    assert not status.ready
    assert status.message == "plugin faulty: speaks 0.4.0, 1.0.0, cniVersion is 1.1.0"
    assert place.watch.config is None
    await place.reload()
    assert len(plugin.calls("VERSION")) == 2


@pytest.mark.parametrize("rule", [{"do": "crash"}, {"do": "print", "text": "rubbish"}])
async def test_a_plugin_that_does_not_tell_its_versions_is_tried(place: Place, rule: dict[str, Any]) -> None:
    place.plugin().tell({"command": "VERSION", **rule})
    place.put()
    assert (await place.reload()).ready


async def test_status_of_a_1_1_network(place: Place) -> None:
    plugin = place.plugin()
    place.put(cniVersion="1.1.0")
    assert (await place.reload()).ready
    assert len(plugin.calls("STATUS")) == 1
    plugin.tell({"command": "STATUS", "do": "fail", "code": 50, "msg": "no daemon"})
    status = await place.reload()
    assert (status.ready, status.reason) == (False, NOT_READY)
    assert status.message == "plugin faulty (STATUS): no daemon: by its test (code 50)"
    assert place.watch.config is not None  # it prevents nobody from trying
    plugin.tell()
    assert (await place.reload()).ready


async def test_a_plugin_that_does_not_answer(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isulad_py.network.watch.PROBE_SECONDS", 0.1)
    plugin = place.plugin()
    plugin.tell({"command": "VERSION", "do": "hang"}, {"command": "STATUS", "do": "hang"})
    place.put(cniVersion="1.1.0")
    status = await place.reload()
    assert status.message == "plugin faulty (STATUS): no answer within 0.1 s"
    assert place.watch.config is not None


async def test_no_status_before_1_1(place: Place) -> None:
    plugin = place.plugin()
    place.put()
    await place.reload()
    assert plugin.calls("STATUS") == []


async def test_a_configuration_that_goes_away(place: Place) -> None:
    place.plugin()
    place.put()
    await place.reload()
    shutil.rmtree(place.conf)
    status = await place.reload()
    assert not status.ready
    assert status.config_name == ""
    assert place.watch.config is None


async def test_only_changes_are_announced(place: Place) -> None:
    place.plugin()
    place.put()
    await place.reload()
    await place.reload()
    place.put()
    await place.reload()
    assert len(place.statuses) == 1


async def test_followed_from_nothing(place: Place) -> None:
    """The directory and its parents come later, as on a node whose network is installed by a pod."""
    place.plugin()
    async with place.watching():
        await place.until("no valid network configuration")
        place.put()
        await place.until()
        place.put(name="other")
        await place.until(name="other")
        (place.conf / "10.conflist").unlink()
        await place.until("no valid network configuration")
        shutil.rmtree(place.conf.parent)
        place.put()
        await place.until()


async def test_one_bad_file_after_another(place: Place) -> None:
    place.plugin()
    async with place.watching():
        place.put(name="a/b")
        await place.until("is not a network name")
        place.put(plugins=[])
        await place.until("plugins: empty")
        place.put()
        await place.until()


def test_what_is_watched(tmp_path: Path) -> None:
    conf = tmp_path / "a" / "b"
    assert _targets(conf, "") == {str(tmp_path): "a"}
    (tmp_path / "a").mkdir()
    assert _targets(conf, "") == {str(tmp_path / "a"): "b"}
    conf.mkdir()
    assert _targets(conf, "net") == {str(conf): ""}
    (conf / "net").mkdir()
    assert _targets(conf, "net") == {str(conf): "", str(conf / "net"): ""}

from __future__ import annotations

import ssl
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from isulad_py.config.schema import Config, TlsConfig
from isulad_py.daemon.lifecycle import Lifecycle
from isulad_py.daemon.streaming import start_streaming, tls_context
from isulad_py.model.errors import HostFailure, InvalidInput
from isulad_py.ports.streams import StreamWishes
from tests import spdy_client
from tests.stand.certificates import Certificates, make_certificates
from tests.unit.engine.node import World


async def test_a_command_by_its_address(tmp_path: Path) -> None:
    world = World()
    config = Config(state=str(tmp_path), websocket_server_listening_port=0)
    async with world.daemon() as node, AsyncExitStack() as stack:
        await node.pull()
        lifecycle = Lifecycle(stack=stack)
        sessions = await start_streaming(config, lifecycle, node.services, world.clock)
        port = int((tmp_path / "stream.port").read_text())
        container_id = await node.run_container(await node.run_pod())
        url = sessions.exec(container_id, ("echo", "hello"), StreamWishes(stdout=True))
        assert url.startswith(f"http://127.0.0.1:{port}/cri/exec/")
        client = await spdy_client.connect(url, "v4.channel.k8s.io")
        _, stdout = await client.opened("error", "stdout")
        assert await stdout.read_all() == b"hello\n"
        await client.close()
        with pytest.raises(HostFailure, match="websocket-server-listening-port"):
            await start_streaming(
                Config(state=str(tmp_path), websocket_server_listening_port=port), lifecycle, node.services, world.clock
            )
    assert not (tmp_path / "stream.port").exists()


class TestTls:
    @pytest.fixture
    def certificates(self, tmp_path: Path) -> Certificates:
        return make_certificates(tmp_path)

    def config(
        self, certificates: Certificates, *, verify: bool = False, files: dict[str, str] | None = None
    ) -> Config:
        named = {
            "cert_file": str(certificates.server),
            "key_file": str(certificates.server_key),
            "ca_file": str(certificates.authority),
            **(files or {}),
        }
        return Config(tls=True, tls_verify=verify, tls_config=TlsConfig(**named))

    def test_only_where_it_is_asked_for(self) -> None:
        assert tls_context(Config()) is None

    def test_with_and_without_certificates_of_clients(self, certificates: Certificates) -> None:
        for verify, mode in ((False, ssl.CERT_NONE), (True, ssl.CERT_REQUIRED)):
            context = tls_context(self.config(certificates, verify=verify))
            assert context is not None
            assert context.verify_mode is mode

    def test_what_is_no_certificate(self, certificates: Certificates, tmp_path: Path) -> None:
        (tmp_path / "rubbish").write_text("rubbish")
        rubbish = str(tmp_path / "rubbish")
        for files in ({"cert_file": rubbish}, {"key_file": str(certificates.client_key)}, {"cert_file": "/nowhere"}):
            with pytest.raises(InvalidInput, match="tls-config"):
                tls_context(self.config(certificates, files=files))
        with pytest.raises(InvalidInput, match="tls-config"):
            tls_context(self.config(certificates, verify=True, files={"ca_file": rubbish}))

"""The streaming server and the tokens for it, from the configuration."""

from __future__ import annotations

import ssl

import structlog

from isulad_py.config.schema import Config
from isulad_py.daemon.lifecycle import Lifecycle
from isulad_py.daemon.services import Services
from isulad_py.engine.sessions import Sessions, Tokens
from isulad_py.host.files import remove_file, write_atomic
from isulad_py.model.errors import InvalidInput
from isulad_py.ports.clock import Clock
from isulad_py.streaming.limits import StreamLimits
from isulad_py.streaming.server import ServerOptions, StreamServer

log = structlog.get_logger(__name__)


async def start_streaming(config: Config, lifecycle: Lifecycle, services: Services, clock: Clock) -> Sessions:
    """Listens; HostFailure where the port is taken. The chosen port is in `stream.port` of the state directory."""
    tokens = Tokens(clock=clock)
    options = ServerOptions(
        address=config.stream_server_address,
        port=config.websocket_server_listening_port,
        tls=tls_context(config),
        limits=StreamLimits(idle_seconds=config.stream_idle_timeout),
    )
    server = StreamServer(take=tokens.take, opener=services.opener, options=options)
    lifecycle.on_close("streams", server.close)
    await server.start()
    port_file = f"{config.state}/stream.port"
    lifecycle.on_close("stream.port", lambda: remove_file(port_file))
    write_atomic(port_file, f"{server.port}\n".encode())
    log.info("streaming endpoint", address=server.base_url)
    return Sessions(registry=services.registry, exec_=services.exec, tokens=tokens, base_url=server.base_url)


def tls_context(config: Config) -> ssl.SSLContext | None:
    """None without `tls`. InvalidInput for certificates that cannot be used."""
    if not config.tls:
        return None
    files = config.tls_config
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(files.cert_file, files.key_file or None)
        if config.tls_verify:
            context.load_verify_locations(files.ca_file)
            context.verify_mode = ssl.CERT_REQUIRED
    except (OSError, ssl.SSLError) as error:
        raise InvalidInput(f"tls-config: {error}") from error
    return context

"""A CRI client on grpcio's C core, which is what a kubelet's own client behaves like.

The messages are made at run time from protos/, so nothing generated is kept twice. Tests, bench/ and demo/ share it.

    with connect("unix:///run/isulad.sock") as cri:
        print(cri.runtime.Version(cri.m.VersionRequest(), timeout=5).runtime_name)
"""

from __future__ import annotations

import functools
import re
import tempfile
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import grpc_tools
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from grpc_tools import protoc

PROTOS = Path(__file__).resolve().parent.parent / "protos"
WELL_KNOWN = Path(grpc_tools.__file__).parent / "_proto"
PACKAGE = "runtime.v1"
MAX_ANSWER_BYTES = 16 * 1024 * 1024
"""The largest answer a kubelet takes."""


class Schema:
    """Message classes, enum values and services of one proto package, by name: `schema.VersionRequest`."""

    def __init__(self, files: descriptor_pb2.FileDescriptorSet, package: str) -> None:
        pool = descriptor_pool.DescriptorPool()
        for file in files.file:
            pool.Add(file)
        self.services: dict[str, Any] = {}
        self._names: dict[str, Any] = {}
        for file in files.file:
            if file.package != package:
                continue
            found = pool.FindFileByName(file.name)
            self.services.update(found.services_by_name)
            for name, message in found.message_types_by_name.items():
                self._names[name] = message_factory.GetMessageClass(message)
            for enum in found.enum_types_by_name.values():
                self._names.update({value.name: value.number for value in enum.values})

    def __getattr__(self, name: str) -> Any:
        try:
            return self._names[name]
        except KeyError:
            raise AttributeError(f"the proto package has no {name!r}") from None


@functools.cache
def schema(protos: Path = PROTOS, package: str = PACKAGE) -> Schema:
    """Compile the package's .proto files; once for each process."""
    declares = re.compile(rf"^package\s+{re.escape(package)}\s*;", re.MULTILINE)
    sources = sorted(p for p in protos.rglob("*.proto") if declares.search(p.read_text(encoding="utf-8")))
    if not sources:
        raise FileNotFoundError(f"no .proto file under {protos} declares package {package}")
    with tempfile.TemporaryDirectory(prefix="cri-schema-") as folder:
        out = Path(folder) / "set.bin"
        argv = [
            "protoc",
            f"-I{protos}",
            f"-I{WELL_KNOWN}",
            "--include_imports",
            f"--descriptor_set_out={out}",
            *map(str, sources),
        ]
        if protoc.main(argv) != 0:
            raise ValueError(f"protoc refused {', '.join(map(str, sources))}")
        return Schema(descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()), package)


class _Service:
    """One callable for each method of a service, under the given package name."""

    def __init__(self, channel: Any, descriptor: Any, package: str) -> None:
        for method in descriptor.methods:
            make = channel.unary_stream if method.server_streaming else channel.unary_unary
            call = make(
                f"/{package}.{descriptor.name}/{method.name}",
                request_serializer=message_factory.GetMessageClass(method.input_type).SerializeToString,
                response_deserializer=message_factory.GetMessageClass(method.output_type).FromString,
            )
            setattr(self, method.name, call)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the service has no method {name!r}")


class Cri:
    """Both CRI services on one channel; `m` holds messages and enum values."""

    def __init__(self, channel: Any, package: str) -> None:
        self.m = schema()
        self.channel = channel
        self.runtime = _Service(channel, self.m.services["RuntimeService"], package)
        self.image = _Service(channel, self.m.services["ImageService"], package)

    def __enter__(self) -> Cri:
        return self

    def __exit__(self, *_: object) -> None:
        self.channel.close()

    async def __aenter__(self) -> Cri:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.channel.close()


def service_of(channel: Any, package: str, name: str) -> tuple[Any, Any]:
    """A service that is not CRI's on a channel, and the messages of its package."""
    messages = schema(package=package)
    return _Service(channel, messages.services[name], package), messages


OPTIONS = [
    ("grpc.max_receive_message_length", MAX_ANSWER_BYTES),
    ("grpc.enable_http_proxy", 0),
    # A daemon that comes back is reached at once, not after the channel's back-off.
    ("grpc.initial_reconnect_backoff_ms", 50),
    # Also the time that one attempt may take.
    ("grpc.min_reconnect_backoff_ms", 5000),
    ("grpc.max_reconnect_backoff_ms", 200),
    # Each client has its own connection, as each kubelet has.
    ("grpc.use_local_subchannel_pool", 1),
]


def connect(address: str, package: str = PACKAGE) -> Cri:
    """A blocking client; `package` is the service prefix: runtime.v1 or runtime.v1alpha2."""
    return Cri(grpc.insecure_channel(address, options=[*OPTIONS, ("grpc.default_authority", "localhost")]), package)


def connect_async(address: str, package: str = PACKAGE) -> Cri:
    """The same for asyncio: each call is awaitable, each stream an async iterator."""
    return Cri(grpc.aio.insecure_channel(address, options=[*OPTIONS, ("grpc.default_authority", "localhost")]), package)

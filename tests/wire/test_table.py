"""What is not there yet, and what there never was."""

from __future__ import annotations

import grpc
import pytest

from isulad_py.wire.cri.table import VERSIONS, cri_methods
from tests.fakes.services import FakeEngine
from tests.wire.conftest import Served

TABLE = cri_methods(FakeEngine().services())
UNREACHED = {path: method for path, method in TABLE.items() if method.unary is None and method.streaming is None}


def test_the_table_has_all_of_cri_under_both_names() -> None:
    assert len(TABLE) == 2 * (37 + 6)
    by_version = [{path.split("/")[2] for path in TABLE if f".{version}." in path} for version in VERSIONS]
    assert by_version[0] == by_version[1]


async def code_of(served: Served, path: str) -> tuple[grpc.StatusCode, str]:
    channel = served.connect().channel
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await channel.unary_unary(path)(b"")
    return caught.value.code(), caught.value.details() or ""


@pytest.mark.parametrize("path", UNREACHED)
async def test_an_rpc_that_is_not_reached_says_its_name(served: Served, path: str) -> None:
    name = UNREACHED[path].short_name
    assert await code_of(served, path) == (grpc.StatusCode.UNIMPLEMENTED, f"{name} is not implemented")


@pytest.mark.parametrize(
    "path",
    ["/runtime.v1.RuntimeService/Nothing", "/runtime.v2.RuntimeService/Version", "/x", "/" + "y" * 300],
)
async def test_a_method_that_never_was(served: Served, path: str) -> None:
    code, details = await code_of(served, path)
    assert code is grpc.StatusCode.UNIMPLEMENTED
    assert details == f"unknown method {path[:200]}"
    assert served.seen.finished == []

from __future__ import annotations

import pytest

from isulad_py.config.storage_options import container_size_bytes


@pytest.mark.parametrize(
    ("options", "size"),
    [
        ((), 0),
        (("overlay2.override_kernel_check=true",), 0),
        (("overlay2.size=0",), 0),
        (("overlay2.basesize=128M",), 128 << 20),
        (("overlay2.size=10G", "overlay2.basesize=10GB"), 10 << 30),
    ],
)
def test_what_a_container_may_write(options: tuple[str, ...], size: int) -> None:
    assert container_size_bytes(options) == size


@pytest.mark.parametrize("options", [("overlay2.size=",), ("overlay2.size=-1",), ("overlay2.size=4095",)])
def test_what_is_no_size(options: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="size"):
        container_size_bytes(options)

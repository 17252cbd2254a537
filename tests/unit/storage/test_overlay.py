"""Mount options; mounts themselves: tests/integration/storage."""

from __future__ import annotations

import hashlib

from isulad_py.model.ids import ChainId
from isulad_py.storage.overlay import PAGE, OverlayMount, Places, options
from isulad_py.storage.paths import link_name


def chain(number: int) -> ChainId:
    return ChainId("sha256:" + hashlib.sha256(str(number).encode()).hexdigest())


def test_the_top_layer_comes_first() -> None:
    request = OverlayMount(target="/t", layers=(chain(0), chain(1)), upper="c/diff", work="c/work")
    assert options(request, Places("/o/l/", "/o", "/o")) == (
        f"lowerdir=/o/l/{link_name(chain(1))}:/o/l/{link_name(chain(0))},index=off,upperdir=/o/c/diff,workdir=/o/c/work"
    )


def test_without_an_upper_there_are_two_lower_ones() -> None:
    request = OverlayMount(target="/t", layers=(chain(0),))
    assert options(request, Places("", "..", "..")) == f"lowerdir={link_name(chain(0))}:../empty,index=off"


def test_an_image_without_layers() -> None:
    request = OverlayMount(target="/t", layers=(), upper="c/diff", work="c/work")
    assert options(request, Places("", "..", "..")).startswith("lowerdir=../empty,index=off,upperdir=../c/diff")


def test_a_label() -> None:
    request = OverlayMount(target="/t", layers=(chain(0),), mount_label="system_u:object_r:container_file_t:s0:c1,c2")
    assert options(request, Places("", "", "")).endswith(',context="system_u:object_r:container_file_t:s0:c1,c2"')


def test_150_layers_fit_into_a_page() -> None:
    layers = tuple(map(chain, range(150)))
    name = f"containers/{'0' * 64}"
    request = OverlayMount(target="/t", layers=layers, upper=f"{name}/diff", work=f"{name}/work")
    assert len(options(request, Places("", "..", ".."))) < PAGE


def test_layers_may_be_looked_at_elsewhere_than_the_writable_one() -> None:
    request = OverlayMount(target="/t", layers=(chain(0),), upper="c/diff", work="c/work")
    assert options(request, Places("/m/l/", "/m", "/o")) == (
        f"lowerdir=/m/l/{link_name(chain(0))},index=off,upperdir=/o/c/diff,workdir=/o/c/work"
    )

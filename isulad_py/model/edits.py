"""What devices of the Container Device Interface (CDI) add to a container."""

from __future__ import annotations

from msgspec import Struct

from isulad_py.model.devices import HostDevice
from isulad_py.model.hooks import StagedHook


class WantedDevice(Struct, frozen=True, kw_only=True):
    """A CDI device that a request asks for."""

    name: str
    """Qualified: vendor.com/class=name."""
    field: str
    """Of the request, for error messages."""


class EditMount(Struct, frozen=True, kw_only=True):
    destination: str
    source: str
    type: str
    options: tuple[str, ...]


class Edits(Struct, frozen=True, kw_only=True):
    """CDI containerEdits, found and checked on this host; later ones win over earlier ones, and over the request."""

    env: tuple[str, ...] = ()
    """NAME=VALUE."""
    devices: tuple[HostDevice, ...] = ()
    mounts: tuple[EditMount, ...] = ()
    hooks: tuple[StagedHook, ...] = ()
    additional_gids: tuple[int, ...] = ()

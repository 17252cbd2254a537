"""The configuration directory: which file is the pods' network, and what is wrong with the others."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from isulad_py.host.files import read_limited
from isulad_py.model.errors import EngineError, HostFailure, InvalidInput
from isulad_py.network import conflist
from isulad_py.network.conflist import NetworkConfig

FILE_LIMIT: Final = 1024
FINDING_LIMIT: Final = 32


class Loaded(Struct, frozen=True, kw_only=True):
    """What one look at the directory has found."""

    config: NetworkConfig | None = None
    path: str = ""
    findings: tuple[str, ...] = ()
    """One line for each file that is no configuration: its name and the reason."""


def load(conf_dir: str) -> Loaded:
    """The first valid file in the order of names. Blocking: files are read. Never raises for what lies there."""
    findings: list[str] = []
    config: NetworkConfig | None = None
    chosen = ""
    try:
        names = _candidates(conf_dir)
    except OSError as error:
        return Loaded(findings=(f"{conf_dir}: {(error.strerror or str(error)).lower()}",))
    for name in names:
        try:
            found = _read(conf_dir, name)
        except EngineError as error:
            if len(findings) < FINDING_LIMIT:
                findings.append(_shown(f"{name}: {error}"))
            continue
        if config is None:
            config, chosen = found, _shown(str(Path(conf_dir, name)))
    return Loaded(config=config, path=chosen, findings=tuple(findings))


def _shown(text: str) -> str:
    """A file's name may be any bytes; what is told about it goes into JSON."""
    return text.encode(errors="replace").decode()


def _candidates(conf_dir: str) -> list[str]:
    """Names in their order. Hidden files are an editor's or a half-written replacement."""
    try:
        with os.scandir(conf_dir) as entries:
            names = [entry.name for entry in entries if _is_candidate(entry)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(names)[:FILE_LIMIT]


def _is_candidate(entry: os.DirEntry[str]) -> bool:
    if not entry.name.endswith(conflist.SUFFIXES) or entry.name.startswith((".", conflist.NATIVE_PREFIX)):
        return False
    try:
        return not entry.is_dir()
    except OSError:  # a link that leads nowhere or round: reading it says so
        return True


def _read(conf_dir: str, name: str) -> NetworkConfig:
    data = read_limited(str(Path(conf_dir, name)), conflist.DOCUMENT_LIMIT_BYTES)
    return conflist.parse(data, lambda network: _siblings(conf_dir, network))


def _siblings(conf_dir: str, network: str) -> Sequence[tuple[str, bytes]]:
    """Plugin configurations in the folder named like the network (a name begins with a letter or digit: no `..`)."""
    folder = Path(conf_dir, network)
    try:
        names = sorted(path.name for path in folder.iterdir() if path.name.endswith(".conf"))
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError as error:
        raise HostFailure(f"{folder}: {error.strerror}") from error
    if len(names) > conflist.PLUGIN_LIMIT:
        raise InvalidInput(f"{network}/: more than {conflist.PLUGIN_LIMIT} plugins")
    return [(f"{network}/{name}", read_limited(str(folder / name), conflist.DOCUMENT_LIMIT_BYTES)) for name in names]

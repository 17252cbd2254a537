"""TLS contexts by registry host. Synchronous: reading the system's authorities takes some 10 ms."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Final

from isulad_py.images.options import TlsFiles
from isulad_py.model.errors import FailedPrecondition

_CACHED: Final = 8
"""The system's authorities take some 0.8 MB in each; hosts without files of their own share one."""


class TlsContexts:
    """Kept until a file they were made of changes. Called in one thread at a time."""

    def __init__(self) -> None:
        self._contexts: dict[tuple[object, ...], ssl.SSLContext] = {}

    def context_for(
        self, host: str, *, verify: bool, certs_dir: str, ca_file: str, named: TlsFiles | None = None
    ) -> ssl.SSLContext:
        """Raises FailedPrecondition for files of the host that cannot be used, naming them."""
        folder = _folder(certs_dir, host)
        paths = sorted(path for path in folder.glob("*") if path.suffix in {".crt", ".cert", ".key"}) if folder else []
        if ca_file:
            paths.append(Path(ca_file))
        named = named or TlsFiles()
        watched = [
            *paths,
            *map(Path, named.authorities),
            *(Path(part) for pair in named.clients for part in pair if part),
        ]
        try:
            key = (verify, ca_file, named, *((str(path), path.stat().st_mtime_ns) for path in watched))
            context = self._contexts.get(key)
            if context is None:
                context = _make(paths, ca_file, verify=verify)
                for authority in named.authorities:
                    context.load_verify_locations(cafile=authority)
                for certificate, client_key in named.clients:
                    context.load_cert_chain(certificate, client_key or None)
        except (OSError, ValueError) as error:
            raise FailedPrecondition(f"certificates for {host}: {error}") from error
        while len(self._contexts) >= _CACHED:
            del self._contexts[next(iter(self._contexts))]
        self._contexts[key] = context
        return context


def _folder(certs_dir: str, host: str) -> Path | None:
    """As docker names it: with the port, where there is one."""
    folder = Path(certs_dir, host)
    return folder if certs_dir and folder.is_dir() and "/" not in host else None


def _make(paths: list[Path], ca_file: str, *, verify: bool) -> ssl.SSLContext:
    if verify:
        context = ssl.create_default_context()
    else:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    names = {path.name for path in paths}
    for path in paths:
        if path.suffix == ".crt" or str(path) == ca_file:
            context.load_verify_locations(cafile=path)
        elif path.suffix == ".cert":
            if f"{path.stem}.key" not in names:
                raise FailedPrecondition(f"certificate {path} has no key beside it ({path.stem}.key)")
            context.load_cert_chain(path, path.with_suffix(".key"))
        elif f"{path.stem}.cert" not in names:
            raise FailedPrecondition(f"key {path} has no certificate beside it ({path.stem}.cert)")
    return context

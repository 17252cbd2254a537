"""Certificates for servers of a test, by openssl."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from tests.stand.mark import find_program, run


@dataclass(frozen=True)
class Certificates:
    """An authority, and what it has signed for 127.0.0.1 and localhost: one for servers, one for clients."""

    authority: Path
    server: Path
    server_key: Path
    client: Path
    client_key: Path

    def server_context(self, *, ask_client: bool = False) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.server, self.server_key)
        if ask_client:
            context.load_verify_locations(self.authority)
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def client_context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.authority)


def make_certificates(folder: Path) -> Certificates:
    openssl = find_program("openssl")
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    authority, authority_key = folder / "authority.crt", folder / "authority.key"
    begin = [openssl, "req", *key]
    run(
        [
            *begin,
            "-x509",
            "-days",
            "2",
            "-subj",
            "/CN=test authority",
            "-keyout",
            str(authority_key),
            "-out",
            str(authority),
        ]
    )
    made = {}
    for name in ("server", "client"):
        certificate, secret, wish = (folder / f"{name}.{end}" for end in ("cert", "key", "csr"))
        names = folder / f"{name}.ext"
        names.write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n", encoding="ascii")
        run([*begin, "-subj", f"/CN={name}", "-keyout", str(secret), "-out", str(wish)])
        sign = [openssl, "x509", "-req", "-in", str(wish), "-CA", str(authority), "-CAkey", str(authority_key)]
        run([*sign, "-CAcreateserial", "-days", "2", "-extfile", str(names), "-out", str(certificate)])
        made[name] = (certificate, secret)
    return Certificates(authority, *made["server"], *made["client"])

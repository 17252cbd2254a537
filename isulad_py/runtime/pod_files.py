"""The text of the files that a pod's containers find in /etc. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from isulad_py.model.errors import InvalidInput
from isulad_py.model.network import Dns

MAX_HOSTNAME_BYTES: Final = 64
"""sethostname(2)."""

LOCAL_HOSTS: Final = """127.0.0.1\tlocalhost
::1\tlocalhost ip6-localhost ip6-loopback
fe00::\tip6-localnet
ff00::\tip6-mcastprefix
ff02::1\tip6-allnodes
ff02::2\tip6-allrouters
"""


def check_hostname(hostname: str) -> None:
    """Raises InvalidInput for what the kernel would not take, or what would break the files that hold it."""
    if len(hostname.encode(errors="surrogateescape")) > MAX_HOSTNAME_BYTES:
        raise InvalidInput(f"hostname: longer than {MAX_HOSTNAME_BYTES} bytes")
    if not hostname.isprintable() or any(letter.isspace() for letter in hostname) or "/" in hostname:
        raise InvalidInput(f"hostname: {hostname!r} has characters that no hostname has")


def resolv_conf(dns: Dns | None) -> str:
    """resolv.conf(5); empty where nothing is set, which means the host's. Raises InvalidInput naming the field."""
    if dns is None:
        return ""
    for field, words in (("servers", dns.servers), ("searches", dns.searches), ("options", dns.options)):
        for word in words:
            if not word or not word.isprintable() or any(letter.isspace() for letter in word):
                raise InvalidInput(f"dns_config.{field}: {word!r} is not one word")
    lines = [f"search {' '.join(dns.searches)}"] if dns.searches else []
    lines += [f"nameserver {server}" for server in dns.servers]
    lines += [f"options {' '.join(dns.options)}"] if dns.options else []
    return "".join(line + "\n" for line in lines)


def hosts(hostname: str, ips: Sequence[str]) -> str:
    """hosts(5) of a pod with a network of its own."""
    return LOCAL_HOSTS + "".join(f"{ip}\t{hostname}\n" for ip in ips if hostname)

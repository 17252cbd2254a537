from __future__ import annotations

import json
from typing import Any

import pytest

from isulad_py.images.policy import Policy, admit, admit_file, parse_policy, scopes_of
from isulad_py.model.errors import FailedPrecondition, PermissionDenied, Unsupported
from isulad_py.model.ids import Digest
from isulad_py.model.reference import parse
from tests.unit.images.stand import FAST, Stand, small_image

DIGEST = Digest("sha256:" + "1" * 64)
ACCEPT = [{"type": "insecureAcceptAnything"}]
REJECT = [{"type": "reject"}]
SIGNED = [{"type": "signedBy", "keyType": "GPGKeys", "keyPath": "/key"}]


def policy(default: Any = REJECT, **docker: Any) -> bytes:
    return json.dumps({"default": default, "transports": {"docker": docker}}).encode()


def test_the_most_specific_scope_comes_first() -> None:
    assert list(scopes_of(parse("a.b.example:5000/x/y:v1"), DIGEST)) == [
        "a.b.example:5000/x/y:v1",
        "a.b.example:5000/x/y",
        "a.b.example:5000/x",
        "a.b.example:5000",
        "*.b.example:5000",
        "*.example:5000",
        "",
    ]
    assert next(scopes_of(parse(f"busybox@{DIGEST}"), DIGEST)) == f"docker.io/library/busybox@{DIGEST}"


@pytest.mark.parametrize("scope", ["docker.io/library/busybox:1", "docker.io/library", "docker.io", "*.io", ""])
def test_one_scope_decides(scope: str) -> None:
    admit(parse_policy(policy(REJECT, **{scope: ACCEPT})), parse("busybox:1"), DIGEST)
    with pytest.raises(PermissionDenied, match="rejects it"):
        admit(parse_policy(policy(ACCEPT, **{scope: REJECT})), parse("busybox:1"), DIGEST)
    other = parse_policy(policy(ACCEPT, **{"quay.io": REJECT, "docker.io/lib": REJECT}))
    admit(other, parse("busybox:1"), DIGEST)


@pytest.mark.parametrize("scope", ["/srv/images/a.tar", "/srv/images", "/srv", ""])
def test_of_a_file_the_nearest_directory_decides(scope: str) -> None:
    def told(default: Any, **scopes: Any) -> Policy:
        return parse_policy(json.dumps({"default": default, "transports": {"oci-archive": scopes}}).encode())

    admit_file(told(REJECT, **{scope: ACCEPT}), "oci-archive", "/srv/images/a.tar")
    with pytest.raises(PermissionDenied, match="rejects it"):
        admit_file(told(ACCEPT, **{scope: REJECT}), "oci-archive", "/srv//images/./a.tar")
    admit_file(told(ACCEPT, **{"/srv/image": REJECT, "/other": REJECT}), "oci-archive", "/srv/images/a.tar")
    with pytest.raises(PermissionDenied, match=r"\(default\)"):
        admit_file(told(REJECT, **{"": ACCEPT}), "docker-archive", "/srv/images/a.tar")


def test_what_needs_a_signature_is_not_let_in() -> None:
    with pytest.raises(Unsupported, match=r"signedBy \(default\)"):
        admit(parse_policy(policy(SIGNED)), parse("busybox"), DIGEST)
    with pytest.raises(Unsupported, match="signedBy"):
        admit(parse_policy(policy(ACCEPT + SIGNED)), parse("busybox"), DIGEST)
    with pytest.raises(PermissionDenied):
        admit(parse_policy(policy(SIGNED + REJECT)), parse("busybox"), DIGEST)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "signature policy"),
        (b"{}", "default"),
        (b'{"default":[]}', "default: no requirement"),
        (b'{"default":[{"type":"trustMe"}]}', "trustMe"),
        (b'{"default":[{"type":"reject"}],"transport":{}}', "transport"),
        (policy(ACCEPT, x=[{}]), "type"),
        (b'{"default":[{"type":"reject"}],"transports":{"docker":{"x":[]}}}', "x.*no requirement"),
        (b"\xff", "signature policy"),
    ],
)
def test_what_is_no_policy(body: bytes, words: str) -> None:
    with pytest.raises(FailedPrecondition, match=words):
        parse_policy(body)


async def test_a_rejected_image_brings_no_layer(stand: Stand, tmp_path: Any) -> None:
    from msgspec.structs import replace

    stand.registry.put("app", "v1", small_image())
    name = f"{stand.registry.host}/app:v1"
    path = tmp_path / "policy.json"
    options = replace(FAST, policy_file=str(path))
    with pytest.raises(FailedPrecondition, match=r"app:v1: check policy: signature policy: .*no such file"):
        await stand.pull(name, options)
    path.write_bytes(policy(ACCEPT, **{stand.registry.host: REJECT}))
    with pytest.raises(PermissionDenied, match="app:v1: check policy: the signature policy rejects it"):
        await stand.pull(name, options)
    assert await stand.store.present() == frozenset()
    path.write_bytes(policy(ACCEPT))
    record = await stand.pull(name, options)
    path.write_bytes(policy(REJECT))
    with pytest.raises(PermissionDenied):
        await stand.pull(name, options, known=(record,))

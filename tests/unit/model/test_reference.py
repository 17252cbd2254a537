"""References: docker's and containerd's normal forms."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isulad_py.model import reference
from isulad_py.model.errors import InvalidInput
from isulad_py.model.reference import Reference

HEX = "0123456789abcdef" * 4
DIGEST = f"sha256:{HEX}"


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("busybox", "docker.io/library/busybox:latest"),
        ("busybox:1.36", "docker.io/library/busybox:1.36"),
        ("docker.io/busybox", "docker.io/library/busybox:latest"),
        ("index.docker.io/busybox", "docker.io/library/busybox:latest"),
        ("docker.io/library/busybox", "docker.io/library/busybox:latest"),
        ("user/app", "docker.io/user/app:latest"),
        ("localhost/app", "localhost/app:latest"),
        ("localhost:5000/app:v1", "localhost:5000/app:v1"),
        ("127.0.0.1:5000/a/b/c", "127.0.0.1:5000/a/b/c:latest"),
        ("[::1]:5000/app", "[::1]:5000/app:latest"),
        ("registry.k8s.io/pause:3.9", "registry.k8s.io/pause:3.9"),
        ("Registry/app", "Registry/app:latest"),
        ("my-host.example.com:443/x__y/z--w", "my-host.example.com:443/x__y/z--w:latest"),
        (f"busybox@{DIGEST}", f"docker.io/library/busybox@{DIGEST}"),
        (f"busybox:1.36@{DIGEST}", f"docker.io/library/busybox:1.36@{DIGEST}"),
        (f"host:5000/a@sha512:{HEX * 2}", f"host:5000/a@sha512:{HEX * 2}"),
        ("a.b", "docker.io/library/a.b:latest"),
        (HEX[:12], f"docker.io/library/{HEX[:12]}:latest"),
    ],
)
def test_normal_form(text: str, normal: str) -> None:
    parsed = reference.parse(text)
    assert str(parsed) == normal
    assert reference.parse(normal) == parsed


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/",
        "//busybox",
        "busybox:",
        "busybox@",
        "busybox:tag with space",
        "busybox:-leading",
        "busybox:" + "t" * 129,
        "Busybox",
        "host.example/Upper",
        "a//b",
        "a/b/",
        "a/-b",
        "a/b..c",
        "a/b___c",
        "https://docker.io/busybox",
        "docker://busybox",
        HEX,
        f"{HEX}:tag",
        DIGEST,
        "busybox@sha256:abc",
        f"busybox@sha256:{HEX.upper()}",
        f"busybox@md5:{HEX[:32]}",
        f"busybox@{DIGEST}@{DIGEST}",
        "host.example:port/app",
        "host.example:123456/app",
        "host.example:65536/app",
        "[::1]:99999/app",
        "a" * 256,
        "x" * 100_000,
        "../etc/passwd",
        "busy\nbox",
        "busybox\n",
        "busybox:latest\n",
        "bücher",
        "\x00",
    ],
)
def test_refused_naming_the_field(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"image\.image") as caught:
        reference.parse(text)
    assert len(str(caught.value)) < 2500


def test_name_limit_counts_host_and_path() -> None:
    host = "h.example"
    fits = f"{host}/{'p' * (255 - len(host) - 1)}"
    assert reference.parse(fits).repository == fits
    with pytest.raises(InvalidInput, match="255"):
        reference.parse(fits + "p")


def test_views() -> None:
    both = reference.parse(f"host:1/a:t@{DIGEST}")
    assert (both.repo_tag, both.repo_digest, both.selector) == ("host:1/a:t", f"host:1/a@{DIGEST}", DIGEST)
    tagged = reference.parse("host:1/a:t")
    assert (tagged.repo_digest, tagged.selector) == ("", "t")
    assert str(tagged.at(both.digest)) == f"host:1/a@{DIGEST}"


def test_the_field_can_be_named_otherwise() -> None:
    with pytest.raises(InvalidInput, match="pod-sandbox-image"):
        reference.parse("A", field="pod-sandbox-image")


PART = st.from_regex(r"[a-z0-9]{1,8}((\.|_|__|-{1,3})[a-z0-9]{1,5}){0,2}", fullmatch=True)
HOST = st.one_of(
    st.from_regex(r"[a-z0-9]{1,8}\.[a-z]{2,5}(:[0-5]?[0-9]{1,4})?", fullmatch=True),
    st.from_regex(r"localhost(:[0-5]?[0-9]{1,4})?", fullmatch=True),
    st.just("docker.io"),
)
TAG = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,20}", fullmatch=True)
SHA = st.from_regex(r"[0-9a-f]{64}", fullmatch=True)


@given(HOST, st.lists(PART, min_size=2, max_size=4), st.none() | TAG, st.none() | SHA)
def test_every_well_formed_reference_is_its_own_normal_form(
    host: str, parts: list[str], tag: str | None, sha: str | None
) -> None:
    text = f"{host}/{'/'.join(parts)}" + (f":{tag}" if tag else "") + (f"@sha256:{sha}" if sha else "")
    parsed = reference.parse(text)
    assert parsed.repository == f"{host}/{'/'.join(parts)}"
    assert parsed.tag == (tag or ("" if sha else "latest"))
    assert str(reference.parse(str(parsed))) == str(parsed)


@given(st.text(max_size=300))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        parsed = reference.parse(text)
    except InvalidInput:
        return
    assert isinstance(parsed, Reference)
    assert reference.parse(str(parsed)) == parsed
    assert str(parsed).isascii()
    assert ".." not in parsed.path.split("/")

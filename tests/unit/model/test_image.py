from __future__ import annotations

from isulad_py.model.ids import ImageId
from isulad_py.model.image import Credentials, ImageRecord


def test_the_reference_is_a_digest_in_a_repository_or_else_the_id() -> None:
    record = ImageRecord(id=ImageId("sha256:1"))
    assert record.reference == "sha256:1"
    known = ImageRecord(id=ImageId("sha256:1"), repo_digests=("docker.io/library/x@sha256:2",))
    assert known.reference == "docker.io/library/x@sha256:2"


def test_credentials_do_not_show_themselves() -> None:
    secret = Credentials(username="u", password="hunter2", auth="YWJj", identity_token="t0ken")
    for text in (repr(secret), str(secret), f"{secret}", f"{[secret]}"):
        assert "hunter2" not in text
        assert "t0ken" not in text

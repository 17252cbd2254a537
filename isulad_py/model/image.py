"""Images: configuration, names and layers."""

from __future__ import annotations

from msgspec import Struct, field

from isulad_py.model.ids import ChainId, Digest, ImageId


class ImageConfig(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The part of an OCI image configuration that a container starts from (OCI image spec, config.md)."""

    user: str = ""
    env: tuple[str, ...] = ()
    entrypoint: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ()
    working_dir: str = ""
    volumes: tuple[str, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)
    stop_signal: str = ""
    exposed_ports: tuple[str, ...] = ()


class Layer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    chain_id: ChainId
    diff_id: Digest
    size_bytes: int = 0
    """Unpacked."""


class ImageRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    id: ImageId
    manifest_digest: Digest = Digest("")
    repo_tags: tuple[str, ...] = ()
    """Normalised `host/path:tag`."""
    repo_digests: tuple[str, ...] = ()
    """Normalised `host/path@sha256:...`."""
    config: ImageConfig = ImageConfig()
    layers: tuple[Layer, ...] = ()
    """Bottom first."""
    size_bytes: int = 0
    os: str = "linux"
    architecture: str = ""
    created_at: int = 0
    pulled_at: int = 0
    pinned: bool = False
    raw_config: bytes = b""

    @property
    def reference(self) -> str:
        """What `image_ref` of a container says: a repository digest, or else the id."""
        return self.repo_digests[0] if self.repo_digests else self.id


class Credentials(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """CRI AuthConfig. Never logged, never stored."""

    username: str = ""
    password: str = ""
    auth: str = ""
    """base64 of `user:password`."""
    server_address: str = ""
    identity_token: str = ""
    registry_token: str = ""

    def __repr__(self) -> str:
        return "Credentials(...)"

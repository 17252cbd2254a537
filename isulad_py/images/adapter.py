"""Images from registries into the layer store."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import structlog
from msgspec.structs import replace

from isulad_py.host import blocking, files
from isulad_py.host.tasks import TaskOwner
from isulad_py.images.auth import Authenticator
from isulad_py.images.credentials import Login, login_of, parse_auth_file, serves
from isulad_py.images.flights import Flights
from isulad_py.images.hosts_file import HOSTS_LIMIT, folders_for, parse_hosts
from isulad_py.images.http import HttpClient
from isulad_py.images.manifest import Configuration, Descriptor, chain_ids
from isulad_py.images.options import Endpoint, RegistryOptions, endpoints_for
from isulad_py.images.platform import architecture_of
from isulad_py.images.policy import admit, read_policy
from isulad_py.images.registry import Document, PlainHosts, Repository
from isulad_py.images.resolve import find_image
from isulad_py.images.transfer import LayerPlan, Transfer
from isulad_py.model.errors import EngineError, FailedPrecondition, NotFound
from isulad_py.model.ids import Digest, ImageId
from isulad_py.model.image import Credentials, ImageRecord, Layer
from isulad_py.model.reference import Reference
from isulad_py.ports.clock import Clock
from isulad_py.ports.images import PullProgress, PullRequest
from isulad_py.ports.layers import LayerFacts, LayerIngest

log = structlog.get_logger(__name__)

Progress = Callable[[PullProgress], None]
PROGRESS_BYTES: Final = 1024 * 1024
AUTH_FILE_LIMIT: Final = 1024 * 1024


class RegistryImages:
    """Implements ports.images.ImageSource. To be made while the loop runs."""

    def __init__(self, *, layers: LayerIngest, options: RegistryOptions, clock: Clock, machine: str = "") -> None:
        """`machine` is uname's; empty for this one."""
        self._layers = layers
        self._options = options
        self._machine = machine or os.uname().machine
        self._http = HttpClient(options, clock)
        self._auth = Authenticator(self._http, clock)
        self._transfer = Transfer(layers=layers, options=options, clock=clock)
        self._tasks = TaskOwner(on_failure=_report)
        self._flights: Flights[LayerFacts] = Flights(self._tasks)
        self._plain_hosts = PlainHosts()

    def reload(self, options: RegistryOptions) -> None:
        """For the pulls that begin from now on."""
        self._options = self._http.options = self._transfer.options = options
        self._plain_hosts = PlainHosts()

    async def close(self) -> None:
        """Ends what is under way; nothing half-made stays visible."""
        await self._tasks.close()
        self._transfer.close()
        await self._http.close()

    async def pull(self, request: PullRequest, progress: Progress | None = None) -> ImageRecord:
        say = progress or (lambda _: None)
        say(PullProgress(step="resolving"))
        reference = request.reference
        try:
            repository = await self._repository(reference, request.credentials)
        except FailedPrecondition as error:
            raise FailedPrecondition(f"registry {reference.host}: image {reference}: configure: {error}") from error
        unchanged = await self._by_head(repository, request)
        if unchanged is None:
            document = await repository.manifest(request.reference.selector)
            unchanged = self._known(document.digest, request)
            await self._admit(repository, document.digest)
        else:
            await self._admit(repository, unchanged.manifest_digest)
        if unchanged is not None:
            record = unchanged
        else:
            record = await self._bring(repository, document, request.reference, say)
        say(PullProgress(step="done"))
        return record

    async def _endpoints(self, host: str) -> tuple[Endpoint, ...]:
        """The configuration's mirrors, then what the host's own hosts.toml says, read anew for each pull."""
        endpoints = endpoints_for(host, self._options)
        folder, body = await blocking.run(_hosts_file, self._options.certs_dir, host)
        if body is None:
            return endpoints
        mirrors = tuple(endpoint for endpoint in endpoints if endpoint.mirror)
        return (*mirrors, *parse_hosts(body, folder=folder, host=host, upstream=endpoints[-1].host))

    async def _admit(self, repository: Repository, digest: Digest) -> None:
        """Whether the signature policy lets this image in, before any of its layers comes."""
        with repository.naming("check policy"):
            policy = await read_policy(self._options.policy_file)
            if policy is not None:
                admit(policy, repository.reference, digest)

    async def _repository(self, reference: Reference, credentials: Credentials | None) -> Repository:
        given = login_of(credentials)
        server_address = credentials.server_address if credentials is not None else ""
        data = b"{}"
        path = self._options.auth_file
        if path:
            try:
                data = await blocking.run(files.read_limited, path, AUTH_FILE_LIMIT)
                parse_auth_file(data, reference.host, reference.path)
            except NotFound:
                data = b"{}"
            except EngineError as error:
                data = b"{}"
                if given.anonymous:
                    raise FailedPrecondition(f"registry-auth-file: {path}: {error}") from error
                log.warning("registry-auth-file cannot be read", path=path, error=str(error))  # this pull has its own

        def login_for(endpoint: Endpoint) -> Login:
            """Credentials go to the registry they are for: not to a mirror, unless they name it. Elsewhere, and where
            none are given, the file's count."""
            allowed = serves(server_address, endpoint.host) if server_address else not endpoint.mirror
            if not given.anonymous and allowed:
                return given
            return parse_auth_file(data, endpoint.host, reference.path)

        return Repository(
            reference,
            await self._endpoints(reference.host),
            http=self._http,
            auth=self._auth,
            login_for=login_for,
            plain_hosts=self._plain_hosts,
        )

    async def _by_head(self, repository: Repository, request: PullRequest) -> ImageRecord | None:
        """A tag that we have is asked for by HEAD first: mostly it is unchanged."""
        tag = request.reference.repo_tag
        if request.reference.digest or not any(tag in record.repo_tags for record in request.known):
            return None
        try:
            digest = await repository.head()
        except EngineError:
            return None  # some registries know no HEAD, or forbid it; what is really wrong, the GET tells
        return self._known(digest, request) if digest else None

    def _known(self, digest: Digest, request: PullRequest) -> ImageRecord | None:
        """The image that we have under that digest, under the name by which it was asked for."""
        for record in request.known:
            names = {name.rpartition("@")[2] for name in record.repo_digests}
            complete = all(self._layers.find(layer.chain_id) is not None for layer in record.layers)
            if complete and (digest == record.manifest_digest or digest in names):
                return replace(record, **_names(request.reference, digest))
        return None

    async def _bring(
        self, repository: Repository, document: Document, reference: Reference, say: Progress
    ) -> ImageRecord:
        found = await find_image(repository, document, self._machine)
        manifest, configuration = found.manifest, found.configuration
        facts = await self._bring_layers(repository, _plans(manifest.layers, configuration), say)
        layers = tuple(
            Layer(chain_id=layer.chain_id, diff_id=layer.diff_id, size_bytes=layer.used_bytes) for layer in facts
        )
        record = ImageRecord(
            id=ImageId(manifest.config.digest),
            manifest_digest=found.digest,
            config=configuration.config,
            layers=layers,
            size_bytes=sum(layer.size_bytes for layer in layers) + len(found.raw_config),
            os=configuration.os,
            architecture=configuration.architecture or architecture_of(self._machine),
            created_at=configuration.created_at,
            raw_config=found.raw_config,
        )
        return replace(record, **_names(reference, document.digest))

    async def _bring_layers(
        self, repository: Repository, plans: Sequence[LayerPlan], say: Progress
    ) -> list[LayerFacts]:
        """All layers of an image at once, the largest first; visible together when all are here."""
        chain = [plan.chain_id for plan in plans]
        room = asyncio.Semaphore(self._options.concurrency)

        async def bring(plan: LayerPlan) -> None:
            async with room:
                await self._bring_layer(repository, plan, say)

        with self._layers.keep(chain):
            missing = [plan for plan in plans if self._layers.find(plan.chain_id) is None]
            for plan in missing:
                blob = plan.descriptor
                say(PullProgress(step="downloading", digest=blob.digest, total_bytes=blob.size))
            try:
                async with asyncio.TaskGroup() as group:
                    for plan in sorted(missing, key=lambda plan: -plan.descriptor.size):
                        group.create_task(bring(plan), name=f"layer {plan.chain_id[:19]}")
            except BaseExceptionGroup as errors:
                error = _first(errors)
                raise error from error.__cause__
            say(PullProgress(step="unpacking"))
            facts = [self._layers.find(chain_id) for chain_id in chain]
            await self._layers.publish(chain)
        return [layer for layer in facts if layer is not None]

    async def _bring_layer(self, repository: Repository, plan: LayerPlan, say: Progress) -> None:
        digest, total = plan.descriptor.digest, plan.descriptor.size
        told = 0

        def tell(done: int) -> None:
            nonlocal told
            if done - told >= PROGRESS_BYTES or done == total:
                told = done
                say(PullProgress(step="downloading", digest=digest, done_bytes=done, total_bytes=total))

        await self._flights.run(plan.chain_id, lambda: self._transfer.bring(repository, plan, tell))


def _hosts_file(certs_dir: str, host: str) -> tuple[str, bytes | None]:
    """The folder that counts for the host, and its hosts.toml, if it has one. Raises FailedPrecondition for one that
    cannot be read."""
    for name in folders_for(host) if certs_dir else ():
        folder = Path(certs_dir, name)
        if folder.is_dir():
            try:
                return str(folder), files.read_limited(f"{folder}/hosts.toml", HOSTS_LIMIT)
            except NotFound:
                break
            except EngineError as error:
                raise FailedPrecondition(str(error)) from error
    return "", None


def _plans(descriptors: Sequence[Descriptor], configuration: Configuration) -> list[LayerPlan]:
    return [
        LayerPlan(descriptor=descriptor, chain_id=chain_id, diff_id=diff_id)
        for descriptor, chain_id, diff_id in zip(
            descriptors, chain_ids(configuration.diff_ids), configuration.diff_ids, strict=True
        )
    ]


def _names(reference: Reference, digest: Digest) -> dict[str, tuple[str, ...]]:
    """As containerd files them: beside a digest, a tag does not count."""
    tags = () if reference.digest or not reference.tag else (reference.repo_tag,)
    return {"repo_tags": tags, "repo_digests": (reference.at(digest).repo_digest,)}


def _first(errors: BaseExceptionGroup) -> BaseException:
    """The one that ended the others."""
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _report(name: str, error: BaseException) -> None:
    log.error("a task of the image service died", task=name, error=repr(error))

"""A registry over real HTTP that can be told to misbehave."""

from __future__ import annotations

import base64
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable

from aiohttp import web

from tests.images import Image, digest

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Trick = Callable[[web.Request, Handler], Awaitable[web.StreamResponse]]


class FakeRegistry:
    """Serves what is put into it. `tricks` by kind of request (manifest, blob, token) answer instead, and may pass the
    request on. `login` makes it want Basic, or with `tokens` a Bearer token of its own service. `seen` tells what was
    asked."""

    def __init__(self) -> None:
        self.manifests: dict[tuple[str, str], Image] = {}
        self.blobs: dict[str, bytes] = {}
        self.tricks: dict[str, Trick] = {}
        self.login: tuple[str, str] | None = None
        self.tokens = False
        self.token_answer: dict[str, object] = {"token": "good", "expires_in": 300}
        self.seen: list[str] = []
        self.authorizations: list[str] = []
        self.host = ""
        self.scheme = "http"

    def put(self, repository: str, tag: str, image: Image) -> str:
        """Gives the reference by tag."""
        for name in (tag, image.digest):
            self.manifests[repository, name] = image
        for part in image.images:
            self.put(repository, part.digest, part)
        self.blobs.update(image.blobs)
        return f"{self.host}/{repository}:{tag}"

    def count(self, word: str) -> int:
        return sum(word in line for line in self.seen)

    @contextlib.asynccontextmanager
    async def serve(self, tls: ssl.SSLContext | None = None) -> AsyncIterator[FakeRegistry]:
        app = web.Application()
        app.router.add_route("GET", "/v2/{repository:.+}/manifests/{name}", self._dispatch("manifest", self._manifest))
        app.router.add_route("HEAD", "/v2/{repository:.+}/manifests/{name}", self._dispatch("head", self._manifest))
        app.router.add_route("GET", "/v2/{repository:.+}/blobs/{name}", self._dispatch("blob", self._blob))
        app.router.add_route("*", "/token", self._dispatch("token", self._token))
        app.router.add_route("*", "/{path:.*}", self._dispatch("other", self._other))
        runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None, handler_cancellation=True)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
            await site.start()
            self.host = f"127.0.0.1:{runner.addresses[0][1]}"
            self.scheme = "https" if tls else "http"
            yield self
        finally:
            await runner.cleanup()

    def _dispatch(self, kind: str, handler: Handler) -> Handler:
        async def answer(request: web.Request) -> web.StreamResponse:
            range_ = f" {request.headers['Range']}" if "Range" in request.headers else ""
            self.seen.append(f"{request.method} {request.path_qs}{range_}")
            self.authorizations.append(request.headers.get("Authorization", ""))
            if kind != "token" and not self._allowed(request):
                return self._challenge(request)
            trick = self.tricks.get(kind)
            return await (trick(request, handler) if trick else handler(request))

        return answer

    def _basic(self) -> str:
        assert self.login is not None
        return "Basic " + base64.b64encode(":".join(self.login).encode()).decode()

    def _allowed(self, request: web.Request) -> bool:
        given = request.headers.get("Authorization", "")
        if self.tokens:
            return given == f"Bearer {self.token_answer.get('token') or self.token_answer.get('access_token')}"
        return self.login is None or given == self._basic()

    def _challenge(self, request: web.Request) -> web.Response:
        if self.tokens:
            repository = request.match_info.get("repository", "")
            realm = f"{self.scheme}://{self.host}/token"
            wanted = f'Bearer realm="{realm}",service="fake",scope="repository:{repository}:pull"'
        else:
            wanted = 'Basic realm="fake"'
        body = json.dumps({"errors": [{"code": "UNAUTHORIZED", "message": "authentication required"}]})
        headers = {"WWW-Authenticate": wanted}
        return web.Response(status=401, text=body, content_type="application/json", headers=headers)

    async def _token(self, request: web.Request) -> web.StreamResponse:
        if request.method == "POST":
            form = await request.post()
            if self.login is not None and form.get("refresh_token") != self.login[1]:
                return web.Response(status=401)
        elif self.login is not None and request.headers.get("Authorization", "") != self._basic():
            return web.Response(status=401)
        return web.json_response(self.token_answer)

    async def _manifest(self, request: web.Request) -> web.StreamResponse:
        image = self.manifests.get((request.match_info["repository"], request.match_info["name"]))
        if image is None:
            return error(404, "MANIFEST_UNKNOWN", "manifest unknown")
        headers = {"Docker-Content-Digest": image.digest, "Content-Type": image.media_type}
        return web.Response(body=image.document, headers=headers)

    async def _blob(self, request: web.Request) -> web.StreamResponse:
        data = self.blobs.get(request.match_info["name"])
        if data is None:
            return error(404, "BLOB_UNKNOWN", "blob unknown")
        start = range_start(request)
        if start is None:
            return web.Response(body=data, content_type="application/octet-stream")
        headers = {"Content-Range": f"bytes {start}-{len(data) - 1}/{len(data)}"}
        return web.Response(status=206, body=data[start:], headers=headers)

    async def _other(self, _: web.Request) -> web.StreamResponse:
        return web.Response(status=404, text="<html>nothing here</html>", content_type="text/html")


def range_start(request: web.Request) -> int | None:
    value = request.headers.get("Range", "")
    return int(value.removeprefix("bytes=").rstrip("-")) if value else None


def error(status: int, code: str, message: str) -> web.Response:
    return web.json_response({"errors": [{"code": code, "message": message}]}, status=status)


async def cut_after(request: web.Request, data: bytes, size: int) -> web.StreamResponse:
    """Announces all of the data, sends a part, and drops the connection."""
    response = web.StreamResponse(headers={"Content-Length": str(len(data))})
    await response.prepare(request)
    await response.write(data[:size])
    assert request.transport is not None
    request.transport.close()
    return response


__all__ = ["FakeRegistry", "cut_after", "digest", "error", "range_start"]

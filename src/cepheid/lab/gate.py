"""Who gets in: requests to this machine by its name, with the token, of a bounded size, and only so
many at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from hmac import compare_digest
from typing import Any

from starlette.responses import PlainTextResponse

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LARGEST = 8 << 20
"""Bytes of a request: 20,000 events with a dozen columns."""

AT_ONCE = 16
"""Requests that are answered at once."""

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
        "connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""Nothing is loaded from elsewhere, no script stands in a page, and the address, which has the
token, is sent to nobody."""


class Gate:
    """The application behind the address `/TOKEN/…`."""

    def __init__(self, app: App, token: str, largest: int = LARGEST, at_once: int = AT_ONCE):
        self._app = app
        self._token = token.encode()
        self._largest = largest
        self._free = at_once

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            refused = self._refused(scope)
            if refused is not None:
                await refused(scope, receive, _with_headers(send))
            else:
                await self._admit(scope, receive, _with_headers(send))

    def _refused(self, scope: Scope) -> PlainTextResponse | None:
        headers = dict(scope["headers"])
        if not _is_here(headers.get(b"host", b"")):
            return _no(403, "the lab answers only to 127.0.0.1 and localhost")
        first, _, rest = scope["path"].removeprefix("/").partition("/")
        if not compare_digest(first.encode(), self._token):
            return _no(403, "the address lacks the token: open the one that the command printed")
        origin = headers.get(b"origin")
        if origin is not None and origin != b"http://" + headers[b"host"]:
            return _no(403, "another page may not ask the lab")
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > self._largest:
            return _no(413, self._too_large)
        scope["path"] = f"/{rest}"
        return None

    @property
    def _too_large(self) -> str:
        return f"that is more than the lab takes at once: at most {self._largest >> 20} MB"

    async def _admit(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._free:
            await _no(503, "too many requests at once: try again")(scope, receive, send)
            return
        self._free -= 1
        try:
            body = await self._body(receive)
            if body is None:
                await _no(413, self._too_large)(scope, receive, send)
            else:
                await self._app(scope, _given(body, receive), send)
        finally:
            self._free += 1

    async def _body(self, receive: Receive) -> bytes | None:
        """The whole body, or None if it is too large, whatever its length was said to be."""
        parts: list[bytes] = []
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                break
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self._largest:
                return None
            more = message.get("more_body", False)
        return b"".join(parts)


def _is_here(host: bytes) -> bool:
    """Whether the host is this machine by its own name. A page elsewhere may have a name that leads
    here, too."""
    name = host.rpartition(b":")[0] if not host.endswith(b"]") and b":" in host else host
    return name in (b"127.0.0.1", b"localhost", b"[::1]")


def _no(status: int, sentence: str) -> PlainTextResponse:
    return PlainTextResponse(sentence, status)


def _given(body: bytes, receive: Receive) -> Receive:
    """The body that was read, then what comes after it: that the page has gone."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again


def _with_headers(send: Send) -> Send:
    added = [(name.encode(), value.encode()) for name, value in HEADERS.items()]

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *added]
        await send(message)

    return sent

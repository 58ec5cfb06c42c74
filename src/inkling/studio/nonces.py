"""The policy of what a page of the studio may load and run.

Scripts come from this server or carry the number (nonce) of this one answer; so text that slipped into a page could not
run, and nothing is ever loaded from elsewhere. Vue compiles its templates in the page, which is 'unsafe-eval'; styles
are set by elements, which is 'unsafe-inline' of styles. All texts of people reach a page as data, never as markup
(NiceGUI escapes `<` in what it embeds), so every `<script` in it is the framework's own.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Any, Any, Send], Awaitable[None]]

POLICY = (
    "default-src 'none'; script-src 'self' 'nonce-{nonce}' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "object-src 'none'; frame-ancestors 'none'"
)
SCRIPT = re.compile(rb"<script(?=[\s>])")


class Nonces:
    """Wraps the application: pages get a policy, and their scripts its number."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start: Message = {}
        body: list[bytes] = []

        async def marked(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                start = message
                if not _is_page(message):
                    await send(message)
                return
            if not _is_page(start):
                await send(message)
                return
            body.append(message.get("body", b""))
            if message.get("more_body", False):
                return
            nonce = secrets.token_urlsafe(16)
            page = SCRIPT.sub(b'<script nonce="' + nonce.encode() + b'"', b"".join(body))
            kept = [(n, v) for n, v in start["headers"] if n.lower() not in (b"content-length", b"cache-control")]
            extra = [
                (b"content-length", str(len(page)).encode()),
                (b"content-security-policy", POLICY.format(nonce=nonce).encode()),
                (b"cache-control", b"no-store"),
            ]
            await send({**start, "headers": kept + extra})
            await send({"type": "http.response.body", "body": page})

        await self.app(scope, receive, marked)


def _is_page(start: Message) -> bool:
    return any(
        name.lower() == b"content-type" and value.startswith(b"text/html") for name, value in start.get("headers", ())
    )

"""The guard: asks `Policy` of every request and every websocket, whatever stands behind.

    403   a Host or Origin that is not ours, or a page elsewhere that made the request
    401   no token, or not the right one
    404   a path that tries to climb: `..`, `//`, a backslash, a control character, anything encoded twice
    413   a body that is too large: at once if it says so, else when it gets there
    408   a body that comes too slowly
    503   more files are being sent than are received at a time
    504   not answered in time

In this order, so that who has no business here learns nothing else; never with a redirect, and the connection is then
closed, so that nobody who was refused holds one or goes on sending. Every answer has headers that keep a browser from
guessing types, from framing it, from telling others its address, and unless it has a policy of its own, from loading
anything.

Left out: accounts and rights (who has the token may do everything), and TLS (put a proxy before it).
"""

from __future__ import annotations

import asyncio
import hmac
import html
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, MutableMapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode

from inkling.door.policy import Policy

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

SECURITY_HEADERS = {
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"permissions-policy": b"camera=(), microphone=(), geolocation=()",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    b"cache-control": b"no-store",
}
PATH_LETTERS = "/:@!$&'()*+,;=-._~"  # that stand in a path as they are
MOST_DIGITS = 18  # of a length
DECODINGS = 4  # layers of percent-encoding that are looked under
FORBIDDEN_HEADERS = (b"x-forwarded-", b"forwarded")  # what a proxy would add; there is none, so they are lies


class Refused(Exception):
    """A request that is not let in: what it is answered with."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence


class Guard:
    """Wraps an ASGI application."""

    def __init__(self, app: App, policy: Policy) -> None:
        self.app = app
        self.policy = policy
        self._uploads = 0  # being received now

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._websocket(scope, receive, send)
        else:
            await self._http(scope, receive, send)

    # ------------------------------------------------------------------------------------------- what is asked

    def check(self, scope: Scope) -> None:
        """Raises `Refused` unless this request may come in."""
        headers = [(name.lower(), value) for name, value in scope["headers"]]
        hosts = _values(headers, b"host")
        if len(hosts) != 1 or hosts[0].lower() not in self.policy.hosts:
            raise Refused(403, "This server does not answer to that name; use the address it printed.")
        origins = _values(headers, b"origin")
        if any(origin.lower() not in self.policy.origins for origin in origins):
            raise Refused(403, "Requests that other pages make are not answered.")
        known_by_header = self._has_bearer(headers)
        self._check_site(scope, headers, origins, known_by_header)
        if not (known_by_header or self._has_cookie(headers) or self._has_query_token(scope)):
            raise Refused(401, "A token is needed: open the address that was printed, or send it as a Bearer token.")
        if climbs(scope):
            raise Refused(404, "There is nothing at this path.")

    def _check_site(
        self, scope: Scope, headers: list[tuple[bytes, bytes]], origins: list[str], known_by_header: bool
    ) -> None:
        """A cookie comes along with what another page asks for, so who is known by it must have come from us."""
        if known_by_header:  # no page can set that header without our consent
            return
        if scope["type"] == "websocket" and not origins:
            raise Refused(403, "A websocket of a browser says where it comes from; this one does not.")
        sites = _values(headers, b"sec-fetch-site")
        opened = _values(headers, b"sec-fetch-mode") == ["navigate"] and scope.get("method") == "GET"
        if any(site not in ("same-origin", "none") for site in sites) and not (opened and self._has_query_token(scope)):
            raise Refused(403, "Requests that other pages make are not answered.")

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.policy.token.encode())

    def _has_bearer(self, headers: list[tuple[bytes, bytes]]) -> bool:
        found = _values(headers, b"authorization")
        return len(found) == 1 and found[0][:7].lower() == "bearer " and self._is_token(found[0][7:].strip())

    def _has_cookie(self, headers: list[tuple[bytes, bytes]]) -> bool:
        """Our cookie needs no quoting; the standard library's unquoting takes time quadratic in what anyone sends."""
        pairs = [pair.partition("=") for line in _values(headers, b"cookie") for pair in line.split(";")]
        return any(name.strip() == self.policy.cookie and self._is_token(value.strip()) for name, _, value in pairs)

    def _has_query_token(self, scope: Scope) -> bool:
        """Only where a person opens a page: an address is seen by more eyes than a header."""
        if not self.policy.pages or scope["type"] != "http" or scope["method"] != "GET":
            return False
        return any(name == "token" and self._is_token(value) for name, value in _query(scope))

    # ------------------------------------------------------------------------------------------- letting in

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            self.check(scope)
        except Refused:
            await receive()  # its wish to connect
            await send({"type": "websocket.close", "code": 1008})
            return
        await self.app(_cleaned(scope), receive, send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        upload = self.policy.is_upload(scope["method"], scope["path"])
        most = self.policy.largest_upload_bytes if upload else self.policy.largest_body_bytes
        seconds = self.policy.upload_seconds if upload else self.policy.body_seconds
        exchange = _Exchange(receive, send, most, seconds)
        try:
            self.check(scope)
            declared = _values([(n.lower(), v) for n, v in scope["headers"]], b"content-length")
            if any(_too_long(size, most) for size in declared):
                raise Refused(413, _too_large(most))
            if self._has_query_token(scope):
                await self._keep_token(scope, exchange.send)
                return
            async with self._turn(upload), asyncio.timeout(self.policy.request_seconds):
                await self.app(_cleaned(scope), exchange.receive, exchange.send)
        except Refused as refusal:
            await exchange.refuse(refusal)
        except TimeoutError:
            await exchange.refuse(Refused(504, "This took too long and was given up; ask for less at once."))
        except Exception:
            if not exchange.refused:  # or it is what became of the body that we gave up
                raise

    @asynccontextmanager
    async def _turn(self, upload: bool) -> AsyncIterator[None]:
        """Files lie on the disk while they are received, so there are only so many at a time."""
        if upload and self._uploads >= self.policy.most_uploads:
            raise Refused(503, "Other files are being received; send this one when they are here.")
        self._uploads += upload
        try:
            yield
        finally:
            self._uploads -= upload

    async def _keep_token(self, scope: Scope, answer: Send) -> None:
        """Turns the token of an address into a cookie, and leads to the same page without it.

        That page is ours, for a path with // in it was refused. Who followed a link on another page is led by a page:
        a browser sends no strict cookie along with a redirect that began elsewhere.
        """
        rest = urlencode([(name, value) for name, value in _query(scope) if name != "token"])
        target = quote(scope["path"], safe=PATH_LETTERS) + ("?" + rest if rest else "")
        cookie = f"{self.policy.cookie}={self.policy.token}; Path=/; HttpOnly; SameSite=Strict"
        sites = _values([(n.lower(), v) for n, v in scope["headers"]], b"sec-fetch-site")
        from_elsewhere = any(site not in ("same-origin", "none") for site in sites)
        page = f'<meta http-equiv="refresh" content="0;url={html.escape(target)}">' if from_elsewhere else ""
        headers = [(b"set-cookie", cookie.encode()), (b"content-length", str(len(page)).encode())]
        headers.append((b"content-type", b"text/html") if from_elsewhere else (b"location", target.encode()))
        await answer({"type": "http.response.start", "status": 200 if from_elsewhere else 303, "headers": headers})
        await answer({"type": "http.response.body", "body": page.encode()})


def _too_long(declared: str, most: int) -> bool:
    return not (declared.isascii() and declared.isdigit() and len(declared) <= MOST_DIGITS) or int(declared) > most


def _too_large(most: int) -> str:
    return f"The body is larger than {most:,} bytes; send less at once."


class _Exchange:
    """A request and its answer: gives up on a body that grows too large or comes too slowly, and then answers itself.

    What stands behind hears that the other side has gone, and what it says to that is not sent. (It cannot be told by
    an exception: frameworks catch what `receive` raises, or wrap it.)
    """

    def __init__(self, receive: Receive, send: Send, most_bytes: int, seconds: float) -> None:
        self._receive, self._send, self._most = receive, send, most_bytes
        self._deadline = asyncio.get_running_loop().time() + seconds
        self._size = 0
        self._ended = False  # the body is here
        self.started = False  # the answer has begun
        self.refused = False

    async def receive(self) -> Message:
        if self.refused:
            return {"type": "http.disconnect"}
        if self._ended:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await self._receive()
        except TimeoutError:
            return await self.refuse(Refused(408, "The body did not arrive in time; send it at once."))
        self._size += len(message.get("body", b""))
        self._ended = message["type"] == "http.disconnect" or not message.get("more_body", False)
        if self._size > self._most:
            return await self.refuse(Refused(413, _too_large(self._most)))
        return message

    async def send(self, message: Message) -> None:
        if self.refused:
            return
        if message["type"] == "http.response.start":
            self.started = True
            message = {**message, "headers": _secured(message.get("headers", ()))}
        await self._send(message)

    async def refuse(self, refusal: Refused) -> Message:
        """Answers, unless an answer has begun; what the application hears from now on."""
        if not self.started:
            await _refuse(self.send, refusal)
            self.refused = True
        return {"type": "http.disconnect"}


def climbs(scope: Scope) -> bool:
    """Whether a path is anything but plain ASCII names between slashes, however it is encoded."""
    raw = scope.get("raw_path") or scope["path"].encode()
    text = raw.decode("latin-1")
    for _ in range(DECODINGS):
        if any(not " " < letter < "\x7f" or letter == "\\" for letter in text):
            return True
        if "//" in text or any(part.split(";")[0] in (".", "..") for part in text.split("/")):
            return True  # joined to a folder, what comes after // would be a path of its own
        decoded = unquote(text, encoding="latin-1")
        if decoded == text:
            return "%" in text
        text = decoded
    return True


def _query(scope: Scope) -> list[tuple[str, str]]:
    return parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True, max_num_fields=None)


def _values(headers: Iterable[tuple[bytes, bytes]], wanted: bytes) -> list[str]:
    return [value.decode("latin-1") for name, value in headers if name == wanted]


def _cleaned(scope: Scope) -> Scope:
    kept = [(name, value) for name, value in scope["headers"] if not name.lower().startswith(FORBIDDEN_HEADERS)]
    return {**scope, "headers": kept}


def _secured(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    found = list(headers)
    present = {name.lower() for name, _ in found}
    return found + [(name, value) for name, value in SECURITY_HEADERS.items() if name not in present]


async def _refuse(answer: Send, refusal: Refused) -> None:
    body = json.dumps({"error": {"message": refusal.sentence, "type": "refused", "code": refusal.status}}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(b"connection", b"close")] if refusal.status != 404 else []
    headers += [(b"www-authenticate", b"Bearer")] if refusal.status == 401 else []
    await answer({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await answer({"type": "http.response.body", "body": body})

"""One request and its answer, over ASGI.

Answers are whole, or events that are sent as they come. Who waits for an answer may go away; `unless_gone` notices at
once, so that no work is done for nobody.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, MutableMapping
from typing import Any, TypeVar

from inkling.serve.bodies import Body, Refusal, parse

Message = MutableMapping[str, Any]
Result = TypeVar("Result")


class Gone(Exception):
    """The client went away."""


class Exchange:
    def __init__(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        self.method, self.path = str(scope["method"]), str(scope["path"])
        self._receive, self._send = receive, send
        self.started = False
        self.is_gone = False

    async def read(self, kind: type[Body]) -> Body:
        """The body, which must be one of that kind."""
        parts = []
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise Gone
            parts.append(message.get("body", b""))
            if not message.get("more_body", False):
                break
        raw = b"".join(parts)
        return await asyncio.to_thread(parse, kind, raw) if len(raw) > 1 << 16 else parse(kind, raw)

    async def unless_gone(self, awaitable: Awaitable[Result]) -> Result:
        """The result; raises `Gone` as soon as nobody waits for it."""
        work, gone = asyncio.ensure_future(awaitable), asyncio.ensure_future(self._wait_until_gone())
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                return work.result()
            raise Gone
        finally:
            for task in (work, gone):
                task.cancel()

    @contextlib.asynccontextmanager
    async def watched(self, on_gone: Callable[[], None]) -> AsyncIterator[None]:
        """While this lasts, `is_gone` says whether the client is; `on_gone` is called when it goes. For who waits for
        many things: to begin and end this costs more than most tokens."""

        async def watch() -> None:
            await self._wait_until_gone()
            self.is_gone = True
            on_gone()

        watching = asyncio.ensure_future(watch())
        try:
            yield
        finally:
            watching.cancel()

    async def _wait_until_gone(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def answer(
        self,
        body: bytes | dict[str, Any],
        status: int = 200,
        content_type: str = "application/json",
        headers: Iterable[tuple[bytes, bytes]] = (),
    ) -> None:
        raw = as_json(body) if isinstance(body, dict) else body
        found = [(b"content-type", content_type.encode()), (b"content-length", str(len(raw)).encode()), *headers]
        self.started = True
        await self._send({"type": "http.response.start", "status": status, "headers": found})
        await self._send({"type": "http.response.body", "body": b"" if self.method == "HEAD" else raw})

    async def refuse(self, refusal: Refusal) -> None:
        headers = [(b"retry-after", str(refusal.retry).encode())] if refusal.retry else []
        await self.answer(refusal.record(), refusal.status, headers=headers)

    async def break_off(self, refusal: Refusal) -> None:
        """Ends the answer where it is, or refuses if it has not begun."""
        if self.started:
            await self._send({"type": "http.response.body", "body": b""})
        else:
            await self.refuse(refusal)

    async def begin_events(self) -> None:
        self.started = True
        headers = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"x-accel-buffering", b"no")]
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})

    async def send_events(self, events: Iterable[bytes]) -> None:
        body = b"".join(b"data: " + event + b"\n\n" for event in events)
        await self._send({"type": "http.response.body", "body": body, "more_body": True})

    async def end_events(self) -> None:
        await self._send({"type": "http.response.body", "body": b"data: [DONE]\n\n"})


def as_json(record: dict[str, Any]) -> bytes:
    # Escaped to ASCII: no character of a text, such as a line separator, has a meaning to whoever reads on.
    return json.dumps(record, separators=(",", ":"), allow_nan=False).encode()

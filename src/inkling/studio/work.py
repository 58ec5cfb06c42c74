"""Work that a page waits for without holding up the others: in a thread, or in a process of its own.

    aside(function, …)      a thread: what takes seconds at most and needs models that are open
    Latest()                a thread, one question at a time: while one is worked on, only the newest other is kept
    Child(job, …)           a process: what takes long, may be cancelled, or reads what people upload

A child is `python -m inkling.studio.child JOB`: it gets JSON on standard input and says JSON lines on standard output,
`{"done": 0.3, "say": "…"}` or `{"part": …}` as it goes and `{"result": …}` or `{"error": "one sentence"}` in the end.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar

from nicegui import ui

from inkling.errors import InklingError

T = TypeVar("T")
P = ParamSpec("P")
LINE_BYTES = 1 << 27  # the longest answer of a child
THREADS = ThreadPoolExecutor(4, "studio")


async def aside(function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """The result of `function`, worked out in a thread."""
    return await asyncio.get_running_loop().run_in_executor(THREADS, partial(function, *arguments, **named))


def told(handler: Callable[P, Awaitable[None]]) -> Callable[P, Awaitable[None]]:
    """An event handler whose mistakes are said in words on the page."""

    @wraps(handler)
    async def wrapped(*arguments: P.args, **named: P.kwargs) -> None:
        try:
            await handler(*arguments, **named)
        except InklingError as error:
            say_error(str(error))

    return wrapped


def say_error(sentence: str) -> None:
    ui.notify(sentence, type="negative", multi_line=True, timeout=12000, close_button="Close", position="top")


class Latest:
    """Answers to questions that come faster than they can be answered: as somebody types, or moves a slider."""

    def __init__(self, keeps_up: bool = False) -> None:
        """Where it `keeps_up`, an answer that was begun is given even if a newer question came meanwhile: a slider that
        never rests is still seen to move things."""
        self._lock = asyncio.Lock()
        self._newest = 0
        self._keeps_up = keeps_up

    async def __call__(self, function: Callable[..., T], *arguments: Any) -> T | None:
        """The answer, or None where a newer question came before this one was begun or while it was worked on."""
        self._newest += 1
        mine = self._newest
        async with self._lock:
            if mine != self._newest:
                return None
            found = await aside(function, *arguments)
        return found if mine == self._newest or self._keeps_up else None


class Child:
    """A job in a process of its own; `cancel` ends it at once."""

    def __init__(
        self,
        job: str,
        arguments: dict[str, Any],
        on_progress: Callable[[float | None, str], None],
        on_part: Callable[[Any], None] = lambda part: None,
    ) -> None:
        self.job, self.arguments, self.on_progress, self.on_part = job, arguments, on_progress, on_part
        self.cancelled = False
        self._process: asyncio.subprocess.Process | None = None

    async def result(self) -> Any:
        """What the job gives back. Raises `InklingError` with its sentence, also when it was cancelled."""
        pipe = asyncio.subprocess.PIPE
        self._process = process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "inkling.studio.child",
            self.job,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            limit=LINE_BYTES,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        told = asyncio.create_task(process.stderr.read())  # or a child that says much would wait for us
        try:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it ended early, and says why
                process.stdin.write(json.dumps(self.arguments).encode())
                await process.stdin.drain()
            process.stdin.close()
            while line := await process.stdout.readline():
                message = json.loads(line)
                if "result" in message:
                    return message["result"]
                if "error" in message:
                    raise InklingError(message["error"])
                if "part" in message:
                    self.on_part(message["part"])
                else:
                    self.on_progress(message.get("done"), message.get("say", ""))
            await process.wait()
        finally:
            self._end()
            await process.wait()
            words = (await told).decode("utf-8", "replace").strip()
        if self.cancelled:
            raise InklingError("This was cancelled.")
        last = words.splitlines()[-1] if words else f"exit code {process.returncode}"
        raise InklingError(f"This ended without a result ({last}); there may not be enough memory or time for it.")

    def cancel(self) -> None:
        self.cancelled = True
        self._end()

    def _end(self) -> None:
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

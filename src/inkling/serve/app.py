"""The service as an ASGI application: paths, errors, counting. Who may come in is asked before (door/guard.py).

    GET   /v1/models  /v1/models/NAME  /health  /metrics
    POST  /v1/completions  /v1/score  /v1/classify  /tokenize  /detokenize

No handler does a model's work: that is done by the threads of shelf.py, so the loop is free to answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

from inkling import __version__
from inkling.door.guard import Guard, Refused
from inkling.door.policy import Policy
from inkling.serve.analysis import classify, detokenize, score, tokenize
from inkling.serve.bodies import Refusal, shown
from inkling.serve.completions import complete
from inkling.serve.engine import Delivery, Task, deliver
from inkling.serve.exchange import Exchange, Gone
from inkling.serve.failures import refusal_of
from inkling.serve.limits import Limits
from inkling.serve.metrics import CONTENT_TYPE, Metrics
from inkling.serve.shelf import Opened, Shelf, finish_here

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Handler = Callable[[Exchange, Shelf, Limits, Metrics], Awaitable[None]]
MODELS = "/v1/models"


class Service:
    """Runs with the server: the models' threads start with it and end with it."""

    def __init__(self, opened: Sequence[Opened], limits: Limits, log: Callable[[BaseException], None]) -> None:
        self.opened, self.limits, self.metrics, self.log = tuple(opened), limits, Metrics(), log
        self.shelf: Shelf | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._answering: set[asyncio.Task[Any]] = set()
        self._stopping = False
        self.routes: dict[str, tuple[str, Handler]] = {
            MODELS: ("GET", self._models),
            "/health": ("GET", self._health),
            "/metrics": ("GET", self._metrics),
            "/v1/completions": ("POST", complete),
            "/v1/score": ("POST", score),
            "/v1/classify": ("POST", classify),
            "/tokenize": ("POST", tokenize),
            "/detokenize": ("POST", detokenize),
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._answer(Exchange(scope, receive, send))
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        self.start(asyncio.get_running_loop())
        await send({"type": "lifespan.startup.complete"})
        await receive()
        self.close()
        await send({"type": "lifespan.shutdown.complete"})

    def stop(self) -> None:
        """Whatever is being answered ends now. May be called from anywhere."""

        def cancel() -> None:
            self._stopping = True
            for task in self._answering:
                task.cancel()

        if self._loop is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(cancel)

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

        def post(delivery: Delivery) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended, and with it all who wait
                loop.call_soon_threadsafe(deliver, delivery)

        def post_tasks(tasks: Sequence[Task[Any, Any]]) -> None:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(finish_here, tasks)

        self.shelf = Shelf(self.opened, self.limits, self.metrics, post, post_tasks)

    def close(self) -> None:
        if self.shelf is not None:
            self.shelf.close()

    async def _answer(self, exchange: Exchange) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._answering.add(task)
        try:
            await self._handle(exchange)
        except asyncio.CancelledError:
            if not self._stopping:
                raise
            task.uncancel()
            await exchange.break_off(Refusal("The server is stopping; ask it when it is back.", status=503, retry=5))
        finally:
            self._answering.discard(task)

    async def _handle(self, exchange: Exchange) -> None:
        try:
            if self.shelf is None:
                raise Refusal("The server is only just starting; ask again.", status=503, retry=1)
            handler = self._handler(exchange)
            await handler(exchange, self.shelf, self.limits, self.metrics)
        except Gone:
            self.metrics.given_up += 1
        except Refused:  # by the guard, while the body was read
            raise
        except Exception as failure:
            if exchange.started:
                raise
            refusal = refusal_of(failure)
            if refusal.status == 500:
                self.log(failure)
            await exchange.refuse(refusal)

    def _handler(self, exchange: Exchange) -> Handler:
        path = exchange.path
        handler: Handler
        if path.startswith(MODELS + "/"):
            method, handler = "GET", self._model
        elif path in self.routes:
            method, handler = self.routes[path]
        else:
            raise Refusal(f"There is nothing at {shown(path)}; there are {', '.join(self.routes)}.", status=404)
        if exchange.method != method and (exchange.method, method) != ("HEAD", "GET"):
            raise Refusal(f"{shown(path)} was asked by {shown(exchange.method)}; use {method}.", status=405)
        return handler

    async def _models(self, exchange: Exchange, shelf: Shelf, limits: Limits, metrics: Metrics) -> None:
        await exchange.answer({"object": "list", "data": [_record(one) for one in shelf.opened]})

    async def _model(self, exchange: Exchange, shelf: Shelf, limits: Limits, metrics: Metrics) -> None:
        name = exchange.path[len(MODELS) + 1 :]
        found = [one for one in shelf.opened if one.name == name]
        if not found:
            raise Refusal(f"There is no model {shown(name)}; see GET {MODELS}.", status=404, code="model_not_found")
        await exchange.answer(_record(found[0]))

    async def _health(self, exchange: Exchange, shelf: Shelf, limits: Limits, metrics: Metrics) -> None:
        waiting = sum(depth() for depth in metrics.depths.values())
        writing = sum(service.engine.active for service in shelf.language.values())
        await exchange.answer({"status": "ok", "version": __version__, "writing": writing, "waiting": waiting})

    async def _metrics(self, exchange: Exchange, shelf: Shelf, limits: Limits, metrics: Metrics) -> None:
        await exchange.answer(metrics.text().encode(), content_type=CONTENT_TYPE)


class Counted:
    """Stands before everything, also before who asks for the token, and counts what is answered."""

    def __init__(self, app: Any, service: Service) -> None:
        self.app, self.service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, status = time.perf_counter(), 0

        async def watched(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = int(message["status"])
            await send(message)

        try:
            await self.app(scope, receive, watched)
        finally:
            path = scope["path"] if scope["path"] in self.service.routes else "other"
            if status:
                self.service.metrics.answered(path, status, time.perf_counter() - started)


def _record(one: Opened) -> dict[str, Any]:
    record = {"id": one.name, "object": "model", "created": one.created, "owned_by": "inkling", "kind": one.kind}
    if one.is_classifier:
        return {**record, "labels": list(one.model.labels)}
    return {**record, "vocabulary": one.model.tokeniser.size, "context": one.model.context}


def guarded(service: Service, policy: Policy) -> Counted:
    """The service behind its door."""
    return Counted(Guard(service, policy), service)

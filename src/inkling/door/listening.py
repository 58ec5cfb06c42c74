"""Where a server listens, and how long it waits for someone who says nothing.

Uvicorn waits for the head of a request as long as it takes; a few hundred connections that send a letter a minute
would hold everything. `_Patient` ends a connection whose head is not complete after `HEAD_SECONDS` or `HEAD_BYTES`, and
the one that has waited longest when more than `MOST_WAITING` have sent none: who means it sends a head at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import os
import socket
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, ClassVar

from inkling.errors import InklingError, UsageError

HEAD_SECONDS = 10.0
HEAD_BYTES = 1 << 16
MOST_CONNECTIONS = 1000
MOST_WAITING = 200
BACKLOG = 512


def open_socket(host: str = "127.0.0.1", port: int = 0, elsewhere: bool = False) -> socket.socket:
    """A socket that listens at `host`, which is on this computer unless `elsewhere` is wished for; port 0: any free."""
    if not 0 <= port <= 65535:
        raise UsageError(f"--port is {port}; give 0 (any free one) to 65535.")
    if not is_loopback(host) and not elsewhere:
        raise UsageError(
            f"--host is '{host}', where other computers can reach it; add --elsewhere if you mean that (the token is "
            "still needed), or leave --host out."
        )
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        found = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise UsageError(f"--host is '{host}', which is no address of this computer ({error.strerror}).") from error
    try:
        if os.name != "nt":  # there it would let others take the port
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(BACKLOG)
    except OSError as error:
        found.close()
        raise InklingError(
            f"Port {port} of {host} cannot be had ({error.strerror}); name another with --port, or 0 for any free one."
        ) from error
    found.setblocking(False)
    return found


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def port_of(listening: socket.socket) -> int:
    return int(listening.getsockname()[1])


def run_server(
    app: Any,
    listening: socket.socket,
    on_ready: Callable[[], None] = lambda: None,
    on_stop: Callable[[], None] = lambda: None,
    *,
    head_seconds: float = HEAD_SECONDS,
    most_connections: int = MOST_CONNECTIONS,
    most_message_bytes: int = 1 << 22,
) -> None:
    """Serves `app` until it is interrupted or terminated; then `on_stop` is called at once, in the signal's handler."""
    import uvicorn

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                on_ready()

        def handle_exit(self, sig: int, frame: Any) -> None:
            on_stop()
            super().handle_exit(sig, frame)

    config = uvicorn.Config(
        app,
        http=_patient_protocol(head_seconds),
        ws="websockets-sansio" if find_spec("websockets") else "none",
        ws_max_size=most_message_bytes,
        ws_per_message_deflate=False,  # packing costs more than this computer's own wires
        log_config=None,
        log_level="error",  # what strangers send wrong is no matter for the terminal
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=most_connections,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=2,
        h11_max_incomplete_event_size=HEAD_BYTES,
    )
    with contextlib.suppress(KeyboardInterrupt):
        Server(config).run(sockets=[listening])


def _patient_protocol(head_seconds: float) -> type[asyncio.Protocol]:
    base: Any
    try:
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol as base
    except ImportError:
        from uvicorn.protocols.http.h11_impl import H11Protocol as base

    class _Patient(base):  # type: ignore[misc]
        """Waits for a head no longer than `head_seconds`, from the first connection or the first letter on."""

        _waiting: asyncio.TimerHandle | None = None
        _head_bytes = 0
        _all_waiting: ClassVar[dict[Any, None]] = {}  # those that wait for a head, longest first

        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            self._wait()

        def data_received(self, data: bytes) -> None:
            if self._waiting is None and (self.cycle is None or self.cycle.response_complete):
                self._wait()
            self._head_bytes += len(data)
            super().data_received(data)
            if self.cycle is not None and not self.cycle.response_complete:
                self._stop_waiting()
            elif self._waiting is not None and self._head_bytes > HEAD_BYTES:
                self.transport.close()

        def handle_websocket_upgrade(self, *arguments: Any) -> None:
            self._stop_waiting()
            super().handle_websocket_upgrade(*arguments)

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            super().connection_lost(exc)

        def _wait(self) -> None:
            self._waiting = self.loop.call_later(head_seconds, self.transport.close)
            self._all_waiting[self] = None
            if len(self._all_waiting) > MOST_WAITING:
                longest = next(iter(self._all_waiting))
                longest._stop_waiting()
                longest.transport.close()

        def _stop_waiting(self) -> None:
            self._head_bytes = 0
            self._all_waiting.pop(self, None)
            if self._waiting is not None:
                self._waiting.cancel()
                self._waiting = None

    return _Patient

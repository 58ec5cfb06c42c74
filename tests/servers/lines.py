"""How tests read what a server sends over a plain connection."""

from __future__ import annotations

import contextlib
import socket


def everything(one: socket.socket) -> bytes:
    """Until the other side closes."""
    found = b""
    with contextlib.suppress(ConnectionError):
        while part := one.recv(1 << 16):
            found += part
    return found

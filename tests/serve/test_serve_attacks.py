"""Whoever has no business here gets nothing, and whoever asks for too much is bounded; /health answers meanwhile."""

from __future__ import annotations

import itertools
import json
import socket
import statistics
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

import httpx
import pytest
from served import MOST_TOKENS, Served

pytestmark = pytest.mark.xdist_group("serve")
PATHS = ("/", "/v1/models", "/v1/completions", "/v1/score", "/v1/classify", "/tokenize", "/health", "/metrics", "/docs")


def raw(server: Served, request: bytes, seconds: float = 20.0) -> bytes:
    """What comes back for these bytes, until the server closes or says no more."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=seconds) as connection:
        connection.sendall(request)
        return answer_of(connection, with_body=not request.startswith(b"HEAD"))


def answer_of(connection: socket.socket, with_body: bool) -> bytes:
    found = b""
    while b"\r\n\r\n" not in found:
        part = connection.recv(65536)
        if not part:
            return found
        found += part
    head, _, body = found.partition(b"\r\n\r\n")
    lines = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
    while with_body and len(body) < int(lines.get(b"content-length", b"0")):
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def request(server: Served, path: str = "/health", method: str = "GET", **headers: str) -> bytes:
    found = {"Host": f"127.0.0.1:{server.port}", "Authorization": f"Bearer {server.token}"}
    found |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = "".join(f"{name}: {value}\r\n" for name, value in found.items() if value != "-")
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode("latin-1")


@contextmanager
def healthy(server: Served) -> Iterator[None]:
    """While something goes on, /health is asked all the time: it always answers, typically in less than 100 ms."""
    waits: list[float] = []
    over = threading.Event()

    def ask() -> None:
        with httpx.Client(base_url=server.url, headers=server.headers, timeout=20) as client:
            while not over.is_set() or len(waits) < 9:
                started = time.perf_counter()
                assert client.get("/health").json()["status"] == "ok"
                waits.append(time.perf_counter() - started)
                over.wait(0.02)

    with ThreadPoolExecutor(1) as asker:
        asked = asker.submit(ask)
        try:
            yield
        finally:
            over.set()
        asked.result()
    assert statistics.median(waits) < 0.1, waits


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE"])
def test_without_the_token_nothing_is_given(server: Served, path: str, method: str) -> None:
    for authorization in ("-", "Bearer ", "Bearer wrong", f"Basic {server.token}", f"Bearer {server.token[:-1]}"):
        answer = raw(server, request(server, path, method, Authorization=authorization))
        assert status(answer) == 401, answer
        assert b"\r\nlocation:" not in answer.lower()
        assert b"writer" not in answer
    assert status(raw(server, request(server, f"{path}?token={server.token}", method, Authorization="-"))) == 401


def test_a_foreign_host_or_origin_is_turned_away(server: Served) -> None:
    for host in ("-", "", "evil.example", f"evil.example:{server.port}", "127.0.0.1", "127.0.0.1:1", "[::1"):
        assert status(raw(server, request(server, Host=host))) in (400, 403), host
    for origin in ("http://evil.example", "null", f"http://127.0.0.1:{server.port}.evil.example", "file://"):
        for method in ("GET", "POST", "OPTIONS"):
            assert status(raw(server, request(server, method=method, Origin=origin))) == 403, origin
    assert status(raw(server, request(server, Origin=f"http://127.0.0.1:{server.port}"))) == 200
    assert status(raw(server, request(server, Host=f"localhost:{server.port}"))) == 200


def climbing() -> Iterator[str]:
    dots = ("..", "%2e%2e", ".%2e", "%2E.", "%252e%252e", "%c0%ae%c0%ae", "..;", "..%00", "%uff0e%uff0e", "....//")
    slashes = ("/", "%2f", "%5c", "\\", "%252f", "%c0%af", "//")
    targets = ("etc/passwd", "run.json", "model.safetensors")
    for start, dot, slash, target in itertools.product(("/", "/v1/models/"), dots, slashes, targets):
        yield f"{start}{slash.join([dot] * 3)}{slash}{target}"


def test_no_path_however_it_is_encoded_leads_to_a_file(server: Served) -> None:
    paths = list(climbing())
    assert len(paths) >= 200
    for path in paths:
        answer = raw(server, request(server, path))
        assert status(answer) in (400, 404), path
        assert b"root:" not in answer
        assert b"vocabulary" not in answer


def test_a_gigabyte_that_is_announced_is_refused_at_once(server: Served) -> None:
    with healthy(server):
        started = time.perf_counter()
        answer = raw(server, request(server, "/v1/score", "POST", Content_Length=str(1 << 30)))
        assert status(answer) == 413
        assert time.perf_counter() - started < 5


def test_a_gigabyte_without_a_length_is_cut_off_early(server: Served) -> None:
    chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    sent = 0
    with healthy(server), socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(request(server, "/v1/score", "POST", Transfer_Encoding="chunked"))
        try:
            while sent < 1 << 30:
                connection.sendall(chunk)
                sent += 65536
        except OSError:  # it has closed the connection
            pass
    assert sent < 64 << 20


def test_who_sends_a_letter_at_a_time_holds_up_nobody(server: Served) -> None:
    slow = []
    try:
        for _ in range(50):
            connection = socket.create_connection(("127.0.0.1", server.port), timeout=20)
            connection.sendall(b"POST /v1/score HTTP/1.1\r\nHo")
            slow.append(connection)
        for connection in slow[:25]:
            rest = (
                f"st: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {server.token}\r\nContent-Length: 1000\r\n\r\n{{"
            )
            connection.sendall(rest.encode())
        with healthy(server):
            assert server.complete(max_tokens=5)["usage"]["completion_tokens"] == 5
    finally:
        for connection in slow:
            connection.close()


def test_a_billion_tokens_are_refused_and_what_is_allowed_is_bounded(server: Served) -> None:
    assert server.post("/v1/completions", {"model": "writer", "max_tokens": 10**9}).status_code == 400
    body = json.dumps({"model": "writer", "max_tokens": MOST_TOKENS, "n": 200, "stream": True}).encode()
    head = request(server, "/v1/completions", "POST", Content_Length=str(len(body)))
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection, healthy(server):
        connection.sendall(head + body)
        assert b"200" in connection.recv(100)
    ends = time.monotonic() + 15
    while (found := server.get("/health").json())["writing"] or found["waiting"]:
        assert time.monotonic() < ends


@pytest.mark.parametrize(
    "lines",
    [
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x00\x01\x02\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
        b"POST /v1/score HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
        b"GET " + b"/x" * 40_000 + b" HTTP/1.1\r\n\r\n",
    ],
)
def test_what_is_no_request_is_answered_with_an_error_or_not_at_all(server: Served, lines: bytes) -> None:
    answer: Any = b""
    with healthy(server), suppress(ConnectionError):
        answer = raw(server, lines)
    assert not answer or 400 <= status(answer) < 500

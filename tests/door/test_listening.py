"""How a server listens, and that those who say nothing, or say it slowly, hold up nobody."""

from __future__ import annotations

import contextlib
import select
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from lines import everything

from inkling.door.listening import MOST_WAITING, is_loopback, open_socket, port_of
from inkling.errors import InklingError, UsageError

TOKEN = "a-token-of-thirty-two-characters"
HEAD_SECONDS = 1.0
SERVER = f"""
from inkling.door.guard import Guard
from inkling.door.listening import open_socket, port_of, run_server
from inkling.door.policy import Policy, hosts_of

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while (await receive())["type"] == "lifespan.startup":
            await send({{"type": "lifespan.startup.complete"}})
        await send({{"type": "lifespan.shutdown.complete"}})
    elif scope["type"] == "websocket":
        await receive()
        await send({{"type": "websocket.accept"}})
        while (message := await receive())["type"] == "websocket.receive":
            await send({{"type": "websocket.send", "text": str(len(message["text"]))}})
    else:
        size = 0
        while scope["method"] == "POST":
            message = await receive()
            size += len(message.get("body", b""))
            if not message.get("more_body", False):
                break
        await send({{"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]}})
        await send({{"type": "http.response.body", "body": b"ok"}})

listening = open_socket()
port = port_of(listening)
policy = Policy("{TOKEN}", hosts_of("127.0.0.1", port), body_seconds={HEAD_SECONDS})
run_server(
    Guard(app, policy), listening, lambda: print(port, flush=True), head_seconds={HEAD_SECONDS}, most_message_bytes=1000
)
"""


class Server:
    def __init__(self, port: int) -> None:
        self.port = port
        self.known = f"Host: 127.0.0.1:{port}\r\nAuthorization: Bearer {TOKEN}\r\n"

    def connect(self) -> socket.socket:
        found = socket.create_connection(("127.0.0.1", self.port))
        found.settimeout(20)
        return found

    def send(self, text: str) -> bytes:
        """Everything that comes back until the other side closes."""
        with self.connect() as one:
            one.sendall(text.encode())
            return everything(one)

    def answers(self) -> bool:
        return b" 200 " in self.send(f"GET / HTTP/1.1\r\n{self.known}Connection: close\r\n\r\n")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        yield Server(int(process.stdout.readline()))
    finally:
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=20)[1]
    assert said == ""  # nothing that strangers sent reached the terminal


# ------------------------------------------------------------------------------------------------ slow ones


def test_a_head_that_never_ends_is_ended(server: Server) -> None:
    started = time.monotonic()
    with server.connect() as silent, server.connect() as slow:
        slow.sendall(b"GET / HTTP/1.1\r\n")
        ended = False
        while not ended and time.monotonic() - started < 20:  # a letter now and then
            try:
                slow.sendall(b"X")
                slow.settimeout(0.05)
                ended = slow.recv(1) == b""
            except TimeoutError:
                assert server.answers()
            except ConnectionError:
                ended = True
        assert ended
        assert everything(silent) == b""
    assert time.monotonic() - started >= HEAD_SECONDS


def test_a_second_head_on_the_same_connection_is_waited_for_no_longer(server: Server) -> None:
    with server.connect() as one:
        one.sendall(f"GET / HTTP/1.1\r\n{server.known}\r\n".encode())
        assert b" 200 " in one.recv(1 << 16)
        one.sendall(b"GET / HTT")
        assert b" 200 " not in everything(one)


def test_a_head_that_grows_too_large_is_ended(server: Server) -> None:
    with server.connect() as one, contextlib.suppress(ConnectionError):
        one.sendall(b"GET / HTTP/1.1\r\n")
        for _ in range(1000):
            one.sendall(b"X-Y: " + b"z" * 10_000 + b"\r\n")
        raise AssertionError("ten megabytes of head were taken")


def test_a_body_that_comes_a_letter_at_a_time_is_answered_with_408(server: Server) -> None:
    with server.connect() as one:
        one.sendall(f"POST / HTTP/1.1\r\n{server.known}Content-Length: 1000\r\n\r\n".encode())
        selector = selectors.DefaultSelector()
        selector.register(one, selectors.EVENT_READ)
        while not selector.select(0.05):
            one.sendall(b"x")
        assert b" 408 " in everything(one)


def test_who_was_refused_cannot_go_on_sending(server: Server) -> None:
    with server.connect() as one:
        one.sendall(f"POST / HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Length: 1000000000\r\n\r\n".encode())
        assert b" 401 " in everything(one)
        with contextlib.suppress(ConnectionError):  # it takes a moment until this side hears of it
            for _ in range(100_000):
                one.sendall(b"x" * 1000)
            raise AssertionError("a hundred megabytes were taken")


def test_many_that_say_nothing_keep_nobody_out(server: Server) -> None:
    with contextlib.ExitStack() as stack:
        idle = [stack.enter_context(server.connect()) for _ in range(MOST_WAITING + 100)]
        assert all(server.answers() for _ in range(5))
        ended, _, _ = select.select(idle, [], [], 0)
        assert set(idle[:100]) <= set(ended)  # the oldest had to make room
        assert idle[-1] not in ended


# ------------------------------------------------------------------------------------------------ what is not HTTP


@pytest.mark.parametrize(
    "text",
    [
        "nonsense\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : x\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "\x16\x03\x01\x02",
        "CONNECT evil.example:443 HTTP/1.1\r\n{known}\r\n",
        "POST / HTTP/1.1\r\n{known}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\n{known}Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcd",
        "POST / HTTP/1.1\r\n{known}Content-Length: +4\r\n\r\nabcd",
        "POST / HTTP/1.1\r\n{known}Transfer-Encoding: chunked\r\n\r\nzz\r\n\r\n",
    ],
)
def test_what_could_be_read_in_two_ways_is_not_read(server: Server, text: str) -> None:
    assert b" 200 " not in server.send(text.replace("{known}", server.known))
    assert server.answers()


def test_a_websocket_message_over_the_limit_ends_it(server: Server) -> None:
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.client import connect

    headers = {"Authorization": f"Bearer {TOKEN}"}
    with connect(f"ws://127.0.0.1:{server.port}/", additional_headers=headers) as one:
        one.send("x" * 1000)
        assert one.recv() == "1000"
        one.send("x" * 1001)  # compressed it is small
        with pytest.raises(ConnectionClosed) as closed:
            one.recv()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1009


# ------------------------------------------------------------------------------------------------ where it listens


def test_other_computers_reach_it_only_where_that_was_wished_for() -> None:
    with pytest.raises(UsageError, match="add --elsewhere if you mean that"):
        open_socket("0.0.0.0")
    with open_socket("0.0.0.0", elsewhere=True) as listening:
        assert port_of(listening) > 0
    with open_socket() as listening:
        assert listening.getsockname()[0] == "127.0.0.1"


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("localhost", True)]
    + [(host, False) for host in ("0.0.0.0", "::", "192.168.0.1", "localhost.evil.example", "")],
)
def test_what_is_loopback(host: str, loopback: bool) -> None:
    assert is_loopback(host) == loopback


def test_a_port_that_is_taken_or_none_is_said_so() -> None:
    with open_socket() as taken, pytest.raises(InklingError, match="cannot be had"):
        open_socket(port=port_of(taken))
    with pytest.raises(UsageError, match="give 0"):
        open_socket(port=70000)
    with pytest.raises(InklingError, match="cannot be had"):
        open_socket("192.0.2.1", elsewhere=True)  # an address that no computer has

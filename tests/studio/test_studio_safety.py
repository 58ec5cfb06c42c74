"""The studio as somebody sees it who has no business there: the real server, asked in every way that is not allowed."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import re
import select
import socket
import statistics
import subprocess
import sys
import time
import zlib
from pathlib import Path
from typing import Any

import pytest
from lines import everything
from opening import Opened

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
SECRET = "the secret that no path leads to"
POLLING = "/_nicegui_ws/socket.io/?EIO=4&transport=polling"
CLIENT = "00000000-0000-4000-8000-000000000000"


class Knocker:
    """Speaks to a studio by hand, so that everything can be said wrong."""

    def __init__(self, opened: Opened) -> None:
        self.opened = opened
        self.port = int(opened.root.rsplit(":", 1)[1])
        self.host = f"127.0.0.1:{self.port}"
        self.cookie = f"Cookie: inkling-{self.port}={opened.token}"

    def connect(self) -> socket.socket:
        found = socket.create_connection(("127.0.0.1", self.port))
        found.settimeout(20)
        return found

    def ask(self, path: str, *headers: str, method: str = "GET", body: bytes = b"", host: str | None = "") -> Answer:
        """`host` is ours where it is empty, and none is sent where it is None."""
        hosts = [] if host is None else [f"Host: {host or self.host}"]
        length = [f"Content-Length: {len(body)}"] if body else []
        lines = [f"{method} {path} HTTP/1.1", *hosts, *headers, *length, "Connection: close", "", ""]
        with self.connect() as one:
            one.sendall("\r\n".join(lines).encode("latin-1") + body)
            return Answer(everything(one))

    def known(self, path: str, *headers: str, **how: Any) -> Answer:
        return self.ask(path, self.cookie, *headers, **how)

    def session(self) -> str:
        """Where a page that has no websocket would post its events."""
        found = re.search(rb'"sid":"([^"]+)"', self.known(POLLING).body)
        assert found is not None
        return f"{POLLING}&sid={found[1].decode()}"

    def seconds_to_a_page(self) -> float:
        """Typically: the median of a few, because this computer does other things too."""
        found = []
        for _ in range(10):
            started = time.perf_counter()
            assert self.known("/studio.css").status == 200
            found.append(time.perf_counter() - started)
        return statistics.median(found)

    def memory_bytes(self) -> int:
        status = Path(f"/proc/{self.opened.process.pid}/status").read_text()
        return int(re.findall(r"VmRSS:\s+(\d+) kB", status)[0]) << 10

    def spooled(self) -> list[str]:
        """Files that the studio holds open and that have no name any more."""
        found = []
        for one in Path(f"/proc/{self.opened.process.pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                found += [str(one.readlink())] if int(one.name) > 2 else []
        return [name for name in found if "(deleted)" in name]


class Answer:
    def __init__(self, raw: bytes) -> None:
        head, _, self.body = raw.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        self.status = int(first.split()[1]) if first else 0
        self.headers: dict[str, str] = {
            name.lower(): value for name, _, value in (line.partition(": ") for line in lines)
        }

    def is_refusal(self) -> bool:
        leads_on = {"location", "set-cookie"} & set(self.headers)
        return self.status in (401, 403) and not leads_on and b"<" not in self.body


@pytest.fixture(scope="module")
def knock(empty_studio: Opened) -> Knocker:
    return Knocker(empty_studio)


@pytest.fixture(scope="module")
def paths() -> list[str]:
    """All that is registered, and what might be."""
    from nicegui import app

    from inkling.studio.frame import ENTRIES

    registered = [getattr(route, "path", "") for route in app.routes]
    filled = [re.sub(r"\{[^}]*\}", "x", path) for path in registered if path]
    assert any(path.startswith("/_nicegui/") for path in filled)
    more = (
        "/studio.css",
        "/live_brush.js",
        "/favicon.ico",
        POLLING,
        f"{POLLING}&sid=x",
        f"/_nicegui/client/{CLIENT}/upload/1",
        "/no-such-page",
        "/docs",
        "/openapi.json",
        "/.studio/uploads/",
        "//",
        "/?token=",
        "/?token=wrong",
    )
    return [*(entry.path for entry in ENTRIES), *dict.fromkeys(filled), *more]


# ------------------------------------------------------------------------------------------------ the token


def test_without_a_token_every_path_refuses_every_method(knock: Knocker, paths: list[str]) -> None:
    for path, method in itertools.product(paths, METHODS):
        assert knock.ask(path, method=method).is_refusal(), (method, path)


def test_a_wrong_token_or_the_right_one_in_another_place_is_none(knock: Knocker, paths: list[str]) -> None:
    token, port = knock.opened.token, knock.port
    wrong = (
        f"Cookie: inkling-{port}={token[:-1]}",
        f"Cookie: inkling-{port}={token}x",
        f"Cookie: inkling={token}",
        f"Authorization: Bearer {token[::-1]}",
        f"Authorization: Basic {base64.b64encode(f'x:{token}'.encode()).decode()}",
        f"X-Token: {token}",
        f"Referer: {knock.opened.address}",
    )
    for path, header in itertools.product(paths, wrong):
        assert knock.ask(path, header).status == 401, (path, header)
    for method in METHODS[1:]:
        assert knock.ask(f"/?token={token}", method=method).status == 401
    assert knock.ask(f"/{token}").status == 401


def test_the_printed_address_opens_and_leaves_a_cookie_that_scripts_and_other_sites_do_not_get(knock: Knocker) -> None:
    found = knock.ask(f"/claims?token={knock.opened.token}")
    assert (found.status, found.headers["location"]) == (303, "/claims")
    flags = found.headers["set-cookie"].split("; ")
    assert flags == [knock.cookie.removeprefix("Cookie: "), "Path=/", "HttpOnly", "SameSite=Strict"]
    for path in ("//evil.example", "/%2f/evil.example", "/%2Fevil.example"):
        assert knock.ask(f"{path}/?token={knock.opened.token}").status == 404
    assert knock.known("/claims").status == 200


# ------------------------------------------------------------------------------------------------ Host and Origin


def test_a_foreign_host_is_refused_with_the_token_too(knock: Knocker) -> None:
    port = knock.port
    foreign = ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}", f"0.0.0.0:{port}", " ")
    for host, method in itertools.product(foreign, METHODS):
        assert knock.known("/", method=method, host=host).status == 403, (method, host)
        assert knock.known(f"/?token={knock.opened.token}", method=method, host=host).status == 403
    for method in METHODS:
        assert knock.known("/", method=method, host=None).status == 403
        assert knock.known("/", f"Host: {knock.host}", method=method).status == 403  # twice
    with knock.connect() as one:
        one.sendall(f"GET / HTTP/1.0\r\n{knock.cookie}\r\n\r\n".encode())
        assert Answer(everything(one)).status == 403


def test_a_foreign_origin_is_refused_with_the_token_too(knock: Knocker) -> None:
    bearer = f"Authorization: Bearer {knock.opened.token}"
    foreign = ("http://evil.example", "null", "", f"http://{knock.host}.evil.example", "http://127.0.0.1:1")
    for origin, method, who in itertools.product(foreign, METHODS, (knock.cookie, bearer)):
        found = knock.ask("/", who, f"Origin: {origin}", method=method)
        assert found.status == 403, (origin, method)
        assert not [name for name in found.headers if name.startswith("access-control-")]
    for site in ("cross-site", "same-site"):
        assert knock.known("/", f"Sec-Fetch-Site: {site}", "Sec-Fetch-Mode: navigate").status == 403
    assert knock.known("/", f"Origin: {knock.opened.root}", "Sec-Fetch-Site: same-origin").status == 200


def test_what_only_a_proxy_would_say_changes_nothing(knock: Knocker) -> None:
    lies = ("X-Forwarded-Prefix: //evil.example", "X-Forwarded-Host: evil.example", "Forwarded: host=evil.example")
    found = knock.known("/claims", *lies, "X-Forwarded-Proto: https", "X-Original-URL: /runs")
    assert found.status == 200
    assert b"evil" not in found.body
    assert knock.known("/claims/", *lies).headers["location"] == f"{knock.opened.root}/claims"


# ------------------------------------------------------------------------------------------------ websockets

SOCKET = "/_nicegui_ws/socket.io/?EIO=4&transport=websocket"
UPGRADE = ("Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==")


def shake(knock: Knocker, *headers: str, path: str = SOCKET, host: str = "") -> int:
    lines = [f"GET {path} HTTP/1.1", f"Host: {host or knock.host}", *UPGRADE, "Connection: Upgrade", *headers, "", ""]
    with knock.connect() as one:
        one.sendall("\r\n".join(lines).encode())
        found = Answer(one.recv(1 << 16)).status
        if found != 101:
            everything(one)  # until the other side has closed
        return found


def test_a_websocket_of_another_site_is_refused(knock: Knocker) -> None:
    ours = f"Origin: {knock.opened.root}"
    assert shake(knock, knock.cookie, ours) == 101
    assert shake(knock, ours) == 403
    assert shake(knock, knock.cookie) == 403
    assert shake(knock, knock.cookie + "x", ours) == 403
    for origin in ("http://evil.example", "null", "", f"http://{knock.host}.evil.example", "http://127.0.0.1:1"):
        assert shake(knock, knock.cookie, f"Origin: {origin}") == 403
    assert shake(knock, knock.cookie, ours, host="evil.example") == 403
    assert shake(knock, ours, path=f"{SOCKET}&token={knock.opened.token}") == 403
    assert shake(knock, ours, path="/claims") == 403


def test_events_that_are_forged_or_too_large_do_no_harm(knock: Knocker) -> None:
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.client import connect

    headers = {"Cookie": knock.cookie.removeprefix("Cookie: "), "Origin": knock.opened.root}
    address = f"ws://{knock.host}{SOCKET}"
    forged = (
        ["event", {"client_id": CLIENT, "id": 1, "listener_id": "x", "args": []}],
        ["event", {}],
        ["javascript_response", {"client_id": "../../etc/passwd", "request_id": "x", "result": 1}],
        ["handshake", {"client_id": CLIENT, "tab_id": "x", "document_id": "x"}],
        ["log", {"client_id": CLIENT, "level": "error", "message": "\x1b[31m"}],
        ["no such event", "x" * 10_000],
    )
    with connect(address, additional_headers=headers) as one:
        assert json.loads(str(one.recv())[1:])["sid"]
        one.send("40")
        for event in forged:
            one.send("42" + json.dumps(event))
        one.send("not a packet at all")
    with connect(address, additional_headers=headers) as one:
        one.recv()
        with contextlib.suppress(ConnectionClosed):
            one.send(
                ["4" * (1 << 21), "4" * (1 << 21), "4"]
            )  # the last byte is one too many: all is sent before the answer
            while one.recv(timeout=20):
                pass
        assert one.close_code == 1009  # too big
    assert knock.known("/claims").status == 200


# ------------------------------------------------------------------------------------------------ paths

UP = (
    *(
        "../",
        "..%2f",
        "%2e%2e/",
        "%2e%2e%2f",
        "%2E%2E%2F",
        ".%2e/",
        "%2e./",
        "..//",
        "..%2f%2f",
        "./../",
        "..;/",
        "..%3b/",
    ),
    *(
        "..\\",
        "..%5c",
        "%2e%2e%5c",
        "%2e%2e\\",
        "..%c0%af",
        "%c0%ae%c0%ae/",
        "%c0%ae%c0%ae%c0%af",
        "%e0%80%ae%e0%80%ae/",
    ),
    *("..%252f", "%252e%252e%252f", "%252e%252e/", "%25252e%25252e%25252f", "..%255c", "..%25c0%25af", "%uff0e%uff0e/"),
    *("..%00/", "..%0d/", "..%09/", "..%20/", "%ef%bc%8e%ef%bc%8e/", "..%ef%bc%8f", "..%e2%88%95", "....//", "..../"),
)


def test_no_path_in_any_encoding_shows_a_file(knock: Knocker) -> None:
    secret = knock.opened.folder.parent / "secret.txt"
    secret.write_text(SECRET)
    page = knock.known("/").body.decode()
    version = re.findall(r"/_nicegui/([^/\"]+)/static", page)[0]
    folders = {f"/_nicegui/{version}/{kind}" for kind in ("static/", "libraries/", "components/")}
    folders |= set(re.findall(rf"/_nicegui/{version}/(?:esm|resources)/[^/\"]+/", page)) | {"/", "/_nicegui_ws/"}
    goals = (str(secret).lstrip("/"), "etc/passwd")
    tried = {f"{folder}{up * 12}{goal}" for folder in folders for up in UP for goal in goals}
    tried |= {f"{folder}{prefix}{secret}" for folder in folders for prefix in ("/", "%2f", "file://", "%2e/")}
    assert len(tried) >= 200
    for path in sorted(tried):
        found = knock.known(path)
        assert found.status in (400, 404), path
        assert SECRET.encode() not in found.body
        assert b"root:" not in found.body


def test_no_parameter_of_a_page_shows_a_file(knock: Knocker) -> None:
    for up in UP:
        goal = f"{up * 12}etc/passwd"
        found = knock.known(f"/claims?run={goal}&path={goal}&file={goal}")
        assert found.status in (200, 400)
        assert b"root:" not in found.body


def test_markup_in_an_address_comes_back_as_nothing(knock: Knocker) -> None:
    for path in ("/%3Cscript%3Ealert(1)%3C/script%3E", "/claims?x=%3C/script%3E%3Cscript%3Ealert(1)%3C/script%3E"):
        assert b"alert(1)" not in knock.known(path).body


# ------------------------------------------------------------------------------------------------ files


def place_to_upload(knock: Knocker) -> str:
    found = re.search(r"/_nicegui/client/[^\"]*?/upload/\d+", knock.known("/").body.decode())
    assert found is not None
    return found[0]


def form(name: str, content: bytes) -> tuple[str, bytes]:
    head = f'--edge\r\nContent-Disposition: form-data; name="f"; filename="{name}"\r\nContent-Type: text/plain\r\n\r\n'
    return "Content-Type: multipart/form-data; boundary=edge", head.encode() + content + b"\r\n--edge--\r\n"


def test_a_file_is_named_by_us_whatever_it_was_called(knock: Knocker) -> None:
    root = knock.opened.folder.parent
    place = place_to_upload(knock)
    before = {path for path in root.rglob("*") if path.is_file()}
    names = [f"{up * 3}x.txt" for up in UP] + ["/etc/x.csv.gz", "C:\\x.tsv", ".", "..", "%00.txt", "<img src=x>.txt"]
    for name in names:
        kind, body = form(name.replace('"', ""), b"The baker bakes the loaf.\n")
        assert knock.known(place, kind, method="POST", body=body).status in (200, 400, 404), name
    deadline = time.monotonic() + 20
    new: set[Path] = set()
    while len(new) < len(names) and time.monotonic() < deadline:
        new = {path for path in root.rglob("*") if path.is_file()} - before
    assert len(new) == len(names)
    for path in new:
        assert path.parent == knock.opened.folder / ".studio" / "uploads"
        assert re.fullmatch(r"[0-9a-f]{16}\.(txt|csv|tsv)(\.gz)?", path.name)
        assert path.stat().st_mode & 0o077 == 0
    assert sum(path.name.endswith(".csv.gz") for path in new) == 1


def test_a_file_for_a_page_that_is_not_there_goes_nowhere(knock: Knocker) -> None:
    kind, body = form("x.txt", b"x")
    assert knock.known(f"/_nicegui/client/{CLIENT}/upload/1", kind, method="POST", body=body).status in (404, 405)
    assert knock.ask(place_to_upload(knock), kind, method="POST", body=body).status == 401


@pytest.mark.slow
def test_a_file_that_unpacks_to_more_than_there_is_memory_for_is_given_up(tmp_path: Path) -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    part = packer.compress(b"a" * (64 << 20)) + packer.flush()
    bomb = tmp_path / "bomb.csv.gz"
    bomb.write_bytes(part * 6)  # hundreds of megabytes in one, and no line end in them
    script = "import sys; from inkling.studio import child; child.TIGHTER['look-at-file'] = (760 << 20, 60); "
    script += "sys.exit(child.main('look-at-file'))"
    found = subprocess.run(
        [sys.executable, "-c", script], input=json.dumps({"path": str(bomb)}), capture_output=True, text=True
    )
    assert json.loads(found.stdout.splitlines()[-1]) == {
        "error": "There is not enough memory for this; give less at once."
    }


# ------------------------------------------------------------------------------------------------ headers


def test_pages_may_load_nothing_from_elsewhere_and_run_only_what_is_ours(knock: Knocker) -> None:
    nonces = set()
    for path in ("/", "/claims", "/no-such-page"):
        found = knock.known(path)
        rules = dict(rule.split(" ", 1) for rule in found.headers["content-security-policy"].split("; "))
        assert rules["default-src"] == rules["object-src"] == rules["frame-ancestors"] == rules["base-uri"] == "'none'"
        nonce = re.findall(r"'nonce-([^']+)'", rules["script-src"])[0]
        nonces.add(nonce)
        assert rules["script-src"] == f"'self' 'nonce-{nonce}' 'unsafe-eval'"
        assert rules["connect-src"] == rules["form-action"] == "'self'"
        scripts = re.findall(rb"<script[^>]*>", found.body)
        assert scripts
        assert all(f'nonce="{nonce}"'.encode() in script for script in scripts)
        assert not re.findall(rb"(?:src|href)=\"(?:https?:)?//", found.body)
        assert found.headers["cache-control"] == "no-store"
    assert len(nonces) == 3


def test_every_answer_forbids_framing_guessing_and_telling(knock: Knocker, paths: list[str]) -> None:
    for path in paths:
        for found in (knock.known(path), knock.ask(path)):
            assert found.headers["x-frame-options"] == "DENY"
            assert found.headers["x-content-type-options"] == "nosniff"
            assert found.headers["referrer-policy"] == "no-referrer"
            assert found.headers["cross-origin-resource-policy"] == "same-origin"
            assert "content-security-policy" in found.headers
            assert "server" not in found.headers


# ------------------------------------------------------------------------------------------------ much and slow

MEGABYTE = 1 << 20


def pour(knock: Knocker, path: str, *headers: str, megabytes: int = 1024) -> tuple[Answer, int]:
    """What comes back to a body in chunks, and how many megabytes were taken of it."""
    lines = [f"POST {path} HTTP/1.1", f"Host: {knock.host}", *headers, "Transfer-Encoding: chunked", "", ""]
    chunk = b"%x\r\n" % MEGABYTE + b"x" * MEGABYTE + b"\r\n"
    taken = 0
    with knock.connect() as one:
        one.sendall("\r\n".join(lines).encode())
        with contextlib.suppress(ConnectionError):
            while taken < megabytes and not select.select([one], [], [], 0)[0]:
                one.sendall(chunk)
                taken += 1
        return Answer(everything(one)), taken


def test_a_gigabyte_is_refused_at_once_where_it_is_announced(knock: Knocker) -> None:
    for path in ("/", "/claims", POLLING, place_to_upload(knock)):
        for who, status in ((knock.cookie, 413), ("X: y", 401)):
            lines = [f"POST {path} HTTP/1.1", f"Host: {knock.host}", who, f"Content-Length: {1 << 30}", "", ""]
            with knock.connect() as one:
                one.sendall("\r\n".join(lines).encode())
                found = Answer(everything(one))
            assert (found.status, found.headers["connection"]) == (status, "close")


@pytest.mark.slow
def test_a_gigabyte_that_is_not_announced_is_cut_off_and_leaves_memory_as_it_was(knock: Knocker) -> None:
    knock.session()
    before = knock.memory_bytes()
    for place in ("/", "/claims", "/no-such-page", None):
        path = place or knock.session()  # opened only now, for it would end meanwhile
        found, taken = pour(knock, path, knock.cookie)
        assert found.status in (0, 404, 405, 413)  # 0: it was cut off before it listened
        assert taken < 20
        found, taken = pour(knock, path)
        assert found.status in (0, 401)
        assert taken < 20
    assert knock.memory_bytes() - before < 20 * MEGABYTE
    assert knock.seconds_to_a_page() < 0.1


@pytest.mark.slow
def test_a_gigabyte_as_a_file_is_cut_off_and_nothing_of_it_stays(knock: Knocker) -> None:
    place = place_to_upload(knock)
    held = {path.name for path in (knock.opened.folder / ".studio").rglob("*")}
    kind, body = form("x.txt", b"")
    head = body.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
    before = knock.memory_bytes()
    lines = [f"POST {place} HTTP/1.1", f"Host: {knock.host}", knock.cookie, kind, "Transfer-Encoding: chunked", "", ""]
    chunk = b"%x\r\n" % MEGABYTE + b"x" * MEGABYTE + b"\r\n"
    with knock.connect() as one:
        one.sendall("\r\n".join(lines).encode() + b"%x\r\n" % len(head) + head + b"\r\n")
        taken = 0
        with contextlib.suppress(ConnectionError):
            while taken < 1024 and not select.select([one], [], [], 0)[0]:
                one.sendall(chunk)
                taken += 1
                if taken % 50 == 0:
                    assert knock.seconds_to_a_page() < 0.1
        assert Answer(everything(one)).status in (0, 413)
    assert 250 <= taken <= 280
    assert knock.memory_bytes() - before < 30 * MEGABYTE
    deadline = time.monotonic() + 20
    while knock.spooled() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not knock.spooled()
    assert {path.name for path in (knock.opened.folder / ".studio").rglob("*")} == held


def test_many_connections_that_say_nothing_or_half_a_head_hold_up_nobody(knock: Knocker) -> None:
    with contextlib.ExitStack() as stack:
        idle = [stack.enter_context(knock.connect()) for _ in range(400)]
        for one in idle[::2]:
            with contextlib.suppress(ConnectionError):
                one.sendall(b"GET / HTTP/1.1\r\nHost: ")
        assert knock.seconds_to_a_page() < 0.1


@pytest.mark.slow
def test_a_slow_client_is_ended_and_meanwhile_a_page_answers(knock: Knocker) -> None:
    with knock.connect() as head, knock.connect() as body:
        head.sendall(b"GET / HTTP/1.1\r\nX: ")
        lines = [
            f"POST {knock.session()} HTTP/1.1",
            f"Host: {knock.host}",
            knock.cookie,
            "Content-Length: 1000",
            "",
            "",
        ]
        body.sendall("\r\n".join(lines).encode())
        waiting = {head, body}
        deadline = time.monotonic() + 40
        while waiting and time.monotonic() < deadline:
            for one in select.select(list(waiting), [], [], 0.5)[0]:
                assert Answer(everything(one)).status in (0, 400, 408)
                waiting.discard(one)
            for one in waiting:
                with contextlib.suppress(ConnectionError):
                    one.sendall(b"x")
            assert knock.seconds_to_a_page() < 0.1
        assert not waiting

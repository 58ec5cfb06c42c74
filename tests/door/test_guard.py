"""Who is let in and who is not, asked of the guard itself; `test_studio_safety.py` asks the real server."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inkling.door.guard import Guard, climbs
from inkling.door.policy import Policy, hosts_of, new_token
from inkling.errors import UsageError

TOKEN = "a-token-of-thirty-two-characters"
HOST = ("host", "127.0.0.1:8000")
COOKIE = ("cookie", f"other=1; inkling={TOKEN}")
BEARER = ("authorization", f"Bearer {TOKEN}")
POLICY = Policy(
    TOKEN,
    hosts_of("127.0.0.1", 8000),
    largest_body_bytes=1000,
    body_seconds=0.2,
    request_seconds=0.5,
    pages=True,
    uploads=("/files/",),
    largest_upload_bytes=5000,
    most_uploads=1,
)
Headers = Iterable[tuple[str, str]]


class App:
    """What stands behind: remembers who came, and reads what they bring."""

    def __init__(self, hold: asyncio.Event | None = None) -> None:
        self.came: list[Any] = []
        self.body = b""
        self.hold = hold

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.came.append(scope)
        if scope["type"] == "websocket":
            return
        while True:
            message = await receive()
            self.body += message.get("body", b"")
            if not message.get("more_body", False):
                break
        if self.hold is not None:
            await self.hold.wait()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
        await send({"type": "http.response.body", "body": b"content"})


def scope_of(path: str, headers: Headers, method: str = "GET", kind: str = "http", query: str = "") -> dict[str, Any]:
    return {
        "type": kind,
        "method": method,
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in headers],
    }


async def answer(
    guard: Guard, scope: dict[str, Any], body: Iterable[bytes] = (b"",), wait_seconds: float = 0.0
) -> tuple[int, dict[bytes, bytes], bytes]:
    """Status (the code with which a websocket is closed), headers and body of what comes back."""
    parts = list(body)
    sent: list[Any] = []

    async def receive() -> Any:
        if scope["type"] == "websocket":
            return {"type": "websocket.connect"}
        await asyncio.sleep(wait_seconds)
        part = parts.pop(0)
        return {"type": "http.request", "body": part, "more_body": bool(parts)}

    async def send(message: Any) -> None:
        sent.append(message)

    await guard(scope, receive, send)
    if scope["type"] == "websocket":
        return (sent[0]["code"] if sent else 0), {}, b""
    return sent[0]["status"], dict(sent[0]["headers"]), b"".join(one.get("body", b"") for one in sent[1:])


def ask(path: str, *headers: tuple[str, str], policy: Policy = POLICY, **how: Any) -> tuple[int, dict[bytes, bytes]]:
    app = App()
    body = how.pop("body", (b"",))
    seconds = how.pop("wait_seconds", 0.0)
    status, found, _ = asyncio.run(answer(Guard(app, policy), scope_of(path, headers, **how), body, seconds))
    if status in (303, 401, 403, 404, 1008):
        assert not app.came
    return status, found


METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT")


# ------------------------------------------------------------------------------------------------ the token


@pytest.mark.parametrize("method", METHODS)
def test_without_a_token_nobody_comes_in_and_is_led_nowhere(method: str) -> None:
    for path in ("/", "/claims", "/no/such/path", "/../x"):
        status, headers = ask(path, HOST, method=method)
        assert status == 401
        assert b"location" not in headers
        assert b"set-cookie" not in headers
        assert headers[b"connection"] == b"close"


@pytest.mark.parametrize("method", METHODS)
def test_the_token_opens_by_cookie_or_header_whatever_the_method(method: str) -> None:
    assert ask("/", HOST, COOKIE, method=method)[0] == 200
    assert ask("/", HOST, BEARER, method=method)[0] == 200


@pytest.mark.parametrize(
    "header",
    [
        ("cookie", f"inkling={TOKEN}x"),
        ("cookie", "inkling="),
        ("cookie", f"Inkling={TOKEN}"),
        ("cookie", f"inkling-8000={TOKEN}"),
        ("cookie", f"a=inkling={TOKEN}"),
        ("cookie", f'inkling="{TOKEN}"'),
        ("authorization", TOKEN),
        ("authorization", f"Basic {TOKEN}"),
        ("authorization", f"Bearer {TOKEN[:-1]}"),
        ("authorization", "Bearer " + "é" * 32),
        ("x-token", TOKEN),
        ("referer", f"http://127.0.0.1:8000/?token={TOKEN}"),
    ],
)
def test_a_wrong_token_or_the_right_one_elsewhere_does_not(header: tuple[str, str]) -> None:
    assert ask("/", HOST, header)[0] == 401


def test_two_authorizations_are_none() -> None:
    assert ask("/", HOST, BEARER, ("authorization", "Bearer x"))[0] == 401


def test_a_token_in_the_address_opens_pages_only_and_becomes_a_cookie() -> None:
    status, headers = ask("/claims", HOST, query=f"a=1&token={TOKEN}&b=2")
    assert (status, headers[b"location"]) == (303, b"/claims?a=1&b=2")
    cookie = headers[b"set-cookie"].decode()
    assert cookie == f"inkling={TOKEN}; Path=/; HttpOnly; SameSite=Strict"
    assert TOKEN.encode() not in headers[b"location"]
    for method in METHODS[1:]:
        assert ask("/claims", HOST, query=f"token={TOKEN}", method=method)[0] == 401
    assert ask("/claims", HOST, query="token=wrong")[0] == 401
    assert ask("/ws", HOST, query=f"token={TOKEN}", kind="websocket")[0] == 1008
    plain = Policy(TOKEN, POLICY.hosts)
    assert ask("/claims", HOST, query=f"token={TOKEN}", policy=plain)[0] == 401


@pytest.mark.parametrize(
    "path", ["//evil.example/x", "///evil.example", "/%2f/evil.example", "/%2Fevil.example", "/a//b"]
)
def test_a_token_leads_to_no_other_server(path: str) -> None:
    status, headers = ask(path, HOST, query=f"token={TOKEN}")
    assert status == 404
    assert b"location" not in headers


def test_who_followed_a_link_elsewhere_is_led_by_a_page_of_ours() -> None:
    site = (("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate"))
    scope = scope_of("/a%22b%3Cc", [HOST, *site], query=f"token={TOKEN}")
    status, headers, body = asyncio.run(answer(Guard(App(), POLICY), scope))
    assert status == 200
    assert body == b'<meta http-equiv="refresh" content="0;url=/a%22b%3Cc">'
    assert b"default-src 'none'" in headers[b"content-security-policy"]
    assert b"set-cookie" in headers


def test_a_cookie_that_takes_long_to_unquote_is_answered_at_once() -> None:
    started = time.perf_counter()
    assert ask("/", HOST, ("cookie", 'inkling="' + "\\1" * 30_000 + '"'))[0] == 401
    assert time.perf_counter() - started < 0.5


# ------------------------------------------------------------------------------------------------ where it comes from


@pytest.mark.parametrize(
    "hosts",
    [
        [],
        [("host", "")],
        [("host", "evil.example")],
        [("host", "evil.example:8000")],
        [("host", "127.0.0.1")],
        [("host", "127.0.0.1:8001")],
        [("host", "127.0.0.1:8000.evil.example")],
        [("host", "127.0.0.1:8000@evil.example")],
        [("host", "0.0.0.0:8000")],
        [("host", " 127.0.0.1:8000")],
        [HOST, HOST],
        [HOST, ("host", "evil.example")],
    ],
)
def test_another_host_is_refused_by_every_method_and_websocket(hosts: list[tuple[str, str]]) -> None:
    for method in METHODS:
        assert ask("/", *hosts, COOKIE, method=method)[0] == 403
    assert ask("/", *hosts, BEARER, query=f"token={TOKEN}")[0] == 403
    assert ask("/", *hosts, COOKIE, ("origin", "http://127.0.0.1:8000"), kind="websocket")[0] == 1008


@pytest.mark.parametrize("host", ["localhost:8000", "LOCALHOST:8000", "[::1]:8000"])
def test_loopback_answers_to_its_own_names(host: str) -> None:
    assert ask("/", ("host", host), COOKIE)[0] == 200


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "", "http://127.0.0.1:8001", "http://127.0.0.1:8000.evil.example", "file://"],
)
def test_another_origin_is_refused_by_every_method_and_websocket(origin: str) -> None:
    for method in METHODS:
        for known in (COOKIE, BEARER):
            assert ask("/", HOST, known, ("origin", origin), method=method)[0] == 403
    ours = ("origin", "http://127.0.0.1:8000")
    assert ask("/", HOST, COOKIE, ours, ("origin", origin))[0] == 403
    assert ask("/", HOST, COOKIE, ("origin", origin), kind="websocket")[0] == 1008


def test_a_websocket_known_by_cookie_must_say_that_it_comes_from_us() -> None:
    ours = ("origin", "http://127.0.0.1:8000")
    assert ask("/ws", HOST, COOKIE, ours, kind="websocket")[0] == 0
    assert ask("/ws", HOST, BEARER, kind="websocket")[0] == 0
    assert ask("/ws", HOST, COOKIE, kind="websocket")[0] == 1008
    assert ask("/ws", HOST, ours, kind="websocket")[0] == 1008


@pytest.mark.parametrize("site", ["cross-site", "same-site", "", "nonsense"])
def test_what_another_page_asks_for_is_refused_even_with_our_cookie(site: str) -> None:
    for mode in ("navigate", "no-cors", "cors"):
        assert ask("/", HOST, COOKIE, ("sec-fetch-site", site), ("sec-fetch-mode", mode))[0] == 403
    assert ask("/", HOST, ("sec-fetch-site", site), ("sec-fetch-mode", "no-cors"), query=f"token={TOKEN}")[0] == 403


def test_headers_that_only_a_proxy_would_send_do_not_get_through() -> None:
    app = App()
    lies = [("X-Forwarded-Prefix", "//evil"), ("x-forwarded-for", "1.2.3.4"), ("Forwarded", "host=evil")]
    asyncio.run(answer(Guard(app, POLICY), scope_of("/", [HOST, COOKIE, *lies])))
    assert [name for name, _ in app.came[0]["headers"]] == [b"host", b"cookie"]


# ------------------------------------------------------------------------------------------------ paths that climb

CLIMBING = ("..", ".", "..;", "..;x=1", ".;")
PLAIN = st.text("abcXYZ012-_~", min_size=1, max_size=6)


def encoded(text: str, layers: int, letters: str) -> str:
    """Percent-encodes those letters of `text`, then every percent sign of that, and so on."""
    for layer in range(layers):
        shown = "".join(f"%{ord(letter):02x}" if letter in letters else letter for letter in text)
        text = shown if layer == 0 else text.replace("%", "%25")
    return text


@given(
    st.lists(PLAIN, max_size=3),
    st.sampled_from(CLIMBING),
    st.lists(PLAIN, max_size=3),
    st.integers(0, 8),
    st.sampled_from(["/", "\\"]),
    st.sampled_from([".", "./", "/.\\;", "./\\"]),
)
def test_no_path_with_a_climbing_part_passes_under_any_number_of_encodings(
    before: list[str], climbing: str, after: list[str], layers: int, slash: str, letters: str
) -> None:
    path = "/" + encoded(slash.join([*before, climbing, *after]), layers, letters)
    assert climbs(scope_of(path, []))


@given(st.lists(PLAIN, max_size=5), st.integers(0, 1))
def test_plain_names_pass_also_encoded_once(parts: list[str], layers: int) -> None:
    assert not climbs(scope_of("/" + encoded("/".join(parts), layers, "abcXYZ"), []))


@given(st.characters(codec="utf-8", exclude_characters="".join(map(chr, range(33, 127)))))
def test_letters_that_are_not_plain_do_not_pass(letter: str) -> None:
    assert climbs(scope_of("/a" + quote(letter) + "b", []))


@given(st.text("./%25ecfCEF\\;ab", max_size=30))
def test_what_passes_has_no_climbing_part_however_often_it_is_decoded(path: str) -> None:
    text = "/" + path
    if not climbs(scope_of(text, [])):
        for _ in range(10):
            assert not {".", ".."} & {part.split(";")[0] for part in text.replace("\\", "/").split("/")}
            assert "//" not in text
            text = unquote(text)


def test_who_has_the_token_gets_nothing_by_climbing() -> None:
    assert ask("/a/%252e%252e/b", HOST, COOKIE)[0] == 404


# ------------------------------------------------------------------------------------------------ bodies and time


def test_a_body_that_says_it_is_too_large_is_refused_before_it_comes() -> None:
    for size in ("1001", "1073741824", "9" * 30, "²", "-1", "1e3", ""):
        status, headers = ask("/", HOST, COOKIE, ("content-length", size), method="POST")
        assert (status, headers[b"connection"]) == (413, b"close")
    assert ask("/", HOST, COOKIE, ("content-length", "1000"), method="POST")[0] == 200


def test_a_body_that_does_not_say_so_is_cut_off_when_it_is_too_large() -> None:
    app = App()
    parts = [b"x" * 100 for _ in range(1000)]
    scope = scope_of("/", [HOST, COOKIE], method="POST")
    status, _, body = asyncio.run(answer(Guard(app, POLICY), scope, parts))
    assert (status, len(app.body)) == (413, 1000)
    assert "1,000 bytes" in json.loads(body)["error"]["message"]


def test_an_application_that_swallows_what_goes_wrong_does_not_answer_instead() -> None:
    async def careless(scope: Any, receive: Any, send: Any) -> None:
        try:
            while (await receive()).get("more_body", False):
                pass
        except BaseException:  # as frameworks do
            pass
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"all of it"})
        raise RuntimeError("and then it falls over")

    parts = [b"x" * 100 for _ in range(1000)]
    scope = scope_of("/", [HOST, COOKIE], method="POST")
    status, _, body = asyncio.run(answer(Guard(careless, POLICY), scope, parts))
    assert status == 413
    assert b"all of it" not in body


def test_files_may_be_larger_but_only_where_they_are_posted() -> None:
    big = ("content-length", "5000")
    assert ask("/files/7", HOST, COOKIE, big, method="POST")[0] == 200
    assert ask("/files/7", HOST, COOKIE, ("content-length", "5001"), method="POST")[0] == 413
    assert ask("/files/7", HOST, COOKIE, big, method="PUT")[0] == 413
    assert ask("/other/files/7", HOST, COOKIE, big, method="POST")[0] == 413
    assert ask("/files/7", HOST, big, method="POST")[0] == 401


def test_only_so_many_files_are_received_at_a_time() -> None:
    async def story() -> list[int]:
        hold = asyncio.Event()
        guard = Guard(App(hold), POLICY)
        scope = scope_of("/files/1", [HOST, COOKIE], method="POST")
        first = asyncio.create_task(answer(guard, scope))
        await asyncio.sleep(0)
        second = await answer(guard, scope)
        hold.set()
        return [second[0], (await first)[0], (await answer(guard, scope))[0]]

    assert asyncio.run(story()) == [503, 200, 200]


def test_a_body_that_comes_too_slowly_is_given_up() -> None:
    status, headers = ask("/", HOST, COOKIE, method="POST", body=[b"x"] * 100, wait_seconds=0.05)
    assert (status, headers[b"connection"]) == (408, b"close")


def test_an_answer_that_takes_too_long_is_given_up() -> None:
    async def story() -> int:
        guard = Guard(App(asyncio.Event()), POLICY)
        return (await answer(guard, scope_of("/", [HOST, COOKIE])))[0]

    assert asyncio.run(story()) == 504


def test_every_answer_has_headers_that_keep_a_browser_in_its_place() -> None:
    for headers in (ask("/", HOST, COOKIE)[1], ask("/", HOST)[1]):
        assert headers[b"x-content-type-options"] == b"nosniff"
        assert headers[b"x-frame-options"] == b"DENY"
        assert headers[b"referrer-policy"] == b"no-referrer"
        assert headers[b"cache-control"] == b"no-store"
        assert headers[b"content-security-policy"].startswith(b"default-src 'none'; frame-ancestors 'none'")


# ------------------------------------------------------------------------------------------------ the policy


def test_tokens_are_long_and_never_twice_the_same() -> None:
    found = {new_token() for _ in range(100)}
    assert len(found) == 100
    assert min(map(len, found)) >= 43  # 32 bytes in base 64


@pytest.mark.parametrize("token", ["", "short", "with space with space", "semicolon;semicolon", "zeile\r\nzeile-zeile"])
def test_a_token_that_is_short_or_would_break_a_header_is_not_taken(token: str) -> None:
    with pytest.raises(UsageError, match="give at least 16 of"):
        Policy(token, ())


def test_a_server_at_all_addresses_answers_to_what_it_is_named_only() -> None:
    assert "0.0.0.0:80" not in hosts_of("0.0.0.0", 80)
    assert "lab.example:9000" in hosts_of("0.0.0.0", 9000, ["Lab.Example"])
    assert {"127.0.0.1", "127.0.0.1:80"} <= set(hosts_of("127.0.0.1", 80))
    assert "[fe80::1]:9" in hosts_of("fe80::1", 9)

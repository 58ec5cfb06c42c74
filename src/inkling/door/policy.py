"""What a server asks of everyone who knocks: the token, the names it answers to, and how much may be sent.

A browser sends requests to this computer for any page that is open in it, so being on loopback alone keeps nobody out.
What does: a token that only the person at the terminal has been told; the `Host` header, which a foreign name that was
pointed at this computer (DNS rebinding) cannot forge; and `Origin`, which a foreign page cannot hide.
"""

from __future__ import annotations

import secrets
import string
from collections.abc import Iterable
from dataclasses import dataclass

from inkling.errors import UsageError

MEGABYTE = 1 << 20
TOKEN_BYTES = 32
SHORTEST_TOKEN = 16
TOKEN_LETTERS = frozenset(string.ascii_letters + string.digits + "-_.~")


@dataclass(frozen=True)
class Policy:
    """`hosts` are the values of the `Host` header that are answered, such as `127.0.0.1:8765`."""

    token: str
    hosts: tuple[str, ...]
    largest_body_bytes: int = MEGABYTE
    body_seconds: float = 30.0  # until a request's body is here
    request_seconds: float = 600.0  # until a request is answered to its end
    uploads: tuple[str, ...] = ()  # beginnings of paths to which files are posted; larger, slower, and few at a time
    largest_upload_bytes: int = 0
    upload_seconds: float = 120.0
    most_uploads: int = 2
    cookie: str = "inkling"  # browsers do not tell ports apart, so two servers need two names
    pages: bool = False  # whether ?token= in an address opens a page, and is kept as a cookie

    def __post_init__(self) -> None:
        check_token(self.token)

    def is_upload(self, method: str, path: str) -> bool:
        return method == "POST" and bool(self.uploads) and path.startswith(self.uploads)

    @property
    def origins(self) -> frozenset[str]:
        return frozenset(f"{scheme}://{host}" for host in self.hosts for scheme in ("http", "https"))


def new_token() -> str:
    return secrets.token_urlsafe(TOKEN_BYTES)


def check_token(token: str) -> None:
    if len(token) < SHORTEST_TOKEN or not TOKEN_LETTERS.issuperset(token):
        raise UsageError(
            f"The token has {len(token)} characters, some perhaps not allowed; give at least {SHORTEST_TOKEN} of "
            "A-Z a-z 0-9 - _ . ~, such as `python -c 'import secrets; print(secrets.token_urlsafe())'` prints."
        )


def hosts_of(address: str, port: int, names: Iterable[str] = ()) -> tuple[str, ...]:
    """What the `Host` header may say to a server at `address`: itself, and `names` that it is also reached by.

    Loopback answers to all its own names. At another address only what is named is answered, and that address itself;
    a server at all addresses (0.0.0.0) has none, so it must be given names.
    """
    found = ["127.0.0.1", "localhost", "[::1]"]
    if address not in ("127.0.0.1", "localhost", "::1", "0.0.0.0", "::"):
        found.append(f"[{address}]" if ":" in address else address.lower())
    found += [name.lower() for name in names]
    plain = found if port == 80 else []
    return tuple(dict.fromkeys([f"{name}:{port}" for name in found] + plain))

"""How much one server does at once, and how much one request may ask for."""

from __future__ import annotations

from dataclasses import dataclass, fields

from inkling.errors import UsageError

MEGABYTE = 1 << 20


@dataclass(frozen=True)
class Limits:
    batch: int = 32  # texts that are written together, of one model
    lanes: int = 1  # threads that share these texts among them
    queue: int = 256  # texts that may wait for that, of one model; beyond, requests are refused for a while
    max_tokens: int = 4096  # that a completion may have
    prompt_tokens: int = 65_536  # that one prompt or text may have
    texts: int = 256  # prompts × n of a request, or texts of it
    stops: int = 16  # stop strings
    stop_chars: int = 256  # of one of them
    others: int = 20  # likeliest tokens that are told with each
    body_bytes: int = 4 * MEGABYTE
    seconds: float = 120.0  # that a request may take

    def __post_init__(self) -> None:
        for field in fields(self):
            if not getattr(self, field.name) > 0:
                name = field.name.replace("_", "-")
                raise UsageError(f"--{name} is {getattr(self, field.name)}; give a number above 0.")


@dataclass(frozen=True)
class Busy(Exception):
    """The queue is full; ask again after some seconds."""

    seconds: int = 1


class TooLong(Exception):
    """A request that took longer than a request may."""

"""A head ordered in words: "d+b, a, c+b", "1=b-c, 2=b" and, where looks are fixed, "1=3, 2=1+3" → its design.

Beside the design stands what K = Q = V = I would do for each wish. Tokens count from 1 in words, from 0 in Python.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from inkling.errors import UsageError

if TYPE_CHECKING:
    from inkling.attention.design import Design
    from inkling.attention.hull import IdentityVerdict
    from inkling.figures import Page

EXAMPLE = "'1=3, 2=1+3'"


@dataclass(frozen=True, eq=False)
class Order:
    """A design, and what K = Q = V = I would do for each of its wishes."""

    design: Design
    plain: tuple[IdentityVerdict, ...]

    def page(self) -> Page:
        from inkling.figures import Page, Prose

        page = self.design.page()
        said = "\n\n".join(verdict.sentence for verdict in self.plain)
        return Page(page.title, (*page.exhibits, Prose(said, "And with K = Q = V = I?")))

    def to_json(self) -> dict[str, Any]:
        return {**self.design.to_json(), "identity": [verdict.to_json() for verdict in self.plain]}


def order(tokens: str, wishes: str, beta: float = 3.0, looks: str | None = None, linear: bool = False) -> Order:
    """The head for what was written; components are β long, so the scores that are made are β²."""
    import numpy as np

    from inkling.attention.design import design
    from inkling.attention.hull import identity_verdict
    from inkling.attention.wishes import parse_tokens, parse_wishes

    if not 1e-3 <= beta <= 1e3:
        raise UsageError(f"--beta is {beta:g}; give a number from 0.001 to 1000.")
    names, inputs = parse_tokens(tokens)
    wanted = parse_wishes(wishes, names, len(inputs))
    fixed = None if looks is None else read_looks(looks, len(inputs), wanted)
    components = beta * np.eye(len(names))
    found = design(components, inputs, wanted, beta**2, names, looks=fixed, values="linear" if linear else "components")
    titles = [f"token {i + 1}" for i in range(len(inputs))]
    plain = [identity_verdict(inputs @ components, wanted[i] @ components, i, names=titles) for i in sorted(wanted)]
    return Order(found, tuple(plain))


def read_whole_numbers(flag: str, given: str, most: int, example: str = "1,4,7") -> list[int]:
    try:
        found = [int(part) for part in given.replace("+", ",").split(",")]
    except ValueError:
        raise UsageError(f"{flag} is '{given}'; give whole numbers, such as {example}.") from None
    for number in found:
        if not 1 <= number <= most:
            raise UsageError(f"{flag} names {number}; give numbers from 1 to {most}.")
        if found.count(number) > 1:
            raise UsageError(f"{flag} names {number} twice; give each once.")
    return found


def read_looks(given: str, tokens: int, wishing: Container[int] | None = None) -> dict[int, tuple[int, ...]]:
    """'1=3, 2=1+3' → {0: (2,), 1: (0, 2)}; only of tokens that are `wishing`, where these are named."""
    found: dict[int, tuple[int, ...]] = {}
    for part in given.split(","):
        token, equals, places = (side.strip() for side in part.partition("="))
        if not (token and equals and places) or "+" in token:
            raise UsageError(f"--looks is '{given}'; give token=tokens, such as {EXAMPLE}.")
        (number,) = read_whole_numbers("--looks", token, tokens, EXAMPLE)
        if number - 1 in found:
            raise UsageError(f"--looks says twice where token {number} looks; say it once, such as {number}=1+2.")
        if wishing is not None and number - 1 not in wishing:
            raise UsageError(f"--looks says where token {number} looks, which has no wish; give it one.")
        seen = read_whole_numbers("--looks", places, tokens, EXAMPLE)
        found[number - 1] = tuple(place - 1 for place in seen)
    return found

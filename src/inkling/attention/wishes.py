"""Tokens and wishes as people write them: "d+b, a, c+b" and "1=b-c, 2=b".

A token or a wish is a sum of components with numbers before them (b, 2b, 0.5b-c, -2*b), or 0 for nothing. Tokens are
separated by commas and counted from 1 here, from 0 in Python.
Left out: brackets, exponents (1e3), names that begin with a digit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from inkling.attention.arrays import Floats, listing
from inkling.errors import UsageError

TERM = re.compile(r"\s*([+-]?)\s*(\d+(?:\.\d*)?|\.\d+)?\s*\*?\s*([^\W\d]\w*)\s*")
EXAMPLE = "such as b, 2b or 0.5b-c"


def parse_sum(text: str, what: str) -> dict[str, float]:
    """Components and their coefficients, in the order in which they are named."""
    left = text.replace("−", "-").strip()
    if not left:
        raise UsageError(f"{what} is empty; write a sum of components, {EXAMPLE}, or 0.")
    found = dict[str, float]()
    if left == "0":
        return found
    place = 0
    while place < len(left):
        term = TERM.match(left, place)
        if term is None or (place > 0 and not term[1]):
            raise UsageError(f"{what} is {text.strip()!r}; write a sum of components, {EXAMPLE}, or 0.")
        number = float(term[2] or 1)
        found[term[3]] = found.get(term[3], 0.0) + (-number if term[1] == "-" else number)
        place = term.end()
    return found


def spell_sum(coefficients: Floats, names: Sequence[str]) -> str:
    """The other way: [1, −1] of b and c is "b − c"; what is below 5e-7 is left out."""
    text = ""
    for number, name in zip(coefficients, names, strict=True):
        if abs(number) < 5e-7:
            continue
        sign = ("" if not text else " + ") if number > 0 else ("−" if not text else " − ")
        size = f"{abs(number):.4g}"
        text += sign + ("" if size == "1" else size) + name
    return text or "0"


def parse_tokens(text: str) -> tuple[tuple[str, ...], Floats]:
    """Names of the components, sorted, and the coefficients of the tokens over them (T×m)."""
    sums = [parse_sum(part, f"Token {i + 1}") for i, part in enumerate(_parts(text, "tokens", "d+b, a, c+b"))]
    names = tuple(sorted({name for one in sums for name in one}))
    if not names:
        raise UsageError("No token has a component; write tokens such as d+b, a, c+b.")
    return names, np.array([[one.get(name, 0.0) for name in names] for one in sums])


def parse_wishes(text: str, names: Sequence[str], tokens: int | None = None) -> dict[int, Floats]:
    """From token (counted from 0) to the coefficients of its wanted output (m)."""
    found = dict[int, Floats]()
    for part in _parts(text, "wishes", "1=b-c, 2=b"):
        number, equals, wish = part.partition("=")
        if not equals or not re.fullmatch(r"\s*\d{1,9}\s*", number):
            raise UsageError(f"The wish {part.strip()!r} names no token; write token=sum, such as 1=b-c.")
        token = int(number)
        if token < 1 or (tokens is not None and token > tokens):
            last = f" to {tokens}" if tokens is not None else ""
            raise UsageError(f"There is no token {token}; tokens are counted from 1{last}.")
        if token - 1 in found:
            raise UsageError(f"Token {token} has two wishes; give each token one.")
        sums = parse_sum(wish, f"The wish of token {token}")
        unknown = [name for name in sums if name not in names]
        if unknown:
            raise UsageError(f"No token has the component {unknown[0]!r}; known are {listing(list(names))}.")
        found[token - 1] = np.array([sums.get(name, 0.0) for name in names])
    return found


def _parts(text: str, what: str, example: str) -> list[str]:
    if not isinstance(text, str) or not text.strip():
        raise UsageError(f"No {what} are given; write them such as {example}.")
    return text.split(",")

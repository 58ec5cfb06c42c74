"""What stands beside a claim: the derivation, and the code that checks it, as they are in the source.

The derivation is the docstring of the claim's module, then those of the modules whose functions its test calls (there
stand the formulas that are being checked). The code is the test and the functions of its own module that it calls.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType
from typing import Any

from inkling.claims.ledger import Claim
from inkling.figures import Column, Table

LETTERS = {
    "A": "Derivatives by hand, and a network of two words",
    "B": "Recurrent models",
    "C": "What a perplexity says",
    "D": "Averaging networks",
    "E": "Attention",
    "F": "Knowledge",
}
FORMULA = "∂Σσ⊙α"  # letters by which a docstring that derives something is told from one that does not


@dataclass(frozen=True)
class Passage:
    """A piece of the source: where it stands, and its text."""

    place: str
    text: str


@dataclass(frozen=True)
class Derivation:
    words: tuple[Passage, ...]
    code: tuple[Passage, ...]


def groups(claims: tuple[Claim, ...]) -> dict[str, list[Claim]]:
    """Claims by letter, in order, under a heading."""
    found: dict[str, list[Claim]] = {}
    for claim in claims:
        letter = claim.id.rstrip("0123456789")
        found.setdefault(f"{letter} · {LETTERS[letter]}" if letter in LETTERS else letter, []).append(claim)
    return found


def derivation(claim: Claim) -> Derivation:
    module = _module(claim.test)
    known = vars(module)
    called = [inspect.unwrap(known[name]) for name in _names(claim.test) if callable(known.get(name))]
    own = [one for one in called if isinstance(one, FunctionType) and one.__module__ == module.__name__]
    words = [module]
    for one in called:
        beyond = inspect.getmodule(one) if isinstance(one, FunctionType | type) else None
        if beyond is not None and beyond not in words and set(FORMULA) & set(inspect.getdoc(beyond) or ""):
            words.append(beyond)
    return Derivation(
        tuple(Passage(one.__name__, inspect.getdoc(one) or "") for one in words if _is_ours(one)),
        tuple(
            Passage(f"{one.__module__}.{one.__qualname__}", inspect.getsource(one).rstrip())
            for one in (inspect.unwrap(claim.test), *own)
        ),
    )


def figures_table(row: dict[str, Any]) -> Table:
    """The figures of a row, with the digits that can be compared."""
    columns = (Column("figure"), Column("value", ".10g"))
    return Table("Figures", columns, tuple((name, value) for name, value in row["figures"].items()))


def _module(function: Callable[..., Any]) -> ModuleType:
    found = inspect.getmodule(inspect.unwrap(function))
    assert found is not None
    return found


def _is_ours(module: ModuleType) -> bool:
    return module.__name__.split(".")[0] == "inkling"


def _names(function: Callable[..., Any]) -> list[str]:
    """Global names that a function uses, those of functions inside it too, each once and in order."""
    found: dict[str, None] = {}

    def look(code: CodeType) -> None:
        found.update(dict.fromkeys(code.co_names))
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                look(constant)

    look(inspect.unwrap(function).__code__)
    return list(found)

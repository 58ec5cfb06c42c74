"""Typing errors on purpose, to see what a model makes of text that nobody has proof-read.

A stated share of the characters, line ends not counted, is chosen, each of them gets one of four errors with equal
chance, and everything else stays as it was:

    substituted   another small letter in its place, a capital for a capital
    dropped       gone
    doubled       twice
    swapped       changes places with the next character; where that cannot be seen (the same character, a line end, the
                  end of the text, or a character that has an error of its own) it is doubled instead

Line ends ("\\n" and "\\r") are never touched, so the lines of the result are those of the text.
Left out: which keys are neighbours; errors of hearing; errors that come from another word.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from inkling.errors import UsageError

Kind = Literal["substituted", "dropped", "doubled", "swapped"]

KINDS: tuple[Kind, ...] = ("substituted", "dropped", "doubled", "swapped")
LETTERS = "abcdefghijklmnopqrstuvwxyz"
LINE_ENDS = "\n\r"


def add_typos(text: str, share: float, generator: np.random.Generator) -> str:
    """`text` with errors at `share` of its characters, to the nearest whole number."""
    if not 0 <= share <= 1:
        raise UsageError(f"The share of characters with an error is {share:g}; give a number from 0 to 1.")
    places = np.array([i for i, character in enumerate(text) if character not in LINE_ENDS], dtype=np.int64)
    chosen = np.sort(generator.choice(places, round(share * len(places)), replace=False))
    kinds = [KINDS[i] for i in generator.integers(len(KINDS), size=len(chosen)).tolist()]
    draws = generator.integers(len(LETTERS) - 1, size=len(chosen)).tolist()
    wrong = set(chosen.tolist())
    parts: list[str] = []
    done = 0
    for place, kind, draw in zip(chosen.tolist(), kinds, draws, strict=True):
        parts.append(text[done:place])
        here, after = text[place], text[place + 1 : place + 2]
        done = place + 1
        if kind == "swapped" and after and after not in LINE_ENDS and after != here and place + 1 not in wrong:
            parts.append(after + here)
            done += 1
        elif kind == "substituted":
            parts.append(_another_letter(here, draw))
        elif kind != "dropped":
            parts.append(here * 2)
    return "".join([*parts, text[done:]])


def _another_letter(character: str, draw: int) -> str:
    """The letter number `draw` of the alphabet without `character`."""
    others = LETTERS.replace(character.lower(), "")
    letter = others[draw % len(others)]
    return letter.upper() if character.isupper() else letter

"""Which tokens each wishing token looks at, so that one Q brings it about and one V gives the wishes; or why none does.

Choices come best first from `fitting`; the first one with a Q (`looking`) is taken. Sets that are looked at are tokens
and pairs, each with all tokens that every query must rank the same (equal inputs, inputs on the line through two), and
all tokens together. With equal inputs looks are equal too, so many choices fall away before they are tried.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from inkling.attention.arrays import Floats, listing
from inkling.attention.fitting import Set, Wanted, rank, sets_of
from inkling.attention.looking import Looks, level_with, margin, pairs, separating_query
from inkling.errors import InklingError

MET = 1e-8  # residual of V that counts as none, as a share of the wishes


@dataclass(frozen=True, eq=False)
class Found:
    looks: Looks
    scoring: Floats
    by: Literal["pairs", "margin"]
    misfit: float
    missed: Looks | None  # looks that would fit better, but that no score can bring about
    exhaustive: bool


def choose(wanted: Wanted, fixed: Looks) -> Found:
    """The best choice of sets that some Q can bring about: single tokens first, then pairs and all together."""
    x, known = wanted.inputs, dict[Set, bool]()

    def visible(seen: Set) -> bool:
        if seen not in known:
            known[seen] = separating_query(x, seen) is not None
        return known[seen]

    for i, seen in fixed.items():
        if not _lookable(x, i, seen, visible):
            raise InklingError(_untold(x, i, seen))
    held = _held(wanted, fixed)
    singles, wide = _sets(x, False), _sets(x, True)
    best: Found | None = None
    for sets in (singles, wide):
        options = [
            [one] if (one := held[g]) else [seen for seen in sets if _lookable(x, wanted.first(g), seen, visible)]
            for g in range(wanted.count)
        ]
        found = _first(wanted, options) if all(options) else None
        if found is not None and (best is None or found.misfit < best.misfit):
            best = found
        if best is not None and best.misfit <= MET:
            return best
    if best is None:  # nobody looks anywhere in particular
        best = _first(wanted, [[one or tuple(range(len(x)))] for one in held])
    if best is None:
        raise InklingError(
            "No Q makes these tokens look where they should at once, because their inputs depend on each other "
            "linearly; leave out one of the looks."
        )
    ideal = rank(wanted, [[one] if one else sets_of(len(x)) for one in held])
    if ideal.misfits[0] < best.misfit:
        return replace(best, missed=dict(zip(wanted.tokens, ideal.choices[0], strict=True)))
    return best


def _held(wanted: Wanted, fixed: Looks) -> list[Set | None]:
    """For each group of equal inputs the set it was told to look at."""
    held: list[Set | None] = [None] * wanted.count
    for i, seen in fixed.items():
        group = wanted.groups[wanted.tokens.index(i)]
        if held[group] not in (None, seen):
            raise InklingError(
                f"Token {i + 1} has the same input as another token that should look elsewhere, so both look at the "
                "same tokens; give both the same looks."
            )
        held[group] = seen
    return held


def _sets(inputs: Floats, wide: bool) -> list[Set]:
    """Sets worth trying, each with the tokens that no query can rank otherwise, smaller ones first."""
    found = {level_with(inputs, seen) for seen in sets_of(len(inputs), wide)}
    return sorted(found, key=lambda seen: (len(seen), seen))


def _lookable(inputs: Floats, i: int, seen: Set, visible: Callable[[Set], bool]) -> bool:
    """A token whose input is zero gives every token the same score."""
    return len(seen) == len(inputs) or (bool(inputs[i].any()) and visible(seen))


def _first(wanted: Wanted, options: Sequence[Sequence[Set]]) -> Found | None:
    """The best choice with a Q; among equally good ones the first whose Q is made of pairs of components."""
    ranking = rank(wanted, options)
    best, level = None, (0.0, 0)
    for choice, misfit in zip(ranking.choices, ranking.misfits, strict=True):
        here = (misfit, sum(map(len, choice)))
        if best is not None and here > level:
            break
        looks = dict(zip(wanted.tokens, choice, strict=True))
        scoring = pairs(wanted.inputs, looks)
        if scoring is not None:
            return Found(looks, scoring, "pairs", misfit, None, ranking.exhaustive)
        if best is None:
            scoring = margin(wanted.inputs, looks)
            if scoring is not None:
                best, level = Found(looks, scoring, "margin", misfit, None, ranking.exhaustive), here
    return best


def reasons(wanted: Wanted, found: Found, value_map: Floats, names: tuple[str, ...]) -> tuple[str, ...]:
    """Sentences that say what stands in the way."""
    x, tokens, wishes = wanted.inputs, wanted.tokens, wanted.wishes
    said = list[str]()
    for a in range(len(tokens)):
        for b in range(a + 1, len(tokens)):
            i, j = tokens[a], tokens[b]
            if np.array_equal(x[i], x[j]) and not np.array_equal(wishes[a], wishes[b]):
                said.append(
                    f"Tokens {i + 1} and {j + 1} have equal inputs, so their outputs are equal whatever K, Q and V "
                    "are, but their wishes differ."
                )
    if found.missed is not None:
        blind = {seen: i for i, seen in found.missed.items() if not _seen(x, i, seen)}
        said += [_untold(x, i, seen) for seen, i in blind.items()]
        if not blind:
            said.append(
                "Looks that would do better cannot be had at once, because the inputs of the wishing tokens depend on "
                "each other linearly and so do their queries."
            )
    y = wanted.means([found.looks[i] for i in tokens])
    size = float(np.abs(wishes).max())
    if wanted.values == "components":
        gains = np.diag(value_map)
        for c, name in enumerate(names):
            if np.abs(gains[c] * y[:, c] - wishes[:, c]).max() > MET * size:
                said.append(_two_gains(c, name, wanted, y[:, c], float(gains[c]), found.looks))
    elif not said or found.missed is None:
        off = np.abs(y @ value_map.T - wishes).max(axis=1) > MET * size
        who = listing([i + 1 for i, one in zip(tokens, off, strict=True) if one])
        said.append(
            f"What tokens {who} look at obeys a linear relation that their wishes break, so no linear V gives them all."
            if off.sum() > 1
            else f"What token {who} looks at has nothing in it that V could turn into its wish."
        )
    return tuple(said) or ("The wishes are met only to within rounding.",)


def _seen(inputs: Floats, i: int, seen: Set) -> bool:
    return _lookable(inputs, i, seen, lambda one: separating_query(inputs, one) is not None)


def _two_gains(c: int, name: str, wanted: Wanted, y: Floats, gain: float, looks: Looks) -> str:
    """Why no gain of component c gives all that is wished of it, where tokens look like this (mean inputs y)."""
    has, wish, tokens = wanted.inputs[:, c], wanted.wishes[:, c], wanted.tokens
    needed = [(float(wish[k] / y[k]), f"token {tokens[k] + 1}") for k in range(len(tokens)) if y[k]]
    for k in (k for k in range(len(tokens)) if not y[k] and wish[k]):
        me, there = tokens[k] + 1, [int(j) for j in np.flatnonzero(has)]
        if not there:
            return f"Token {me} wants {name}, which V cannot make out of other components, and no token has it."
        elsewhere = [(float(wish[k] / has[j]), f"token {me} (if it looked at token {j + 1})") for j in there]
        if not gain or any(abs(ratio - gain) <= MET * abs(gain) for ratio, _ in elsewhere):
            return f"Token {me} wants {name}, which {spell_tokens(looks[tokens[k]])}, where it looks, cannot give."
        needed.append(elsewhere[0])
    (low, one), (high, other) = min(needed), max(needed)
    both = f"the gain {low:.4g} for {one} and {high:.4g} for {other}".replace("-", "−")
    return f"With these looks component {name} would need {both} at once."


def _untold(inputs: Floats, i: int, seen: Set) -> str:
    if not inputs[i].any():
        return f"Token {i + 1} has no component, so it gives every token the same score and looks at all alike."
    if len(seen) == 1:
        return (
            f"No score can tell {spell_tokens(seen)} from the others: its input is a mixture of theirs, so token "
            f"{i + 1} cannot look at it alone."
        )
    return (
        f"No score is equal on {spell_tokens(seen)} and smaller on all others, because mixtures of their inputs are "
        f"mixtures of the others' too, so token {i + 1} cannot look at just these."
    )


def spell_tokens(seen: Set) -> str:
    return f"token {seen[0] + 1}" if len(seen) == 1 else f"tokens {listing([j + 1 for j in seen])}"

"""K, Q and V that do what is wished: given tokens made of orthogonal components, and outputs that some of them want.

Components u_1 … u_m are mutually orthogonal, a token is x = Σ_c a_c u_c, a wish is an output Σ_c w_c u_c for one token.

    V = Σ_c g_c u_c u_cᵀ / |u_c|²       components are re-weighted (or any linear map of them: values='linear')
    K = I
    Q = s Σ_fe G_fe u_f u_eᵀ / (|u_f|² |u_e|²)       the score of x_j for x_i is s · a_jᵀ G a_i

The search finds which tokens each wishing token should look at and G (`choosing`, `fitting`, `looking`): s
more for these than for any other. Of T tokens, k looked at, the others then get at most the leak

    ε = (T − k) e^(−s) / (k + (T − k) e^(−s))       |c_i − wish| ≤ residual of V + ε · largest distance of two values

Where a wish cannot be met the result says why. Left out: several heads, positions, components that are not orthogonal
(orthogonalise them first, or see `construct.extract`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from inkling.attention.arrays import Floats, index, listing, matrix_map, real_array, real_number
from inkling.attention.choosing import MET, Found, choose, reasons, spell_tokens
from inkling.attention.fitting import Set, Values, Wanted
from inkling.attention.head import Head, orthogonal_rows
from inkling.attention.looking import Looks
from inkling.attention.wishes import spell_sum
from inkling.errors import UsageError
from inkling.figures import Cell, Column, Page, Panels, Prose, Table

MOST_TOKENS = 32
UNEVEN = 1e-8  # difference of weights that should be equal
WIDEST_SHOWN = 16  # numbers in a vector whose matrices are drawn in full


@dataclass(frozen=True, eq=False)
class Design:
    """A head that gives the wishes, how well, and why not better. Tokens are counted from 0, in sentences from 1."""

    names: tuple[str, ...]  # of the components
    components: Floats  # m×d
    inputs: Floats  # T×m
    wishes: Mapping[int, Floats]  # token → m
    sharpness: float
    values: Values
    head: Head
    looks: Looks
    scoring: Floats  # G, m×m: key component in rows, query component in columns
    value_map: Floats  # V over the components, m×m
    by: Literal["pairs", "margin"]  # how Q was found
    weights: Floats  # T×T
    outputs: Floats  # T×m, coefficients of c
    residuals: Mapping[int, float]  # distance of the hard limit from the wish, in the length of vectors
    leaks: Mapping[int, float]  # weight of the tokens that should not be looked at
    errors: Mapping[int, float]  # distance of c from the wish at this sharpness
    bounds: Mapping[int, float]  # of these errors
    reasons: tuple[str, ...]  # why wishes cannot be met; none where they are
    notes: tuple[str, ...] = ()

    @property
    def K(self) -> Floats:
        return self.head.K

    @property
    def Q(self) -> Floats:
        return self.head.Q

    @property
    def V(self) -> Floats:
        return self.head.V

    @property
    def gains(self) -> Floats | None:
        """Of each component; None where V is any linear map."""
        return np.diag(self.value_map).copy() if self.values == "components" else None

    @property
    def wanted(self) -> Floats:
        """The wishes as vectors, in the order of their tokens."""
        return np.array([self.wishes[i] @ self.components for i in sorted(self.wishes)])

    @property
    def residual(self) -> float:
        return math.sqrt(sum(one**2 for one in self.residuals.values()))

    @property
    def met(self) -> bool:
        return not self.reasons

    @property
    def sentence(self) -> str:
        looks = [f"token {i + 1} looks at {spell_tokens(self.looks[i])}" for i in sorted(self.looks)]
        worst = max(self.errors.values())
        if self.met:
            wishes = "The wish is" if len(looks) == 1 else "All wishes are"
            return (
                f"{wishes} met as sharpness grows: {listing(looks)}; at sharpness {self.sharpness:.4g} outputs are off "
                f"by at most {worst:.3g}."
            )
        return (
            f"Not every wish is met: the nearest found leaves {self.residual:.3g} even at endless sharpness, where "
            f"{listing(looks)}; at sharpness {self.sharpness:.4g} outputs are off by at most {worst:.3g}."
        )

    def summary(self) -> str:
        return " ".join((self.sentence, *self.reasons, *self.notes))

    def to_json(self) -> dict[str, Any]:
        tokens = sorted(self.wishes)
        return {
            "names": list(self.names),
            "sharpness": self.sharpness,
            "values": self.values,
            "by": self.by,
            **self.head.to_json(),
            "gains": None if self.gains is None else self.gains.tolist(),
            "weights": self.weights.tolist(),
            "outputs": self.outputs.tolist(),
            "wishes": [
                {
                    "token": i,
                    "wanted": self.wishes[i].tolist(),
                    "looks": list(self.looks[i]),
                    "residual": self.residuals[i],
                    "leak": self.leaks[i],
                    "error": self.errors[i],
                    "bound": self.bounds[i],
                }
                for i in tokens
            ],
            "met": self.met,
            "reasons": list(self.reasons),
            "notes": list(self.notes),
            "sentence": self.sentence,
        }

    def page(self) -> Page:
        tokens = tuple(f"x{i + 1} = {spell_sum(row, self.names)}" for i, row in enumerate(self.inputs))
        short = tuple(f"x{i + 1}" for i in range(len(tokens)))
        columns = (
            Column("token"),
            Column("wants"),
            Column("looks at"),
            Column("gets"),
            Column("leak", ".3g", note="weight of all other tokens together"),
            Column("error", ".3g", note="length of the difference from the wish"),
            Column("error at most", ".3g"),
        )
        rows: list[tuple[Cell, ...]] = [
            (
                tokens[i],
                spell_sum(self.wishes[i], self.names),
                listing([short[j] for j in self.looks[i]]),
                spell_sum(self.outputs[i], self.names),
                self.leaks[i],
                self.errors[i],
                self.bounds[i],
            )
            for i in sorted(self.wishes)
        ]
        by_component = (
            matrix_map("Q / sharpness", self.scoring, self.names, self.names, labels=("key has", "query has")),
            matrix_map("V", self.value_map, self.names, self.names, labels=("written", "read")),
        )
        reading = (
            "Q: the score, in units of the sharpness, that a token with the column's component gives to one with the "
            "row's (coefficients 1); V: how often the column's component, when read, is written as the row's. K is the "
            "identity."
        )
        weights = matrix_map(
            "Who looks at whom",
            self.weights,
            tokens,
            short,
            labels=("token", "looks at"),
            unit="weight",
            reading="Each row adds up to 1; tokens without a wish look wherever this Q makes them look.",
            top=1.0,
        )
        return Page(
            "A head made to order",
            (
                Prose(self.summary()),
                Table("Wish by wish", columns, tuple(rows)),
                weights,
                Panels("Q and V over the components", by_component, reading, across=2),
                *([self.head.panels("K, Q and V as they stand")] if len(self.K) <= WIDEST_SHOWN else []),
            ),
        )

    def _repr_html_(self) -> str:
        return self.page()._repr_html_()


def design(
    components: Any,
    inputs: Any,
    wishes: Mapping[int, Any],
    sharpness: float = 20.0,
    names: Sequence[str] = (),
    *,
    looks: Mapping[int, Sequence[int]] | None = None,
    values: Values = "components",
) -> Design:
    """A head for which the tokens of `wishes` get what they want; `looks` fixes where some of them look.

    `components` are m mutually orthogonal vectors (rows), `inputs` the coefficients of T tokens over them, `wishes`
    maps a token (from 0) to the coefficients of its wanted output.
    """
    u, squares = orthogonal_rows(components, "the components")
    x = real_array(inputs, "inputs", 2)
    if x.shape[1] != len(u):
        raise UsageError(f"Tokens have {x.shape[1]} coefficients for {len(u)} components; give one for each component.")
    if len(x) > MOST_TOKENS:
        raise UsageError(f"{len(x)} tokens are given; give at most {MOST_TOKENS}.")
    if values not in ("components", "linear"):
        raise UsageError(f"values is {values!r}; give 'components' or 'linear'.")
    labels = _names(names, len(u))
    sharp = real_number(sharpness, "sharpness", above=0)
    wants = _wishes(wishes, x)
    fixed = _fixed(looks or {}, wants, len(x))
    tokens = tuple(sorted(wants))
    wanted = Wanted(x, tokens, np.array([wants[i] for i in tokens]), squares, values)
    found = choose(wanted, fixed)
    value_map = wanted.value_map(found.looks)
    duals = u / squares[:, None]
    head = Head(np.eye(u.shape[1]), sharp * duals.T @ found.scoring @ duals, u.T @ value_map @ duals)
    weights, outputs = head.attend(x @ u)
    return _judged(wanted, found, head, value_map, weights, outputs @ duals.T, u, labels, sharp)


def _judged(
    wanted: Wanted,
    found: Found,
    head: Head,
    value_map: Floats,
    weights: Floats,
    outputs: Floats,
    u: Floats,
    names: tuple[str, ...],
    sharp: float,
) -> Design:
    """What was found, measured against the wishes."""
    x, squares = wanted.inputs, wanted.squares
    spoken = x @ value_map.T  # T×m, what each token contributes
    apart = math.sqrt(float((((spoken[:, None] - spoken) ** 2) @ squares).max()))
    wishes = dict(zip(wanted.tokens, wanted.wishes, strict=True))
    residuals, leaks, errors, bounds = dict[int, float](), dict[int, float](), dict[int, float](), dict[int, float]()
    for i, wish in wishes.items():
        seen = list(found.looks[i])
        rest = (len(x) - len(seen)) * math.exp(-sharp)
        residuals[i] = _length(spoken[seen].mean(axis=0) - wish, squares)
        leaks[i] = float(np.delete(weights[i], seen).sum())
        errors[i] = _length(outputs[i] - wish, squares)
        bounds[i] = residuals[i] + rest / (len(seen) + rest) * apart
    why = () if found.misfit <= MET else reasons(wanted, found, value_map, names)
    notes = list[str]()
    if not found.exhaustive and found.misfit > MET:
        notes.append("There are too many choices of tokens to try all, so a better one may exist.")
    uneven = [i + 1 for i in wishes if np.ptp(weights[i, list(found.looks[i])]) > UNEVEN]
    if uneven:
        notes.append(
            f"At this sharpness the last digits of the scores decide how the tokens share that token {listing(uneven)} "
            "looks at, and the error may exceed its bound; take less sharpness."
        )
    return Design(
        names, u, x, wishes, sharp, wanted.values, head, found.looks, found.scoring, value_map, found.by, weights,
        outputs, residuals, leaks, errors, bounds, why, tuple(notes),
    )  # fmt: skip


def _length(coefficients: Floats, squares: Floats) -> float:
    return math.sqrt(float(coefficients**2 @ squares))


def _names(given: Sequence[str], count: int) -> tuple[str, ...]:
    if not given:
        return tuple("abcdefghijklmnopqrstuvwxyz"[:count]) if count <= 26 else tuple(f"u{c + 1}" for c in range(count))
    if len(given) != count or len(set(given)) != count:
        raise UsageError(f"{len(given)} names for {count} components; give a different name for each.")
    return tuple(str(name) for name in given)


def _wishes(given: Mapping[int, Any], inputs: Floats) -> dict[int, Floats]:
    if not isinstance(given, Mapping) or not given:
        raise UsageError("No wishes are given; map at least one token to the coefficients of its wanted output.")
    found = dict[int, Floats]()
    for token, wish in given.items():
        i = index(token, "Token", len(inputs))
        found[i] = real_array(wish, f"The wish of token {i}", 1)
        if len(found[i]) != inputs.shape[1]:
            raise UsageError(
                f"The wish of token {i} has {len(found[i])} coefficients for {inputs.shape[1]} components; give one "
                "for each component."
            )
    return found


def _fixed(given: Mapping[int, Sequence[int]], wishes: Mapping[int, Floats], tokens: int) -> dict[int, Set]:
    if not isinstance(given, Mapping):
        raise UsageError("looks maps a token to the tokens it should look at, such as {0: (2,)}.")
    found = dict[int, Set]()
    for token, seen in given.items():
        if token not in wishes:
            raise UsageError(f"Token {token!r} should look somewhere but has no wish; give it one.")
        if isinstance(seen, str | bytes) or not hasattr(seen, "__iter__"):
            raise UsageError(f"Token {token} should look at {seen!r}; give a list of tokens.")
        found[token] = tuple(sorted({index(one, "Token", tokens) for one in seen}))
        if not found[token]:
            raise UsageError(f"Token {token} should look at no token; give at least one.")
    return found

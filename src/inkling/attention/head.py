"""One attention head, and the building block of every construction: who looks at whom, what is read, what is written.

    q_i = Q x_i    k_j = K x_j    v_j = V x_j    α_ij = softmax_j(k_j · q_i)    c_i = Σ_j α_ij v_j

From mutually orthogonal components u of any length

    K = I      Q = s Σ_looks  w · u_key u_queryᵀ / (|u_key|² |u_query|²)      V = Σ_reads  g · u_to u_fromᵀ / |u_from|²

so that a token with u_query gives the score s·w to every token with u_key (coefficients 1), and a token with u_from
contributes g·u_to. Scores add up where a token has several components.

The largest score is subtracted before the exponential: scores of ±1e8 neither overflow nor make a NaN.
Left out: 1/√d (a part of s), biases, several heads (a sum of these).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from inkling.attention.arrays import Floats, index, matrix_map, real_array, real_number
from inkling.errors import InklingError, UsageError
from inkling.figures import Page, Panels, Prose

ORTHOGONAL = 1e-9  # largest cosine of two components that count as orthogonal


class Look(NamedTuple):
    """A token with `query` gives `strength` times the sharpness to every token with `key`."""

    query: Any
    key: Any
    strength: float = 1.0


class Read(NamedTuple):
    """What is found along `source` is written along `target`, `gain` times."""

    source: Any
    target: Any
    gain: float = 1.0


def softmax(scores: Floats) -> Floats:
    """Of each row. −inf is a place that may not be looked at; one place of each row must be finite."""
    shifted = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=-1, keepdims=True), np.float64)


@dataclass(frozen=True, eq=False)
class Head:
    K: Floats  # d×d, or r×d
    Q: Floats
    V: Floats

    def scores(self, inputs: Any) -> Floats:
        """k_j · q_i for the rows of `inputs` (T×d): query i in rows, key j in columns."""
        x = real_array(inputs, "inputs", 2)
        if x.shape[1] != self.Q.shape[1]:
            raise UsageError(f"The inputs have {x.shape[1]} numbers each; this head expects {self.Q.shape[1]}.")
        with np.errstate(over="ignore", invalid="ignore"):
            found = (x @ self.Q.T) @ (x @ self.K.T).T
        if not np.isfinite(found).all():
            raise InklingError("The scores of these inputs are too large for a computer's numbers; scale them down.")
        return np.asarray(found, np.float64)

    def attend(self, inputs: Any, causal: bool = False) -> tuple[Floats, Floats]:
        """Weights (T×T, query in rows) and outputs (T×d); with `causal` no token looks at a later one."""
        scores = self.scores(inputs)
        if causal:
            scores = np.where(np.tri(len(scores), dtype=bool), scores, -np.inf)
        weights = softmax(scores)
        return weights, weights @ (np.asarray(inputs, np.float64) @ self.V.T)

    def panels(self, title: str = "The matrices") -> Panels:
        maps = tuple(matrix_map(name, matrix) for name, matrix in (("K", self.K), ("Q", self.Q), ("V", self.V)))
        reading = "Score of j for i: (K x_j)·(Q x_i); what j contributes: V x_j. No units."
        return Panels(title, maps, reading, across=3)

    @property
    def sentence(self) -> str:
        return f"An attention head on inputs of {self.Q.shape[1]} numbers."

    def to_json(self) -> dict[str, Any]:
        return {"K": self.K.tolist(), "Q": self.Q.tolist(), "V": self.V.tolist()}

    def page(self) -> Page:
        return Page("An attention head", (Prose(self.sentence), self.panels()))

    def _repr_html_(self) -> str:
        return self.page()._repr_html_()


def orthogonal_rows(given: Any, what: str, *, parallel: bool = False) -> tuple[Floats, Floats]:
    """The rows of a matrix and their squared lengths, when none is zero and they are mutually orthogonal.

    With `parallel` two of them may also point the same way (the same component, named twice).
    """
    rows = real_array(given, what, 2)
    lengths = np.linalg.norm(rows, axis=1)
    if (lengths == 0).any():
        raise UsageError(f"Of {what}, number {int(np.argmin(lengths)) + 1} is zero; give vectors of positive length.")
    unit = rows / lengths[:, None]
    cosines = np.abs(unit @ unit.T)
    np.fill_diagonal(cosines, 0.0)
    if parallel:
        cosines[cosines > 1 - ORTHOGONAL] = 0.0
    if float(cosines.max()) > ORTHOGONAL:
        i, j = np.unravel_index(int(cosines.argmax()), cosines.shape)
        raise UsageError(
            f"Of {what}, numbers {min(i, j) + 1} and {max(i, j) + 1} have the cosine {float(unit[i] @ unit[j]):.3g}; "
            "give vectors that are mutually orthogonal."
        )
    return rows, lengths**2


def head(d: int, looks: Sequence[Any], reads: Sequence[Any], sharpness: float) -> Head:
    """K, Q and V from `looks` (query, key, strength) and `reads` (source, target, gain); see above."""
    d = index(d, "The dimension", 100_001)
    sharp = real_number(sharpness, "sharpness", least=0)
    pairs, moves = _triples(looks, Look, "looks"), _triples(reads, Read, "reads")
    vectors = [vector for triple in (*pairs, *moves) for vector in triple[:2]]
    found = [real_array(vector, "A component", 1) for vector in vectors]
    if d == 0 or any(len(vector) != d for vector in found):
        raise UsageError(f"The components have {sorted({len(v) for v in found})} numbers; the head was asked for {d}.")
    if found:
        orthogonal_rows(np.unique(np.array(found), axis=0), "the components", parallel=True)
    q, v = np.zeros((d, d)), np.zeros((d, d))
    ends = list(zip(found[::2], found[1::2], strict=True))
    for (query, key), (_, _, strength) in zip(ends, pairs, strict=False):
        q += sharp * real_number(strength, "A strength") * np.outer(key, query) / ((key @ key) * (query @ query))
    for (source, target), (_, _, gain) in zip(ends[len(pairs) :], moves, strict=True):
        v += real_number(gain, "A gain") * np.outer(target, source) / (source @ source)
    return Head(np.eye(d), q, v)


def _triples(given: Sequence[Any], kind: type[Look] | type[Read], what: str) -> list[Look | Read]:
    try:
        return [kind(*one) for one in given]
    except TypeError as error:
        raise UsageError(
            f"Each of `{what}` is {', '.join(kind._fields)}, the last of which may be left out."
        ) from error

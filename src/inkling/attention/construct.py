"""Two things attention does by linear algebra alone: taking one part out of a sum, and averaging chosen values.

Extraction. Columns of A (d×p) and B (d×q) span subspaces that share only 0. One matrix M takes v_a out of v_a + v_b:

    M = A Aᵀ             when all columns are orthonormal
    M = S D S⁻¹          in general, S = [A B C] with C an orthonormal complement, D = 1 on A and 0 elsewhere
      = Q_a N⁺           computed so: Q_a an orthonormal basis of span A, N = Q_a without its part in span B
    |M| = 1 / sin θ      θ the smallest angle between the subspaces: noise in v grows by that factor

Averaging. Of n keys (rows of K) k are chosen. A query with K q = β on these and 0 (or any other one number, which
softmax does not see) on the rest gives

    weight = e^β / (k e^β + n − k)        leak ε = (n − k) / (k e^β + n − k)        β = ln((n − k)(1 − ε) / (k ε))
    c = (1 − ε) · mean of the chosen values + ε · mean of the others
    |c − target| ≤ ε · largest distance of another value from the target

It exists unless the keys satisfy a relation Σ λ_i k_i = 0, Σ λ_i = 0 whose chosen part does not add up to 0. The query
is the shortest one. Left out: choosing C otherwise (M then differs outside span [A B] only); unequal weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from inkling.attention.arrays import Floats, index, listing, matrix_map, real_array, real_number
from inkling.attention.head import softmax
from inkling.errors import InklingError, UsageError
from inkling.figures import Bars, Column, Page, Panels, Prose, Series, Table

MEETING = 1e-10  # sine of an angle that counts as none
DEPENDENT = 1e-10  # smallest over largest singular value of columns of length 1
ORTHONORMAL = 1e-10
UNSOLVED = 1e-9  # largest miss of a score, in units of β
MOST_SHOWN = 40  # keys and coordinates on a page
LOUD = 100.0  # noise amplified by more than this is worth a note


@dataclass(frozen=True, eq=False)
class Extraction:
    """M with M(v_a + v_b) = v_a. Residuals are largest singular values, of bases whose columns have length 1."""

    A: Floats
    B: Floats
    M: Floats
    orthonormal: bool  # all columns of A and B are orthonormal, so that M = A Aᵀ
    angle: float  # degrees, the smallest between the two subspaces
    norm: float  # largest singular value of M
    condition: float  # of S = [A B C]
    residual_a: float  # |M A − A|
    residual_b: float  # |M B|
    residual_square: float  # |M² − M|
    notes: tuple[str, ...] = ()

    def apply(self, v: Any) -> Floats:
        """The part in span A of a vector in span [A B], or of each row of a matrix."""
        given = np.asarray(v)
        found = real_array(v, "v", 1 if given.ndim == 1 else 2)
        if found.shape[-1] != len(self.M):
            raise UsageError(f"v has {found.shape[-1]} numbers; the subspaces live in {len(self.M)} dimensions.")
        return np.asarray(found @ self.M.T, np.float64)

    @property
    def sentence(self) -> str:
        if self.orthonormal:
            return "A and B are orthonormal and perpendicular: M = A Aᵀ takes v_a out of v_a + v_b and adds no noise."
        if self.angle > 90 - 1e-6:
            return "The subspaces are perpendicular: M is the orthogonal projector onto span A and adds no noise."
        return (
            f"M takes v_a out of v_a + v_b; the subspaces are {self.angle:.3g} degrees apart, so noise grows by up to "
            f"{self.norm:.4g} times."
        )

    def summary(self) -> str:
        return " ".join((self.sentence, *self.notes))

    def to_json(self) -> dict[str, Any]:
        return {
            "M": self.M.tolist(),
            "orthonormal": self.orthonormal,
            "angle_degrees": self.angle,
            "norm": self.norm,
            "condition": self.condition,
            "residual_a": self.residual_a,
            "residual_b": self.residual_b,
            "residual_square": self.residual_square,
            "notes": list(self.notes),
            "sentence": self.sentence,
        }

    def page(self) -> Page:
        rows = (
            ("smallest angle between the subspaces (degrees)", f"{self.angle:.6g}"),
            ("|M| = 1 / sin of that angle: how much noise grows", f"{self.norm:.6g}"),
            ("condition number of S = [A B C]", f"{self.condition:.4g}"),
            ("|M A − A|", f"{self.residual_a:.2g}"),
            ("|M B|", f"{self.residual_b:.2g}"),
            ("|M² − M|", f"{self.residual_square:.2g}"),
        )
        reading = "M leaves A as it is and sends B to 0; the residuals above say how exactly."
        maps = (
            matrix_map("A", self.A, labels=("coordinate", "vector")),
            matrix_map("B", self.B, labels=("coordinate", "vector")),
            matrix_map("M", self.M, labels=("coordinate out", "coordinate in")),
        )
        table = Table("How well it works", (Column("quantity"), Column("value")), rows, self.notes)
        return Page("One part out of a sum", (Prose(self.sentence), table, Panels("Matrices", maps, reading, across=3)))

    def _repr_html_(self) -> str:
        return self.page()._repr_html_()


def extract(A: Any, B: Any) -> Extraction:
    """The matrix M with M(v_a + v_b) = v_a for v_a in the span of the columns of A and v_b in that of B."""
    a, b = real_array(A, "A", 2), real_array(B, "B", 2)
    if len(a) != len(b):
        raise UsageError(f"The columns of A have {len(a)} numbers and those of B {len(b)}; give equally many.")
    d, p, q = len(a), a.shape[1], b.shape[1]
    if p + q > d:
        raise InklingError(
            f"Subspaces of {p} and {q} dimensions always meet in {d} dimensions (angle 0), so no matrix can tell v_a "
            f"from v_b; give at most {d} columns in all."
        )
    unit_a, unit_b = _unit_columns(a, "A"), _unit_columns(b, "B")
    basis_a, basis_b = np.linalg.qr(unit_a)[0], np.linalg.qr(unit_b)[0]
    rest = _without(basis_a, basis_b)  # d×p, singular values: sines of the angles
    left, sines, right = np.linalg.svd(rest, full_matrices=False)
    cosine = float(np.linalg.svd(basis_a.T @ basis_b, compute_uv=False)[0])
    angle = math.degrees(math.atan2(float(sines[-1]), cosine))
    if sines[-1] < MEETING:
        raise InklingError(
            f"The spans of A and B meet: the smallest angle between them is {angle:.2g} degrees, so v_a cannot be told "
            "from v_b; give bases of subspaces that share only 0."
        )
    m = basis_a @ (right.T / sines) @ _without(left, basis_b).T
    norm = float(np.linalg.norm(m, 2))
    both = np.hstack([a, b])
    notes = []
    if norm > LOUD:
        notes.append(
            f"Noise in v is amplified up to {norm:.3g} times, because span A and span B are only {angle:.2g} degrees "
            "apart."
        )
    orthonormal = np.abs(both.T @ both - np.eye(p + q)).max() <= ORTHONORMAL
    return Extraction(
        a,
        b,
        m,
        bool(orthonormal),
        angle,
        norm,
        _condition(both),
        float(np.linalg.norm(m @ unit_a - unit_a, 2)),
        float(np.linalg.norm(m @ unit_b, 2)),
        float(np.linalg.norm(m @ m - m, 2)),
        tuple(notes),
    )


def _unit_columns(matrix: Floats, name: str) -> Floats:
    largest = np.abs(matrix).max(axis=0)
    if (largest == 0).any():
        raise InklingError(f"Column {int(largest.argmin()) + 1} of {name} is zero; give linearly independent columns.")
    scaled = matrix / largest
    unit = scaled / np.linalg.norm(scaled, axis=0)
    values = np.linalg.svd(unit, compute_uv=False)
    if values[-1] < DEPENDENT * values[0]:
        raise InklingError(
            f"The columns of {name} are linearly dependent (smallest singular value {values[-1]:.2g} at columns of "
            "length 1); give a basis."
        )
    return np.asarray(unit, np.float64)


def _without(vectors: Floats, basis: Floats) -> Floats:
    """The columns of `vectors` less their part in the span of `basis`; twice, against rounding."""
    once = vectors - basis @ (basis.T @ vectors)
    return np.asarray(once - basis @ (basis.T @ once), np.float64)


def _condition(both: Floats) -> float:
    """Of S = [A B C]: the singular values of [A B], and 1 for each column of C."""
    values = np.linalg.svd(both, compute_uv=False)
    if both.shape[0] > both.shape[1]:
        values = np.append(values, 1.0)
    return float(values.max() / values.min()) if values.min() > 0 else math.inf


@dataclass(frozen=True, eq=False)
class Averaging:
    """A query that averages the values of the chosen keys, with what leaks from the others."""

    keys: Floats  # n×d
    values: Floats  # n×m
    chosen: tuple[int, ...]  # from 0
    beta: float
    query: Floats  # d
    scores: Floats  # n, K q
    weights: Floats  # n, softmax of the scores
    weight: float  # of each chosen key, by the formula
    leak: float  # weight of all other keys together, by the formula
    output: Floats  # c
    target: Floats  # mean of the chosen values
    bound: float  # of |c − target|
    notes: tuple[str, ...] = ()

    @property
    def error(self) -> float:
        return float(np.linalg.norm(self.output - self.target))

    @property
    def sentence(self) -> str:
        n, k = len(self.keys), len(self.chosen)
        if k == n:
            return f"All {n} keys are chosen: equal scores give each the weight 1/{n}, and nothing leaks."
        each = " each" if k > 1 else ""
        return (
            f"With β = {self.beta:.4g} the {k} chosen of {n} keys get the weight {self.weight:.6g}{each}, "
            f"{100 * self.leak:.3g} % leaks to the others, and c is {self.error:.3g} away from "
            f"{'the mean of the chosen values' if k > 1 else 'the chosen value'} (at most {self.bound:.3g})."
        )

    def summary(self) -> str:
        return " ".join((self.sentence, *self.notes))

    def to_json(self) -> dict[str, Any]:
        return {
            "keys": len(self.keys),
            "chosen": list(self.chosen),
            "beta": self.beta,
            "query": self.query.tolist(),
            "scores": self.scores.tolist(),
            "weights": self.weights.tolist(),
            "weight": self.weight,
            "leak": self.leak,
            "output": self.output.tolist(),
            "target": self.target.tolist(),
            "error": self.error,
            "bound": self.bound,
            "notes": list(self.notes),
            "sentence": self.sentence,
        }

    def page(self) -> Page:
        n, k = len(self.keys), len(self.chosen)
        rest = [i for i in range(n) if i not in self.chosen]
        shown = sorted((*self.chosen[:MOST_SHOWN], *rest[: max(2, MOST_SHOWN - k)]))
        names = tuple(f"k{i + 1}" for i in shown)
        formula = {True: self.weight, False: self.leak / max(1, n - k)}
        rows = tuple(
            (name, i in self.chosen, float(self.scores[i]), float(self.weights[i]), formula[i in self.chosen])
            for i, name in zip(shown, names, strict=True)
        )
        columns = (
            Column("key"),
            Column("chosen"),
            Column("score", ".6g"),
            Column("weight", ".6g"),
            Column("weight by the formula", ".6g", note="e^β / (k e^β + n − k), others 1 / (k e^β + n − k)"),
        )
        notes = self.notes if len(shown) == n else (*self.notes, f"{n - len(shown):,} more keys are not shown.")
        bars = Bars(
            "Weights",
            "key",
            "weight",
            names,
            (Series("α", self.weights[shown].tolist()),),
            "The chosen keys share all but the leak, equally.",
            (("1/k", 1 / k),),
        )
        result = Bars(
            "Output",
            "coordinate",
            "value",
            tuple(str(i + 1) for i in range(len(self.output)))[:MOST_SHOWN],
            (
                Series("c", self.output[:MOST_SHOWN].tolist()),
                Series("mean of the chosen values", self.target[:MOST_SHOWN].tolist()),
            ),
            f"The two differ by {self.error:.3g} in length, at most by {self.bound:.3g}.",
        )
        return Page(
            "Averaging the chosen values",
            (Prose(self.sentence), Table("Key by key", columns, rows, notes), bars, result),
        )

    def _repr_html_(self) -> str:
        return self.page()._repr_html_()


def average(
    keys: Any,
    chosen: Sequence[int],
    *,
    values: Any = None,
    beta: float | None = None,
    error: float | None = None,
) -> Averaging:
    """The shortest query that weighs the `chosen` keys (rows, from 0) equally and all others little.

    Give either `beta`, the score by which the chosen keys lead, or `error`, the weight that may leak to the others.
    Without `values` each key has its own unit vector, so that c is the list of weights.
    """
    k_matrix = real_array(keys, "keys", 2)
    n = len(k_matrix)
    if isinstance(chosen, str | bytes) or not hasattr(chosen, "__len__"):
        raise UsageError(f"chosen is {chosen!r}; give a list of numbers of keys, from 0 to {n - 1}.")
    picked = tuple(index(one, "Key", n) for one in chosen)
    if not picked:
        raise UsageError("No key is chosen; give at least one.")
    if len(set(picked)) < len(picked):
        twice = next(one for one in picked if picked.count(one) > 1)
        raise UsageError(f"Key {twice} is chosen twice; give each key once.")
    v = np.eye(n) if values is None else real_array(values, "values", 2)
    if len(v) != n:
        raise UsageError(f"There are {len(v)} values for {n} keys; give one row of values for each key.")
    k, notes = len(picked), list[str]()
    lead = _lead(n, k, beta, error, notes)
    query = np.zeros(k_matrix.shape[1]) if k == n else lead * _unit_query(k_matrix, picked)
    scores = k_matrix @ query
    weights = softmax(scores)
    rest = (n - k) * math.exp(-lead)
    leak = rest / (k + rest)
    target = v[list(picked)].mean(axis=0)
    others = np.delete(v, list(picked), axis=0)
    bound = leak * float(np.linalg.norm(others - target, axis=1).max()) if k < n else 0.0
    longest = float(np.linalg.norm(k_matrix, axis=1).max())
    if k < n and lead and np.linalg.norm(query) * longest > LOUD * lead * math.sqrt(k):
        notes.append(
            f"The query is {np.linalg.norm(query) * longest / (lead * math.sqrt(k)):.3g} times as long as for "
            "orthogonal keys of that length: these keys are hard to tell apart, and noise in them counts as much more."
        )
    return Averaging(
        k_matrix,
        v,
        picked,
        lead,
        query,
        scores,
        weights,
        1 / (k + rest),
        leak,
        weights @ v,
        target,
        bound,
        tuple(notes),
    )


def _lead(n: int, k: int, beta: float | None, error: float | None, notes: list[str]) -> float:
    if (beta is None) == (error is None):
        given = "neither beta nor error" if beta is None else "both beta and error"
        raise UsageError(f"{given[0].upper()}{given[1:]} was given; give one of them.")
    if beta is not None:
        lead = real_number(beta, "beta", least=0)
    else:
        share = real_number(error, "error", above=0)
        if share >= 1:
            raise UsageError(f"error is {share:g}; give the weight that may leak, between 0 and 1.")
        lead = math.log(n - k) + math.log1p(-share) - math.log(k) - math.log(share) if k < n else 0.0
        if lead < 0:
            lead = 0.0
            notes.append(f"Equal weights leak only {(n - k) / n:.3g}, so β = 0 is enough.")
    if k == n:
        notes.append("With every key chosen β plays no part: all scores are equal.")
        return 0.0
    return lead


def _unit_query(keys: Floats, chosen: tuple[int, ...]) -> Floats:
    """The shortest q with K q = 1 on the chosen keys and 0 on the others, or else a common number less on both."""
    wanted = np.zeros(len(keys))
    wanted[list(chosen)] = 1.0
    found = _solve(keys, wanted)
    if np.abs(keys @ found - wanted).max() <= UNSOLVED:
        return found
    centred = keys - keys.mean(axis=0)  # softmax sees differences of scores only
    level = wanted - wanted.mean()
    found = _solve(centred, level)
    missed = level - centred @ found
    if np.abs(missed).max() <= UNSOLVED:
        return found
    raise InklingError(_why(keys, chosen, missed))


def _solve(matrix: Floats, wanted: Floats) -> Floats:
    scale = float(np.abs(matrix).max())
    if scale == 0:
        return np.zeros(matrix.shape[1])
    scaled = matrix / scale
    inverse = np.linalg.pinv(scaled, rcond=1e-13)
    found = inverse @ wanted
    found = found + inverse @ (wanted - scaled @ found)  # one step of refinement
    return np.asarray(found / scale, np.float64)


def _why(keys: Floats, chosen: tuple[int, ...], missed: Floats) -> str:
    """`missed` is a relation Σ λ_i k_i = 0 with Σ λ_i = 0 whose chosen part is not 0."""
    others = [i for i in range(len(keys)) if i not in chosen]
    for i in chosen:
        for j in others:
            if np.array_equal(keys[i], keys[j]):
                return (
                    f"Keys {i} and {j} are equal, so they get the same weight from every query, but only key {i} is "
                    "chosen; choose both or neither."
                )
    tied = [int(i) for i in np.flatnonzero(np.abs(missed) > 1e-6)] or list(range(len(keys)))
    return (
        f"No query gives the chosen keys one score and the others another: keys {listing(tied)} are linearly dependent "
        f"(the nearest query misses by {np.abs(missed).max():.3g} β); choose other keys or add a dimension."
    )

"""Queries that make tokens look where they should: a pair of components for each, or the smallest Q with a margin.

Tokens are rows of X (T×m). Token i should look at the set L_i, in equal parts. In coefficients the score of j for i is
x_jᵀ G x_i, and it must be one number on L_i and at least 1 less on every other token. Two ways:

    pairs    a component f that all of L_i have (equally) and no other token, and a component e of x_i that no token
             which looks elsewhere has:  G_fe = 1 / (x_lf x_ie), so that the score is 1 on L_i and 0 elsewhere
    margin   min |G|²  subject to  (x_l − x_l')ᵀ G x_i = 0  and  (x_l − x_j)ᵀ G x_i ≥ 1    l, l' in L_i, j outside

The second is the point of least norm in the hull of the vectors (x_l − x_j) x_iᵀ, less what the equations take away: it
exists if and only if any G does, so "no score can tell them apart" is a theorem and not a failed search.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from inkling.attention.arrays import Floats
from inkling.attention.hull import nearest_point

Looks = Mapping[int, tuple[int, ...]]  # from a token to the tokens it looks at

SMALL = 1e-6  # a coefficient below this share of the largest is not built on


def pairs(inputs: Floats, looks: Looks) -> Floats | None:
    """G (m×m) from one pair of components for each set looked at, or None where no such pairs exist."""
    floor = SMALL * float(np.abs(inputs).max())
    present = np.abs(inputs) > floor
    common = present.sum(axis=0)
    found = np.zeros((inputs.shape[1], inputs.shape[1]))
    for seen in sorted(set(looks.values())):
        members = [i for i in looks if looks[i] == seen]
        if len(seen) == len(inputs):
            continue  # looks at all alike: no score at all
        others = [i for i in looks if looks[i] != seen]
        keys = [f for f in range(inputs.shape[1]) if present[seen[0], f] and _only(inputs[:, f], seen)]
        if not keys:
            return None
        free = [e for e in range(inputs.shape[1]) if not inputs[others, e].any()]
        shared = [e for e in free if _constant(inputs[members, e]) and present[members, e].all()]
        if shared:
            queries = [(members[0], min(shared, key=lambda e: (common[e], e)))]
        else:
            queries = []
            for i in members:
                own = [e for e in free if present[i, e] and not inputs[[j for j in members if j != i], e].any()]
                if not own:
                    return None
                queries.append((i, min(own, key=lambda e: (common[e], e))))
        for i, e in queries:
            found[keys[0], e] += 1 / (inputs[seen[0], keys[0]] * inputs[i, e])
    return found


def _constant(column: Floats) -> bool:
    return bool((column == column[0]).all())


def _only(column: Floats, seen: tuple[int, ...]) -> bool:
    """One number on the tokens looked at, 0 on all others."""
    rest = np.delete(column, list(seen))
    return _constant(column[list(seen)]) and not rest.any()


def level_with(inputs: Floats, seen: tuple[int, ...]) -> tuple[int, ...]:
    """`seen` and all tokens that get its score from every query which is equal on it: those in its affine hull."""
    away = inputs - inputs[seen[0]]
    rest = _without(away, away[list(seen[1:])])
    level = np.linalg.norm(rest, axis=1) <= 1e-9 * float(np.abs(inputs).max())
    return tuple(sorted({*seen, *np.flatnonzero(level).tolist()}))


def _without(vectors: Floats, level: Floats) -> Floats:
    """The rows of `vectors` less their part in the span of the rows of `level`; twice, against rounding."""
    if not level.any():
        return vectors
    values, right = np.linalg.svd(level, full_matrices=False)[1:]
    taken = right[values > 1e-10 * values[0]]
    once = vectors - (vectors @ taken.T) @ taken
    return np.asarray(once - (once @ taken.T) @ taken, np.float64)


def separating_query(inputs: Floats, seen: tuple[int, ...]) -> Floats | None:
    """The shortest q with one score on `seen` and at least 1 less elsewhere; None where no q does."""
    others = [j for j in range(len(inputs)) if j not in seen]
    if not others:
        return np.zeros(inputs.shape[1])
    first = inputs[seen[0]]
    return _least(first - inputs[others], inputs[list(seen[1:])] - first)


def margin(inputs: Floats, looks: Looks) -> Floats | None:
    """The smallest G (m×m) with a margin of 1 everywhere; None where there is none."""
    tokens = sorted(looks)
    wishing = inputs[tokens]
    if np.linalg.matrix_rank(wishing, tol=1e-8 * max(1e-300, float(np.abs(wishing).max()))) == len(tokens):
        # every token's query is free, so each is the shortest of its own
        queries = [separating_query(inputs, looks[i]) for i in tokens]
        if any(query is None for query in queries):
            return None
        return np.asarray(np.array(queries).T @ np.linalg.pinv(wishing.T), np.float64)
    values, right = np.linalg.svd(inputs, full_matrices=False)[1:]
    basis = right[values > 1e-12 * max(1e-300, values[0])]  # r×m, the span of the inputs
    z = inputs @ basis.T
    if not len(basis):
        return np.zeros((inputs.shape[1],) * 2) if all(len(seen) == len(inputs) for seen in looks.values()) else None
    above, level = list[Floats](), list[Floats]()
    for i in tokens:
        seen = looks[i]
        above += [np.outer(z[seen[0]] - z[j], z[i]).ravel() for j in range(len(z)) if j not in seen]
        level += [np.outer(z[j] - z[seen[0]], z[i]).ravel() for j in seen[1:]]
    if not above:
        return np.zeros((inputs.shape[1],) * 2)
    size = len(basis) ** 2
    found = _least(np.array(above), np.array(level).reshape(-1, size))
    return None if found is None else np.asarray(basis.T @ found.reshape(len(basis), -1) @ basis, np.float64)


def _least(above: Floats, level: Floats) -> Floats | None:
    """The shortest q with above · q ≥ 1 and level · q = 0."""
    size = float(np.linalg.norm(above, axis=1).max())
    above = _without(above, level)
    if np.linalg.norm(above, axis=1).min() <= 1e-9 * size:
        return None  # one of the others is level with those looked at, whatever the query
    nearest = nearest_point(above, np.zeros(above.shape[1]))
    least = float((above @ nearest.direction).min())
    if nearest.inside or least <= 0:
        return None
    return np.asarray(nearest.direction / least, np.float64)

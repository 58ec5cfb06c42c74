"""Weights of two heads that see the same noise: E[α₁ᵢ α₂ᵢ] as a two-dimensional integral.

As in quadrature.py, 1/y = ∫ e^{−ty} dt takes both sums out of the denominators, and independent keys part:

    E[α₁ᵢ α₂ᵢ] = ∫∫ B¹¹ᵢ(x, y) Π_{j≠i} B⁰⁰ⱼ(x, y) dx dy        Bᵖᵍⱼ(x, y) = E[kₚ(x − s₁ⱼ) k_g(y − s₂ⱼ)]
    k₀(u) = exp(−e^{−u})      k₁(u) = e^{−u} exp(−e^{−u})

With s₁ = m₁ + σ₁z and s₂ = m₂ + ρσ₂z + τe, the two kernels are independent given z, so that on a grid of x and y

    B = K₁ · diag(φ(z) dz) · A₂ᵀ        K₁[x, z] = kₚ(x − m₁ − σ₁z)      A₂[y, z] = E_e[k_g(y − m₂ − ρσ₂z − τe)]

is one matrix product for each different key. Good to about 1e-9. Left out (NaN): scores with deviations above 40, for
which the grid of z would be too fine; simulation serves there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from inkling.attention.arrays import Floats
from inkling.attention.even_table import EvenTable
from inkling.attention.quadrature import LEFT, NORMAL_REACH, RIGHT, STEP, gauss_nodes, smoothed, zones

WIDEST = 40.0  # deviation of a score
GAUSS = 12  # points a panel
TABLE_STEP = 0.05
TINY = 1e-300


def weight_products(means: Floats, covariances: Floats, keys: Sequence[int]) -> Floats:
    """E[α₁ᵢ α₂ᵢ] for each of `keys`; `means` 2×n, `covariances` n×2×2 of the scores of one key with both heads."""
    variances = np.maximum(np.einsum("ihh->hi", covariances), 0.0)
    deviations = np.sqrt(variances)
    if deviations.max() > WIDEST:
        return np.full(len(keys), math.nan)
    laws = np.column_stack([means.T, deviations.T, covariances[:, 0, 1]])  # n×5
    groups, member, counts = np.unique(laws, axis=0, return_inverse=True, return_counts=True)
    member = member.reshape(-1)
    grids = [gauss_nodes(zones(groups[:, h], groups[:, 2 + h], counts), count=GAUSS) for h in (0, 1)]
    (x, x_weights), (y, y_weights) = grids
    wanted = sorted({int(member[key]) for key in keys})
    logs = np.zeros((len(x), len(y)))  # ln Π B⁰⁰ over all keys
    own: dict[int, tuple[Floats, Floats]] = {}
    for number, (law, count) in enumerate(zip(groups, counts, strict=True)):
        both = _kernels(x, y, law, number in wanted)
        log = np.log(np.maximum(both[0], TINY))  # read from a table, nothing may come out below nothing
        logs += count * log
        if number in wanted:
            own[number] = (log, both[1])
    found = {}
    for number in wanted:
        log, product = own[number]
        found[number] = float(x_weights @ (product * np.exp(logs - log)) @ y_weights)
    return np.array([found[int(member[key])] for key in keys])


def _kernels(x: Floats, y: Floats, law: Floats, product: bool) -> list[Floats]:
    """B⁰⁰ and, if wanted, B¹¹ of one key on the grid."""
    m1, m2, s1, s2, covariance = law.tolist()
    if not s1:  # nothing in common
        first, second = smoothed(x, m1, 0.0), smoothed(y, m2, s2)
        return [np.outer(first[p], second[p]) for p in ((0, 1) if product else (0,))]
    shared = covariance / s1  # ρσ₂
    left = math.sqrt(max(s2**2 - shared**2, 0.0))  # τ
    left = 0.0 if left < 1e-7 * s2 else left
    step = STEP / max(1.0, s1, abs(shared))
    z = np.arange(-NORMAL_REACH, NORMAL_REACH + step / 2, step)
    weights = step * np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)
    first = smoothed((x[:, None] - s1 * z).reshape(-1), m1, 0.0).reshape(3, len(x), len(z))
    places = y[:, None] - m2 - shared * z
    found = []
    for p in (0, 1) if product else (0,):
        if left:
            second = _table(p, left, float(places.min()), float(places.max())).at(places)
        else:
            second = smoothed(places.reshape(-1), 0.0, 0.0)[p].reshape(places.shape)
        found.append((first[p] * weights) @ second.T)
    return found


def _table(power: int, deviation: float, low: float, high: float) -> EvenTable:
    """E_e[k(u − τe)] over u; beyond the reach of noise and kernel it is constant."""
    start = max(low - 1, -LEFT - NORMAL_REACH * deviation)
    stop = min(high + 1, RIGHT + NORMAL_REACH * deviation)
    step = TABLE_STEP * max(1.0, deviation)
    points = np.asarray(start + step * np.arange(max(9, math.ceil((stop - start) / step) + 1)), np.float64)
    values = smoothed(points, 0.0, deviation)[power]
    return EvenTable(float(points[0]), step, values, float(values[0]), float(values[-1]))

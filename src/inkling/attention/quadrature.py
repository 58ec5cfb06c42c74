"""Mean weights of noisy attention as one-dimensional integrals, to about twelve digits.

For independent scores sⱼ ~ N(mⱼ, σⱼ²), with Xⱼ = e^{sⱼ}, the weight αᵢ = Xᵢ / Σ Xⱼ has no closed mean. But
1/y = ∫₀^∞ e^{−ty} dt takes the sum out of the denominator, and then independent factors part; with t = e^{−x}:

    E[αᵢ]    = ∫ A¹ᵢ(x) Π_{j≠i} A⁰ⱼ(x) dx                Aᵖⱼ(x) = E[yᵖ e^{−y}],  y = e^{sⱼ−x}
    E[αᵢαₖ]  = ∫ A¹ᵢ(x) A¹ₖ(x) Π_{j≠i,k} A⁰ⱼ(x) dx        (by 1/y² = ∫ t e^{−ty} dt; A²ᵢ where i = k)

There is a picture in this: A⁰ⱼ is the distribution function and A¹ⱼ the density of sⱼ + G, with G of Gumbel's law, so
the mean weight of a key is the probability that its score is the highest after Gumbel noise was added to all.

Each A is again an integral, over the noise where σ ≤ 1 and over Gumbel's g where σ > 1, so that what multiplies the
weight is never steeper than Gumbel's own density. Functions of x are smooth on the scale max(1, σ): panels of that
width with 20 Gauss points lose nothing, at β = 10⁴ either. Keys of equal mean and deviation are one factor with a
power.

Left out: weights of two heads that share noise (two_heads.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray

from inkling.attention.arrays import Floats

GAUSS_POINTS = 20
UNIT_PANEL = 1.5
STEP = 0.25  # of the trapezoid rule within; its error falls as e^(−π²/step)
NORMAL_REACH = 10.0  # deviations: beyond, a normal density is below 1e-22
LEFT, RIGHT = 6.0, 46.0  # where Gumbel's density is below 1e-17
AT_ONCE = 4_000_000  # numbers in memory


@dataclass(frozen=True, eq=False)
class WeightMoments:
    """Of the weights of one head (n): means, variances, and the whole matrix E[αᵢαₖ] where it was asked for."""

    means: Floats
    variances: Floats
    products: Floats | None = None


def normal_distribution(x: Floats) -> Floats:
    """Φ, to the last digits in both tails."""
    scaled = torch.from_numpy(np.ascontiguousarray(x, dtype=np.float64) * -math.sqrt(0.5))
    return np.asarray(torch.special.erfc(scaled).numpy() / 2)  # torch.special.ndtr is 0 below −8.3


def weight_moments(means: Floats, deviations: Floats, products: bool = False) -> WeightMoments:
    """Moments of softmax(s) for independent sⱼ ~ N(meansⱼ, deviationsⱼ²)."""
    shifted = means - means.max()  # which changes no weight, and x near 0 has the most digits
    groups, member, counts = np.unique(
        np.stack([shifted, deviations], 1), axis=0, return_inverse=True, return_counts=True
    )
    member = member.reshape(-1)
    m, s = groups[:, 0], groups[:, 1]
    nodes, weights = gauss_nodes(zones(m, s, counts))
    K = len(m)
    first, second = np.zeros(K), np.zeros(K)
    pair = np.zeros((K, K))  # E[αᵢαₖ] of different keys, of groups i and k
    at_once = max(64, AT_ONCE // (200 * K))
    for start in range(0, len(nodes), at_once):
        x, w = nodes[start : start + at_once], weights[start : start + at_once]
        A = np.stack([smoothed(x, mean, deviation) for mean, deviation in zip(m, s, strict=True)])  # K×3×nodes
        logs = np.log(A[:, 0])  # nowhere zero: nodes begin where the highest score is ten deviations below its mean
        whole = counts @ logs  # ln Π A⁰ over all keys
        without = np.exp(whole - logs)  # Π over all keys but one of the group
        first += (A[:, 1] * without) @ w
        second += (A[:, 2] * without) @ w
        if products:
            share = A[:, 1] / A[:, 0] * np.exp(whole / 2)  # so that shareᵢ·shareₖ = A¹ᵢA¹ₖ Π A⁰ over the others
            pair += (share * w) @ share.T
    found = None
    if products:
        found = pair[np.ix_(member, member)]
        np.fill_diagonal(found, second[member])
    variances = np.maximum(second - first**2, 0.0) if s.any() else np.zeros(K)
    return WeightMoments(first[member], variances[member], found)


def smoothed(x: Floats, mean: float, deviation: float) -> Floats:
    """A⁰, A¹, A² (3×nodes) of one score at each x."""
    if deviation <= 1:
        z, w = _normal_rule() if deviation > 0 else (np.zeros(1), np.ones(1))
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            y = np.exp(np.minimum(mean + deviation * z - x[:, None], 300.0))  # nodes×inner
            kernel = np.exp(-y)
            found = np.stack([kernel @ w, (y * kernel) @ w, (y * y * kernel) @ w])
        return np.asarray(found)
    g, w = _gumbel_rule()
    at = (x[:, None] - mean - g) / deviation
    density = np.exp(-0.5 * at**2) / (math.sqrt(2 * math.pi) * deviation)
    below = normal_distribution(at) @ w
    return np.stack([below, density @ w, density @ (w * np.exp(-g))])


def _normal_rule() -> tuple[Floats, Floats]:
    z = np.arange(-NORMAL_REACH, NORMAL_REACH + STEP / 2, STEP)
    return z, STEP * np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)


def _gumbel_rule() -> tuple[Floats, Floats]:
    g = np.arange(-LEFT, RIGHT + STEP / 2, STEP)
    return g, STEP * np.exp(-g - np.exp(-g))


def zones(m: Floats, s: Floats, counts: NDArray[np.int64]) -> list[tuple[float, float, float]]:
    """Where something happens, and how wide a panel may be there. Left of the highest score's reach all is zero."""
    reach = NORMAL_REACH * s
    low = float((m - reach).max()) - LEFT
    high = float((m + reach + np.log(counts)).max()) + RIGHT
    found = [(low, high, math.inf)]
    for mean, deviation, count in zip(m, s, counts, strict=True):
        if deviation <= 1:
            start, stop, width = mean - LEFT - NORMAL_REACH * deviation, mean + math.log(count) + RIGHT, UNIT_PANEL
        else:
            start, stop = mean - LEFT - NORMAL_REACH * deviation, mean + NORMAL_REACH * deviation + RIGHT
            width = UNIT_PANEL * deviation / 2 if deviation > 2 else UNIT_PANEL
            if count > 1:  # the highest of many is sharper than each
                width = max(UNIT_PANEL, width / math.sqrt(2 * math.log(count) + 1))
        if stop > low:
            found.append((max(start, low), min(stop, high), width))
    return found


@cache
def _legendre(count: int) -> tuple[Floats, Floats]:
    points, weights = np.polynomial.legendre.leggauss(count)
    return np.asarray(points), np.asarray(weights)


def gauss_nodes(
    zones: Iterable[tuple[float, float, float]], narrowest: float = 1.0, count: int = GAUSS_POINTS
) -> tuple[Floats, Floats]:
    """Gauss nodes and weights on panels that are nowhere wider than the zones allow, nor needlessly narrow.

    A zone is (start, stop, width). Panels end at the ends of zones; ends closer than `narrowest` are merged.
    """
    ends: list[Floats] = []
    for start, stop, width in zones:
        pieces = 1 if math.isinf(width) else max(1, math.ceil((stop - start) / width))
        ends.append(np.linspace(start, stop, pieces + 1))
    edges = np.unique(np.concatenate(ends))
    kept = [float(edges[0])]
    for edge in edges[1:-1]:
        if edge - kept[-1] >= narrowest and edges[-1] - edge >= narrowest / 2:
            kept.append(float(edge))
    kept.append(float(edges[-1]))
    points, weights = _legendre(count)
    left, half = np.array(kept[:-1]), np.diff(kept) / 2
    nodes = (left + half)[:, None] + half[:, None] * points
    return nodes.reshape(-1), (half[:, None] * weights).reshape(-1)

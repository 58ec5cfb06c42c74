"""The nearest point of a convex hull, and with it a proof that a wish is out of reach.

With V = I the output c_i = Σ_j α_ij x_j is a convex combination of the inputs, whatever K and Q are. Let p be the point
of their hull nearest to a wish w, and r = p − w. Then for every j

    r · (x_j − w) ≥ r · (p − w) = |r|²

so if |r| > 0 every output has r · (c − w) ≥ |r|² > 0: the plane through p separates the wish from all that attention
can say, and no output comes nearer than |r|. These T products are the certificate; they are computed from the inputs
and do not trust the search that found p.

p comes from Wolfe's algorithm: keep a few affinely independent points (a corral) whose weights are positive, add the
point that lies deepest on the near side, move towards the point of their affine hull nearest to the origin, and drop
those whose weight gets to zero on the way. Wolfe, Mathematical Programming 11 (1976).
Left out: hulls of more than a few thousand points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from inkling.attention.arrays import Floats, index, listing, real_array
from inkling.attention.head import Head
from inkling.errors import InklingError, UsageError
from inkling.figures import Bars, Cell, Column, Page, Prose, Series, Table

INSIDE = 1e-7  # a distance below this share of the size of the hull is none: rounding is 1e-16, its root decides
MOST_SHOWN = 40  # coordinates in a picture
TIES = 1e-9  # scores that differ by less than this share of the largest are equal


@dataclass(frozen=True, eq=False)
class Nearest:
    """The point of the hull of `points` nearest to a target: Σ weights · points."""

    point: Floats
    weights: Floats
    direction: Floats  # r, from the target to the point
    distance: float  # |r|: no point found is nearer
    proven: float  # min_j r · (x_j − w) / |r|: no point of the hull can be nearer; 0 where that is negative
    size: float  # the largest distance of a point from the target

    @property
    def inside(self) -> bool:
        return self.distance <= INSIDE * self.size


def nearest_point(points: Any, target: Any) -> Nearest:
    """The nearest point of the convex hull of the rows of `points` to `target`."""
    x, w = real_array(points, "points", 2), real_array(target, "target", 1)
    if x.shape[1] != len(w):
        raise UsageError(f"The points have {x.shape[1]} numbers each and the target has {len(w)}; give equally many.")
    moved = x - w
    size = float(np.linalg.norm(moved, axis=1).max())
    weights = _wolfe(moved / size) if size else np.eye(1, len(x))[0]
    direction = weights @ moved
    distance = float(np.linalg.norm(direction))
    deepest = float((moved @ direction).min() / distance) if distance else 0.0
    return Nearest(w + direction, weights, direction, distance, max(0.0, deepest), size)


def _wolfe(points: Floats) -> Floats:
    """Weights of the point of least norm; the points are at most 1 long."""
    norms = (points**2).sum(axis=1)
    corral, share = [int(norms.argmin())], np.ones(1)
    least, kept = np.inf, np.eye(len(points))[corral[0]]
    for _ in range(20 * len(points) + 100):
        current = share @ points[corral]
        norm = float(current @ current)
        if norm >= least:  # rounding: no further progress
            break
        least, kept = norm, np.zeros(len(points))
        kept[corral] = share
        products = points @ current
        deepest = int(products.argmin())
        if products[deepest] >= norm - max(1e-12 * norm, 1e-15 * norm**0.5) or deepest in corral:
            break
        corral.append(deepest)
        share = np.append(share, 0.0)
        while True:
            target = _affine(points[corral])
            if (target > 1e-14).all():
                share = target
                break
            falling = target <= 1e-14
            step = float((share[falling] / np.maximum(share[falling] - target[falling], 1e-300)).min())
            share = np.maximum(share + min(1.0, step) * (target - share), 0.0)
            left = share > 1e-14
            if left.all():
                left[int(np.where(falling, share, np.inf).argmin())] = False
            corral = [one for one, stays in zip(corral, left, strict=True) if stays]
            share = share[left] / share[left].sum()
    return np.asarray(kept / kept.sum(), np.float64)


def _affine(points: Floats) -> Floats:
    """Weights (summing to 1, of any sign) of the point of least norm in the affine hull."""
    if len(points) == 1:
        return np.ones(1)
    rest = np.linalg.lstsq((points[1:] - points[0]).T, -points[0], rcond=None)[0]
    return np.append(1.0 - rest.sum(), rest)


@dataclass(frozen=True, eq=False)
class IdentityVerdict:
    """Whether attention with V = I can give `wish` at `token`, and what K = Q = V = I gives there."""

    inputs: Floats  # T×d
    wish: Floats  # d
    token: int  # from 0
    names: tuple[str, ...]  # of the tokens
    nearest: Nearest
    margins: Floats  # T, r · (x_j − w): the certificate
    weights: Floats  # T, of K = Q = V = I at these inputs
    output: Floats  # d
    limit_weights: Floats  # T, when all inputs grow in proportion without end
    limit: Floats  # d, the mean of the inputs that tie for the largest score

    @property
    def possible(self) -> bool:
        """Some weights give the wish (not always those of K = Q = I)."""
        return self.nearest.inside

    @property
    def certified(self) -> bool:
        """The certificate holds as computed: every input is on the far side of the plane through the nearest point."""
        return bool(not self.possible and self.margins.min() > 0)

    @property
    def error(self) -> float:
        return float(np.linalg.norm(self.output - self.wish))

    @property
    def limit_error(self) -> float:
        return float(np.linalg.norm(self.limit - self.wish))

    @property
    def sentence(self) -> str:
        ties = [self.names[j] for j in np.flatnonzero(self.limit_weights)]
        limit = (
            f"K = Q = V = I gives an output {self.error:.3g} away from the wish, and as the inputs grow "
            f"{'the mean of ' if len(ties) > 1 else ''}{listing(ties)}, {self.limit_error:.3g} away."
        )
        if not self.possible:
            return (
                f"With V = I no K and Q can give the wish at {self.names[self.token]}: every output is a mixture of "
                f"the inputs, and no mixture comes nearer than {self.nearest.proven:.4g}. {limit}"
            )
        mixture = [
            f"{share:.3g} of {name}" for share, name in zip(self.nearest.weights, self.names, strict=True) if share
        ]
        return f"The wish is a mixture of the inputs ({listing(mixture)}), so V = I does not rule it out. {limit}"

    def summary(self) -> str:
        return self.sentence

    def to_json(self) -> dict[str, Any]:
        return {
            "token": self.token,
            "possible": self.possible,
            "certified": self.certified,
            "nearest": self.nearest.point.tolist(),
            "mixture": self.nearest.weights.tolist(),
            "distance": self.nearest.distance,
            "proven_distance": self.nearest.proven,
            "direction": self.nearest.direction.tolist(),
            "margins": self.margins.tolist(),
            "weights": self.weights.tolist(),
            "output": self.output.tolist(),
            "error": self.error,
            "limit_weights": self.limit_weights.tolist(),
            "limit": self.limit.tolist(),
            "limit_error": self.limit_error,
            "sentence": self.sentence,
        }

    def page(self) -> Page:
        columns = (
            Column("token"),
            Column("weight", ".4g", note="of K = Q = V = I at these inputs"),
            Column("weight in the limit", ".4g"),
            Column("mixture nearest to the wish", ".4g"),
            Column("r · (x − wish)", ".4g"),
        )
        parts = (self.weights, self.limit_weights, self.nearest.weights, self.margins)
        rows: list[tuple[Cell, ...]] = [
            (name, *(float(part[j]) for part in parts)) for j, name in enumerate(self.names)
        ]
        note = (
            f"The certificate: r points from the wish to the nearest mixture, |r|² = {self.nearest.distance**2:.4g}; "
            "where the last column is above 0 throughout, no mixture of the inputs is the wish."
        )
        bars = Bars(
            "What each coordinate is, and was wished to be",
            "coordinate",
            "value",
            tuple(str(k + 1) for k in range(len(self.wish)))[:MOST_SHOWN],
            tuple(
                Series(name, vector[:MOST_SHOWN].tolist())
                for name, vector in (
                    ("wish", self.wish),
                    ("K = Q = V = I", self.output),
                    ("in the limit", self.limit),
                    ("nearest mixture", self.nearest.point),
                )
            ),
            "A wish that no mixture of the inputs reaches differs from all of the other bars.",
        )
        table = Table("Token by token", columns, tuple(rows), (note,))
        return Page("What attention can give while V = I", (Prose(self.sentence), table, bars))

    def _repr_html_(self) -> str:
        return self.page()._repr_html_()


def identity_verdict(inputs: Any, wish: Any, token: int, *, names: Sequence[str] = ()) -> IdentityVerdict:
    """Can V = I give `wish` at `token` (from 0)? If not, a certificate; and what K = Q = V = I gives there."""
    x, w = real_array(inputs, "inputs", 2), real_array(wish, "The wish", 1)
    if x.shape[1] != len(w):
        raise UsageError(f"The inputs have {x.shape[1]} numbers each and the wish has {len(w)}; give equally many.")
    i = index(token, "Token", len(x))
    if names and len(names) != len(x):
        raise UsageError(f"{len(names)} names for {len(x)} tokens; give one for each.")
    found = nearest_point(x, w)
    if not found.inside and found.proven <= 0:
        raise InklingError("The wish is so near to the edge of the hull that rounding decides; move it a little.")
    one = np.eye(x.shape[1])
    head = Head(one, one, one)
    weights, outputs = head.attend(x)
    scores = head.scores(x)[i]
    ties = scores >= scores.max() - TIES * np.abs(scores).max()
    limit_weights = ties / ties.sum()
    return IdentityVerdict(
        x,
        w,
        i,
        tuple(names) or tuple(f"x{j + 1}" for j in range(len(x))),
        found,
        (x - w) @ found.direction,
        weights[i],
        outputs[i],
        limit_weights,
        limit_weights @ x,
    )

"""A smooth function brought to its lowest point with all of the data at every step: no learning rate to choose.

L-BFGS (Nocedal 1980): the direction is −H g, where H follows from the last `memory` steps s and changes of gradient y
by the two loops of Liu and Nocedal (1989), and H₀ = sᵀy / yᵀy. The step is 1, halved until the value has fallen by a
ten-thousandth of what the slope promises (Armijo). A pair without positive curvature is not remembered.

Left out: the curvature condition of Wolfe. On convex functions pairs always curve upwards, and nothing else is brought
down here.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from torch import Tensor

from inkling.errors import InklingError

Evaluate = Callable[[Tensor], tuple[float, Tensor]]  # the value at a point, and its gradient there
ARMIJO = 1e-4
MOST_HALVINGS = 30
SMALL_STEPS = 2


@dataclass(frozen=True)
class Descent:
    """Where the descent stands after a step. The point is a new tensor each time."""

    step: int
    value: float
    point: Tensor
    slope: float  # Euclidean length of the gradient
    done: bool  # no step goes further down, or the last two fell by less than was asked for


def minimise(
    evaluate: Evaluate, start: Tensor, steps: int, tolerance: float = 0.0, least: float = 0.0, memory: int = 8
) -> Iterator[Descent]:
    """Goes down from `start`, yielding after every step, until two steps each fell by less than `least` or by less than
    the share `tolerance` of the value."""
    point = start.clone()
    value, gradient = evaluate(point)
    if not math.isfinite(value):
        raise InklingError("The loss is not a number at the start; look for texts or weights that are not finite.")
    pairs: deque[tuple[Tensor, Tensor, float]] = deque(maxlen=memory)
    small = 0
    for step in range(1, steps + 1):
        direction = _direction(gradient, pairs)
        promised = float(direction @ gradient)
        if promised >= 0:  # rounding has spoilt the pairs
            pairs.clear()
            direction, promised = -gradient, -float(gradient @ gradient)
        # With nothing known about curvature the first step is as long as one number, not as the gradient.
        length = 1.0 if pairs else min(1.0, 1.0 / max(float(gradient.abs().sum()), 1e-30))
        for _ in range(MOST_HALVINGS):
            candidate = point + length * direction
            new_value, new_gradient = evaluate(candidate)
            if new_value <= value + ARMIJO * length * promised:
                break
            length /= 2
        else:
            yield Descent(step, value, point, float(gradient.norm()), True)
            return
        moved, turned = candidate - point, new_gradient - gradient
        curvature = float(moved @ turned)
        if curvature > 1e-10 * float(turned @ turned):
            pairs.append((moved, turned, curvature))
        # The first step is short for want of curvature, not because the bottom is near.
        small = small + 1 if step > 1 and value - new_value <= max(least, tolerance * abs(new_value)) else 0
        point, value, gradient = candidate, new_value, new_gradient
        done = small >= SMALL_STEPS
        yield Descent(step, value, point, float(gradient.norm()), done)
        if done:
            return


def _direction(gradient: Tensor, pairs: deque[tuple[Tensor, Tensor, float]]) -> Tensor:
    direction = -gradient
    weights = []
    for moved, turned, curvature in reversed(pairs):
        weight = float(moved @ direction) / curvature
        weights.append(weight)
        direction.sub_(turned, alpha=weight)
    if pairs:
        moved, turned, curvature = pairs[-1]
        direction.mul_(curvature / float(turned @ turned))
    for (moved, turned, curvature), weight in zip(pairs, reversed(weights), strict=True):
        direction.add_(moved, alpha=weight - float(turned @ direction) / curvature)
    return direction

"""How a gradient changes parameters: plain descent, Adam, Muon; and which parameters get which.

A training has groups. A parameter belongs to the first group whose pattern fits its name (as with file names:
`layers.*`); a group with Muon passes over what is not a matrix. With η = rate of the step · factor of the group, and
decay λ kept apart from the gradient (Loshchilov and Hutter 2019), w ← w − η λ w comes first, then

    sgd     w ← w − η g
    adam    m ← β₁ m + (1−β₁) g     v ← β₂ v + (1−β₂) g²     w ← w − η m̂ / (√v̂ + ε)     m̂ = m/(1−β₁ᵗ), v̂ = v/(1−β₂ᵗ)
    muon    m ← μ m + (1−μ) g       u = (1−μ) g + μ m        w ← w − η √max(1, outputs/inputs) N(u)

Kingma and Ba (2015), algorithm 1. Muon (Jordan 2024) is momentum in Nesterov's form, made nearly orthogonal: N gives
every direction that a matrix stretches about the same weight, by five steps of Newton and Schulz on X = u / ‖u‖,

    X ← a X + b (X Xᵀ) X + c (X Xᵀ)² X       a, b, c = 3.4445, −4.7750, 2.0315

which leave singular vectors alone and take singular values from 0.0016 … 1 to 0.68 … 1.21. Our matrices stand inputs ×
outputs, so outputs/inputs is columns/rows; Jordan writes rows/columns because his stand the other way. Matrices of one
shape, upright or lying, go through N together. It is done in float32 at least.

By hand, because making an optimiser of torch's imports its compiler, which takes longer than a small training.
Left out: Muon for anything but matrices, coefficients that change from step to step, Adam without its bias correction.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal, get_args

import torch
from torch import Tensor

from inkling.errors import UsageError
from inkling.training.state import Parameters

Optimiser = Literal["sgd", "adam", "muon"]
NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
NEWTON_SCHULZ_STEPS = 5
SHORTEST = 1e-7  # added to the length of a gradient, so that one of zeros stays zeros


@dataclass(frozen=True)
class Group:
    """How the parameters whose names fit the pattern `names` are changed."""

    names: str
    optimiser: Optimiser = "adam"
    factor: float = 1.0  # times the rate of the training
    decay: float = 0.0  # share of a parameter that a step takes away, per unit of rate
    betas: tuple[float, float] = (0.9, 0.99)  # of Adam: how much of its two means is kept
    epsilon: float = 1e-8  # of Adam
    momentum: float = 0.95  # of Muon

    def __post_init__(self) -> None:
        limits = (
            ("names", bool(self.names), "a pattern such as 'layers.*'"),
            ("optimiser", self.optimiser in get_args(Optimiser), f"one of {', '.join(get_args(Optimiser))}"),
            ("factor", 0 <= self.factor < math.inf, "0 (left as they are) or a number above 0"),
            ("decay", 0 <= self.decay < math.inf, "0 (none) or a number above 0"),
            ("betas", len(self.betas) == 2 and all(0 <= share < 1 for share in self.betas), "two shares below 1"),
            ("epsilon", 0 < self.epsilon < math.inf, "a number above 0"),
            ("momentum", 0 <= self.momentum < 1, "a share below 1"),
        )
        for name, fits, wanted in limits:
            if not fits:
                raise UsageError(
                    f"{name} of the group of parameters '{self.names}' is {getattr(self, name)!r}; give {wanted}."
                )

    def takes(self, name: str, value: Tensor) -> bool:
        return fnmatchcase(name, self.names) and (self.optimiser != "muon" or value.ndim == 2)


def assign(groups: Sequence[Group], parameters: Mapping[str, Tensor]) -> list[list[str]]:
    """The names that each group takes. None is left over, and no group is there for nothing."""
    found: list[list[str]] = [[] for _ in groups]
    for name, value in parameters.items():
        for group, names in zip(groups, found, strict=True):
            if group.takes(name, value):
                names.append(name)
                break
        else:
            raise UsageError(
                f"No group says how the parameter {name} (of shape {'×'.join(map(str, value.shape))}) is trained; "
                "add one that fits its name, such as Group('*') at the end."
            )
    for group, names in zip(groups, found, strict=True):
        if not names:
            raise UsageError(
                f"The group '{group.names}' of {group.optimiser} takes none of the parameters "
                f"{', '.join(list(parameters)[:8])}{' …' if len(parameters) > 8 else ''}; correct its name, put it "
                "before the group that takes them, or leave it out."
            )
    return found


def descend(
    groups: Sequence[Group], parameters: Parameters, moments: dict[str, Tensor], rate: float, taken: int
) -> None:
    """One step downhill, in place, by the gradients in `.grad`. `taken` counts the steps, this one too."""
    for group, names in zip(groups, assign(groups, parameters), strict=True):
        step = rate * group.factor
        if group.decay:
            for name in names:
                parameters[name].data.mul_(1 - step * group.decay)
        if group.optimiser == "muon":
            _muon(group, names, parameters, moments, step)
        for name in names if group.optimiser != "muon" else ():
            value, gradient = parameters[name].data, parameters[name].grad
            assert gradient is not None
            if group.optimiser == "sgd":
                value.add_(gradient, alpha=-step)
            else:
                _adam(group, name, value, gradient, moments, step, taken)


def _adam(
    group: Group, name: str, value: Tensor, gradient: Tensor, moments: dict[str, Tensor], step: float, taken: int
) -> None:
    first, second = group.betas
    mean, square = _moment(moments, f"{name}.mean", value), _moment(moments, f"{name}.square", value)
    mean.lerp_(gradient, _rest(first))
    square.mul_(second).addcmul_(gradient, gradient, value=_rest(second))
    scale = (square / (1 - second**taken)).sqrt_().add_(group.epsilon)
    value.addcdiv_(mean, scale, value=-step / (1 - first**taken))


def _muon(group: Group, names: Sequence[str], parameters: Parameters, moments: dict[str, Tensor], step: float) -> None:
    alike: dict[tuple[torch.dtype, int, int], list[tuple[str, Tensor]]] = {}
    for name in names:
        value, gradient = parameters[name].data, parameters[name].grad
        assert gradient is not None
        momentum = _moment(moments, f"{name}.momentum", value).lerp_(gradient, _rest(group.momentum))
        towards = gradient.lerp(momentum, group.momentum)
        lying = towards.mT if value.shape[0] > value.shape[1] else towards
        alike.setdefault((value.dtype, *lying.shape), []).append((name, lying))
    for named in alike.values():
        directions = orthogonal(torch.stack([lying for _, lying in named]))
        for (name, _), direction in zip(named, directions, strict=True):
            value = parameters[name].data
            inputs, outputs = value.shape
            widens = math.sqrt(max(1.0, outputs / inputs))
            value.add_(direction.mT if inputs > outputs else direction, alpha=-step * widens)


def orthogonal(matrices: Tensor) -> Tensor:
    """N of each of `matrices` (n × rows × columns). Those with fewer rows than columns take less time."""
    a, b, c = NEWTON_SCHULZ
    X = matrices.to(torch.promote_types(matrices.dtype, torch.float32))
    X = X / (torch.linalg.matrix_norm(X, keepdim=True) + SHORTEST)
    for _ in range(NEWTON_SCHULZ_STEPS):
        A = torch.bmm(X, X.mT)
        B = torch.baddbmm(A, A, A, beta=b, alpha=c)  # b A + c A²
        X = torch.baddbmm(X, B, X, beta=a)  # a X + B X
    return X.to(matrices.dtype)


def _moment(moments: dict[str, Tensor], name: str, like: Tensor) -> Tensor:
    if name not in moments:
        moments[name] = torch.zeros_like(like)
    return moments[name]


def _rest(share: float) -> float:
    """1 − share as it is written: 1 − 0.9 is 0.1, and not 0.09999999999999998."""
    return round(1 - share, 15)

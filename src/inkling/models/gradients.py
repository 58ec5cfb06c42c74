"""Layers by hand: each runs forward and returns `(y, backprop)`, and a check that nobody has to take on trust.

A layer is a function of arrays whose rows are examples. `backprop` takes d_y, the gradient of a scalar J with respect
to the layer's output, and returns the gradients of its inputs in the order of its arguments:

    affine      y = xW + b            d_x = d_y Wᵀ      d_W = xᵀ d_y      d_b = Σ_rows d_y
    embedding   y = E[ids]            d_E[i] = Σ of the rows of d_y whose id is i
    sigmoid     y = σ(x)              d_x = d_y ⊙ y(1−y)
    tanh        y = tanh x            d_x = d_y ⊙ (1−y²)
    relu        y = max(x, 0)         d_x = d_y ⊙ [x > 0]
    leaky_relu  y = max(x, x/100)     d_x = d_y ⊙ (1 if x > 0 else 1/100)
    silu        y = x σ(x)            d_x = d_y ⊙ σ(x)(1 + x(1−σ(x)))
    mish        y = x tanh s(x)       d_x = d_y ⊙ (tanh s(x) + x (1−tanh² s(x)) σ(x)),   s(x) = ln(1+eˣ)

The loss ends the chain. With softmax inside it, its gradient needs no Jacobian:

    cross_entropy   J = −Σᵢ yᵢθᵢ + (Σᵢ yᵢ) ln Σⱼ exp θⱼ        ∂J/∂θ = (Σᵢ yᵢ) softmax(θ) − y

Chaining the two factors gives the same: ∂J/∂ŷ = −y⊘ŷ and ∂ŷ/∂θ = diag(ŷ) − ŷᵀŷ, whose product is ŷ Σy − y. (It is a
common slip to write ŷ−y for the first factor and ŷ(1−ŷ) for the second.)

`check` compares every gradient with central differences and with torch's autograd, in float64.
Left out: batch dimensions beyond the first, and anything that is not needed by a model of this package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Ids = NDArray[np.int64]
Elementwise = tuple[Array, Callable[[Array], Array]]


def affine(x: Array, W: Array, b: Array) -> tuple[Array, Callable[[Array], tuple[Array, Array, Array]]]:
    """x B×D, W D×H, b H → y B×H."""
    return x @ W + b, lambda d_y: (d_y @ W.T, x.T @ d_y, d_y.sum(axis=0))


def embedding(table: Array, ids: Ids) -> tuple[Array, Callable[[Array], Array]]:
    """table V×D, ids B → y B×D. An id that occurs twice gathers both gradients."""

    def backprop(d_y: Array) -> Array:
        d_table = np.zeros_like(table)
        np.add.at(d_table, ids, d_y)
        return d_table

    return table[ids], backprop


def logistic(x: Array) -> Array:
    """σ(x), without overflow for any x: e^(−|x|) never exceeds one."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, small) / (1.0 + small)


def sigmoid(x: Array) -> Elementwise:
    y = logistic(x)
    return y, lambda d_y: d_y * y * (1.0 - y)


def tanh(x: Array) -> Elementwise:
    y = np.tanh(x)
    return y, lambda d_y: d_y * (1.0 - y * y)


def relu(x: Array) -> Elementwise:
    return np.maximum(x, 0.0), lambda d_y: d_y * (x > 0)


def leaky_relu(x: Array) -> Elementwise:
    slope = np.where(x > 0, 1.0, 0.01).astype(x.dtype)
    return x * slope, lambda d_y: d_y * slope


def silu(x: Array) -> Elementwise:
    gate = logistic(x)
    return x * gate, lambda d_y: d_y * gate * (1.0 + x * (1.0 - gate))


def mish(x: Array) -> Elementwise:
    squashed = np.tanh(np.logaddexp(0.0, x))
    return x * squashed, lambda d_y: d_y * (squashed + x * (1.0 - squashed * squashed) * logistic(x))


def cross_entropy(logits: Array, targets: Array) -> tuple[float, Callable[[], Array]]:
    """Sum of nats over the rows of `logits` (B×V), and its gradient when asked for.

    The largest logit is subtracted first, so θ = ±1e4 neither overflows nor loses digits.
    """
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_total = np.log(np.exp(shifted).sum(axis=1, keepdims=True))  # B×1
    nats = float(((log_total - shifted) * targets).sum())
    return nats, lambda: np.exp(shifted - log_total) * targets.sum(axis=1, keepdims=True) - targets


def network(
    x: Array, W1: Array, b1: Array, W2: Array, b2: Array, targets: Array
) -> tuple[float, Callable[[], tuple[Array, Array, Array, Array, Array]]]:
    """One hidden layer: J = CE(y, softmax(σ(xW₁+b₁)W₂+b₂)), summed over rows; gradients of x, W₁, b₁, W₂, b₂."""
    a, back_first = affine(x, W1, b1)
    h, back_sigmoid = sigmoid(a)
    logits, back_second = affine(h, W2, b2)
    nats, back_loss = cross_entropy(logits, targets)

    def backprop() -> tuple[Array, Array, Array, Array, Array]:
        d_h, d_W2, d_b2 = back_second(back_loss())
        d_x, d_W1, d_b1 = back_first(back_sigmoid(d_h))
        return d_x, d_W1, d_b1, d_W2, d_b2

    return nats, backprop


# ------------------------------------------------------------------------------------------------ the check

DIFFERENCES_LIMIT = 1e-7
AUTOGRAD_LIMIT = 1e-12
ACTIVATIONS = ("sigmoid", "tanh", "relu", "leaky_relu", "silu", "mish")


@dataclass(frozen=True)
class Check:
    """One gradient: how far (relative) from central differences and from autograd."""

    layer: str
    gradient: str
    differences: float
    autograd: float

    @property
    def passes(self) -> bool:
        return self.differences <= DIFFERENCES_LIMIT and self.autograd <= AUTOGRAD_LIMIT


def relative_error(a: Array, b: Array) -> float:
    """‖a − b‖ / max(‖a‖, ‖b‖): zero when both are zero, and NaN counts as infinitely far."""
    scale = max(float(np.linalg.norm(a)), float(np.linalg.norm(b)))
    error = float(np.linalg.norm(a - b)) / scale if scale else 0.0
    return error if np.isfinite(error) else float("inf")


def central_differences(f: Callable[[Array], float], x: Array, step: float = 1e-5) -> Array:
    """(f(x+εeᵢ) − f(x−εeᵢ)) / 2ε for each entry; the error is O(ε²)."""
    gradient = np.empty_like(x)
    for i in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[i] += step
        down[i] -= step
        gradient[i] = (f(up) - f(down)) / (up[i] - down[i])
    return gradient


def check(generator: np.random.Generator) -> list[Check]:
    """Every layer and the whole network at random points, each gradient against both judges."""
    checks: list[Check] = []
    layers = globals()  # looked up at call time, so that what is checked is what the models use

    def weigh(shape: tuple[int, ...]) -> Array:
        return generator.standard_normal(shape)

    x, W, b, r = weigh((4, 5)), weigh((5, 3)), weigh((3,)), weigh((4, 3))
    _, backprop = layers["affine"](x, W, b)
    judged = _judge(lambda *v: float((layers["affine"](*v)[0] * r).sum()), "affine", (x, W, b), (r,))
    checks += _compare("affine", ("x", "W", "b"), backprop(r), judged)

    table, ids, r = weigh((6, 3)), np.array([4, 1, 4, 0, 4]), weigh((5, 3))
    _, backprop = layers["embedding"](table, ids)
    judged = _judge(lambda t: float((layers["embedding"](t, ids)[0] * r).sum()), "embedding", (table,), (ids, r))
    checks += _compare("embedding", ("table",), (backprop(r),), judged)

    for name in ACTIVATIONS:
        x, r = weigh((4, 6)) * 2, weigh((4, 6))
        x += 0.01 * np.sign(x)  # keep off the corner of the rectifiers, where no derivative exists
        _, backprop = layers[name](x)
        judged = _judge(lambda v, name=name, r=r: float((layers[name](v)[0] * r).sum()), name, (x,), (r,))
        checks += _compare(name, ("x",), (backprop(r),), judged)

    logits, targets = weigh((4, 7)) * 3, generator.dirichlet(np.ones(7), 4) * generator.uniform(0.5, 2, (4, 1))
    _, finish = layers["cross_entropy"](logits, targets)
    judged = _judge(lambda v: float(layers["cross_entropy"](v, targets)[0]), "cross_entropy", (logits,), (targets,))
    checks += _compare("cross_entropy", ("logits",), (finish(),), judged)

    arguments = (weigh((4, 5)), weigh((5, 6)), weigh((6,)), weigh((6, 7)), weigh((7,)))
    targets = generator.dirichlet(np.ones(7), 4)
    _, finish = layers["network"](*arguments, targets)
    judged = _judge(lambda *v: float(layers["network"](*v, targets)[0]), "network", arguments, (targets,))
    return checks + _compare("network", ("x", "W1", "b1", "W2", "b2"), finish(), judged)


def _compare(
    layer: str, names: Iterable[str], ours: Iterable[Array], judged: Iterable[tuple[Array, Array]]
) -> list[Check]:
    return [
        Check(layer, f"d_{name}", relative_error(mine, by_differences), relative_error(mine, by_autograd))
        for name, mine, (by_differences, by_autograd) in zip(names, ours, judged, strict=True)
    ]


def _judge(
    scalar: Callable[..., float], layer: str, arguments: tuple[Array, ...], fixed: tuple[NDArray[np.generic], ...]
) -> list[tuple[Array, Array]]:
    """For each argument: its gradient by central differences of `scalar`, and by torch of the same formula."""
    import torch
    from torch.nn import functional as F

    def weighed(f: Callable[[torch.Tensor], torch.Tensor]) -> Callable[..., torch.Tensor]:
        return lambda x, r: (f(x) * r).sum()

    def loss(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return -(targets * torch.log_softmax(logits, dim=1)).sum()

    formulas: dict[str, Callable[..., torch.Tensor]] = {
        "affine": lambda x, W, b, r: ((x @ W + b) * r).sum(),
        "embedding": lambda table, ids, r: (F.embedding(ids, table) * r).sum(),
        "sigmoid": weighed(torch.sigmoid),
        "tanh": weighed(torch.tanh),
        "relu": weighed(torch.relu),
        "leaky_relu": weighed(lambda x: F.leaky_relu(x, 0.01)),
        "silu": weighed(F.silu),
        "mish": weighed(F.mish),
        "cross_entropy": loss,
        "network": lambda x, W1, b1, W2, b2, y: loss(torch.sigmoid(x @ W1 + b1) @ W2 + b2, y),
    }
    tensors = [torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in arguments]
    torch.autograd.backward(formulas[layer](*tensors, *(torch.tensor(f) for f in fixed)))
    judged = []
    for i, (argument, tensor) in enumerate(zip(arguments, tensors, strict=True)):

        def alone(value: Array, i: int = i) -> float:
            return scalar(*arguments[:i], value, *arguments[i + 1 :])

        assert tensor.grad is not None
        judged.append((central_differences(alone, argument), tensor.grad.numpy()))
    return judged

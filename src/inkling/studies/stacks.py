"""A stack of networks: several of one depth and width, trained side by side with gradients written by hand.

    zₗ = xₗ Wₗ + bₗ,  xₗ₊₁ = f(zₗ)        l = 1 … depth
    J  = −ln softmax(Wₒ x + bₒ)[truth]     its mean over a batch is what Adam (Kingma and Ba 2015) brings down

    δₒ = (softmax − truth) / B     ∂Wₒ = δₒ xᵀ    δx = δₒᵀ Wₒ
    δz = δx ⊙ f'(z)                ∂W = xᵀ δz     δx = δz Wᵀ

The matrices of N networks lie side by side, so each product is one batched product (N×B×D times N×D×H). Scores are
held as N×C×B: with few classes the products are several times faster that way round. All parameters lie in one flat
tensor, so that Adam is five operations.

    mish(z) = z tanh(ln(1 + eᶻ)) = z w / (w + 2)     w = eᶻ (eᶻ + 2)      one exponential instead of three functions
    mish'(z) = w / (w + 2) + 4 z eᶻ (eᶻ + 1) / (w + 2)²

First weights are uniform in ±1/√inputs, drawn for each layer from a generator of seed, layer and shape alone: networks
of unlike depth begin with equal first layers.
Misra (2019) on Mish. Left out: weight decay, schedules, dropout of units.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

BETA_MEAN, BETA_SQUARE, EPSILON = 0.9, 0.999, 1e-8
LEAKY_SLOPE = 0.01
LARGEST_EXPONENT = 20.0  # from there on mish(z) = z in all digits of a float32, and e²⁰ squared is still a number
OUTPUT = 0  # the number of the output layer in `first_weights`; hidden layers count from 1


def _mish(z: Tensor) -> Tensor:
    e = z.clamp(max=LARGEST_EXPONENT).exp_()
    w = e.add(2).mul_(e)
    return w.div_(w + 2).mul_(z)


def _mish_slope(z: Tensor, h: Tensor) -> Tensor:
    e = z.clamp(max=LARGEST_EXPONENT).exp_()
    w = e.add(2).mul_(e)
    inverse = (w + 2).reciprocal_()
    return e.addcmul_(e, e).mul_(4).mul_(inverse).mul_(z).add_(w).mul_(inverse)


def _silu_slope(z: Tensor, h: Tensor) -> Tensor:
    s = z.sigmoid()
    return (1 - s).mul_(z).add_(1).mul_(s)


@dataclass(frozen=True)
class Activation:
    """f(z), and f'(z) from z and f(z)."""

    of: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor, Tensor], Tensor]


ACTIVATIONS: dict[str, Activation] = {
    "relu": Activation(torch.relu, lambda z, h: h.sign()),
    "sigmoid": Activation(torch.sigmoid, lambda z, h: (1 - h).mul_(h)),
    "mish": Activation(_mish, _mish_slope),
    "tanh": Activation(lambda z: (2 * z).sigmoid_().mul_(2).sub_(1), lambda z, h: 1 - h * h),
    "leaky_relu": Activation(
        lambda z: torch.nn.functional.leaky_relu(z, LEAKY_SLOPE),
        lambda z, h: h.sign().clamp_(min=LEAKY_SLOPE),
    ),
    "silu": Activation(torch.nn.functional.silu, _silu_slope),
}


def first_weights(seed: int, layer: int, inputs: int, outputs: int) -> tuple[Tensor, Tensor]:
    """Weights (inputs×outputs) and biases of one layer before training."""
    generator = np.random.default_rng([seed, 0, layer, inputs, outputs])
    drawn = generator.uniform(-1, 1, (inputs + 1, outputs)) / np.sqrt(inputs)
    return torch.from_numpy(drawn[:-1]), torch.from_numpy(drawn[-1])


class Stack:
    """N networks of one shape. `activations` has a name for each network and layer; `seeds` decides first weights."""

    def __init__(
        self,
        activations: Sequence[Sequence[str]],
        seeds: Sequence[int],
        inputs: int,
        width: int,
        classes: int,
        rate: float,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.networks, self.depth = len(seeds), len(activations[0])
        sizes = [inputs, *[width] * self.depth]
        n = self.networks
        shapes = [s for a, b in pairwise(sizes) for s in ((n, a, b), (n, 1, b))]
        shapes += [(n, classes, sizes[-1]), (n, classes, 1)]
        lengths = [int(np.prod(shape)) for shape in shapes]
        # Rows: parameters, their gradients, Adam's mean of the gradients and of their squares.
        self.flat = torch.zeros(4, sum(lengths), dtype=dtype)
        self.parameters = _views(self.flat[0], lengths, shapes)  # W₁ b₁ W₂ b₂ … Wₒ bₒ
        self.gradients = _views(self.flat[1], lengths, shapes)
        self.rate, self.steps = rate, 0
        for i, seed in enumerate(seeds):
            for layer, (a, b) in enumerate(pairwise(sizes)):
                weights, biases = first_weights(seed, layer + 1, a, b)
                self.parameters[2 * layer][i].copy_(weights)
                self.parameters[2 * layer + 1][i, 0].copy_(biases)
            weights, biases = first_weights(seed, OUTPUT, sizes[-1], classes)
            self.parameters[-2][i].copy_(weights.t())
            self.parameters[-1][i, :, 0].copy_(biases)
        # Neighbours with the same activation are served by one call.
        self.runs = [_runs([names[layer] for names in activations]) for layer in range(self.depth)]

    def forward(self, x: Tensor) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        """Scores (N×C×B) of the averages `x` (N×B×D), the inputs of every layer, and z of the hidden ones."""
        xs, zs = [x], []
        for layer in range(self.depth):
            z = torch.baddbmm(self.parameters[2 * layer + 1], xs[-1], self.parameters[2 * layer])
            zs.append(z)
            parts = [ACTIVATIONS[name].of(z[part]) for name, part in self.runs[layer]]
            xs.append(parts[0] if len(parts) == 1 else torch.cat(parts))
        scores = torch.baddbmm(self.parameters[-1], self.parameters[-2], xs[-1].transpose(1, 2))
        return scores, xs, zs

    def backward(self, truth: Tensor, scores: Tensor, xs: list[Tensor], zs: list[Tensor]) -> None:
        """Fills `gradients` with those of the mean loss of each network; `truth` is C×B, one 1 in each column."""
        d_scores = torch.softmax(scores, 1).sub_(truth).div_(truth.shape[1])
        torch.bmm(d_scores, xs[-1], out=self.gradients[-2])
        torch.sum(d_scores, 2, keepdim=True, out=self.gradients[-1])
        if not self.depth:
            return
        d_x = torch.bmm(d_scores.transpose(1, 2), self.parameters[-2])
        for layer in reversed(range(self.depth)):
            for name, part in self.runs[layer]:
                d_x[part].mul_(ACTIVATIONS[name].slope(zs[layer][part], xs[layer + 1][part]))
            d_z = d_x
            torch.bmm(xs[layer].transpose(1, 2), d_z, out=self.gradients[2 * layer])
            torch.sum(d_z, 1, keepdim=True, out=self.gradients[2 * layer + 1])
            if layer:
                d_x = torch.bmm(d_z, self.parameters[2 * layer].transpose(1, 2))

    def step(self, x: Tensor, truth: Tensor) -> None:
        """One step of every network on its own `x`."""
        self.backward(truth, *self.forward(x))
        # Adam by hand: making an optimiser of torch's imports its compiler, which takes seconds.
        self.steps += 1
        parameters, gradients, mean, square = self.flat
        mean.lerp_(gradients, 1 - BETA_MEAN)
        square.mul_(BETA_SQUARE).addcmul_(gradients, gradients, value=1 - BETA_SQUARE)
        root = (1 - BETA_SQUARE**self.steps) ** 0.5
        parameters.addcdiv_(
            mean, square.sqrt().add_(EPSILON * root), value=-self.rate * root / (1 - BETA_MEAN**self.steps)
        )

    def predict(self, averages: Tensor, rows: int = 500) -> Tensor:
        """The class (N×T) that each network gives each text."""
        blocks = []
        for block in torch.split(averages, rows):
            scores = self.forward(block.expand(self.networks, -1, -1))[0]
            best, guess = scores[:, 0], torch.zeros(scores[:, 0].shape, dtype=torch.int64)
            for label in range(1, scores.shape[1]):  # a comparison for each class is faster than argmax, for few
                guess.masked_fill_(scores[:, label] > best, label)
                best = torch.maximum(best, scores[:, label])
            blocks.append(guess)
        return torch.cat(blocks, 1)

    def saturation(self, averages: Tensor, least_slope: float, rows: int = 500) -> list[float | None]:
        """For each network the share of its sigmoid units, over units and texts, with a slope below `least_slope`."""
        low, all_units = torch.zeros(self.networks), torch.zeros(self.networks)
        for block in torch.split(averages, rows):
            xs = self.forward(block.expand(self.networks, -1, -1))[1]
            for layer, runs in enumerate(self.runs):
                for name, part in runs:
                    if name == "sigmoid":
                        h = xs[layer + 1][part]
                        low[part] += (h * (1 - h) < least_slope).sum((1, 2))
                        all_units[part] += h[0].numel()
        return [float(a / b) if b else None for a, b in zip(low, all_units, strict=True)]


def _views(flat: Tensor, lengths: list[int], shapes: list[tuple[int, int, int]]) -> list[Tensor]:
    return [part.view(shape) for part, shape in zip(torch.split(flat, lengths), shapes, strict=True)]


def _runs(names: Sequence[str]) -> list[tuple[str, slice]]:
    edges = [0, *(i for i in range(1, len(names)) if names[i] != names[i - 1]), len(names)]
    return [(names[a], slice(a, b)) for a, b in pairwise(edges)]

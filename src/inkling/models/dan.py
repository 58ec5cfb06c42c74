"""The deep averaging network: a text is the mean of the vectors of its features, and a small network reads the mean.

    a = Σ_f c_f v_f / Σ_f c_f          over the features f of the text that have a vector (text/grams.py, bags.py)
    h₁ = φ₁(a W₁ + b₁)   h₂ = φ₂(h₁ W₂ + b₂)   …   `depth` of them, `width` units each
    z = h W + b,   p = softmax(z / T)

With `dimension` 0 a vector is what its feature adds to the score of each class: z = a + b and nothing more. With
`distinct` c_f is 1 however often f occurs. T is the temperature, fitted on held-out text, that makes the probabilities
honest; it changes no verdict. A text without a known feature has a = 0.

Iyyer, Manjunatha, Boyd-Graber and Daumé III (2015). Left out: position and order beyond n-grams; that is the point.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from inkling.errors import InklingError, UsageError
from inkling.models.bags import Bags, Table, blocks_of
from inkling.text.grams import GramConfig, Keys

PREDICTED_CHARS = 1 << 23  # of text turned into bags at once: bounds the memory

ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "mish": functional.mish,
    "silu": functional.silu,
    "leaky_relu": functional.leaky_relu,
}


@dataclass(frozen=True)
class DANConfig:
    """The sizes of a network. `activation` names one function, or one a layer with commas between: "relu,tanh"."""

    words: int = 1  # longest run of words that is a feature
    low: int = 0  # shortest and longest run of characters inside a word that is a feature; 0: none
    high: int = 0
    bits: int = 24  # of the keys of features
    distinct: bool = False
    dimension: int = 0
    depth: int = 0
    width: int = 100
    activation: str = "relu"

    def __post_init__(self) -> None:
        if self.dimension < 0 or self.width < 1 or not 0 <= self.depth <= 64:
            raise UsageError(
                f"A network of dimension {self.dimension}, depth {self.depth} and width {self.width} was asked for; "
                "give a dimension from 0, a depth from 0 to 64 and a width from 1."
            )
        if self.depth and not self.dimension:
            raise UsageError(
                f"Hidden layers (--depth {self.depth}) need vectors to read; give --dimension, such as 100."
            )
        for name in self.activations:
            if name not in ACTIVATIONS:
                raise UsageError(f"The activation '{name}' is unknown; give one of {', '.join(ACTIVATIONS)}.")

    @property
    def grams(self) -> GramConfig:
        return GramConfig(self.words, self.low, self.high, self.bits)

    @property
    def activations(self) -> tuple[str, ...]:
        """One for each hidden layer."""
        names = tuple(name.strip().replace("-", "_") for name in self.activation.split(","))
        if len(names) == 1:
            return names * max(1, self.depth)
        if len(names) != self.depth:
            raise UsageError(
                f"{len(names)} activations were given for {self.depth} hidden layers; give one, or one for each layer."
            )
        return names


def random_layers(config: DANConfig, classes: int, generator: np.random.Generator) -> dict[str, Tensor]:
    """Weights of the layers after the average: normal with variance 2/fan-in inside, 1/fan-in at the end; bias 0."""
    layers: dict[str, Tensor] = {}
    if not config.dimension:
        return {"bias": torch.zeros(classes)}
    sizes = [config.dimension, *[config.width] * config.depth, classes]
    for i, (fan_in, fan_out) in enumerate(pairwise(sizes)):
        name = f"layers.{i}" if i < config.depth else "out"
        scale = math.sqrt((2 if i < config.depth else 1) / fan_in)
        values = generator.standard_normal((fan_in, fan_out), dtype=np.float32) * np.float32(scale)
        layers[f"{name}.W"], layers[f"{name}.b"] = torch.from_numpy(values), torch.zeros(fan_out)
    return layers


def read_average(averages: Tensor, layers: Mapping[str, Tensor], config: DANConfig) -> Tensor:
    """The scores z (B×C) of averages (B×D): all that comes after the mean."""
    if not config.dimension:
        return averages + layers["bias"]
    hidden = averages
    for i, name in enumerate(config.activations[: config.depth]):
        hidden = ACTIVATIONS[name](torch.addmm(layers[f"layers.{i}.b"], hidden, layers[f"layers.{i}.W"]))
    return torch.addmm(layers["out.b"], hidden, layers["out.W"])


def average(bags: Bags, vectors: Tensor) -> Tensor:
    """The mean vector of each text (B×D)."""
    totals = bags.sums(bags.counts)
    summed = functional.embedding_bag(
        torch.from_numpy(bags.rows),
        vectors,
        torch.from_numpy(bags.offsets[:-1].astype(np.int32)),
        mode="sum",
        per_sample_weights=torch.from_numpy(bags.counts).to(vectors.dtype),
    )
    return summed / torch.from_numpy(np.maximum(totals, 1)).to(vectors.dtype)[:, None]


class AveragingNetwork:
    """A trained network: a Classifier. Its parameters are `vectors`, `keys` (whose rows they are) and the layers."""

    def __init__(
        self,
        config: DANConfig,
        labels: Sequence[str],
        keys: Keys,
        parameters: Mapping[str, Tensor],
        temperature: float = 1.0,
    ) -> None:
        self.config = config
        self.labels = tuple(labels)
        self.keys = keys
        self.vectors = parameters["vectors"]
        self.layers = {name: value for name, value in parameters.items() if name != "vectors"}
        self.temperature = temperature
        if len(keys) != len(self.vectors):
            raise InklingError(f"The network has {len(keys)} features and {len(self.vectors)} vectors; train it anew.")

    @cached_property
    def table(self) -> Table:
        return Table(self.config.grams, self.keys)

    def bags(self, texts: Sequence[str]) -> Bags:
        return self.table.bags(texts, self.config.distinct)

    def read(self, averages: Tensor) -> Tensor:
        """Log-probabilities (B×C) of averages, calibrated."""
        return torch.log_softmax(read_average(averages, self.layers, self.config).double() / self.temperature, dim=1)

    def log_probs(self, texts: Sequence[str]) -> Tensor:
        """B×labels."""
        found = [
            self.read(average(self.bags(texts[first:last]), self.vectors))
            for first, last in blocks_of(texts, PREDICTED_CHARS)
        ]
        return torch.cat(found) if found else torch.zeros(0, len(self.labels), dtype=torch.float64)

    def predict(self, texts: Sequence[str]) -> list[str]:
        """The likeliest label of each text."""
        return [self.labels[i] for i in self.log_probs(texts).argmax(dim=1).tolist()]

    def parameters(self) -> dict[str, Tensor]:
        return {"vectors": self.vectors, **self.layers}

    def double(self) -> AveragingNetwork:
        """The same network in 64-bit arithmetic, for checks."""
        doubled = {name: value.double() for name, value in self.parameters().items()}
        return AveragingNetwork(self.config, self.labels, self.keys, doubled, self.temperature)

    def double_layers(self) -> AveragingNetwork:
        """The same with the layers alone in 64-bit arithmetic: enough to read means that are exact already."""
        return self._with_double_layers

    @cached_property
    def _with_double_layers(self) -> AveragingNetwork:
        layers = {name: value.double() for name, value in self.layers.items()}
        return AveragingNetwork(
            self.config, self.labels, self.keys, {"vectors": self.vectors, **layers}, self.temperature
        )

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """All that a file must hold, but for the config and the labels."""
        found: dict[str, NDArray[np.generic]] = {name: value.numpy() for name, value in self.parameters().items()}
        return found | {"keys": self.keys, "temperature": np.array([self.temperature])}

    @classmethod
    def from_arrays(
        cls, config: DANConfig, labels: Sequence[str], arrays: Mapping[str, NDArray[np.generic]]
    ) -> AveragingNetwork:
        tensors = {name: torch.from_numpy(np.array(value)) for name, value in arrays.items()}
        keys, temperature = tensors.pop("keys").numpy().astype(np.int32), float(tensors.pop("temperature")[0])
        return cls(config, labels, keys, tensors, temperature)

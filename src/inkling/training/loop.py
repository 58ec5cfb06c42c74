"""The one training loop: a generator, so that the caller logs, saves, draws and stops.

    for step in train(objective, batches, config, state, validate):
        ...

An objective owns named parameters and fills in their gradients for one batch, giving back a sum of nats and the number
of tokens it is over; the loop divides, once. A batch is a pure function of the step, and so is every random choice in
an objective: what must be kept to go on after an interruption is the parameters, the optimiser's moments, the step, and
what the objective itself remembers (`memory`: the state that a recurrent model carries from batch to batch). Going on
gives the same numbers to the bit, unless a time budget was too short for the steps: then the clock sets the rate.

When `validate` is given, the parameters that did best on held-out text are kept beside the current ones.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeVar

import torch
from torch import Tensor

from inkling.errors import InklingError, UsageError

Batch = TypeVar("Batch", contravariant=True)
Schedule = Literal["constant", "linear", "late", "halved"]
Parameters = dict[str, Tensor]


class Objective(Protocol[Batch]):
    @property
    def parameters(self) -> Parameters: ...
    def gradient(self, batch: Batch, step: int) -> tuple[float, float]:
        """Sets `.grad` of every parameter to the gradient of a sum of nats; returns that sum and its tokens."""
        ...


@dataclass(frozen=True)
class TrainingConfig:
    """How the parameters are changed. `rate` falls by `schedule`; `patience` counts evaluations without improvement."""

    steps: int = 300
    optimiser: Literal["sgd", "adam"] = "adam"
    rate: float = 0.02
    schedule: Schedule = "late"
    warm_up: int = 0  # steps in which the rate rises in a line; a good start point is not thrown away
    evaluate_every: int = 10
    patience: int = 0  # 0: go through all the steps
    max_seconds: float = math.inf
    clip: float = 0.0  # longest gradient (Euclidean, per token) that is followed at its full length; 0: any

    def __post_init__(self) -> None:
        limits = (
            ("steps", self.steps >= 1, "at least 1"),
            ("rate", 0 < self.rate < math.inf, "a number above 0"),
            ("evaluate_every", self.evaluate_every >= 1, "at least 1"),
            ("patience", self.patience >= 0, "0 (never stop early) or more"),
            ("max_seconds", self.max_seconds > 0, "a number above 0"),
            ("clip", 0 <= self.clip < math.inf, "0 (never) or a number above 0"),
        )
        for name, fits, wanted in limits:
            if not fits:
                raise UsageError(f"{name} of a training is {getattr(self, name)}; give {wanted}.")

    def rate_at(self, step: int, seconds: float = 0.0) -> float:
        """`late` holds the rate for the first half, then falls to zero in a line; `halved` halves it halfway.

        A computer that turns out slower than planned reaches the end by the clock, and the rate falls with it.
        """
        progress = min(1.0, max(step / self.steps, seconds / self.max_seconds))
        factor = {
            "constant": 1.0,
            "linear": 1.0 - progress,
            "late": min(1.0, 2.0 * (1.0 - progress)),
            "halved": 1.0 if progress < 0.5 else 0.5,
        }[self.schedule]
        return self.rate * factor * min(1.0, (step + 1) / max(1, self.warm_up))


@dataclass(frozen=True)
class Step:
    """What one step did. `held_out_nats` is a mean per token, given on steps that evaluate."""

    step: int
    nats: float  # sum over the batch, before the step
    tokens: float
    rate: float
    seconds: float  # spent in training so far, over all sittings
    held_out_nats: float | None = None
    best: bool = False
    steps: int = 0  # that there will be, as far as can be seen


@dataclass
class TrainingState:
    """All that a checkpoint must hold. The tensors are the live ones."""

    parameters: Parameters
    step: int = 0
    seconds: float = 0.0
    moments: dict[str, Tensor] = field(default_factory=dict)  # of Adam: "parameter.mean" and "parameter.square"
    best: Parameters = field(default_factory=dict)
    memory: Parameters = field(default_factory=dict)  # of the objective; it changes them where they are
    best_nats: float = math.inf
    stale: int = 0  # evaluations since the best one
    finished: bool = False
    settled: bool = True  # False within a step, while some of the above is old and some new: not to be saved

    def tensors(self) -> dict[str, Tensor]:
        groups = {"parameters": self.parameters, "moments": self.moments, "best": self.best, "memory": self.memory}
        return {f"{group}/{name}": value for group, values in groups.items() for name, value in values.items()}

    def scalars(self) -> dict[str, float | int | bool]:
        return {
            "step": self.step,
            "seconds": self.seconds,
            "best_nats": self.best_nats,
            "stale": self.stale,
            "finished": self.finished,
        }

    def restore(self, tensors: dict[str, Tensor], scalars: dict[str, float]) -> None:
        """Takes the place that `tensors` and `scalars` describe; the parameters are overwritten where they are."""
        groups: dict[str, dict[str, Tensor]] = {"parameters": {}, "moments": {}, "best": {}, "memory": {}}
        for name, value in tensors.items():
            group, _, rest = name.partition("/")
            groups[group][rest] = value.clone()
        for group, live in (("parameters", self.parameters), ("memory", self.memory)):
            if {n: v.shape for n, v in groups[group].items()} != {n: v.shape for n, v in live.items()}:
                raise InklingError("The checkpoint has other parameters than this configuration makes; train anew.")
            for name, value in groups[group].items():
                live[name].data.copy_(value)
        self.moments, self.best = groups["moments"], groups["best"]
        self.step, self.stale = int(scalars["step"]), int(scalars["stale"])
        self.seconds, self.best_nats = float(scalars["seconds"]), float(scalars["best_nats"])
        self.finished = bool(scalars["finished"])

    def chosen(self) -> Parameters:
        """The best parameters by held-out text, or the current ones if none were judged."""
        return self.best or self.parameters


def train(
    objective: Objective[Batch],
    batches: Callable[[int], Batch],
    config: TrainingConfig,
    state: TrainingState,
    validate: Callable[[Parameters], tuple[float, float]] | None = None,
) -> Iterator[Step]:
    """Goes on from `state` until the steps, the patience or the time run out, changing `state` as it goes.

    `validate` gives the sum of nats over held-out text and its tokens, for the parameters it is handed.
    """
    started = time.perf_counter() - state.seconds
    while not state.finished:
        rate = config.rate_at(state.step, state.seconds)
        nats, tokens = objective.gradient(batches(state.step), state.step)
        if not math.isfinite(nats):
            raise InklingError(
                f"The loss is no longer a number after step {state.step}: the last checkpoint is kept; "
                f"try again with a smaller --rate than {config.rate:g}."
            )
        for parameter in state.parameters.values():
            assert parameter.grad is not None
            parameter.grad.div_(tokens)
        if config.clip:
            _shorten(state.parameters, config.clip)
        state.settled = False
        _descend(config, state, rate)
        state.step += 1

        held_out, best = None, False
        state.seconds = time.perf_counter() - started
        last = state.step >= config.steps or state.seconds >= config.max_seconds
        if validate is not None and (last or state.step % config.evaluate_every == 0):
            total, count = validate(state.parameters)
            held_out = total / count
            best = held_out < state.best_nats
            if best:
                state.best_nats, state.stale = held_out, 0
                state.best = {name: value.detach().clone() for name, value in state.parameters.items()}
            else:
                state.stale += 1
        state.seconds = time.perf_counter() - started
        impatient = 0 < config.patience <= state.stale
        state.finished = last or impatient
        state.settled = True
        in_time = state.step * config.max_seconds / state.seconds if config.max_seconds < math.inf else math.inf
        planned = max(state.step, min(config.steps, math.ceil(in_time) if in_time < math.inf else config.steps))
        yield Step(state.step, nats, tokens, rate, state.seconds, held_out, best, planned)


def _shorten(parameters: Parameters, longest: float) -> None:
    gradients = [parameter.grad for parameter in parameters.values() if parameter.grad is not None]
    length = math.sqrt(sum(float(gradient.square().sum()) for gradient in gradients))
    if length > longest:
        for gradient in gradients:
            gradient.mul_(longest / length)


def _descend(config: TrainingConfig, state: TrainingState, rate: float) -> None:
    """One step downhill, in place: plain, or Adam (Kingma and Ba 2015, algorithm 1, with β = 0.9 and 0.99).

    By hand, because making an optimiser of torch's imports its compiler, which takes longer than a small training.
    """
    taken = state.step + 1
    for name, parameter in state.parameters.items():
        assert parameter.grad is not None
        gradient, value = parameter.grad, parameter.data
        if config.optimiser == "sgd":
            value.add_(gradient, alpha=-rate)
            continue
        mean = state.moments.setdefault(f"{name}.mean", torch.zeros_like(value))
        square = state.moments.setdefault(f"{name}.square", torch.zeros_like(value))
        mean.lerp_(gradient, 0.1)
        square.mul_(0.99).addcmul_(gradient, gradient, value=0.01)
        scale = (square / (1 - 0.99**taken)).sqrt_().add_(1e-8)
        value.addcdiv_(mean, scale, value=-rate / (1 - 0.9**taken))

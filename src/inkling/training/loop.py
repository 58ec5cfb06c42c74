"""The one training loop: a generator, so that the caller logs, saves, draws and stops.

    for step in train(objective, batches, config, state, validate):
        ...

An objective owns named parameters and fills in their gradients for one batch, giving back a sum of nats and the number
of tokens it is over; the loop divides, once. A batch is a pure function of the step, and so is every random choice in
an objective: what must be kept to go on after an interruption is the parameters, the optimiser's moments, the step, and
what the objective itself remembers (`memory`: the state that a recurrent model carries from batch to batch). Going on
gives the same numbers to the bit, unless a time budget was too short for the steps: then the clock sets the rate.

When `validate` is given, the parameters that did best on held-out text are kept beside the current ones.
How parameters are changed, and which how, is in `optimisers`; when a loss has come apart, in `spikes`; how several
processes act as one, in `processes`; what is kept, in `state`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import Literal, Protocol, TypeVar

from inkling.errors import InklingError, UsageError
from inkling.training import spikes
from inkling.training.optimisers import Group, assign, descend
from inkling.training.processes import ALONE, Processes
from inkling.training.state import Parameters, TrainingState

__all__ = ["Group", "Objective", "Parameters", "Schedule", "Step", "TrainingConfig", "TrainingState", "train"]

Batch = TypeVar("Batch", contravariant=True)
Schedule = Literal["constant", "linear", "late", "halved"]


class Objective(Protocol[Batch]):
    @property
    def parameters(self) -> Parameters: ...
    def gradient(self, batch: Batch, step: int) -> tuple[float, float]:
        """Sets `.grad` of every parameter to the gradient of a sum of nats; returns that sum and its tokens."""
        ...


@dataclass(frozen=True)
class TrainingConfig:
    """How the parameters are changed. `rate` falls by `schedule`; `patience` counts evaluations without improvement.

    Without `groups` all parameters are changed by `optimiser`; with them, each group says by which, and at what factor
    of the rate.
    """

    steps: int = 300
    optimiser: Literal["sgd", "adam"] = "adam"
    rate: float = 0.02
    schedule: Schedule = "late"
    warm_up: int = 0  # steps in which the rate rises in a line; a good start point is not thrown away
    evaluate_every: int = 10
    patience: int = 0  # 0: go through all the steps
    max_seconds: float = math.inf
    clip: float = 0.0  # longest gradient (Euclidean, per token) that is followed at its full length; 0: any
    held: float = 0.5  # share of the steps after which a `late` rate falls
    groups: tuple[Group, ...] = ()
    spikes: Literal["stop", "ignore"] = "ignore"  # a loss that jumps and does not come back

    def __post_init__(self) -> None:
        limits = (
            ("steps", self.steps >= 1, "at least 1"),
            ("rate", 0 < self.rate < math.inf, "a number above 0"),
            ("evaluate_every", self.evaluate_every >= 1, "at least 1"),
            ("patience", self.patience >= 0, "0 (never stop early) or more"),
            ("max_seconds", self.max_seconds > 0, "a number above 0"),
            ("held", 0 <= self.held < 1, "a share from 0 to below 1"),
            ("spikes", self.spikes in ("stop", "ignore"), "stop or ignore"),
            ("clip", 0 <= self.clip < math.inf, "0 (never) or a number above 0"),
        )
        for name, fits, wanted in limits:
            if not fits:
                raise UsageError(f"{name} of a training is {getattr(self, name)}; give {wanted}.")

    @property
    def all_groups(self) -> tuple[Group, ...]:
        return self.groups or (Group("*", self.optimiser),)

    def rate_at(self, step: int, seconds: float = 0.0) -> float:
        """`late` holds the rate for the share `held`, then falls to zero in a line; `halved` halves it halfway.

        A computer that turns out slower than planned reaches the end by the clock, and the rate falls with it.
        """
        progress = min(1.0, max(step / self.steps, seconds / self.max_seconds))
        factor = {
            "constant": 1.0,
            "linear": 1.0 - progress,
            "late": min(1.0, (1.0 - progress) / (1.0 - self.held)),
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


def train(
    objective: Objective[Batch],
    batches: Callable[[int], Batch],
    config: TrainingConfig,
    state: TrainingState,
    validate: Callable[[Parameters], tuple[float, float]] | None = None,
    processes: Processes = ALONE,
) -> Iterator[Step]:
    """Goes on from `state` until the steps, the patience or the time run out, changing `state` as it goes.

    `validate` gives the sum of nats over held-out text and its tokens, for the parameters it is handed. Of several
    processes each hands in its own share of the batches, and the first one validates and holds the clock.
    """
    assign(config.all_groups, state.parameters)  # what does not fit is said before anything is worked out
    processes.check(state)
    started = time.perf_counter() - state.seconds
    while not state.finished:
        rate = config.rate_at(state.step, state.seconds)
        nats, tokens = objective.gradient(batches(state.step), state.step)
        nats, tokens = processes.add_up(state.parameters, nats, tokens)
        _check(state, config, nats)
        recent, above = spikes.seen(state.recent, state.above, nats / tokens) if config.spikes == "stop" else ((), 0)
        if above >= spikes.IN_A_ROW:
            raise InklingError(
                f"The loss jumped from {median(recent):.3g} to {nats / tokens:.3g} nats a token and has not come back "
                f"for {above} steps up to step {state.step}: the last checkpoint is kept; try again with a smaller "
                f"--rate than {config.rate:g}."
            )
        for parameter in state.parameters.values():
            assert parameter.grad is not None
            parameter.grad.div_(tokens)
        if config.clip:
            _shorten(state.parameters, config.clip)
        state.settled = False
        _descend(config, state, rate)
        state.step, state.recent, state.above = state.step + 1, recent, above

        held_out, best = None, False
        (state.seconds,) = processes.from_first(time.perf_counter() - started)
        last = state.step >= config.steps or state.seconds >= config.max_seconds
        if validate is not None and (last or state.step % config.evaluate_every == 0):
            total, count = processes.from_first(*(validate(state.parameters) if processes.leads else (0.0, 0.0)))
            held_out = total / count
            best = held_out < state.best_nats
            if best:
                state.best_nats, state.stale = held_out, 0
                state.best = {name: value.detach().clone() for name, value in state.parameters.items()}
            else:
                state.stale += 1
        (state.seconds,) = processes.from_first(time.perf_counter() - started)
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


def _check(state: TrainingState, config: TrainingConfig, nats: float) -> None:
    """Before anything is changed by them: the loss and the gradients are numbers."""
    wrong = "The loss is" if not math.isfinite(nats) else ""
    for name, parameter in state.parameters.items() if not wrong else ():
        # The sum of numbers is one, and that of anything else is not: the cheapest look at all of them.
        if parameter.grad is not None and not math.isfinite(float(parameter.grad.sum())):
            wrong = f"The gradient of {name} is"
            break
    if wrong:
        raise InklingError(
            f"{wrong} no longer a number after step {state.step}: the last checkpoint is kept; "
            f"try again with a smaller --rate than {config.rate:g}."
        )


def _descend(config: TrainingConfig, state: TrainingState, rate: float) -> None:
    descend(config.all_groups, state.parameters, state.moments, rate, state.step + 1)

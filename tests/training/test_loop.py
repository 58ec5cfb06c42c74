"""The training loop: the steps that anybody can work out by hand, and going on as if nothing had happened."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from inkling.errors import InklingError, UsageError
from inkling.runs.recording import dump, read
from inkling.training import loop
from inkling.training.loop import Group, Parameters, Schedule, Step, TrainingConfig, TrainingState, train


class Parabola:
    """Σ ½ tokens (x − goal)² as a sum over `tokens`; the batch is the number of tokens."""

    def __init__(self, start: tuple[float, ...] = (4.0, -2.0), goal: float = 1.0) -> None:
        self.parameters: Parameters = {"x": torch.tensor(start, dtype=torch.float64)}
        self.goal = goal

    def gradient(self, batch: float, step: int) -> tuple[float, float]:
        distance = self.parameters["x"].detach() - self.goal
        self.parameters["x"].grad = batch * distance
        return float(0.5 * batch * (distance**2).sum()), batch


class Noisy:
    """A gradient with noise that is a function of the step, over two parameters of different shape."""

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(3)
        self.parameters: Parameters = {
            "W": torch.randn(3, 4, generator=generator),
            "b.c": torch.randn(4, generator=generator),  # a dot in the name is none of the optimiser's business
        }

    def gradient(self, batch: int, step: int) -> tuple[float, float]:
        generator = torch.Generator().manual_seed(step)
        total = 0.0
        for value in self.parameters.values():
            value.grad = value.detach() + 0.1 * torch.randn(value.shape, generator=generator)
            total += float((value.detach() ** 2).sum())
        return total, 2.0

    def validate(self, parameters: Parameters) -> tuple[float, float]:
        return sum(float((value**2).sum()) for value in parameters.values()), 3.0


def go(config: TrainingConfig, objective: Parabola | None = None, **options: Any) -> tuple[list[Step], TrainingState]:
    objective = objective or Parabola()
    state = TrainingState(objective.parameters)
    return list(train(objective, lambda step: 5.0, config, state, **options)), state


# ------------------------------------------------------------------------------------------------ steps by hand


def test_gradient_descent_takes_the_steps_worked_out_by_hand() -> None:
    # The mean gradient is x − 1, so x − 1 shrinks by 1 − rate each step: from 3 and −3 by 0.8.
    objective = Parabola()
    state = TrainingState(objective.parameters)
    config = TrainingConfig(steps=4, optimiser="sgd", rate=0.2, schedule="constant")
    for k, step in enumerate(train(objective, lambda step: 5.0, config, state), start=1):
        assert state.parameters["x"].tolist() == pytest.approx([1 + 3 * 0.8**k, 1 - 3 * 0.8**k], rel=1e-14)
        assert step.nats == pytest.approx(5 * 0.5 * 2 * (3 * 0.8 ** (k - 1)) ** 2, rel=1e-14)  # before the step
        assert (step.step, step.tokens, step.rate, step.held_out_nats, step.best) == (k, 5.0, 0.2, None, False)
    assert (state.step, state.finished) == (4, True)


def test_the_number_of_tokens_divides_once() -> None:
    config = TrainingConfig(steps=3, optimiser="sgd", rate=0.2, schedule="constant")
    ends = []
    for tokens in (1.0, 5.0, 1000.0):
        objective = Parabola()
        list(train(objective, lambda step, n=tokens: n, config, TrainingState(objective.parameters)))  # type: ignore[misc]
        ends.append(objective.parameters["x"].tolist())
    assert ends[1] == pytest.approx(ends[0], rel=1e-14)
    assert ends[2] == pytest.approx(ends[0], rel=1e-14)


def test_the_first_step_of_adam_is_the_rate_against_the_sign() -> None:
    _, state = go(TrainingConfig(steps=1, optimiser="adam", rate=0.1, schedule="constant"))
    assert state.parameters["x"].tolist() == pytest.approx([3.9, -1.9], rel=1e-7)


def test_batches_and_rates_are_functions_of_the_step() -> None:
    seen = []

    def batches(step: int) -> float:
        seen.append(step)
        return 5.0

    objective = Parabola()
    config = TrainingConfig(steps=4, schedule="linear", rate=0.4, optimiser="sgd")
    steps = list(train(objective, batches, config, TrainingState(objective.parameters)))
    assert seen == [0, 1, 2, 3]
    assert [step.rate for step in steps] == pytest.approx([0.4, 0.3, 0.2, 0.1])


@pytest.mark.parametrize(
    ("schedule", "factors"),
    [
        ("constant", [1, 1, 1, 1, 1, 1, 1, 1]),
        ("linear", [1, 7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8]),
        ("late", [1, 1, 1, 1, 1, 6 / 8, 4 / 8, 2 / 8]),
        ("halved", [1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5]),
    ],
)
def test_the_rate_falls_by_its_schedule(schedule: Schedule, factors: list[float]) -> None:
    config = TrainingConfig(steps=8, rate=0.3, schedule=schedule)
    assert [config.rate_at(step) for step in range(8)] == pytest.approx([0.3 * factor for factor in factors])


@pytest.mark.parametrize(
    ("held", "factors"), [(0.0, [1, 3 / 4, 2 / 4, 1 / 4]), (0.75, [1, 1, 1, 1]), (0.25, [1, 1, 2 / 3, 1 / 3])]
)
def test_the_share_of_the_steps_that_a_late_rate_is_held_for_can_be_told(held: float, factors: list[float]) -> None:
    config = TrainingConfig(steps=4, rate=0.3, schedule="late", held=held)
    assert [config.rate_at(step) for step in range(4)] == pytest.approx([0.3 * factor for factor in factors])
    assert config.rate_at(4) == 0.0


def test_warm_up_then_hold_then_a_line_to_zero() -> None:
    config = TrainingConfig(steps=10, rate=0.6, schedule="late", held=0.5, warm_up=3)
    factors = [1 / 3, 2 / 3, 1, 1, 1, 1, 0.8, 0.6, 0.4, 0.2]
    assert [config.rate_at(step) for step in range(10)] == pytest.approx([0.6 * factor for factor in factors])


def test_the_rate_rises_in_a_line_while_it_warms_up() -> None:
    config = TrainingConfig(steps=10, rate=0.4, schedule="constant", warm_up=4)
    assert [config.rate_at(step) for step in range(6)] == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.4, 0.4])


@pytest.mark.parametrize(
    "wrong", [{"steps": 0}, {"rate": 0.0}, {"rate": math.nan}, {"evaluate_every": 0}, {"held": 1.0}, {"spikes": "skip"}]
)
def test_a_training_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        TrainingConfig(**wrong)


# ------------------------------------------------------------------------------------------------ held-out text


def judged_by(*figures: float) -> Callable[[Parameters], tuple[float, float]]:
    """Held-out nats per token that come one after the other, over ten tokens."""
    coming = iter(figures)
    return lambda parameters: (10 * next(coming), 10.0)


def test_held_out_text_is_judged_every_so_often_and_at_the_end() -> None:
    steps, _ = go(TrainingConfig(steps=7, evaluate_every=3), validate=judged_by(3.0, 2.0, 1.0))
    assert [(s.step, s.held_out_nats, s.best) for s in steps if s.held_out_nats is not None] == [
        (3, 3.0, True),
        (6, 2.0, True),
        (7, 1.0, True),
    ]


def test_the_parameters_that_did_best_are_kept() -> None:
    seen: list[Tensor] = []

    def validate(parameters: Parameters) -> tuple[float, float]:
        seen.append(parameters["x"].clone())
        return [5.0, 2.0, 4.0, 2.0, 3.0][len(seen) - 1], 1.0

    steps, state = go(TrainingConfig(steps=5, evaluate_every=1), validate=validate)
    assert [step.best for step in steps] == [True, True, False, False, False]  # as good is not better
    assert torch.equal(state.chosen()["x"], seen[1])
    assert not torch.equal(state.parameters["x"], seen[1])
    assert (state.best_nats, state.stale) == (2.0, 3)


def test_without_held_out_text_the_last_parameters_are_chosen() -> None:
    _, state = go(TrainingConfig(steps=3))
    assert state.chosen() is state.parameters
    assert state.best_nats == math.inf


def test_patience_ends_a_training_that_no_longer_improves() -> None:
    figures = (5.0, 4.0, 4.5, 3.0, 3.1, 3.2, 3.3, 0.0)
    steps, state = go(TrainingConfig(steps=100, evaluate_every=2, patience=3), validate=judged_by(*figures))
    assert len(steps) == 2 * 7  # three evaluations after the best, which was the fourth
    assert state.finished
    assert state.best_nats == 3.0


def test_no_patience_is_endless_patience() -> None:
    steps, _ = go(TrainingConfig(steps=30, evaluate_every=1, patience=0), validate=judged_by(1.0, *[2.0] * 29))
    assert len(steps) == 30


def test_held_out_nats_that_are_no_number_are_never_best() -> None:
    _, state = go(TrainingConfig(steps=3, evaluate_every=1), validate=judged_by(math.nan, 2.0, math.nan))
    assert state.best_nats == 2.0


class Clock:
    """A second passes each time one looks."""

    def __init__(self) -> None:
        self.ticks: Iterator[int] = count()

    def perf_counter(self) -> float:
        return float(next(self.ticks))


def test_time_ends_a_training_and_what_it_came_to_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "time", Clock())
    steps, state = go(
        TrainingConfig(steps=1000, evaluate_every=1000, max_seconds=10), validate=judged_by(2.5, 1.0, 1.0)
    )
    assert 1 < len(steps) <= 10
    assert state.finished
    assert [step.held_out_nats for step in steps] == [None] * (len(steps) - 1) + [2.5]
    assert state.chosen() is state.best


def test_seconds_add_up_over_sittings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "time", Clock())
    objective = Parabola()
    state = TrainingState(objective.parameters, seconds=100.0)
    (step,) = train(objective, lambda step: 1.0, TrainingConfig(steps=1), state)
    assert 100 < step.seconds <= 103
    assert state.seconds == step.seconds


# ------------------------------------------------------------------------------------------------ what goes wrong


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_a_loss_that_is_no_number_stops_before_it_spoils_anything(loss: float) -> None:
    class Breaking(Parabola):
        def gradient(self, batch: float, step: int) -> tuple[float, float]:
            nats, tokens = super().gradient(batch, step)
            if step == 3:
                self.parameters["x"].grad = torch.full((2,), math.nan, dtype=torch.float64)
                return loss, tokens
            return nats, tokens

    objective = Breaking()
    state = TrainingState(objective.parameters)
    steps = train(objective, lambda step: 5.0, TrainingConfig(steps=10, rate=0.25), state)
    for _ in range(3):
        next(steps)
    good = {name: value.clone() for name, value in state.tensors().items()}
    with pytest.raises(InklingError, match=r"no longer a number after step 3: .* smaller --rate than 0\.25"):
        next(steps)
    assert state.step == 3
    assert all(torch.equal(value, good[name]) for name, value in state.tensors().items())
    assert state.settled
    assert not state.finished


def test_a_step_cut_short_is_known_to_be_unsettled(monkeypatch: pytest.MonkeyPatch) -> None:
    objective = Parabola()
    state = TrainingState(objective.parameters)
    steps = train(objective, lambda step: 5.0, TrainingConfig(steps=10), state)
    next(steps)
    assert state.settled

    def interrupted(config: TrainingConfig, state: TrainingState, rate: float) -> None:
        descend(config, state, rate)
        raise KeyboardInterrupt  # after the parameters have moved, before the step is counted

    descend = loop._descend
    monkeypatch.setattr(loop, "_descend", interrupted)
    with pytest.raises(KeyboardInterrupt):
        next(steps)
    assert not state.settled
    assert state.step == 1


def test_a_checkpoint_of_other_parameters_is_refused() -> None:
    state = TrainingState({"x": torch.zeros(2)})
    scalars = {name: float(value) for name, value in state.scalars().items()}
    for tensors in ({"parameters/x": torch.zeros(3)}, {"parameters/y": torch.zeros(2)}, {}):
        with pytest.raises(InklingError, match="other parameters"):
            state.restore(tensors, scalars)


# ------------------------------------------------------------------------------------------------ going on


MUON_AND_ADAM = (Group("W", "muon", decay=0.1), Group("*", factor=0.3, decay=0.2, betas=(0.8, 0.9)))


@pytest.mark.parametrize(
    "how", [{"optimiser": "sgd"}, {"optimiser": "adam"}, {"groups": MUON_AND_ADAM, "spikes": "stop", "clip": 1.0}]
)
@pytest.mark.parametrize("stop", [0, 1, 4, 9, 10, 19, 20])
def test_interrupted_and_resumed_is_uninterrupted_to_the_bit(how: dict[str, Any], stop: int) -> None:
    config = TrainingConfig(steps=20, rate=0.05, evaluate_every=3, schedule="late", warm_up=5, **how)

    def identity(step: int) -> int:
        return step

    whole = Noisy()
    expected_state = TrainingState(whole.parameters)
    expected = list(train(whole, identity, config, expected_state, whole.validate))

    first = Noisy()
    state = TrainingState(first.parameters)
    steps = train(first, identity, config, state, first.validate)
    found = [next(steps) for _ in range(stop)]
    content, scalars = dump(state.tensors()), {name: float(value) for name, value in state.scalars().items()}
    del steps, first, state

    second = Noisy()
    for value in second.parameters.values():
        value += 100  # what a checkpoint does not set would show
    state = TrainingState(second.parameters)
    state.restore(read(content), scalars)
    assert second.parameters is state.parameters
    found += train(second, identity, config, state, second.validate)

    def numbers(steps: list[Step]) -> list[tuple[object, ...]]:
        return [(s.step, s.nats, s.tokens, s.rate, s.held_out_nats, s.best) for s in steps]

    assert numbers(found) == numbers(expected)
    for name, value in expected_state.tensors().items():
        assert torch.equal(state.tensors()[name], value), name
    assert set(state.tensors()) == set(expected_state.tensors())
    assert (state.best_nats, state.stale, state.finished) == (expected_state.best_nats, expected_state.stale, True)
    assert (state.recent, state.above) == (expected_state.recent, expected_state.above)


def test_each_group_is_changed_by_its_own_optimiser_at_its_own_rate() -> None:
    objective, untouched = Noisy(), Noisy()
    objective.gradient(0, 0)
    (mean,) = (value.grad / 2 for value in (objective.parameters["b.c"],) if value.grad is not None)
    config = TrainingConfig(steps=1, rate=0.1, schedule="constant", groups=(Group("W"), Group("b.*", "sgd", 0.5)))
    list(train(objective, int, config, TrainingState(objective.parameters)))
    assert (objective.parameters["W"] - untouched.parameters["W"]).abs().tolist() == [
        pytest.approx([0.1] * 4, rel=1e-4)
    ] * 3  # the first step of Adam
    expected = untouched.parameters["b.c"] - 0.05 * mean
    torch.testing.assert_close(objective.parameters["b.c"], expected, rtol=0, atol=1e-7)


def test_groups_that_do_not_fit_are_refused_before_anything_is_worked_out() -> None:
    objective = Noisy()
    config = TrainingConfig(groups=(Group("W"),))
    with pytest.raises(UsageError, match=r"No group says how the parameter b\.c"):
        next(train(objective, int, config, TrainingState(objective.parameters)))
    assert objective.parameters["W"].grad is None


def test_a_finished_state_takes_no_more_steps() -> None:
    objective = Parabola()
    state = TrainingState(objective.parameters, finished=True)
    assert list(train(objective, lambda step: 1.0, TrainingConfig(), state)) == []


def test_adam_does_what_its_authors_wrote() -> None:
    # Kingma and Ba (2015), algorithm 1, with β = (0.9, 0.99) and the loop's mean gradient.
    steps, rate, x = 6, 0.1, np.array([4.0, -2.0])
    m, v = np.zeros(2), np.zeros(2)
    for t in range(1, steps + 1):
        g = x - 1
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g**2
        x = x - rate * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.99**t)) + 1e-8)
    _, state = go(TrainingConfig(steps=steps, optimiser="adam", rate=rate, schedule="constant"))
    assert state.parameters["x"].tolist() == pytest.approx(x.tolist(), rel=1e-9)


def test_training_does_not_import_a_compiler() -> None:
    # Making one of torch's optimisers does, and takes two seconds over it.
    program = (
        "import sys, torch; from inkling.training.loop import *\n"
        "class Flat:\n"
        "    parameters = {'x': torch.zeros(1, 1)}\n"
        "    def gradient(self, batch, step):\n"
        "        self.parameters['x'].grad = torch.ones(1, 1); return 1.0, 1.0\n"
        "for kind in ('adam', 'sgd', 'muon'):\n"
        "    config = TrainingConfig(steps=2, groups=(Group('*', kind),))\n"
        "    list(train(Flat(), int, config, TrainingState(Flat.parameters)))\n"
        "assert not {'torch._dynamo', 'sympy'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)

"""Losses that jump: what is called a spike, and what a training does about it."""

from __future__ import annotations

import math
from typing import Literal

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from inkling.errors import InklingError
from inkling.runs.recording import dump, read
from inkling.training.loop import Parameters, Step, TrainingConfig, TrainingState, train
from inkling.training.spikes import IN_A_ROW, LEAST, RECENT, limit, seen


def test_the_limit_is_twice_the_median_or_eight_deviations_or_half_a_nat_above_it() -> None:
    assert limit([3.0] * 30) == 6.0
    assert limit([3.0, 5.0, 7.0] * 10) == pytest.approx(5 + 8 * 1.4826 * 2)  # the median distance from 5 is 2
    assert limit([0.1] * 30) == pytest.approx(0.6)


def test_a_few_wild_losses_do_not_move_the_limit() -> None:
    assert limit([3.0] * 30 + [1e6] * 5) == 6.0


def test_nothing_is_a_spike_while_little_is_known() -> None:
    assert limit([3.0] * (LEAST - 1)) == math.inf
    assert limit([3.0] * LEAST) < math.inf


@given(st.lists(st.floats(0, 100), min_size=LEAST, max_size=RECENT), st.floats(0, 1000))
def test_spikes_are_counted_and_not_remembered_and_other_losses_the_other_way_round(
    losses: list[float], loss: float
) -> None:
    recent, above = seen(tuple(losses), 3, loss)
    if loss > limit(losses):
        assert (recent, above) == (tuple(losses), 4)
    else:
        assert (recent, above) == ((*losses, loss)[-RECENT:], 0)


class Scripted:
    """Losses per token that come from a list, over seven tokens; a gradient that is a function of the step."""

    def __init__(self, losses: list[float]) -> None:
        self.losses, self.parameters = losses, {"x": torch.zeros(2)}

    def gradient(self, batch: int, step: int) -> tuple[float, float]:
        self.parameters["x"].grad = torch.tensor([1.0, float(step)])
        return 7 * self.losses[step], 7.0


def go(losses: list[float], spikes: Literal["stop", "ignore"] = "stop") -> tuple[list[Step], TrainingState]:
    objective = Scripted(losses)
    state = TrainingState(objective.parameters)
    return list(train(objective, int, TrainingConfig(steps=len(losses), spikes=spikes), state)), state


CALM = [2.0, 2.1, 1.9] * 10


def test_a_loss_that_jumps_and_stays_stops_before_the_last_step_is_taken() -> None:
    objective = Scripted(CALM + [5.0] * 100)
    state = TrainingState(objective.parameters)
    steps = train(objective, int, TrainingConfig(steps=130, rate=0.25, spikes="stop"), state)
    for _ in range(len(CALM) + IN_A_ROW - 1):
        next(steps)
    before = {name: value.clone() for name, value in state.tensors().items()}
    with pytest.raises(
        InklingError,
        match=r"jumped from 2 to 5 nats a token and has not come back for 10 steps up to step 39: the last checkpoint "
        r"is kept; try again with a smaller --rate than 0\.25\.",
    ):
        next(steps)
    assert (state.step, state.settled, state.finished) == (39, True, False)
    assert all(torch.equal(value, before[name]) for name, value in state.tensors().items())


def test_a_jump_that_comes_back_goes_on() -> None:
    losses = CALM + ([9.0] * (IN_A_ROW - 1) + [2.0]) * 6
    steps, state = go(losses)
    assert len(steps) == len(losses)
    assert state.finished


def test_spikes_can_be_ignored() -> None:
    steps, state = go(CALM + [50.0] * 30, "ignore")
    assert len(steps) == 60
    assert (state.recent, state.above) == ((), 0)
    assert not any(name.startswith("recent/") for name in state.tensors())


@pytest.mark.parametrize("stop", [0, 10, len(CALM), len(CALM) + 4, len(CALM) + IN_A_ROW - 1])
def test_what_was_seen_of_spikes_is_kept_in_a_checkpoint(stop: int) -> None:
    config = TrainingConfig(steps=100, spikes="stop")
    first = Scripted(CALM + [5.0] * 100)
    state = TrainingState(first.parameters)
    steps = train(first, int, config, state)
    for _ in range(stop):
        next(steps)
    content, scalars = dump(state.tensors()), {name: float(value) for name, value in state.scalars().items()}
    second = Scripted(first.losses)
    resumed = TrainingState(second.parameters)
    resumed.restore(read(content), scalars)
    assert (resumed.recent, resumed.above) == (state.recent, state.above)
    found = []
    with pytest.raises(InklingError, match="up to step 39"):
        found += [step.step for step in train(second, int, config, resumed)]
    assert resumed.step == 39


def test_a_checkpoint_from_before_spikes_were_counted_still_loads() -> None:
    state = TrainingState({"x": torch.zeros(2)}, above=3, recent=(1.0,))
    scalars: dict[str, float] = {"step": 4, "seconds": 1.0, "best_nats": 2.0, "stale": 1, "finished": False}
    state.restore({"parameters/x": torch.ones(2)}, scalars)
    assert (state.step, state.above, state.recent) == (4, 0, ())


@pytest.mark.parametrize("broken", [math.nan, math.inf, -math.inf])
def test_a_gradient_that_is_no_number_stops_before_it_spoils_anything(broken: float) -> None:
    class Breaking:
        def __init__(self) -> None:
            self.parameters: Parameters = {"a": torch.ones(2), "b.c": torch.ones(2, 3)}

        def gradient(self, batch: int, step: int) -> tuple[float, float]:
            for value in self.parameters.values():
                value.grad = torch.ones_like(value)
            if step == 2:
                self.parameters["b.c"].grad = torch.tensor([[1.0, 1.0, 1.0], [1.0, broken, 1.0]])
            return 1.0, 1.0

    objective = Breaking()
    state = TrainingState(objective.parameters)
    steps = train(objective, int, TrainingConfig(steps=9, rate=0.25), state)
    next(steps), next(steps)
    before = {name: value.clone() for name, value in state.tensors().items()}
    with pytest.raises(
        InklingError, match=r"gradient of b\.c is no longer a number after step 2: .* --rate than 0\.25"
    ):
        next(steps)
    assert state.step == 2
    assert all(torch.equal(value, before[name]) for name, value in state.tensors().items())

"""Recording a training: lines and checkpoints that do not depend on where it was interrupted."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from inkling.errors import InklingError
from inkling.runs.recording import Recorder, checkpoint, dump, read, restore
from inkling.runs.run import Run
from inkling.training import loop
from inkling.training.loop import Parameters, Step, TrainingConfig, TrainingState, train

INFO = {"kind": "bigram", "recipe": {}, "normalise": "none", "seed": 0, "threads": 1, "data": {}}
CONFIG = TrainingConfig(steps=23, rate=0.1, evaluate_every=5)


class Falling:
    """A loss that falls; `stop` raises that error at the given step, `breaks` makes the loss no number."""

    def __init__(self, stop: tuple[int, BaseException] | None = None, breaks: int | None = None) -> None:
        self.parameters: Parameters = {"x": torch.tensor([3.0, -4.0])}
        self.stop, self.breaks = stop, breaks

    def gradient(self, batch: int, step: int) -> tuple[float, float]:
        if self.stop and step == self.stop[0]:
            raise self.stop[1]
        x = self.parameters["x"]
        x.grad = x.detach() * (1 + step % 3)
        return math.nan if step == self.breaks else float((x.detach() ** 2).sum()), 2.0

    def validate(self, parameters: Parameters) -> tuple[float, float]:
        return float((parameters["x"] ** 2).sum()), 4.0


def twice(parameters: Parameters) -> Parameters:
    """Stands for the change from round to plain coordinates."""
    return {name: 2 * value for name, value in parameters.items()}


def begin(path: Path, objective: Falling) -> tuple[Run, TrainingState]:
    state = TrainingState(objective.parameters)
    return Run.create(path, info=INFO, constant={}, checkpoint=checkpoint(state, twice)), state


def recorded(run: Run, state: TrainingState, objective: Falling, log_every: int, every: float = 1e9) -> Iterator[Step]:
    steps = train(objective, int, CONFIG, state, objective.validate)
    return Recorder(run, state, twice, log_every, every).record(steps)


def without_seconds(run: Run) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "seconds"} for row in run.metrics()]


@pytest.fixture
def whole(tmp_path: Path) -> Run:
    objective = Falling()
    run, state = begin(tmp_path / "whole", objective)
    list(recorded(run, state, objective, log_every=4))
    return run


def test_groups_of_steps_are_logged_as_sums_and_the_last_one_too(tmp_path: Path) -> None:
    objective = Falling()
    run, state = begin(tmp_path / "run", objective)
    steps = list(recorded(run, state, objective, log_every=4))
    rows = run.metrics()
    assert [row["step"] for row in rows] == [4, 8, 12, 16, 20, 23]
    assert [row["tokens"] for row in rows] == [8.0] * 5 + [6.0]
    groups = [steps[i : i + 4] for i in range(0, 23, 4)]
    assert [row["nats"] for row in rows] == pytest.approx([sum(s.nats for s in group) for group in groups], rel=1e-12)
    assert [row["rate"] for row in rows] == [group[-1].rate for group in groups]
    assert [row["step"] for row in rows if "held_out_nats_per_token" in row] == [20, 23]


def test_a_checkpoint_holds_the_best_parameters_as_those_of_the_model(whole: Run) -> None:
    folder = whole.newest()
    assert folder.name == "step-000000023"
    state = TrainingState({"x": torch.zeros(2)})
    restore(whole, state, twice)
    model = read((folder / "model.safetensors").read_bytes())
    assert torch.equal(model["x"], 2 * state.best["x"])
    assert state.finished
    assert state.best_nats < math.inf


def test_before_anything_was_judged_the_best_is_infinitely_bad_and_null_on_disk(tmp_path: Path) -> None:
    objective = Falling()
    run, _ = begin(tmp_path / "run", objective)
    assert json.loads((run.newest() / "state.json").read_text())["best_nats"] is None
    state = TrainingState({"x": torch.zeros(2)})
    restore(run, state, twice)
    assert state.best_nats == math.inf
    assert torch.equal(state.parameters["x"], torch.tensor([3.0, -4.0]))


def resumed(run: Run, log_every: int) -> TrainingState:
    objective = Falling()
    state = TrainingState(objective.parameters)
    restore(run, state, twice)
    list(recorded(run, state, objective, log_every))
    return state


@pytest.mark.parametrize("stop", [0, 1, 3, 4, 5, 8, 15, 22])
@pytest.mark.parametrize("how", ["interrupt", "close", "error"])
def test_a_training_stopped_anywhere_goes_on_to_the_same_lines_and_weights(
    tmp_path: Path, whole: Run, stop: int, how: str
) -> None:
    error: BaseException = KeyboardInterrupt() if how == "interrupt" else RuntimeError("the disk is full")
    objective = Falling() if how == "close" else Falling(stop=(stop, error))
    run, state = begin(tmp_path / "run", objective)
    steps = recorded(run, state, objective, log_every=4, every=0 if stop == 15 else 1e9)
    if how == "close":
        for _ in range(stop):
            next(steps)
        del steps  # thrown away, as a caller does who has seen enough
    else:
        with pytest.raises(type(error)):
            list(steps)
    if stop or how != "close":  # a generator that never started has nothing to tidy up
        expected = {"interrupt": "interrupted", "close": "interrupted", "error": "failed"}[how]
        assert Run.open(run.path).info["state"] == expected
    assert run.newest().name <= f"step-{stop:09d}"
    if how != "error":
        assert run.newest().name == f"step-{stop // 4 * 4 if stop % 4 == 0 or stop == 15 else 0:09d}"
    state = resumed(run, log_every=4)
    assert Run.open(run.path).info["state"] == "running"
    assert without_seconds(run) == without_seconds(whole)
    expected_state = TrainingState({"x": torch.zeros(2)})
    restore(whole, expected_state, twice)
    for name, value in expected_state.tensors().items():
        assert torch.equal(state.tensors()[name], value), name
    assert run.newest().name == whole.newest().name
    assert (run.newest() / "model.safetensors").read_bytes() == (whole.newest() / "model.safetensors").read_bytes()
    assert (run.newest() / "state.safetensors").read_bytes() == (whole.newest() / "state.safetensors").read_bytes()


@pytest.mark.parametrize("place", ["moved", "judged"])
def test_ctrl_c_within_a_step_saves_nothing_half_done(
    tmp_path: Path, whole: Run, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    objective = Falling()
    run, state = begin(tmp_path / "run", objective)
    with monkeypatch.context() as patch:
        if place == "moved":  # the parameters have moved, the step is not counted
            descend = loop._descend

            def stopped(config: TrainingConfig, at: TrainingState, rate: float) -> None:
                descend(config, at, rate)
                if at.step == 8:
                    raise KeyboardInterrupt

            patch.setattr(loop, "_descend", stopped)
        else:  # the step is counted, but not judged or logged
            calls = iter(range(100))

            def interrupted(parameters: Parameters) -> tuple[float, float]:
                if next(calls) == 1:
                    raise KeyboardInterrupt
                return 1e9, 1.0

            patch.setattr(objective, "validate", interrupted)
        with pytest.raises(KeyboardInterrupt):
            list(recorded(run, state, objective, log_every=1))
    assert run.newest().name == "step-000000000"
    expected = [row["step"] for row in run.metrics()]
    assert expected == list(range(1, 9 if place == "moved" else 10))
    if place == "moved":
        resumed(run, log_every=1)
        assert (run.newest() / "state.safetensors").read_bytes() == (whole.newest() / "state.safetensors").read_bytes()
        assert [row["step"] for row in run.metrics()] == list(range(1, 24))


def test_a_loss_that_is_no_number_leaves_the_last_good_checkpoint(tmp_path: Path, whole: Run) -> None:
    objective = Falling(breaks=13)
    run, state = begin(tmp_path / "run", objective)
    with pytest.raises(InklingError, match="no longer a number after step 13: the last checkpoint is kept"):
        list(recorded(run, state, objective, log_every=4, every=0))
    assert Run.open(run.path).info["state"] == "failed"
    assert run.newest().name == "step-000000012"
    kept = read((run.newest() / "state.safetensors").read_bytes())
    assert all(bool(torch.isfinite(value).all()) for value in kept.values())
    assert [row["step"] for row in run.metrics()] == [4, 8, 12]
    resumed(run, log_every=4)  # with the cause gone, it goes on as if it had not been
    assert without_seconds(run) == without_seconds(whole)


def test_checkpoints_are_taken_where_a_group_ends_and_time_has_passed(tmp_path: Path) -> None:
    objective = Falling()
    run, state = begin(tmp_path / "run", objective)
    saved = [(step.step, run.newest().name) for step in recorded(run, state, objective, log_every=4, every=0)]
    assert saved == [(k, f"step-{k // 4 * 4 if k < 23 else 23:09d}") for k in range(1, 24)]


def test_a_checkpoint_that_now_means_another_model_is_refused(whole: Run) -> None:
    def changed(parameters: Parameters) -> Parameters:
        return {name: -2 * value for name, value in parameters.items()}

    with pytest.raises(InklingError, match="other numbers come out"):
        restore(whole, TrainingState({"x": torch.zeros(2)}), changed)


def test_tensors_come_back_from_bytes_as_they_were() -> None:
    tensors = {
        "float": torch.randn(3, 2, generator=torch.Generator().manual_seed(0)),
        "turned": torch.arange(6.0).reshape(2, 3).T,
        "double": torch.tensor([1e-300, math.inf], dtype=torch.float64),
        "number": torch.tensor(7.0),
        "empty": torch.zeros(0, 3),
    }
    shared = torch.ones(4)
    found = read(dump({**tensors, "a": shared, "b": shared[:2]}))
    assert all(torch.equal(found[name], value) and found[name].dtype == value.dtype for name, value in tensors.items())
    assert torch.equal(found["b"], torch.ones(2))

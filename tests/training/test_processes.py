"""Two processes are one with the whole batch, and stop together."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

from inkling.errors import InklingError, UsageError
from inkling.models.gpt import GPTConfig, initial_parameters
from inkling.models.gpt_loss import Batch, GPTLoss, batch_of
from inkling.runs.recording import dump, read
from inkling.training import loop
from inkling.training.loop import Group, Parameters, Step, TrainingConfig, TrainingState, train
from inkling.training.processes import ALONE, Processes, joined
from inkling.training.spikes import IN_A_ROW

SIZES = GPTConfig(11, 8, layers=2, heads=2, mlp=12, context=16, tied=False)
GROUPS = (Group("layers.*", "muon", decay=0.1), Group("embedding", factor=0.5), Group("*", factor=0.2))
CONFIG = TrainingConfig(steps=6, rate=0.05, groups=GROUPS, clip=0.5, evaluate_every=2, spikes="stop")
BATCH = 7  # rows, which two processes cannot share equally


def texts(step: int) -> list[NDArray[np.int64]]:
    """Of 2 to 16 tokens: the long ones to even rows, so that the shares differ in tokens as in rows."""
    generator = np.random.default_rng(step)
    lengths = [int(generator.integers(9, 17) if row % 2 == 0 else generator.integers(2, 6)) for row in range(BATCH)]
    return [generator.integers(0, SIZES.vocabulary, length) for length in lengths]


def gpt() -> GPTLoss:
    parameters = initial_parameters(SIZES, np.random.default_rng(0))
    return GPTLoss(SIZES, {name: value.double() for name, value in parameters.items()})


def validate(parameters: Parameters) -> tuple[float, float]:
    held_out = batch_of(texts(999))
    return GPTLoss(SIZES, {name: value.clone() for name, value in parameters.items()}).gradient(held_out, 0)


def train_gpt(processes: Processes) -> tuple[list[Step], TrainingState]:
    objective = gpt()

    def share(step: int) -> Batch:
        return batch_of(texts(step)[processes.rows(BATCH)])

    def judged(parameters: Parameters) -> tuple[float, float]:
        assert processes.leads
        return validate(parameters)

    state = TrainingState(objective.parameters)
    return list(train(objective, share, CONFIG, state, judged, processes)), state


class Flat:
    """One parameter; the loss per token of every step as it is told, the same in all processes."""

    def __init__(self, *losses: float) -> None:
        self.parameters: Parameters = {"x": torch.zeros(3)}
        self.losses = losses

    def gradient(self, batch: int, step: int) -> tuple[float, float]:
        self.parameters["x"].grad = torch.ones(3)
        return self.losses[min(step, len(self.losses) - 1)], 1.0


@dataclass
class Clock:
    """So many seconds pass each time one looks."""

    seconds: float
    now: float = 0.0

    def perf_counter(self) -> float:
        self.now += self.seconds
        return self.now


def train_flat(processes: Processes, objective: Flat, judged: Any = None, **options: Any) -> tuple[int, str]:
    """The steps that were taken, and the sentence at the end."""
    state = TrainingState(objective.parameters)
    try:
        list(train(objective, int, TrainingConfig(**options), state, judged, processes))
    except InklingError as error:
        return state.step, str(error)
    return state.step, ""


def one_of_two(rank: int, folder: str) -> None:
    """What each of the two processes does; all figures go into a file of its own."""
    torch.set_num_threads(1)
    environment = {"RANK": str(rank), "WORLD_SIZE": "2"}
    with joined(environment, f"file://{folder}/meeting") as processes:
        found: dict[str, Any] = {"given": [processes.rank, processes.count]}
        steps, state = train_gpt(processes)
        Path(folder, f"{rank}.safetensors").write_bytes(dump(state.tensors()))
        found["steps"] = [[s.step, s.nats, s.tokens, s.rate, s.held_out_nats, s.best, s.seconds] for s in steps]
        found["best"] = [state.best_nats, state.stale, list(state.recent)]

        with patch.object(loop, "time", Clock(1.0 if rank == 0 else 0.001)):
            found["clock"] = train_flat(processes, Flat(1.0), steps=1000, max_seconds=20.0)
        found["patience"] = train_flat(processes, Flat(1.0), lambda _: (1.0, 1.0), evaluate_every=2, patience=3)
        losses = [1.0] * 30 + [1.5 + 3 * rank]  # 3 on average, and a spike; what the first sees alone is none
        found["spikes"] = train_flat(processes, Flat(*losses), spikes="stop")
        found["nan"] = train_flat(processes, Flat(1.0, 1.0, 1.0 if rank == 0 else float("nan")))

        other = Flat(1.0)
        other.parameters["x"] += rank
        found["other start"] = train_flat(processes, other)
        carrying = TrainingState({"x": torch.zeros(3)}, memory={"h": torch.zeros(1)})
        try:
            next(train(Flat(1.0), int, TrainingConfig(), carrying, None, processes))
        except UsageError as error:
            found["memory"] = str(error)
        found["told"] = [processes.tell("runs/größe" if processes.leads else "not asked"), processes.tell("")]
        if processes.leads:  # the other one has nothing more to do, and ends
            try:
                processes.add_up({"x": _with_gradient()}, 1.0, 1.0)
            except InklingError as error:
                found["lost"] = str(error)
    Path(folder, f"{rank}.json").write_text(json.dumps(found), encoding="utf-8")


def _with_gradient() -> Tensor:
    value = torch.zeros(3)
    value.grad = torch.ones(3)
    return value


@dataclass(frozen=True)
class Two:
    figures: tuple[dict[str, Any], dict[str, Any]]
    tensors: tuple[dict[str, Tensor], dict[str, Tensor]]


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Two:
    from torch.multiprocessing.spawn import spawn

    folder = tmp_path_factory.mktemp("processes")
    spawn(one_of_two, (str(folder),), nprocs=2)  # type: ignore[no-untyped-call]
    first, second = (json.loads((folder / f"{rank}.json").read_text(encoding="utf-8")) for rank in (0, 1))
    return Two(
        (first, second), (read((folder / "0.safetensors").read_bytes()), read((folder / "1.safetensors").read_bytes()))
    )


@pytest.mark.slow
def test_two_processes_are_one_with_the_whole_batch(two: Two) -> None:
    steps, state = train_gpt(ALONE)
    assert [s[2] for s in two.figures[0]["steps"]] == [float(sum(map(len, texts(n))) - BATCH) for n in range(6)]
    for step, (number, nats, tokens, rate, held_out, best, _) in zip(steps, two.figures[0]["steps"], strict=True):
        assert (number, tokens, rate, best) == (step.step, step.tokens, step.rate, step.best)
        assert nats == pytest.approx(step.nats, rel=1e-12)
        assert held_out == (None if step.held_out_nats is None else pytest.approx(step.held_out_nats, rel=1e-12))
    expected = state.tensors()
    assert set(two.tensors[0]) == set(expected)
    for name, value in two.tensors[0].items():
        torch.testing.assert_close(value, expected[name], rtol=0, atol=1e-10, msg=name)


def test_a_mean_of_means_would_be_another_training() -> None:
    objective = gpt()
    shares = [batch_of(texts(0)[slice(rank, BATCH, 2)]) for rank in (0, 1)]
    means = []
    for share in shares:
        _, tokens = objective.gradient(share, 0)
        gradient = objective.parameters["output"].grad
        assert gradient is not None
        means.append(gradient / tokens)
    _, tokens = objective.gradient(batch_of(texts(0)), 0)
    whole = objective.parameters["output"].grad
    assert whole is not None
    assert float((sum(means) / 2 - whole / tokens).abs().max()) > 1e-3


@pytest.mark.slow
def test_both_processes_hold_the_same_to_the_bit(two: Two) -> None:
    first, second = two.tensors
    assert set(first) == set(second)
    assert all(torch.equal(value, second[name]) for name, value in first.items())
    assert two.figures[0]["steps"] == two.figures[1]["steps"]  # seconds and held-out nats too: the first one's
    assert two.figures[0]["best"] == two.figures[1]["best"]
    assert [figures["given"] for figures in two.figures] == [[0, 2], [1, 2]]


@pytest.mark.slow
def test_the_clock_of_the_first_stops_both(two: Two) -> None:
    # It is looked at twice a step: first after 1, 3, 5 … seconds of the first process, and 20 are over at step 11.
    assert [figures["clock"] for figures in two.figures] == [[11, ""]] * 2


@pytest.mark.slow
def test_the_patience_of_the_first_stops_both(two: Two) -> None:
    assert [figures["patience"] for figures in two.figures] == [[8, ""]] * 2  # after the fourth judgement, of 1.0 again


@pytest.mark.slow
def test_a_spike_of_both_together_stops_both(two: Two) -> None:
    steps, sentence = two.figures[0]["spikes"]
    assert steps == 30 + IN_A_ROW - 1
    assert "jumped from 1 to 3 nats a token" in sentence
    assert two.figures[0]["spikes"] == two.figures[1]["spikes"]


@pytest.mark.slow
def test_a_loss_that_is_no_number_in_one_stops_both(two: Two) -> None:
    assert two.figures[0]["nan"] == two.figures[1]["nan"]
    assert two.figures[0]["nan"][0] == 2
    assert "no longer a number after step 2" in two.figures[0]["nan"][1]


@pytest.mark.slow
def test_processes_that_start_differently_are_refused(two: Two) -> None:
    for figures in two.figures:
        assert figures["other start"] == [
            0,
            "The 2 processes do not start from the same parameters and step; give them all the same seed, text and "
            "checkpoint.",
        ]


@pytest.mark.slow
def test_a_memory_that_cannot_be_shared_is_refused(two: Two) -> None:
    assert all("train it in one process" in figures["memory"] for figures in two.figures)


@pytest.mark.slow
def test_all_are_told_what_the_first_says(two: Two) -> None:
    assert [figures["told"] for figures in two.figures] == [["runs/größe", ""]] * 2


@pytest.mark.slow
def test_one_whose_companion_has_ended_says_so_and_waits_no_longer(two: Two) -> None:
    assert two.figures[0]["lost"] == (
        "Process 0 of 2 has lost the others, because one of them ended; the last checkpoint is kept: see what that one "
        "said, and go on with `inkling resume`."
    )


# ----------------------------------------------------------------------------------------------- without others


@given(st.integers(1, 9), st.integers(0, 40))
def test_every_row_is_somebodys_and_shares_differ_by_one_at_most(count: int, more: int) -> None:
    rows = list(range(count + more))
    shares = [rows[Processes(rank, count).rows(len(rows))] for rank in range(count)]
    assert sorted(row for share in shares for row in share) == rows
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
    assert min(map(len, shares)) >= 1


def test_fewer_rows_than_processes_are_refused() -> None:
    with pytest.raises(UsageError, match="batch of 2 rows cannot be shared by 3 processes; give a larger --batch"):
        Processes(0, 3).rows(2)


def test_the_environment_of_torchrun_tells_who_is_who() -> None:
    assert Processes.of_environment({}) == ALONE
    assert Processes.of_environment({"RANK": "1", "WORLD_SIZE": "3", "LOCAL_WORLD_SIZE": "3"}) == Processes(1, 3)
    assert not Processes(1, 3).leads
    assert ALONE.leads


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ({"WORLD_SIZE": "two"}, "WORLD_SIZE is 'two' in the environment; give a whole number"),
        ({"RANK": "2", "WORLD_SIZE": "2"}, "This is process 2 of 2; .*torchrun"),
        ({"RANK": "0", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2"}, "2 of 4 processes are on this computer; start"),
    ],
)
def test_an_environment_that_makes_no_sense_is_refused(environment: dict[str, str], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        Processes.of_environment(environment)


def test_one_process_meets_nobody() -> None:
    with joined({}) as processes:
        assert processes == ALONE
    value = torch.zeros(2)
    value.grad = torch.ones(2)
    assert ALONE.add_up({"x": value}, 3.0, 4.0) == (3.0, 4.0)
    assert value.grad.tolist() == [1.0, 1.0]
    assert ALONE.from_first(1.0, 2.0) == (1.0, 2.0)
    assert ALONE.tell("said") == "said"


def test_several_processes_must_have_met() -> None:
    with pytest.raises(UsageError, match="has not met the other 1; use `with joined"):
        Processes(0, 2).from_first(1.0)

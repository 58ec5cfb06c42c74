from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inkling.runs.run import Run
from inkling.studio.views_runs import (
    BITS_PER_BYTE,
    BITS_PER_TOKEN,
    LN2,
    MOST_POINTS,
    NATS_PER_TEXT,
    Follower,
    Progress,
    Rows,
    Unit,
    duration,
    figure_of,
    sparkline,
)

STARTED = "2026-01-02T03:04:05+00:00"


def made(folder: Path, kind: str = "gpt", **info: Any) -> Run:
    """A run as the pages see it."""
    folder.mkdir(exist_ok=True)
    full = {"kind": kind, "state": "running", "started": STARTED, "recipe": {}, "data": {"files": ["a/novel.txt"]}}
    return Run(folder, full | info)


def write(run: Run, rows: list[dict[str, Any]], *, mode: str = "a", end: str = "\n") -> None:
    with (run.path / "metrics.jsonl").open(mode, encoding="utf-8") as file:
        file.write("\n".join(map(json.dumps, rows)) + end)


def step(number: int, nats: float = 2.0, tokens: float = 1.0, **more: Any) -> dict[str, Any]:
    return {"step": number, "nats": nats, "tokens": tokens, "seconds": number / 10} | more


def read(follower: Follower) -> bool:
    found = follower.fetch()
    follower.take()
    return found


def test_nats_become_bits_per_byte_with_the_spelling_of_unknown_words() -> None:
    unit = Unit(BITS_PER_BYTE, 4.0, 0.5)
    assert unit.show(1.5) == pytest.approx(2.0 / math.log(2) / 4)


def test_a_run_that_does_not_know_its_bytes_is_shown_by_token(tmp_path: Path) -> None:
    assert Unit.of(made(tmp_path)) == Unit(BITS_PER_TOKEN)
    assert Unit.of(made(tmp_path, recipe={"tokens": "bpe"})).name == "bits per piece"
    assert Unit.of(made(tmp_path, kind="bigram")).name == "bits per word"
    assert Unit.of(made(tmp_path, kind="dan")).show(0.3) == 0.3
    assert Unit.of(made(tmp_path, kind="dan")).name == NATS_PER_TEXT
    units = {"bytes_per_token": 1.25, "spelling_nats_per_token": 0.0}
    assert Unit.of(made(tmp_path, units=units)) == Unit(BITS_PER_BYTE, 1.25, 0.0)


def test_a_follower_reads_only_what_is_new(tmp_path: Path) -> None:
    run = made(tmp_path)
    follower = Follower.of(run)
    assert not read(follower)
    write(run, [step(1), step(2, held_out_nats_per_token=1.0)])
    assert read(follower)
    assert not read(follower)
    write(run, [step(3)], end="")  # not whole yet
    assert not read(follower)
    write(run, [], end="\n")
    assert read(follower)
    trained, judged = follower.curves("steps")
    assert [x for x, _ in trained] == [1, 2, 3]
    assert judged == [[2, 1.0 / LN2]]
    assert [x for x, _ in follower.curves("seconds")[0]] == [0.1, 0.2, 0.3]


def test_a_training_that_went_back_is_read_anew(tmp_path: Path) -> None:
    run = made(tmp_path)
    follower = Follower.of(run)
    write(run, [step(number) for number in range(1, 9)])
    read(follower)
    write(run, [step(1, nats=5.0)], mode="w")
    assert read(follower)
    assert follower.curves("steps")[0] == [[1, 5.0 / LN2]]


def test_what_was_fetched_is_taken_in_up_to_a_moment_of_the_clock(tmp_path: Path) -> None:
    run = made(tmp_path)
    follower = Follower.of(run)
    write(run, [step(number) for number in range(1, 11)])  # a tenth of a second each
    os.utime(run.path / "metrics.jsonl", (5000.0, 5000.0))
    assert follower.fetch()
    assert follower.trained == []
    assert follower.clock(5000.0) == pytest.approx(1.0)
    follower.take(follower.clock(4999.55))
    assert follower.trained[-1].step == 5
    follower.take(follower.clock(4999.55))
    assert follower.trained[-1].step == 5
    follower.take()
    assert follower.trained[-1].step == 10
    assert follower.clock(5000.3) == pytest.approx(1.3)  # between two steps the clock goes on


@given(st.lists(st.tuples(st.floats(0.1, 9), st.integers(1, 50)), min_size=1, max_size=2500))
def test_no_step_is_lost_when_neighbours_are_taken_together(losses: list[tuple[float, int]]) -> None:
    follower = Follower(Path(), Unit(BITS_PER_TOKEN))
    for number, (nats, tokens) in enumerate(losses, 1):
        follower._take(step(number, nats * tokens, tokens))
    assert len(follower.trained) <= MOST_POINTS
    assert sum(point.tokens for point in follower.trained) == sum(tokens for _, tokens in losses)
    total = sum(nats * tokens for nats, tokens in losses)
    assert sum(point.nats for point in follower.trained) == pytest.approx(total)
    assert follower.trained[-1].step == len(losses)


def test_points_hold_equally_many_steps(tmp_path: Path) -> None:
    follower = Follower(tmp_path, Unit(BITS_PER_TOKEN))
    for number in range(1, 4 * MOST_POINTS + 1):
        follower._take(step(number))
    gaps = {b.step - a.step for a, b in zip(follower.trained, follower.trained[1:-1], strict=False)}
    assert gaps == {4}


def test_time_left_is_by_steps_or_by_the_clock_whichever_ends_first(tmp_path: Path) -> None:
    follower = Follower(tmp_path, Unit(BITS_PER_TOKEN))
    for number in range(1, 11):
        follower._take(step(number, tokens=50))
    by_steps = Progress.of(made(tmp_path, recipe={"steps": 30, "minutes": 1}), follower)
    assert by_steps is not None
    assert by_steps.seconds_left == pytest.approx(2.0)
    assert by_steps.tokens_per_second == pytest.approx(500)
    by_clock = Progress.of(made(tmp_path, recipe={"steps": 300_000, "minutes": 0.1}), follower)
    assert by_clock is not None
    assert by_clock.seconds_left == pytest.approx(5.0)
    assert Progress.of(made(tmp_path), Follower(tmp_path, Unit(BITS_PER_TOKEN))) is None


def test_a_run_is_known_by_one_figure_with_its_unit(tmp_path: Path) -> None:
    units = {"bytes_per_token": 2.0, "spelling_nats_per_token": 0.0}
    summary = {"held_out_nats_per_token": 4 * LN2}
    assert figure_of(made(tmp_path, summary=summary, units=units)) == "2.0000 bits per byte"
    assert figure_of(made(tmp_path, summary={"held_out_accuracy": 0.875})) == "87.5% right"
    assert figure_of(made(tmp_path)) == ""


def test_rows_change_when_their_runs_do(tmp_path: Path) -> None:
    rows = Rows()
    run = made(tmp_path / "gpt-novel")
    (first,) = rows.of([run])
    assert (first["name"], first["state"], first["text"]) == ("gpt-novel", "interrupted", "novel.txt")
    assert rows.of([run])[0] is first
    write(run, [step(1), step(2)])
    assert rows.of([run])[0] is not first


def test_a_small_curve_goes_down_when_the_loss_does(tmp_path: Path) -> None:
    run = made(tmp_path)
    assert sparkline(run) == ""
    write(run, [step(1, 8.0), step(2, 4.0), step(3, 2.0)])
    assert sparkline(run) == "0.0,1.0 48.0,14.3 96.0,21.0"


def test_durations_are_said_in_words() -> None:
    assert [duration(s, tenths=True) for s in (3.44, 65)] == ["3.4 s", "1 min 05 s"]
    assert [duration(s) for s in (3.4, 65, 3700, math.inf)] == ["3 s", "1 min 05 s", "1 h 01 min", "–"]

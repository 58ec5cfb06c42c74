"""From a file of text to a run: complete, judged on text it never saw, and the same to the bit when interrupted."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import inkling
from inkling.configuration import from_record
from inkling.errors import InklingError, UsageError
from inkling.measure.tally import tally
from inkling.models.bigram import ExactLoss, PlainLoss
from inkling.recipes import bigram as recipes
from inkling.recipes.bigram import BigramRecipe, prepare, resume_bigram, train_bigram
from inkling.runs.run import Run
from inkling.text.grammar import grammar_text

STEPS = 25


@cache
def sentences() -> list[str]:
    return grammar_text(np.random.default_rng(5), 3000).splitlines(keepends=True)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("".join(sentences()))
    return path


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """A run remembers its threads, and resuming sets them: put back what was there."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def recipe(text: Path, **changes: Any) -> BigramRecipe:
    small = BigramRecipe(files=(str(text),), vocabulary=150, dimension=8, hidden=12, steps=STEPS, patience=0)
    return replace(small, **changes)


def trained(wanted: BigramRecipe, out: Path) -> Run:
    for _ in train_bigram(wanted, out):
        pass
    return Run.open(out)


def metrics(run: Run) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "seconds"} for row in run.metrics()]


def summary(run: Run) -> dict[str, Any]:
    return {name: value for name, value in run.info["summary"].items() if name != "seconds"}


def assert_the_same(found: Run, expected: Run) -> None:
    assert found.finished
    assert metrics(found) == metrics(expected)
    assert summary(found) == summary(expected)
    for name in ("model.safetensors", "config.json", "tokenizer.json", "speller.safetensors"):
        assert (found.path / name).read_bytes() == (expected.path / name).read_bytes(), name
    for name in ("model.safetensors", "state.safetensors"):
        assert (found.newest() / name).read_bytes() == (expected.newest() / name).read_bytes(), name


# ------------------------------------------------------------------------------------------------ a whole training


def test_a_run_loads_alone_and_its_figure_is_that_of_the_held_out_lines(text: Path, tmp_path: Path) -> None:
    run = trained(recipe(text), tmp_path / "run")
    assert run.finished
    assert run.info["state"] == "finished"
    assert [row["step"] for row in run.metrics()] == list(range(1, STEPS + 1))
    nats = [row["held_out_nats_per_token"] for row in run.metrics() if "held_out_nats_per_token" in row]
    assert len(nats) == 3  # steps 10, 20 and the last
    lines = sentences()
    held_out = lines[round(len(lines) * 0.9) :]
    text.unlink()  # alone: without the text that it came from
    found = tally(inkling.load(run.path).score(held_out))
    assert run.info["summary"]["held_out_tokens"] == found.tokens
    assert run.info["summary"]["held_out_nats_per_token"] == min(nats)
    assert found.nats / found.tokens == pytest.approx(min(nats), rel=1e-5)
    assert run.info["summary"]["held_out_perplexity"] == pytest.approx(math.exp(min(nats)))
    assert min(nats) < math.log(150) / 1.5
    card = (run.path / "README.md").read_text()
    assert f"{found.tokens:,}" in card
    assert run.info["data"]["sha256"] in card


def test_the_same_recipe_gives_the_same_run_and_another_seed_another(text: Path, tmp_path: Path) -> None:
    first = trained(recipe(text), tmp_path / "first")
    assert_the_same(trained(recipe(text), tmp_path / "again"), first)
    other = trained(recipe(text, seed=1), tmp_path / "other")
    assert metrics(other) != metrics(first)


def test_the_recipe_of_a_run_comes_back_from_its_record(text: Path, tmp_path: Path) -> None:
    wanted = recipe(text, exclude=("the", "a"), minutes=3.0)
    run = trained(wanted, tmp_path / "run")
    assert from_record(BigramRecipe, run.info["recipe"], "run.json") == wanted


def test_what_is_held_out_is_not_learned_from(text: Path, tmp_path: Path) -> None:
    text.write_text("a b c\n" * 90 + "secret word here\n" * 10)
    prepared = prepare(recipe(text))
    pieces = {prepared.tokeniser.piece(token) for token in range(prepared.tokeniser.size)}
    assert not pieces & {b"secret", b" word", b" here"}
    assert prepared.counts.tokens == 90 * 4
    assert prepared.held_out.tokens == 10 * 4


def test_an_existing_folder_is_refused_before_any_work(text: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    with pytest.raises(UsageError, match="exists already"):
        next(train_bigram(recipe(text), tmp_path / "run"))


def test_a_training_that_fails_to_begin_leaves_nothing(tmp_path: Path) -> None:
    blank = tmp_path / "blank.txt"
    blank.write_text(" \n\n \n")
    with pytest.raises(InklingError, match="nothing but white space"):
        next(train_bigram(recipe(blank), tmp_path / "run"))
    assert [p.name for p in tmp_path.iterdir()] == ["blank.txt"]


def test_minutes_without_steps_are_turned_into_steps_that_are_remembered(text: Path, tmp_path: Path) -> None:
    run = trained(recipe(text, steps=0, minutes=1e-4), tmp_path / "run")
    assert 10 <= run.info["recipe"]["steps"] <= 300
    assert run.info["summary"]["steps"] <= run.info["recipe"]["steps"]
    assert run.info["summary"]["held_out_perplexity"] is not None  # judged, even when time ran out


@pytest.mark.parametrize(
    ("wrong", "option"),
    [
        ({"method": "magic"}, "--method"),
        ({"discount": 1.5}, "--discount"),
        ({"dropout": 1.0}, "--dropout"),
        ({"seed": -1}, "--seed"),
        ({"hidden": 0}, "--hidden"),
        ({"steps": -1}, "--steps"),
        ({"rate": math.nan}, "--rate"),
        ({"minutes": -1.0}, "--minutes"),
        ({"vocabulary": 1}, "--vocabulary"),
        ({"pieces": "letters"}, "--pieces"),
        ({"batch": 0}, "--batch"),
    ],
)
def test_a_recipe_that_makes_no_sense_is_refused(text: Path, wrong: dict[str, Any], option: str) -> None:
    with pytest.raises(UsageError, match=f"{option} is"):
        recipe(text, **wrong)


# ------------------------------------------------------------------------------------------------ vectors


def test_vectors_from_a_file_are_where_training_starts_and_may_stay(text: Path, tmp_path: Path) -> None:
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("the 1 2 3\nbaker 4 5 6.5\ncook 0 1 0\nnobody 9 9 9\n")
    said: list[str] = []
    fixed = recipe(text, vectors=str(vectors), learn_vectors=False, steps=3)
    for _ in train_bigram(fixed, tmp_path / "run", said.append):
        pass
    assert any("words have a vector" in sentence for sentence in said)
    model = inkling.load(tmp_path / "run")
    assert isinstance(model, inkling.models.bigram.Bigram)
    words = [model.tokeniser.piece(token) for token in range(model.tokeniser.size)]
    found = model.parameters["vectors"].numpy()
    assert found.shape == (150, 3)
    assert found[words.index(b" baker")] == pytest.approx([4, 5, 6.5], abs=1e-3)
    assert found[words.index(b",")] == pytest.approx([0, 0, 0], abs=1e-3)


def test_vectors_that_know_no_word_of_the_text_are_refused(text: Path, tmp_path: Path) -> None:
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("nobody 9 9 9\n")
    with pytest.raises(InklingError, match=r"None of the 150 words of the text has a vector in .*vectors\.txt"):
        next(train_bigram(recipe(text, vectors=str(vectors)), tmp_path / "run"))


def test_vectors_cannot_be_kept_where_there_are_none(text: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--fixed-vectors"):
        next(train_bigram(recipe(text, learn_vectors=False), tmp_path / "run"))


# ------------------------------------------------------------------------------------------------ interrupted


@pytest.fixture
def whole(text: Path, tmp_path: Path) -> Run:
    return trained(recipe(text), tmp_path / "whole")


def stop_by_leaving(wanted: BigramRecipe, out: Path, at: int) -> Run:
    steps = train_bigram(wanted, out)
    for _ in range(at):
        next(steps)
    del steps
    return Run.open(out)


def resume(run: Run) -> Run:
    for _ in resume_bigram(run):
        pass
    return Run.open(run.path)


@pytest.mark.parametrize("at", [1, 9, 10, STEPS - 1, STEPS])
def test_left_alone_at_any_step_and_resumed_it_is_the_same_run(text: Path, tmp_path: Path, whole: Run, at: int) -> None:
    run = stop_by_leaving(recipe(text), tmp_path / "run", at)
    assert not run.finished
    assert run.newest().name == f"step-{at:09d}"
    assert inkling.load(run.path).score(sentences()[:5]).nats.sum() > 0  # unfinished, it loads all the same
    assert_the_same(resume(run), whole)


@pytest.mark.parametrize("at", [0, 12])
def test_ctrl_c_during_a_step_and_resumed_it_is_the_same_run(
    text: Path, tmp_path: Path, whole: Run, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    gradient = ExactLoss.gradient

    def interrupted(self: ExactLoss, batch: Any, step: int) -> tuple[float, float]:
        if step == at:
            raise KeyboardInterrupt
        return gradient(self, batch, step)

    with monkeypatch.context() as patch:
        patch.setattr(ExactLoss, "gradient", interrupted)
        with pytest.raises(KeyboardInterrupt):
            trained(recipe(text), tmp_path / "run")
    run = Run.open(tmp_path / "run")
    assert run.info["state"] == "interrupted"
    assert run.newest().name == f"step-{at:09d}"
    assert_the_same(resume(run), whole)


def test_where_rare_contexts_take_turns_it_is_the_same_run_too(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recipes, "ALL_AT_ONCE", 100)
    whole = trained(recipe(text), tmp_path / "turns")
    assert len({row["tokens"] for row in whole.metrics()}) > 1
    assert_the_same(resume(stop_by_leaving(recipe(text), tmp_path / "run", 11)), whole)


def test_interrupted_twice_it_is_still_the_same_run(text: Path, tmp_path: Path, whole: Run) -> None:
    run = stop_by_leaving(recipe(text), tmp_path / "run", 7)
    steps = resume_bigram(run)
    for _ in range(9):
        next(steps)
    del steps
    run = Run.open(run.path)
    assert [row["step"] for row in run.metrics()] == list(range(1, 17))
    assert_the_same(resume(run), whole)


def test_a_damaged_last_checkpoint_costs_time_but_changes_nothing(text: Path, tmp_path: Path, whole: Run) -> None:
    run = stop_by_leaving(recipe(text), tmp_path / "run", 15)
    weights = run.newest() / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    with (run.path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 16, "na')  # killed while it wrote a line
    assert run.newest().name == "step-000000000"
    assert inkling.load(run.path).score(["The"]).nats.sum() > 0
    assert_the_same(resume(run), whole)


def test_killed_before_the_manifest_it_resumes_to_the_same_run(text: Path, tmp_path: Path, whole: Run) -> None:
    run = trained(recipe(text), tmp_path / "run")
    (run.path / "manifest.json").unlink()
    (run.path / "README.md").unlink()
    assert inkling.load(run.path).score(["The"]).nats.tolist() == inkling.load(whole.path).score(["The"]).nats.tolist()
    assert_the_same(resume(run), whole)


@pytest.mark.parametrize("held_out", [False, True])
def test_changed_text_is_not_gone_on_with(text: Path, tmp_path: Path, held_out: bool) -> None:
    judge = tmp_path / "judge.txt"
    judge.write_text("".join(sentences()[:30]))
    run = stop_by_leaving(recipe(text, held_out=(str(judge),)), tmp_path / "run", 3)
    before = (run.path / "metrics.jsonl").read_bytes(), (run.path / "run.json").read_bytes()
    changed = judge if held_out else text
    changed.write_text(changed.read_text().replace("baker", "maker", 1))
    with pytest.raises(InklingError, match=rf"{changed.name} is not the text .*SHA-256"):
        next(resume_bigram(run))
    assert before == ((run.path / "metrics.jsonl").read_bytes(), (run.path / "run.json").read_bytes())


def test_changed_vectors_are_not_gone_on_with(text: Path, tmp_path: Path) -> None:
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("the 1 2 3\nbaker 4 5 6.5\ncook 0 1 0\n")
    run = stop_by_leaving(recipe(text, vectors=str(vectors)), tmp_path / "run", 3)
    vectors.write_text("the 3 2 1\nbaker -4 5 6.5\ncook 0 1 7\n")
    with pytest.raises(InklingError, match="vectors"):
        next(resume_bigram(run))


# ------------------------------------------------------------------------------------------------ sampled pairs


def test_sampled_pairs_as_published_also_resume_to_the_bit(text: Path, tmp_path: Path) -> None:
    wanted = recipe(text, method="sgd", steps=230, rate=0.3)
    whole = trained(wanted, tmp_path / "whole")
    assert [row["step"] for row in whole.metrics()] == [100, 200, 230]
    assert [row["tokens"] for row in whole.metrics()] == [5000, 5000, 1500]
    assert whole.metrics()[-1]["rate"] == 0.15
    for at in (100, 137):  # at the end of a group, and within one: then back to the group before
        run = stop_by_leaving(wanted, tmp_path / f"run-{at}", at)
        assert run.newest().name == f"step-{0 if at == 137 else 100:09d}"
        assert_the_same(resume(run), whole)


def test_sampled_pairs_are_pairs_of_the_text_and_functions_of_the_step(text: Path) -> None:
    prepared = prepare(recipe(text, method="sgd"))
    assert isinstance(prepared.objective, PlainLoss)
    size = prepared.tokeniser.size
    contexts, following = prepared.batches(3)
    assert len(contexts) == len(following) == 50
    assert set((contexts * size + following).tolist()) <= set(prepared.counts.keys.tolist())
    again, other = prepared.batches(3), prepared.batches(4)
    assert np.array_equal(again[0], contexts)
    assert not np.array_equal(other[0], contexts)


@pytest.mark.parametrize("method", ["exact", "sgd"])
def test_judging_is_the_mean_cost_of_the_held_out_lines(
    text: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    prepared = prepare(recipe(text, method=method))
    nats, tokens = prepared.validate(prepared.objective.parameters)
    plain = prepared.objective.plain(prepared.objective.parameters)
    model = inkling.models.bigram.Bigram(prepared.sizes, plain, prepared.tokeniser, speller=prepared.speller)
    lines = [line for block in prepared.text.held_out_blocks() for line in block]
    scores = model.score(lines)
    assert tokens == len(scores.ids)
    assert nats == pytest.approx(float(scores.nats.sum()), rel=1e-5)
    monkeypatch.setattr(inkling.models.bigram, "TABLE_SIZE", 10)  # a vocabulary too large for a full table
    assert prepared.validate(prepared.objective.parameters)[0] == pytest.approx(nats, rel=1e-9)


def test_the_published_settings_are_the_default_of_sampling() -> None:
    published = BigramRecipe(files=("x",), method="sgd").training()
    assert (published.steps, published.optimiser, published.rate, published.schedule) == (40_000, "sgd", 0.3, "halved")
    assert (published.rate_at(0), published.rate_at(20_000)) == (0.3, 0.15)
    assert BigramRecipe().batch == 50
    assert asdict(BigramRecipe(minutes=2.0).training())["max_seconds"] == 120

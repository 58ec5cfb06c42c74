"""`inkling train dan` from the inside: loaded as it was saved, resumed to the bit, summed up as anybody would."""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from inkling.errors import InklingError, UsageError
from inkling.models.dan import read_average
from inkling.recipes import dan as module
from inkling.recipes.dan import DANRecipe, parse_characters, resume_dan, train_dan
from inkling.recipes.labelled import read_parts
from inkling.runs.loading import load_classifier
from inkling.runs.recording import read
from inkling.runs.run import Run
from inkling.text.grams import key_of
from inkling.text.words import hash_word

NEUTRAL = ("the", "film", "is", "a", "story", "of", "two", "people", "who", "meet", "in", "town")
PLANTED = {"pos": ("great", "lovely"), "neg": ("awful", "dull"), "so-so": ("middling", "fair")}

Rows = list[tuple[str, str]]


def draw_rows(count: int, labels: Sequence[str], seed: int = 0, wrong: float = 0.1) -> Rows:
    """Texts with a planted word of their label; a share of the labels is wrong."""
    generator = np.random.default_rng(seed)
    rows = []
    for i in range(count):
        label = labels[i % len(labels)]
        words = [*generator.choice(NEUTRAL, size=7).tolist(), str(generator.choice(PLANTED[label])), f"number{i}"]
        told = str(generator.choice(labels)) if generator.random() < wrong else label
        rows.append((" ".join(words), told))
    return rows


def write(path: Path, rows: Rows) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *rows])
    return path


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INKLING_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write(tmp_path / "reviews.csv", draw_rows(120, ("pos", "neg", "so-so")))


@pytest.fixture
def vector_file(tmp_path: Path) -> Path:
    generator = np.random.default_rng(0)
    words = [*NEUTRAL, *(word for some in PLANTED.values() for word in some)]
    path = tmp_path / "vectors.txt"
    lines = (f"{word} " + " ".join(f"{value:.4f}" for value in generator.standard_normal(10)) for word in words)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def recipe(table: Path, **changes: Any) -> DANRecipe:
    return DANRecipe(files=(str(table),), **changes)


def make(told: DANRecipe, out: Path) -> Run:
    for _ in train_dan(told, out):
        pass
    return Run.open(out)


def tensors(run: Run) -> dict[str, torch.Tensor]:
    return read((run.path / "model.safetensors").read_bytes())


def same_weights(one: Run, other: Run) -> bool:
    first, second = tensors(one), tensors(other)
    return first.keys() == second.keys() and all(torch.equal(value, second[name]) for name, value in first.items())


NETWORK: dict[str, Any] = {"dimension": 6, "depth": 1, "width": 5, "epochs": 6, "batch": 20, "rate": 0.02}

# ------------------------------------------------------------------------------------------------ making a run


@pytest.mark.parametrize("options", [{}, {"refit": False}, NETWORK], ids=["scores", "no refit", "network"])
def test_the_summary_is_what_anybody_recomputes(options: dict[str, Any], table: Path, tmp_path: Path) -> None:
    run = make(recipe(table, **options), tmp_path / "run")
    summary = run.info["summary"]
    assert run.finished
    parts = read_parts(recipe(table), lambda _: None)
    network = load_classifier(run)
    assert network.labels == ("neg", "pos", "so-so") == parts.whole.labels
    assert (summary["train_texts"], summary["held_out_texts"]) == (108, 12) == (len(parts.train), len(parts.held_out))
    assert summary["classes"] == 3
    assert summary["features"] == len(network.keys)
    assert summary["parameters"] == sum(value.numel() for value in network.parameters().values())
    assert summary["temperature"] == network.temperature
    truth = parts.held_out.truth
    assert summary["held_out_majority_accuracy"] == pytest.approx(np.bincount(truth).max() / 12)
    assert summary["held_out_accuracy_low"] < summary["held_out_accuracy"] < summary["held_out_accuracy_high"]
    if options:  # otherwise held-out texts were learned from in the end, and get other figures now
        log_probs = network.log_probs(parts.held_out.texts).numpy()
        right = log_probs.argmax(axis=1) == truth
        assert summary["held_out_accuracy"] == right.mean()
        assert summary["held_out_nats_per_text"] == pytest.approx(-log_probs[np.arange(12), truth].mean(), abs=1e-5)
        sure = np.exp(log_probs.max(axis=1))
        answered = sure >= (summary["unsure_below"] if summary["unsure_below"] is not None else 2) - 1e-6
        assert not answered.any() or right[answered].mean() >= 0.95
    card = (run.path / "README.md").read_text("utf-8")
    assert "| classes | 3 |" in card


@pytest.mark.parametrize("options", [{}, NETWORK], ids=["scores", "network"])
def test_training_twice_gives_the_same_bits(options: dict[str, Any], table: Path, tmp_path: Path) -> None:
    one, other = (make(recipe(table, **options), tmp_path / name) for name in ("one", "other"))
    assert same_weights(one, other)


def test_what_was_planted_is_learned(table: Path, tmp_path: Path) -> None:
    network = load_classifier(make(recipe(table), tmp_path / "run"))
    assert network.predict(["a great town", "an awful town", "a middling town"]) == ["pos", "neg", "so-so"]
    texts, labels = zip(*draw_rows(60, ("pos", "neg", "so-so"), seed=8, wrong=0), strict=True)
    assert network.predict(texts) == list(labels)


def test_what_was_tried_is_logged(table: Path, tmp_path: Path) -> None:
    run = make(recipe(table), tmp_path / "run")
    rows = run.metrics()
    assert len(rows) == 4
    chosen = min(rows, key=lambda row: float(row["nats"]))
    summary = run.info["summary"]
    assert (summary["strength"], summary["trust"]) == (chosen["strength"], chosen["trust"])
    assert summary["held_out_nats_per_text"] == pytest.approx(chosen["nats"], abs=1e-9)
    assert summary["held_out_accuracy"] == chosen["accuracy"]


def test_named_held_out_files_are_never_learned_from(table: Path, tmp_path: Path) -> None:
    rows = draw_rows(30, ("pos", "neg", "so-so"), seed=3, wrong=0)
    turned = [(text, {"pos": "neg", "neg": "so-so", "so-so": "pos"}[label]) for text, label in rows]
    options: dict[str, Any] = {"strength": 0.01, "trust": 1.0}  # or they would choose
    runs = []
    for name, content in (("right", rows), ("wrong", turned)):
        held_out = write(tmp_path / f"{name}.csv", content)
        runs.append(make(recipe(table, held_out=(str(held_out),), **options), tmp_path / name))
    one, other = (tensors(run) for run in runs)
    assert torch.equal(one["vectors"], other["vectors"])
    summaries = [run.info["summary"] for run in runs]
    assert [summary["train_texts"] for summary in summaries] == [120, 120]
    assert [summary["held_out_texts"] for summary in summaries] == [30, 30]
    assert summaries[0]["held_out_accuracy"] == 1.0
    assert summaries[1]["held_out_accuracy"] == 0.0


# ------------------------------------------------------------------------------------------------ presets


def test_the_presets_are_what_they_say() -> None:
    best = DANRecipe(files=("x",)).sizes()
    assert (best.words, best.dimension, best.depth, best.distinct) == (3, 0, 0, True)
    published = DANRecipe(files=("x",), preset="published", vectors="v")
    sizes = published.sizes(dimension=50)
    assert (sizes.words, sizes.dimension, sizes.depth, sizes.width) == (1, 50, 2, 100)
    assert (sizes.activation, sizes.distinct) == ("relu", False)
    settings = published.network_settings()
    assert (settings.word_dropout, settings.learn_vectors, settings.batch, settings.rate) == (0.0, False, 100, 0.001)
    assert DANRecipe(files=("x",)).network_settings().learn_vectors
    assert replace(published, word_dropout=0.0, learn_vectors=True, depth=1).network_settings().word_dropout == 0.0
    assert DANRecipe(files=("x",), depth=2).sizes().dimension == 100
    assert DANRecipe(files=("x",), vectors="v").sizes(dimension=7).words == 1


def test_the_published_network_keeps_the_vectors_of_its_file(vector_file: Path, tmp_path: Path) -> None:
    table = write(tmp_path / "clear.csv", draw_rows(300, ("pos", "neg", "so-so"), wrong=0))
    options: dict[str, Any] = {"word_dropout": 0.0, "epochs": 50, "batch": 30, "rate": 0.01, "width": 20}
    told = recipe(table, preset="published", vectors=str(vector_file), **options)
    network = load_classifier(make(told, tmp_path / "run"))
    lines = dict(line.split(" ", 1) for line in vector_file.read_text("utf-8").splitlines())
    assert len(network.keys) == len(lines)
    for word in ("great", "town"):
        key = key_of(np.array([hash_word(word)], np.uint64), 1, network.config.bits)[0]
        (row,) = np.flatnonzero(network.keys == key)
        assert network.vectors[int(row)].tolist() == pytest.approx([float(value) for value in lines[word].split()])
    assert network.config.depth == 2
    texts, labels = zip(*draw_rows(60, ("pos", "neg", "so-so"), seed=8, wrong=0), strict=True)
    assert sum(map(str.__eq__, network.predict(texts), labels)) > 45


def test_every_word_of_a_file_has_its_own_vector_however_small_the_text(table: Path, tmp_path: Path) -> None:
    words = [f"word{i}" for i in range(4000)]
    path = tmp_path / "many.txt"
    path.write_text("".join(f"{word} {i} 1\n" for i, word in enumerate(words)), encoding="utf-8")
    run = make(recipe(table, preset="published", vectors=str(path), epochs=1), tmp_path / "run")
    network = load_classifier(run)
    bags = network.bags(words)
    assert (bags.lengths == 1).all()
    shared = int((network.vectors[bags.rows.tolist(), 0].numpy() != np.arange(4000)).sum())
    assert shared <= 4  # one is expected with 24 bits


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"preset": "published"}, "The published network averages word vectors from a file; give --vectors FILE"),
        ({"dimension": 0, "depth": 2}, r"Hidden layers \(--depth 2\) need vectors to read; give --dimension"),
        ({"depth": 3, "activation": "relu,tanh"}, "2 activations were given for 3 hidden layers"),
        ({"held_out_share": 1.5}, "--held-out-share is 1.5; give a share between 0 and 1"),
    ],
)
def test_what_makes_no_network_is_refused_before_anything_is_written(
    options: dict[str, Any], sentence: str, table: Path, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=sentence):
        make(recipe(table, **options), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_dimension_other_than_that_of_the_vectors_is_refused(table: Path, vector_file: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--dimension is 50, but the vectors have 10; leave it out"):
        make(recipe(table, vectors=str(vector_file), dimension=50), tmp_path / "run")


def test_a_run_that_exists_is_left_alone(table: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="exists already; name another with --out"):
        next(train_dan(recipe(table), tmp_path))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"preset": "worst"}, "--preset is worst; give best or published"),
        ({"words": 0}, "--words is 0; give a whole number from 1 to 8"),
        ({"dimension": -1}, "--dimension is -1; give a whole number from 0 to 4096"),
        ({"depth": 65}, "--depth is 65; give a whole number from 0 to 64"),
        ({"width": 0}, "--width is 0; give a whole number from 1 to 65536"),
        (
            {"activation": "relu,swish"},
            "--activation is relu,swish; give one of relu, sigmoid, tanh, mish, silu, leaky",
        ),
        ({"word_dropout": 1.0}, "--word-dropout is 1.0; give a share from 0 to below 1"),
        ({"word_dropout": float("nan")}, "--word-dropout is nan"),
        ({"weight_decay": -1.0}, "--weight-decay is -1.0; give a number from 0"),
        ({"class_weights": "even"}, "--class-weights is even; give none or balanced"),
        ({"min_count": -1}, "--min-count is -1"),
        ({"strength": float("inf")}, "--strength is inf"),
        ({"trust": -0.5}, "--trust is -0.5; give a number from 0"),
        ({"epochs": 0}, "--epochs is 0; give at least 1"),
        ({"batch": 0}, "--batch is 0; give at least 1"),
        ({"rate": 0.0}, "--rate is 0.0; give a number above 0"),
        ({"patience": -1}, "--patience is -1"),
        ({"minutes": -1.0}, "--minutes is -1.0"),
        ({"seed": -1}, "--seed is -1"),
        ({"characters": "5-3"}, "--characters is 5-3; give lengths of runs from 1 to 12, such as 3-5"),
        ({"characters": "a"}, "--characters is a"),
        ({"characters": "3-13"}, "--characters is 3-13"),
    ],
)
def test_values_out_of_range_are_refused(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        DANRecipe(files=("x",), **changes)


def test_characters_are_read_as_a_range() -> None:
    assert [parse_characters(given) for given in ("", "4", "3-5", "1-12")] == [(0, 0), (4, 4), (3, 5), (1, 12)]
    sizes = DANRecipe(files=("x",), characters="3-5").sizes()
    assert (sizes.low, sizes.high) == (3, 5)


# ------------------------------------------------------------------------------------------------ going on


def network_recipe(table: Path, vector_file: Path, fixed: bool) -> DANRecipe:
    if fixed:
        return recipe(table, preset="published", vectors=str(vector_file), epochs=6, batch=20, width=5)
    return recipe(table, word_dropout=0.3, **NETWORK)


@pytest.mark.parametrize("fixed", [False, True], ids=["learned", "published"])
@pytest.mark.parametrize("stop", [1, 17, 18])  # six steps make an epoch
def test_a_network_goes_on_as_if_it_had_not_been_interrupted(
    stop: int, fixed: bool, table: Path, vector_file: Path, tmp_path: Path
) -> None:
    told = network_recipe(table, vector_file, fixed)
    whole = make(told, tmp_path / "whole")
    part = train_dan(told, tmp_path / "part")
    for _ in itertools.islice(part, stop):
        pass
    part.close()  # type: ignore[attr-defined]  # what Ctrl-C does between steps
    broken = Run.open(tmp_path / "part")
    assert not broken.finished
    assert broken.info["state"] == "interrupted"
    first = load_classifier(broken).predict(["a great town"])  # usable as it stands
    assert first[0] in PLANTED
    steps = [step.step for _, step in resume_dan(broken)]
    assert steps[-1] == 36
    assert steps[0] == 1 + (18 if stop == 18 else 0)  # checkpoints stand where epochs end
    resumed = Run.open(tmp_path / "part")
    assert resumed.finished
    assert same_weights(whole, resumed)
    rows = [[{k: v for k, v in row.items() if k != "seconds"} for row in run.metrics()] for run in (whole, resumed)]
    assert rows[0] == rows[1]
    plain = [{k: v for k, v in run.info["summary"].items() if k != "seconds"} for run in (whole, resumed)]
    assert plain[0] == plain[1]


@pytest.mark.parametrize("when", [1, 4, 14])
def test_ctrl_c_in_the_middle_of_a_gradient_keeps_what_there_is(
    when: int, table: Path, vector_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = network_recipe(table, vector_file, fixed=False)
    whole = make(told, tmp_path / "whole")
    calls = itertools.count(1)

    def interrupted(*given: Any) -> torch.Tensor:
        if next(calls) == when:
            raise KeyboardInterrupt
        return read_average(*given)

    with monkeypatch.context() as patch:
        patch.setattr("inkling.models.dan_loss.read_average", interrupted)
        with pytest.raises(KeyboardInterrupt):
            make(told, tmp_path / "part")
    for _ in resume_dan(Run.open(tmp_path / "part")):
        pass
    assert same_weights(whole, Run.open(tmp_path / "part"))


def test_other_texts_are_not_gone_on_with(table: Path, vector_file: Path, tmp_path: Path) -> None:
    part = train_dan(network_recipe(table, vector_file, fixed=False), tmp_path / "run")
    next(part)
    part.close()  # type: ignore[attr-defined]
    write(table, draw_rows(121, ("pos", "neg", "so-so")))
    with pytest.raises(InklingError, match=r"reviews.csv is not what .*run was trained on \(its SHA-256 differs\)"):
        next(resume_dan(Run.open(tmp_path / "run")))


@pytest.mark.parametrize("change", ["values", "words"])
def test_other_vectors_are_not_gone_on_with(change: str, table: Path, vector_file: Path, tmp_path: Path) -> None:
    part = train_dan(network_recipe(table, vector_file, fixed=True), tmp_path / "run")
    next(part)
    part.close()  # type: ignore[attr-defined]
    lines = vector_file.read_text("utf-8").splitlines()
    changed = [line.replace(" 0.", " 7.") for line in lines] if change == "values" else lines[:-1]
    vector_file.write_text("\n".join(changed) + "\n", encoding="utf-8")
    with pytest.raises(InklingError, match="put the old vectors back, or train anew"):
        next(resume_dan(Run.open(tmp_path / "run")))


def test_scores_that_were_stopped_at_the_last_moment_are_answered_in_words(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "_finish", stopped)
        with pytest.raises(KeyboardInterrupt):
            make(recipe(table), tmp_path / "run")
    broken = Run.open(tmp_path / "run")
    assert not broken.finished
    with pytest.raises(InklingError, match="train it anew"):
        for _ in resume_dan(broken):
            pass


def test_the_run_says_what_it_was_made_of(table: Path, tmp_path: Path) -> None:
    run = make(recipe(table, seed=7), tmp_path / "run")
    assert run.kind == "dan"
    assert run.info["recipe"]["seed"] == 7
    assert run.info["data"]["labels"].keys() == {"neg", "pos", "so-so"}
    config = json.loads((run.path / "config.json").read_text("utf-8"))
    assert config["labels"] == ["neg", "pos", "so-so"]
    assert config["sizes"]["words"] == 3

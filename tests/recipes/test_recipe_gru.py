"""`inkling train gru` from the inside: sized by its budget, resumed to the bit, loaded as it was saved."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from inkling.errors import InklingError, UsageError
from inkling.models.gru import GRU
from inkling.recipes import gru as recipes
from inkling.recipes.data import LanguageText
from inkling.recipes.gru import GRURecipe, dropout_for, prepare, resume_gru, train_gru
from inkling.recipes.streamed import Prepared, Source
from inkling.runs.loading import load
from inkling.runs.recording import read
from inkling.runs.run import Run
from inkling.text.grammar import grammar_text


@pytest.fixture(scope="module")
def text_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text(grammar_text(np.random.default_rng(0), 4000), encoding="utf-8")
    return path


def small(text_file: Path, **changes: object) -> GRURecipe:
    recipe = GRURecipe(files=(str(text_file),), steps=60, hidden=24, batch=8, chunk=16)
    return replace(recipe, **changes)  # type: ignore[arg-type]


def source_of(prepared: Prepared) -> Source:
    assert isinstance(prepared.material, Source)
    return prepared.material


def held_out_text(prepared: Prepared) -> str:
    text = prepared.material.text
    assert isinstance(text, LanguageText)
    return "".join(line for block in text.held_out_blocks() for line in block)


@pytest.mark.slow
def test_it_learns_and_loads_as_it_was_measured(text_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    steps = [step for _, step in train_gru(small(text_file), out)]
    assert [step.step for step in steps] == list(range(1, 61))
    first, last = steps[0], steps[-1]
    counts = source_of(prepare(small(text_file))).stream.counts
    frequencies = counts[counts > 0] / counts.sum()
    entropy = -float(frequencies @ np.log(frequencies))
    assert first.nats / first.tokens == pytest.approx(entropy, abs=0.5)  # it starts from the frequencies
    assert last.nats / last.tokens < 0.8 * first.nats / first.tokens
    run = Run.open(out)
    assert run.finished
    model = load(run)
    assert isinstance(model, GRU)
    held_out = held_out_text(prepare(small(text_file)))
    (scores,) = model.score([held_out])
    assert len(scores.nats) == run.info["summary"]["held_out_tokens"]
    assert scores.nats.mean() == pytest.approx(run.info["summary"]["held_out_nats_per_token"], abs=1e-6)
    bits = scores.nats.sum() / math.log(2) / len(held_out)
    assert run.info["summary"]["held_out_bits_per_character"] == pytest.approx(bits, abs=1e-6)
    assert run.info["summary"]["train_tokens_read"] == 60 * 8 * 16


@pytest.mark.slow
def test_resuming_gives_the_same_bits(text_file: Path, tmp_path: Path) -> None:
    recipe = small(text_file, steps=40, dropout=0.2, layers=2)
    for _ in train_gru(recipe, tmp_path / "whole"):
        pass
    part = train_gru(recipe, tmp_path / "part")
    for _, step in part:
        if step.step == 20:
            part.close()  # what Ctrl-C does
            break
    broken = Run.open(tmp_path / "part")
    assert not broken.finished
    assert [step.step for _, step in resume_gru(broken)] == list(range(21, 41))
    whole, resumed = (read((tmp_path / name / "model.safetensors").read_bytes()) for name in ("whole", "part"))
    assert whole.keys() == resumed.keys()
    for name, value in whole.items():
        assert torch.equal(value, resumed[name]), name
    rows = [
        [{k: v for k, v in row.items() if k != "seconds"} for row in Run.open(tmp_path / name).metrics()]
        for name in ("whole", "part")
    ]
    assert rows[0] == rows[1]


def test_the_budget_sizes_the_model(text_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def time_of_token(recipe: GRURecipe, *_: object) -> float:  # a computer of a known speed
        return recipes.work_of_token(recipe.hidden, recipe.layers, 66) / 20e9

    monkeypatch.setattr(recipes, "time_of_token", time_of_token)
    stream = source_of(prepare(small(text_file))).stream
    tokeniser = source_of(prepare(small(text_file))).tokeniser
    long_text = replace(stream, ids=np.zeros(10**7, np.uint8))
    settled = [
        recipes.settle(GRURecipe(files=("x",), minutes=minutes), long_text, tokeniser) for minutes in (0.2, 2, 20)
    ]
    assert settled[0].hidden < settled[1].hidden < settled[2].hidden
    for recipe in settled:
        seconds = recipe.steps * recipe.chunk * recipe.batch * time_of_token(recipe)
        assert seconds == pytest.approx(0.9 * 60 * recipe.minutes, rel=0.02)
    told = recipes.settle(GRURecipe(files=("x",), minutes=2, hidden=40, steps=33, dropout=0.25), long_text, tokeniser)
    assert (told.hidden, told.steps, told.dropout) == (40, 33, 0.25)
    short = recipes.settle(GRURecipe(files=("x",), minutes=20), replace(stream, ids=stream.ids[:3000]), tokeniser)
    assert short.hidden == recipes.HIDDEN[0]
    assert short.batch * short.chunk <= 3000


def test_dropout_grows_with_the_epochs() -> None:
    assert dropout_for(0.5) == 0
    assert 0 < dropout_for(4) < dropout_for(30) <= 0.5


@pytest.mark.slow
def test_words_and_bytes_are_learned_too(text_file: Path, tmp_path: Path) -> None:
    for tokens in ("word", "byte", "bpe"):
        recipe = small(text_file, steps=6, tokens=tokens, vocabulary=300 if tokens != "byte" else 0)
        for _ in train_gru(recipe, tmp_path / tokens):
            pass
        (scores,) = load(tmp_path / tokens).score(["Ein neues Wort: žluťoučký!\n"])
        assert int(np.diff(np.append(0, scores.byte_ends)).sum()) == len("Ein neues Wort: žluťoučký!\n".encode())
        assert np.isfinite(scores.nats).all()


def test_rows_of_a_table_are_texts_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("text,label\n" + "".join(f"row number {i} says hello,x\n" for i in range(200)), encoding="utf-8")
    prepared = prepare(GRURecipe(files=(str(path),), text_column="text", steps=1, hidden=8, batch=2, chunk=8))
    source = source_of(prepared)
    assert source.stream.starts is not None
    assert int(source.stream.starts.sum()) == 180
    assert len(source.held_out.offsets) == 21


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden": -1}, "--hidden is -1"),
        ({"layers": 5}, "--layers is 5; give 1, 2 or 3"),
        ({"tokens": "letter"}, "--tokens is letter; give one of character, byte, bpe, word"),
        ({"dropout": 1.0}, "--dropout is 1.0"),
        ({"minutes": float("nan")}, "--minutes is nan"),
    ],
)
def test_values_out_of_range_are_refused(text_file: Path, changes: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        small(text_file, **changes)


def test_a_changed_text_is_noticed(text_file: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.txt"
    copy.write_bytes(text_file.read_bytes())
    part = train_gru(small(copy), tmp_path / "run")
    next(part)
    part.close()
    copy.write_bytes(text_file.read_bytes() + b"more\n")
    with pytest.raises(InklingError, match=r"is not the text that .* was trained on"):
        next(resume_gru(Run.open(tmp_path / "run")))


def test_bits_per_character_charge_unknown_words_letter_by_letter(text_file: Path, tmp_path: Path) -> None:
    for _ in train_gru(small(text_file, steps=6, tokens="word", vocabulary=5), tmp_path / "run"):
        pass
    summary = Run.open(tmp_path / "run").info["summary"]
    held_out = held_out_text(prepare(small(text_file)))
    (scores,) = load(tmp_path / "run").score([held_out])
    bits = (scores.nats.sum() + scores.spelling_nats.sum()) / math.log(2) / len(held_out)
    assert summary["held_out_unknown_tokens"] == int(scores.unknown.sum()) > 0.5 * len(scores.ids)
    assert summary["held_out_bits_per_character"] == pytest.approx(bits, abs=1e-6)


def test_a_training_that_went_astray_is_told_so(text_file: Path, tmp_path: Path) -> None:
    said: list[str] = []
    for _ in train_gru(small(text_file, steps=3, rate=1e20), tmp_path / "run", said.append):
        pass
    assert any("it learned nothing of use" in sentence for sentence in said)


def test_what_does_not_fit_the_text_or_the_computer_is_said(text_file: Path) -> None:
    said: list[str] = []
    settled = prepare(small(text_file, batch=10**6), say=said.append).recipe
    assert settled.batch < 10**6
    assert any("--batch 1,000,000 is more than this text" in sentence for sentence in said)
    with pytest.raises(UsageError, match=r"more than the .* GB of this computer; give a smaller --hidden"):
        recipes.refuse_giants(small(text_file, hidden=16384, dimension=16384, layers=3, batch=10**6), 10**5)


def test_long_trainings_are_judged_every_minute() -> None:
    plan = GRURecipe(files=("x",), minutes=120, steps=12_000, rate=0.01, hidden=8).training()
    assert plan.evaluate_every == 100
    assert GRURecipe(files=("x",), minutes=1, steps=500, rate=0.01, hidden=8).training().evaluate_every == 50

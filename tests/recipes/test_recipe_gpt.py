"""`inkling train gpt` from the inside: sized by its budget, resumed to the bit, loaded as it was saved."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from inkling.errors import InklingError, UsageError
from inkling.models.gpt_loss import Batch, GPTLoss
from inkling.models.gpt_model import Transformer
from inkling.recipes import gpt as recipes
from inkling.recipes.data import LanguageText
from inkling.recipes.gpt import GPTRecipe, heads_for, prepare, resume_gpt, settle, time_of_token, train_gpt
from inkling.recipes.streamed import Prepared, Source
from inkling.runs.loading import load
from inkling.runs.recording import read
from inkling.runs.run import Run
from inkling.text.grammar import grammar_text
from inkling.training.optimisers import assign
from inkling.training.processes import Processes


@pytest.fixture(scope="module")
def text_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text(grammar_text(np.random.default_rng(0), 3000), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def source(text_file: Path) -> Source:
    return source_of(prepare(small(text_file)))


def small(text_file: Path, **changes: object) -> GPTRecipe:
    recipe = GPTRecipe(
        files=(str(text_file),), steps=30, layers=2, width=32, heads=2, mlp=48, context=16, batch=4, precision="float32"
    )
    return replace(recipe, **changes)  # type: ignore[arg-type]


def source_of(prepared: Prepared) -> Source:
    assert isinstance(prepared.material, Source)
    return prepared.material


def held_out_text(prepared: Prepared) -> str:
    text = prepared.material.text
    assert isinstance(text, LanguageText)
    return "".join(line for block in text.held_out_blocks() for line in block)


def test_it_learns_and_loads_as_it_was_measured(text_file: Path, tmp_path: Path) -> None:
    recipe = small(text_file, steps=60, batch=8, judged=2000)
    steps = [step for _, step in train_gpt(recipe, tmp_path / "run")]
    assert [step.step for step in steps] == list(range(1, 61))
    prepared = prepare(recipe)
    first = steps[0]
    assert first.nats / first.tokens == pytest.approx(
        math.log(source_of(prepared).tokeniser.size), rel=1e-6
    )  # all alike
    run = Run.open(tmp_path / "run")
    summary = run.info["summary"]
    assert run.finished
    assert summary["held_out_nats_per_token"] < 0.8 * source_of(prepared).unigram_nats()
    model = load(run)
    assert isinstance(model, Transformer)
    held_out = held_out_text(prepared)
    (scores,) = model.score([held_out])
    assert len(scores.nats) == summary["held_out_tokens"] == len(source_of(prepared).held_out)
    assert scores.nats.mean() == pytest.approx(summary["held_out_nats_per_token"], abs=1e-6)
    bits = scores.nats.sum() / math.log(2) / len(held_out)
    assert summary["held_out_bits_per_character"] == pytest.approx(bits, abs=1e-6)
    assert summary["train_tokens_read"] == 60 * 8 * 16


def test_resuming_gives_the_same_bits(text_file: Path, tmp_path: Path) -> None:
    """With dropout, and on both sides of the step from which on texts are twice as long."""
    recipe = small(text_file, steps=24, dropout=0.2, decay=0.1, short_share=0.6, judged=2000)
    for _ in train_gpt(recipe, tmp_path / "whole"):
        pass
    part = train_gpt(recipe, tmp_path / "part")
    for _, step in part:
        if step.step == 9:
            part.close()  # what Ctrl-C does
            break
    broken = Run.open(tmp_path / "part")
    assert not broken.finished
    assert [step.step for _, step in resume_gpt(broken)] == list(range(10, 25))
    whole, resumed = (read((tmp_path / name / "model.safetensors").read_bytes()) for name in ("whole", "part"))
    assert whole.keys() == resumed.keys()
    for name, value in whole.items():
        assert torch.equal(value, resumed[name]), name
    rows = [
        [{k: v for k, v in row.items() if k != "seconds"} for row in Run.open(tmp_path / name).metrics()]
        for name in ("whole", "part")
    ]
    assert rows[0] == rows[1]
    assert len(rows[0]) == 24


def test_texts_become_twice_as_long_and_half_as_many(text_file: Path) -> None:
    recipe = small(text_file, steps=10, short_share=0.7)
    shapes = [prepare(recipe).batch(step).inputs.shape for step in range(10)]
    assert shapes == [(8, 8)] * 7 + [(4, 16)] * 3
    longer = replace(recipe, steps=1000)
    assert [longer.shape_at(step)[:2] for step in (0, 699, 700, 999)] == [(8, 8), (8, 8), (4, 16), (4, 16)]
    assert recipe.tokens_a_step == 64


def test_it_is_judged_by_no_longer_texts_than_it_has_read(text_file: Path) -> None:
    prepared = prepare(small(text_file, steps=10, short_share=0.7))
    reader = prepared.reader
    assert reader is not None
    contexts = [reader(prepared.objective.parameters, step).config.context for step in (1, 7, 8, 10)]  # type: ignore[attr-defined]
    assert contexts == [8, 8, 16, 16]
    assert prepared.model(prepared.objective.parameters).config.context == 16


def test_texts_are_shared_by_so_many_workers_in_the_precision_that_is_told(text_file: Path) -> None:
    objective = prepare(small(text_file, workers=3)).objective
    assert isinstance(objective, GPTLoss)
    assert (objective.workers, objective.precision) == (3, "float32")
    assert prepare(small(text_file)).recipe.workers == torch.get_num_threads()


def test_a_computer_without_a_compiler_is_told_that_it_is_slower(
    text_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INKLING_KERNELS", "off")
    said: list[str] = []
    prepare(small(text_file), say=said.append)
    assert said == ["Training steps use torch alone, as INKLING_KERNELS says."]


def test_two_processes_read_the_rows_of_one(text_file: Path) -> None:
    recipe = small(text_file, steps=10, short_share=0.5, batch=5)
    whole = prepare(recipe)
    shares = [prepare(recipe, processes=Processes(rank, 2)) for rank in (0, 1)]
    for step in (0, 4, 5, 9):
        batch = whole.batch(step)
        for rank, share in enumerate(shares):
            assert share.batch(step).inputs.tolist() == batch.inputs[rank::2].tolist()
            assert share.batch(step).targets.tolist() == batch.targets[rank::2].tolist()
    with pytest.raises(UsageError, match="batch of 1 rows cannot be shared by 2 processes"):
        prepare(replace(recipe, batch=1), processes=Processes(0, 2))


def test_the_budget_decides(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a computer of a known speed: 4 microseconds a token, for whatever model."""
    monkeypatch.setattr(recipes, "time_of_token", lambda *_: 4e-6)
    monkeypatch.setattr(recipes, "refuse_giants", lambda *_: None)
    long_text = replace(source, stream=replace(source.stream, ids=np.broadcast_to(np.uint8(1), 10**8)))

    def plan(minutes: float, **told: object) -> GPTRecipe:
        return settle(GPTRecipe(files=("x",), minutes=minutes, precision="float32", **told), long_text)  # type: ignore[arg-type]

    brief, some, much = plan(0.5), plan(5), plan(300)
    assert brief.layers < some.layers <= much.layers
    assert some.width < much.width
    assert brief.context < some.context
    for recipe in (brief, some, much):
        seconds = recipe.steps * recipe.tokens_a_step * 4e-6
        assert seconds == pytest.approx(recipes.TRAINED_SHARE * 60 * recipe.minutes, rel=0.02)
        assert recipe.judged * recipes.EVALUATIONS <= 0.1 * recipe.steps * recipe.tokens_a_step
    told = plan(2, layers=3, width=48, steps=33, dropout=0.25, context=32)
    assert (told.layers, told.width, told.steps, told.dropout, told.context) == (3, 48, 33, 0.25, 32)
    assert told.short_share == 0  # a length that was told is read from the first step on
    assert settle(GPTRecipe(files=("x",), precision="float32"), long_text).minutes == recipes.MINUTES


def test_what_is_settled_stays_settled(text_file: Path, source: Source) -> None:
    recipe = settle(small(text_file), source)
    assert settle(recipe, source) == recipe
    assert not [
        name for name in ("context", "batch", "rate", "rotary_base", "judged", "workers") if not vars(recipe)[name]
    ]
    assert min(recipe.decay, recipe.dropout, recipe.momentum, recipe.short_share) >= 0


def test_text_that_is_read_often_is_held_against_learning_by_heart(text_file: Path, source: Source) -> None:
    once = settle(small(text_file), source)
    often = settle(small(text_file, steps=10 * len(source.stream) // once.tokens_a_step), source)
    assert (once.decay, once.dropout) == (0, 0)
    assert often.decay == recipes.DECAY
    assert 0 < often.dropout <= recipes.MOST_DROPOUT
    assert [recipes.dropout_for(epochs) for epochs in (3, 4, 16, 1e9)] == [0, 0.08, 0.16, 0.3]


def test_steps_are_timed(text_file: Path, source: Source) -> None:
    assert 0 < time_of_token(settle(small(text_file, short_share=0.5), source), source) < 1


@pytest.mark.parametrize("tied", [True, False])
def test_muon_has_the_matrices_and_adam_the_rest(text_file: Path, source: Source, tied: bool) -> None:
    recipe = settle(small(text_file, tied=tied, grams=2, gram_rows=10), source)
    parameters = recipes.start_parameters(recipe, recipe.sizes(source.tokeniser.size))
    groups = recipe.training().all_groups
    found = {name: group for group, names in zip(groups, assign(groups, parameters), strict=True) for name in names}
    matrices = {name for name in parameters if name.startswith("layers.") and not name.endswith("norm")}
    assert {name for name, group in found.items() if group.optimiser == "muon"} == matrices
    assert len(matrices) == 2 * 7
    rates = {name: recipe.rate * group.factor for name, group in found.items()}
    assert rates["layers.0.q"] == recipe.rate
    assert rates["embedding"] == pytest.approx(recipe.output_rate if tied else recipe.embedding_rate)
    assert rates["grams.2"] == rates["grams.3"] == pytest.approx(recipes.GRAM_FACTOR * recipe.rate)
    assert rates["norm"] == rates["layers.1.q_norm"] == pytest.approx(recipes.GAIN_FACTOR * recipe.rate)
    slower = settle(small(text_file, rate=recipe.rate / 2), source)  # what is told of one rate is true of all
    assert (2 * slower.embedding_rate, 2 * slower.output_rate) == (recipe.embedding_rate, recipe.output_rate)


def test_it_starts_with_sharp_queries_and_writes_nothing(text_file: Path, source: Source) -> None:
    recipe = settle(small(text_file), source)
    parameters = recipes.start_parameters(recipe, recipe.sizes(source.tokeniser.size))
    assert set(parameters["layers.1.q_norm"].tolist()) == {recipes.QUERY_GAIN}
    assert set(parameters["layers.1.k_norm"].tolist()) == {1.0}
    assert not any(parameters[name].any() for name in ("layers.0.o", "layers.1.down", "output"))


@pytest.mark.parametrize(("loss", "sentence"), [(math.nan, "no longer a number after step 25"), (1e6, "jumped from")])
def test_a_training_that_comes_apart_stops_and_keeps_its_checkpoint(
    text_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loss: float, sentence: str
) -> None:
    gradient = GPTLoss.gradient

    def apart(self: GPTLoss, batch: Batch, step: int) -> tuple[float, float]:
        nats, tokens = gradient(self, batch, step)
        return nats if step < 25 else loss, tokens

    monkeypatch.setattr(GPTLoss, "gradient", apart)
    with pytest.raises(InklingError, match=f"{sentence}.*: the last checkpoint is kept; .* smaller --rate than 0.06"):
        for _ in train_gpt(small(text_file, steps=60), tmp_path / "run"):
            pass
    run = Run.open(tmp_path / "run")
    assert run.info["state"] == "failed"
    assert np.isfinite(load(run).score(["A baker bakes.\n"]).nats).all()


def test_every_kind_of_token_is_learned(text_file: Path, tmp_path: Path) -> None:
    for tokens, size in (("word", 300), ("byte", 0), ("bpe", 300)):
        recipe = small(text_file, steps=3, tokens=tokens, vocabulary=size, judged=500)
        for _ in train_gpt(recipe, tmp_path / tokens):
            pass
        (scores,) = load(tmp_path / tokens).score(["Ein neues Wort: žluťoučký!\n"])
        assert int(np.diff(np.append(0, scores.byte_ends)).sum()) == len("Ein neues Wort: žluťoučký!\n".encode())
        assert np.isfinite(scores.nats).all()


def test_rows_of_a_table_are_texts_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("text,label\n" + "".join(f"row number {i} says hello,x\n" for i in range(200)), encoding="utf-8")
    prepared = prepare(small(path, text_column="text"))
    tokeniser = source_of(prepared).tokeniser
    batch = prepared.batch(0)
    begins = batch.targets == tokeniser.encode(["r"]).ids[0]
    begins &= np.append(batch.targets[:, 1:], np.zeros((4, 1), np.int64), axis=1) == tokeniser.encode(["o"]).ids[0]
    assert begins.sum() >= 2
    assert set(batch.inputs[begins].tolist()) == {tokeniser.begin}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layers": -1}, "--layers is -1"),
        ({"width": 10**6}, "--width is 1000000; give a whole number from 1 to 65536"),
        ({"tokens": "letter"}, "--tokens is letter; give one of character, byte, bpe, word"),
        ({"dropout": 1.0}, "--dropout is 1.0"),
        ({"short_share": 1.0}, "--short-share is 1.0; give a share from 0 to below 1"),
        ({"minutes": float("nan")}, "--minutes is nan"),
        ({"precision": "float8"}, "--precision is float8; give one of auto, float32, bfloat16"),
        ({"activation": "gelu"}, "--activation is gelu; give one of gated, squared_relu"),
    ],
)
def test_values_out_of_range_are_refused(text_file: Path, changes: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        small(text_file, **changes)


def test_what_does_not_fit_the_text_or_the_computer_is_said(text_file: Path, source: Source) -> None:
    said: list[str] = []
    settled = settle(small(text_file, batch=10**6), source, said.append)
    assert settled.batch * settled.context <= len(source.stream)
    assert any("--batch 1,000,000 is more than this text" in sentence for sentence in said)
    with pytest.raises(UsageError, match=r"more than the .* GB of this computer; give a smaller --width"):
        settle(small(text_file, layers=1000, width=32768, mlp=0), source)


def test_heads_have_about_32_coordinates() -> None:
    assert [heads_for(width) for width in (8, 32, 48, 128, 192, 320)] == [1, 1, 1, 4, 6, 10]


def test_a_changed_text_is_noticed(text_file: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.txt"
    copy.write_bytes(text_file.read_bytes())
    part = train_gpt(small(copy), tmp_path / "run")
    next(part)
    part.close()
    copy.write_bytes(text_file.read_bytes() + b"more\n")
    with pytest.raises(InklingError, match=r"is not the text that .* was trained on"):
        next(resume_gpt(Run.open(tmp_path / "run")))


def test_a_run_that_goes_on_in_fewer_processes_says_so(text_file: Path, tmp_path: Path) -> None:
    part = train_gpt(small(text_file, steps=3), tmp_path / "run")
    next(part)
    part.close()
    run = Run.open(tmp_path / "run")
    assert json.loads((run.path / "run.json").read_text("utf-8"))["processes"] == 1
    run.update(processes=2)
    said: list[str] = []
    next(resume_gpt(run, said.append))
    assert "was begun in 2 process(es) and goes on in 1: the numbers will be the same but for rounding." in said[0]

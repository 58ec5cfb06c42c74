"""`evaluate_runs`: baselines for free, what the runs have read before, and what cannot be known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from inkling.measure.matrix import Matrix
from inkling.models.baselines import Uniform
from inkling.recipes import evaluation
from inkling.recipes.data import LanguageText
from inkling.recipes.evaluation import EvaluationRecipe, distinct_names, evaluate_runs
from inkling.recipes.ngram import NGramRecipe, fit_ngram, train_ngram
from inkling.text.grammar import grammar_text
from inkling.text.tokenise import ByteTokeniser

TRAIN = grammar_text(np.random.default_rng(1), 8000)
FRESH = grammar_text(np.random.default_rng(2), 6000)
MIXED = FRESH + TRAIN[:20_000]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ruler")
    for name, text in (("train", TRAIN), ("fresh", FRESH), ("mixed", MIXED), ("second", FRESH[:9000])):
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    train_ngram(NGramRecipe(files=(str(folder / "train.txt"),), vocabulary=100), folder / "words")
    train_ngram(NGramRecipe(files=(str(folder / "train.txt"),), vocabulary=100, normalise="lower"), folder / "lower")
    train_ngram(NGramRecipe(files=(str(folder / "second.txt"),), vocabulary=100), folder / "other")
    return folder


def measured(
    lab: Path, *runs: str, on: tuple[str, ...] = ("fresh.txt",), baselines: bool = True, overlap: bool | None = None
) -> Matrix:
    recipe = EvaluationRecipe(
        tuple(str(lab / run) for run in runs),
        tuple(str(lab / text) for text in on),
        baselines=baselines,
        overlap=overlap,
    )
    return evaluate_runs(recipe)


def test_baselines_stand_beside_the_runs_and_cost_what_they_would_alone(lab: Path) -> None:
    found = measured(lab, "words")
    rows = {row.model: row for row in found.rows}
    assert set(rows) == {"words", "uniform bytes", "character unigram", "character 6-gram"}
    assert rows["uniform bytes"].bits_per_byte.value == pytest.approx(8, rel=1e-12)
    recipe = NGramRecipe(files=(str(lab / "train.txt"),), order=6, tokens="character")
    scores = fit_ngram(recipe, LanguageText(recipe)).score([FRESH])
    assert rows["character 6-gram"].tally.nats == pytest.approx(float(scores.nats.sum()), rel=1e-12)
    assert rows["character 6-gram"].bits_per_byte.value < rows["character unigram"].bits_per_byte.value < 8
    assert {row.model for row in found.compressions} == {"gzip -9", "xz -9e", "zstd -22"}
    assert {(row.model, row.kind) for row in found.rows if row.kind == "run"} == {("words", "run")}


def test_each_training_text_and_normalisation_has_its_own_baselines(lab: Path) -> None:
    found = measured(lab, "words", "lower", "other")
    names = {row.model for row in found.rows if "6-gram" in row.model}
    assert names == {
        "character 6-gram of train.txt",
        "character 6-gram of train.txt after lower",
        "character 6-gram of second.txt",
    }
    lossy = {row.model for row in found.rows if row.lossy}
    assert lossy == {"lower", "character 6-gram of train.txt after lower", "character unigram of train.txt after lower"}
    assert [(text, losses.chain) for text, losses in found.losses] == [("fresh.txt", "lower")]


def test_a_model_behind_a_chain_is_not_measured_twice_behind_it(lab: Path) -> None:
    recipe = EvaluationRecipe((str(lab / "lower"),), (str(lab / "fresh.txt"),), ("none", "lower"), baselines=False)
    assert [row.normalisation for row in evaluate_runs(recipe).rows] == ["lower"]


def test_overlap_with_the_training_text_is_found_and_the_held_out_tenth_is_not_training_text(lab: Path) -> None:
    found = measured(lab, "words", on=("mixed.txt", "fresh.txt", "train.txt"), baselines=False)
    mixed, fresh, train = found.overlaps
    assert mixed.exact_share == pytest.approx(20_000 / len(MIXED), abs=0.02)
    assert not fresh.same_file
    assert fresh.exact_share < 0.02
    assert train.same_file
    assert 0.88 < train.exact_share < 0.93
    assert any("train.txt IS the training text train.txt" in sentence for sentence in found.sentences())


def test_without_the_training_text_one_sentence_says_what_is_not_known(lab: Path, tmp_path: Path) -> None:
    copy = tmp_path / "train.txt"
    copy.write_text(TRAIN, encoding="utf-8")
    train_ngram(NGramRecipe(files=(str(copy),), vocabulary=50), tmp_path / "gone")
    recipe = EvaluationRecipe((str(tmp_path / "gone"),), (str(lab / "fresh.txt"),))
    assert len(evaluate_runs(recipe).overlaps) == 1
    copy.write_text(TRAIN + "more\n", encoding="utf-8")
    changed = evaluate_runs(recipe)
    assert any("has changed since" in note for note in changed.notes)
    copy.unlink()
    gone = evaluate_runs(recipe)
    for found in (changed, gone):
        assert len(found.notes) == 1
        assert "What gone was trained on cannot be read again" in found.notes[0]
        assert {row.model for row in found.rows} == {"gone", "uniform bytes"}
        assert found.overlaps == ()
    assert "does not exist" in gone.notes[0]


def test_large_texts_are_skipped_with_a_sentence(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("BASELINE_BYTES", "COMPRESSED_BYTES", "OVERLAP_BYTES"):
        monkeypatch.setattr(evaluation, limit, 1000)
    found = measured(lab, "words")
    assert {row.model for row in found.rows} == {"words", "uniform bytes"}
    assert (found.compressions, found.overlaps) == ((), ())
    assert len(found.notes) == 3
    assert len(measured(lab, "words", overlap=True).overlaps) == 1


def test_nothing_extra_is_done_where_nothing_extra_is_wanted(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(evaluation, "_training", never)
    found = measured(lab, "words", baselines=False, overlap=False)
    assert [row.model for row in found.rows] == ["words"]
    assert (found.compressions, found.overlaps, found.notes) == ((), (), ())


def test_a_network_that_the_six_gram_beats_is_named(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inkling.runs.run.Run.kind", "network")
    monkeypatch.setattr(evaluation, "load_language_model", lambda run: Uniform(ByteTokeniser()))
    said = [s for s in measured(lab, "words").sentences() if "does not beat" in s]
    assert len(said) == 1
    assert "character 6-gram (" in said[0]
    assert "xz -9e (" in said[0]


def test_progress_never_goes_back_and_ends_at_the_total(lab: Path) -> None:
    told: list[tuple[int, int]] = []
    recipe = EvaluationRecipe((str(lab / "words"),), (str(lab / "fresh.txt"), str(lab / "mixed.txt")))
    evaluate_runs(recipe, lambda done, total, what: told.append((done, total)))
    assert len({total for _, total in told}) == 1
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[-1][0] == told[-1][1]


def test_names_are_the_last_parts_of_paths_where_that_tells_them_apart() -> None:
    assert distinct_names(["runs/a", "runs/b"]) == ["a", "b"]
    assert distinct_names(["runs/a", "old/a"]) == ["runs/a", "old/a"]
    assert distinct_names(["runs/a", "runs/a"]) == ["a", "a"]


def test_trainings_of_the_same_name_are_told_apart_by_their_runs(lab: Path, tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text(TRAIN[9000:], encoding="utf-8")
    recipe = NGramRecipe(files=(str(tmp_path / "train.txt"),), held_out=(str(lab / "fresh.txt"),), vocabulary=100)
    train_ngram(recipe, tmp_path / "elsewhere")
    found = measured(lab, "words", str(tmp_path / "elsewhere"))
    labels = [row.label for row in found.rows]
    assert len(labels) == len(set(labels))
    assert {"character 6-gram like words", "character 6-gram like elsewhere"} <= set(labels)
    said = found.sentences()
    assert any("in the training text train.txt of words" in sentence for sentence in said)
    assert any("in the training text train.txt of elsewhere" in sentence for sentence in said)
    assert "fresh.txt chose the weights of elsewhere, so the figures there flatter them a little." in said


def test_a_text_too_short_to_be_looked_for_is_said_to_be(lab: Path, tmp_path: Path) -> None:
    (tmp_path / "short.txt").write_text(TRAIN[:20], encoding="utf-8")
    found = measured(lab, "words", on=(str(tmp_path / "short.txt"),))
    assert not found.overlaps
    assert "short.txt is too short to be looked for in the training text." in found.sentences()

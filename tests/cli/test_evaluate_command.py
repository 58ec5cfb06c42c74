"""`inkling evaluate` as a user types it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reviews import make_lab, reviews, write_csv

from inkling.cli.app import main
from inkling.runs.loading import load_classifier
from inkling.text.grammar import grammar_text


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evaluate")
    (folder / "novel.txt").write_text(grammar_text(np.random.default_rng(1), 4000), encoding="utf-8")
    (folder / "fresh.txt").write_text(grammar_text(np.random.default_rng(2), 8000), encoding="utf-8")
    for order in "23":
        out = str(folder / f"order{order}")
        assert main(["train", "ngram", str(folder / "novel.txt"), "--order", order, "--out", out]) == 0
    return folder


@pytest.fixture
def here(lab: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    monkeypatch.chdir(lab)
    capsys.readouterr()
    return lab


def as_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["evaluate", *arguments, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_one_table_of_runs_baselines_and_compressors_with_sentences_below(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", "order2", "order3", "--on", "fresh.txt"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    for part in ("place", "bits per byte", "order2", "character 6-gram", "uniform bytes", "xz -9e (compressor)"):
        assert part in printed.out
    assert "NOT COMPARABLE" in printed.out
    assert "of fresh.txt stands word for word in the training text novel.txt" in printed.out
    table = printed.out.split("What can be said")[0]
    assert all(
        len(line) <= 110 for line in table.splitlines() if "Perplexity per token" not in line and ":" not in line
    )


def test_json_is_one_document(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = as_json(capsys, "order2", "order3", "--on", "fresh.txt")
    assert set(found) == {"rows", "comparisons", "losses", "overlap", "sentences"}
    rows = {row["model"]: row for row in found["rows"]}
    assert rows["uniform bytes"]["bits_per_byte"] == pytest.approx(8, rel=1e-12)
    assert rows["order3"]["context"] == "2 tokens"
    assert sorted(row["rank"] for row in found["rows"] if "rank" in row) == [1, 2, 3, 4, 5]
    [pair] = [c for c in found["comparisons"] if {c["better"], c["worse"]} == {"order2", "order3"}]
    assert pair["real"] is True
    assert pair["difference"] == pytest.approx(
        abs(rows["order2"]["bits_per_byte"] - rows["order3"]["bits_per_byte"]), rel=1e-9
    )


def test_the_order_of_runs_changes_no_digit(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = as_json(capsys, "order2", "order3", "--on", "fresh.txt")
    assert as_json(capsys, "order3", "order2", "--on", "fresh.txt") == first


def test_baselines_and_overlap_can_be_turned_off(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = as_json(capsys, "order2", "--on", "fresh.txt", "--no-baselines", "--no-overlap")
    assert [row["model"] for row in found["rows"]] == ["order2"]
    assert (found["overlap"], found["sentences"]) == ([], [])


def test_a_lossy_normalisation_is_ranked_apart_and_named(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("order2", "--on", "fresh.txt", "--normalise", "none", "--normalise", "lower")
    found = as_json(capsys, *arguments, "--no-baselines")
    assert {(row["normalisation"], row["rank"]) for row in found["rows"]} == {("none", 1), ("lower", 1)}
    assert found["comparisons"] == []
    [losses] = found["losses"]
    assert losses["changed_characters"] > 0
    assert any("easier text, not of a better model" in sentence for sentence in found["sentences"])


def test_a_page_is_written_when_asked_for(here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "ruler.html"
    assert main(["evaluate", "order2", "order3", "--on", "fresh.txt", "--html", str(page)]) == 0
    written = page.read_text(encoding="utf-8")
    assert "<svg" in written
    assert "order3" in written
    assert main(["evaluate", "order2", "--on", "fresh.txt", "--html", str(tmp_path / "no" / "x.html")]) == 1
    assert "cannot be written" in capsys.readouterr().err


# ------------------------------------------------------------------------------------------ classifiers


@pytest.fixture(scope="module")
def classifiers(lab: Path) -> Path:
    make_lab(lab)
    arguments = ["train", "dan", str(lab / "train.csv"), "--words", "2", "--out", str(lab / "pairs")]
    assert main(arguments) == 0
    return lab


def test_a_classifier_is_measured_by_its_verdicts(
    classifiers: Path, here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = as_json(capsys, "run", "--on", "test.csv")
    assert set(found) == {"rows", "comparisons", "notes", "sentences"}
    [row] = found["rows"]
    texts, labels = zip(*reviews(2, 300), strict=True)
    said = load_classifier(here / "run").predict(texts)
    right = sum(verdict == label for verdict, label in zip(said, labels, strict=True))
    assert (row["right"], row["rows"]) == (right, 300)
    assert row["accuracy"]["low"] < row["accuracy"]["value"] == right / 300 < row["accuracy"]["high"]
    assert {score["label"]: score["support"] for score in row["classes"]} == {"neg": 150, "pos": 150}
    assert row["overlap"]["count"] == 0
    page = tmp_path / "classifier.html"
    assert main(["evaluate", "run", "--on", "test.csv", "--html", str(page)]) == 0
    printed = capsys.readouterr().out
    for part in ("macro-F1", "Classes of test.csv", "Confusion", "What can be said", f"{right / 3:.1f} % of 300 texts"):
        assert part in printed
    assert page.read_text(encoding="utf-8").count("<svg") == 2  # calibration, and what saying 'unsure' buys


def test_classifiers_are_compared_and_the_columns_can_be_named(
    classifiers: Path, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [(label, text, "x") for text, label in reviews(2, 120)]
    write_csv(here / "columns.csv", rows, ("verdict", "said", "label"))
    columns = ("--text-column", "said", "--label-column", "verdict")
    found = as_json(capsys, "run", "pairs", "--on", "columns.csv", *columns)
    assert [row["rows"] for row in found["rows"]] == [120, 120]
    assert len(found["comparisons"]) == 1
    assert main(["evaluate", "run", "pairs", "--on", "columns.csv", *columns]) == 0
    printed = capsys.readouterr().out
    assert "columns.csv (120 texts), best first" in printed
    assert "Differences of accuracy on columns.csv" in printed


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["run", "order2"], "run is a classifier and order2 a language model, which no measure has in common; give"),
        (["run", "--normalise", "lower"], "--normalise is for language models"),
        (["order2", "--label-column", "label"], "--label-column is for classifiers, and order2 is a language model"),
        (["run", "--bad-rows", "maybe"], "--bad-rows is 'maybe'; give stop or skip."),
    ],
)
def test_what_suits_one_kind_of_model_only_is_refused_for_the_other(
    arguments: list[str], sentence: str, classifiers: Path, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", *arguments, "--on", "test.csv"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert sentence in printed.err
    assert printed.err.count("\n") == 1

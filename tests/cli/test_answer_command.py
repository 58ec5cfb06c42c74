"""`inkling answer` and `inkling evaluate --pairs` as a user types them, with a model that counts characters."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from driver import Cli, on_a_terminal

from inkling.cli.app import main
from inkling.runs.loading import load_language_model
from inkling.text.questions import example
from inkling.text.world import biographies

WORLD = biographies(np.random.default_rng(8), 60, held_out=0.25)
# The last nine characters of a question decide what a model of ten characters can know.
TRAIN = [(f"Home of {i:04d}?", place) for i, (_, place) in enumerate(WORLD.pairs_train)]
DEV = [*TRAIN[:9], *((f"Home of {9000 + i}?", place) for i, (_, place) in enumerate(WORLD.pairs_held_out))]


def lines(pairs: list[tuple[str, str]]) -> str:
    return "".join(f"{question}\t{answer}\n" for question, answer in pairs)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("answers")
    (folder / "train.tsv").write_text(lines(TRAIN), encoding="utf-8")
    (folder / "dev.tsv").write_text(lines(DEV), encoding="utf-8")
    (folder / "questions.txt").write_text("".join(f"{q}\n" for q, _ in DEV), encoding="utf-8")
    (folder / "corpus.txt").write_text("".join(f"{q[8:12]} was born in {a}.\n" for q, a in DEV), encoding="utf-8")
    (folder / "examples.txt").write_text("".join(example(q, a) for q, a in TRAIN) * 4, encoding="utf-8")
    (folder / "plain.txt").write_text("The baker bakes.\n" * 50, encoding="utf-8")
    training = ["train", "ngram", str(folder / "examples.txt"), "--tokens", "character", "--order"]
    for order in ("10", "3"):
        assert main([*training, order, "--out", str(folder / f"order{order}")]) == 0
    assert (
        main(["train", "ngram", str(folder / "plain.txt"), "--tokens", "character", "--out", str(folder / "plain")])
        == 0
    )
    return folder


@pytest.fixture
def answer(lab: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.chdir(lab)
    return Cli(capsys, "answer")


@pytest.fixture
def evaluate(lab: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.chdir(lab)
    return Cli(capsys, "evaluate")


def records(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


# ------------------------------------------------------------------------------------------- answering


def test_every_question_gets_a_row_with_answer_and_confidence(answer: Cli, lab: Path) -> None:
    found = records(answer("order10", "dev.tsv"))
    assert [row["question"] for row in found] == [question for question, _ in DEV]
    assert [row["row"] for row in found] == list(range(1, len(DEV) + 1))
    assert [row["answer"] for row in found[:9]] == [place for _, place in TRAIN[:9]]
    assert set(found[0]) == {"row", "question", "answer", "confidence"}
    model = load_language_model(lab / "order10")
    nats = model.score([example(found[0]["question"], found[0]["answer"])])[0].nats
    assert found[0]["confidence"] == pytest.approx(np.exp(-nats[len(found[0]["question"]) + 1 :].sum()), rel=1e-6)


def test_answers_beside_the_questions_are_not_used(answer: Cli, lab: Path) -> None:
    (lab / "lies.tsv").write_text(lines([(question, "Atlantis") for question, _ in DEV]), encoding="utf-8")
    alone = records(answer("order10", "questions.txt"))
    assert records(answer("order10", "dev.tsv")) == alone
    assert records(answer("order10", "lies.tsv")) == alone


def test_questions_come_through_a_pipe_also_with_answers_behind_a_tab(
    answer: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines(DEV[:2]).encode())))
    assert [row["answer"] for row in records(answer("order10", "-"))] == [place for _, place in DEV[:2]]


def test_a_beam_names_the_runners_up(answer: Cli) -> None:
    found = records(answer("order10", "dev.tsv", "--beam", "3"))
    assert all(len(row["others"]) <= 2 for row in found)
    assert any(row["others"] for row in found)
    for row in found:
        sure = [row["confidence"], *(other["confidence"] for other in row["others"])]
        assert sure == sorted(sure, reverse=True)
        assert sum(sure) <= 1 + 1e-9


def test_below_the_threshold_a_question_stays_open(answer: Cli, lab: Path) -> None:
    sure = {row["question"]: row["confidence"] for row in records(answer("order10", "dev.tsv"))}
    threshold = sorted(sure.values())[len(sure) // 2]
    found = records(answer("order10", "dev.tsv", "--abstain", str(threshold)))
    assert [row["abstained"] for row in found] == [value < threshold for value in sure.values()]
    assert all((row["answer"] is None) == row["abstained"] for row in found)
    count = sum(row["abstained"] for row in found)
    assert f"{count} of {len(DEV)} questions were left open" in answer.notes


def test_results_go_to_a_file_of_every_kind(answer: Cli, tmp_path: Path) -> None:
    expected = records(answer("order10", "dev.tsv", "--beam", "2"))
    for ending in ("jsonl", "csv", "tsv", "parquet"):
        out = tmp_path / f"answers.{ending}"
        assert answer("order10", "dev.tsv", "--beam", "2", "--out", str(out)) == ""
        if ending == "jsonl":
            assert records(out.read_text(encoding="utf-8")) == expected
            continue
        read = {"csv": pl.read_csv, "tsv": lambda path: pl.read_csv(path, separator="\t"), "parquet": pl.read_parquet}
        table = read[ending](out)
        assert table.columns == ["row", "question", "answer", "confidence", "others"]
        assert table["answer"].to_list() == [row["answer"] for row in expected]
        assert table["confidence"].to_list() == pytest.approx([row["confidence"] for row in expected])
    answer("order10", "dev.tsv", "--out", str(tmp_path / "answers.xls"), code=2)
    assert "ends in .jsonl, .csv, .tsv or .parquet" in answer.notes


@pytest.mark.slow
def test_on_a_terminal_people_get_lines(lab: Path) -> None:
    shown = on_a_terminal(lab, "answer", "order10", "dev.tsv", "--beam", "2", NO_COLOR="1")
    assert f"{TRAIN[0][1]}  {TRAIN[0][0]}  (or " in shown
    assert f"{len(DEV)} questions in " in shown


def test_rows_that_cannot_be_asked_are_counted(answer: Cli, lab: Path) -> None:
    (lab / "gaps.tsv").write_text(f"{DEV[0][0]}\n\n{DEV[1][0]}\n", encoding="utf-8")
    assert [row["row"] for row in records(answer("order10", "gaps.tsv"))] == [1, 3]
    assert "3 rows read: 2 used, 1 left out (1 empty question" in answer.notes


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("order10", "dev.tsv", "--beam", "0"), 2, "width of 0; give a whole number from 1"),
        (("order10", "dev.tsv", "--abstain", "2"), 2, "--abstain is 2; give a probability from 0 to 1"),
        (("order10", "no.tsv"), 1, "no.tsv does not exist"),
        (("order10", "dev.tsv", "--question-column", "7"), 1, "no column '7'"),
        (("plain", "dev.tsv"), 1, "has no token for the mark between question and answer"),
    ],
)
def test_a_mistake_is_one_sentence(answer: Cli, arguments: tuple[str, ...], code: int, sentence: str) -> None:
    assert answer(*arguments, code=code) == ""
    assert sentence in answer.notes.splitlines()[-1]


# ------------------------------------------------------------------------------------------- measuring

MEASURED = ("--pairs", "dev.tsv", "--train-pairs", "train.tsv")


def test_exact_match_stands_at_the_top_of_json_and_is_that_of_the_answers(answer: Cli, evaluate: Cli) -> None:
    said = [row["answer"] for row in records(answer("order10", "questions.txt"))]
    right = sum(one == place for one, (_, place) in zip(said, DEV, strict=True))
    assert 9 <= right < len(DEV)
    found = evaluate.json("order10", *MEASURED)
    assert (found["right"], found["questions"], found["exact_match"]) == (right, len(DEV), right / len(DEV))
    assert found["low"] < found["exact_match"] < found["high"]
    commonest, nearest = found["baselines"]
    assert commonest["name"] == f"always '{max({p for _, p in TRAIN}, key=[p for _, p in TRAIN].count)}'"
    assert nearest["name"] == "nearest name"
    assert nearest["right"] >= 9  # questions that stand in train.tsv are their own neighbours
    [overlap] = [note for note in found["notes"] if note.startswith("Questions of dev.tsv that stand in train.tsv too")]
    assert ": 9 of 24, 9 of them with the same answer (first: dev.tsv row 1 is train.tsv row 1)" in overlap
    assert found["corpus"] is None


def test_the_corpus_judges_afterwards(evaluate: Cli) -> None:
    found = evaluate.json("order10", *MEASURED, "--corpus", "corpus.txt")
    corpus = found["corpus"]
    assert corpus["ceiling"]["value"] == 1.0
    assert corpus["right_corroborated"] == found["right"]
    assert corpus["wrong_made_up"] == len(DEV) - found["right"]
    assert corpus["named"] == len(DEV)


def test_two_runs_are_compared_and_a_page_is_written(evaluate: Cli, tmp_path: Path) -> None:
    page = tmp_path / "answers.html"
    out = evaluate("order3", "order10", *MEASURED, "--beam", "2", "--html", str(page))
    for part in ("exact match", "nearest name", "What can be said", "Differences on the same questions", "order3"):
        assert part in out
    written = page.read_text(encoding="utf-8")
    assert written.count("<svg") == 1 + 2 * 3
    found = evaluate.json("order3", "order10", *MEASURED)
    assert [run["model"] for run in found["runs"]] == ["order10", "order3"]
    assert found["model"] == "order10"


def test_without_training_pairs_the_best_single_answer_is_named_as_such(evaluate: Cli) -> None:
    found = evaluate.json("order10", "--pairs", "dev.tsv")
    assert found["baselines"][0]["name"].endswith("(chosen on these answers)")
    assert "name them with --train-pairs" in evaluate.notes


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("order10", "--pairs", "dev.tsv", "--on", "plain.txt"), 2, "leave out the options for texts"),
        (("order10", "--on", "plain.txt", "--corpus", "corpus.txt"), 2, "name a file of them with --pairs"),
        (("order10",), 2, "name text with --on, or questions and answers with --pairs"),
        (("order10", "--pairs", "questions.txt"), 1, "no column that looks like an answer"),
        (("order10", "--pairs", "dev.tsv", "--promise", "90"), 2, "accuracy to promise is 90"),
    ],
)
def test_a_mistake_in_measuring_is_one_sentence(
    evaluate: Cli, arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    assert evaluate(*arguments, code=code) == ""
    assert sentence in evaluate.notes.splitlines()[-1]

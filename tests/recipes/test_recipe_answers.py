"""From files to measured answers: training pairs that a run remembers serve as baselines, where they still stand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from inkling.cli.app import main
from inkling.models.answering import Answer, answer_questions
from inkling.recipes.answers import AnswersRecipe, evaluate_answers
from inkling.recipes.data import open_corpus
from inkling.runs.run import Run
from inkling.text.corpus import Corpus
from inkling.text.questions import example

PAIRS = [("1?", "Velden"), ("2?", "Zell"), ("3?", "Velden")]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """One that says it was trained on pairs.tsv."""
    monkeypatch.chdir(tmp_path)
    Path("pairs.tsv").write_text("".join(f"{q}\t{a}\n" for q, a in PAIRS), encoding="utf-8")
    Path("text.txt").write_text("".join(example(q, a) for q, a in PAIRS) * 5, encoding="utf-8")
    assert main(["train", "ngram", "text.txt", "--tokens", "character", "--order", "4", "--out", "run"]) == 0
    opened = Run.open("run")
    opened.info["recipe"]["pairs"] = ["pairs.tsv"]
    monkeypatch.setattr(Run, "open", lambda path: opened)
    return opened


def test_the_pairs_of_the_training_are_the_baseline_when_none_are_named(run: Run) -> None:
    said: list[str] = []
    asked: list[tuple[int, int, str]] = []
    found = evaluate_answers(AnswersRecipe(("run",), ("pairs.tsv",)), said.append, lambda *step: asked.append(step))
    assert [one.name for one in found.baselines] == ["always 'Velden'", "nearest name"]
    assert found.baselines[1].answers == ("Velden", "Zell", "Velden")
    assert asked[-1] == (3, 3, "run")
    assert list(found.notes) == said
    assert any("Questions of pairs.tsv that stand in pairs.tsv too: 3 of 3" in note for note in said)


def test_the_pairs_of_the_training_are_read_as_the_training_read_them(run: Run) -> None:
    rows = "".join(f"{number}\t{a}\t{q}\n" for number, (q, a) in enumerate(PAIRS))
    Path("pairs.tsv").write_text(f"id\tplace\twhat\n{rows}", encoding="utf-8")
    Path("dev.tsv").write_text("1?\tVelden\n", encoding="utf-8")
    run.info["recipe"] |= {"question_column": "what", "answer_column": "place"}
    found = evaluate_answers(AnswersRecipe(("run",), ("dev.tsv",)))
    assert [one.answers for one in found.baselines] == [("Velden",), ("Velden",)]


def test_pairs_that_are_gone_leave_a_note(run: Run) -> None:
    Path("dev.tsv").write_text("1?\tVelden\n", encoding="utf-8")
    Path("pairs.tsv").unlink()
    found = evaluate_answers(AnswersRecipe(("run",), ("dev.tsv",)))
    assert any("pairs of the training cannot be read again" in note for note in found.notes)
    assert [one.name for one in found.baselines] == ["always 'Velden' (chosen on these answers)"]


def test_the_corpus_is_not_opened_before_all_answers_stand(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []

    def answering(*given: Any) -> Iterator[Answer]:
        order.append("answer")
        return answer_questions(*given)

    def opening(*given: Any) -> Corpus:
        order.append("corpus")
        return open_corpus(*given)

    monkeypatch.setattr("inkling.recipes.answers.answer_questions", answering)
    monkeypatch.setattr("inkling.recipes.answers.open_corpus", opening)
    evaluate_answers(AnswersRecipe(("run", "./run"), ("pairs.tsv",), corpus=("text.txt",)))
    assert order == ["answer", "answer", "corpus"]

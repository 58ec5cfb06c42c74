"""The generated world on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from inkling.errors import UsageError
from inkling.recipes.world import make_world
from inkling.text.corpus import Corpus
from inkling.text.grammar import grammar_nats


def test_text_is_of_the_grammar_and_of_the_seed(tmp_path: Path) -> None:
    first, again, other = (tmp_path / f"{name}.txt" for name in ("first", "again", "other"))
    for path, seed in ((first, 0), (again, 0), (other, 1)):
        assert make_world("text", path, 500, seed) == [path]
    assert first.read_bytes() == again.read_bytes() != other.read_bytes()
    assert 0 < grammar_nats(first.read_text(encoding="utf-8")) < float("inf")


def test_reviews_are_a_table_of_texts_and_labels(tmp_path: Path) -> None:
    make_world("reviews", tmp_path / "reviews.csv", 40, 0)
    rows = list(Corpus([tmp_path / "reviews.csv"], need_label=True))
    assert len(rows) == 40
    assert {row.label for row in rows} == {"positive", "negative"}


def test_biographies_come_with_questions_to_learn_and_to_test(tmp_path: Path) -> None:
    made = make_world("biographies", tmp_path / "people.txt", 50, 0)
    assert [path.name for path in made] == ["people.txt", "people.questions.tsv", "people.held-out.tsv"]
    text = made[0].read_text(encoding="utf-8")
    asked = [path.read_text(encoding="utf-8").splitlines() for path in made[1:]]
    assert [len(lines) for lines in asked] == [40, 10]
    for line in asked[0] + asked[1]:
        question, answer = line.split("\t")
        name = question.removeprefix("Where was ").removesuffix(" born?")
        assert any(name in paragraph and answer in paragraph for paragraph in text.splitlines())


@pytest.mark.parametrize(
    ("kind", "name", "size", "sentence"),
    [
        ("poems", "a.txt", None, "choose from text, reviews, biographies"),
        ("text", "a.csv", None, "should end in .txt"),
        ("text", "a.txt", 0, "give at least 1"),
        ("text", "no/such/a.txt", None, "There is no folder"),
    ],
)
def test_what_cannot_be_made_is_refused(tmp_path: Path, kind: str, name: str, size: int | None, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        make_world(kind, tmp_path / name, size, 0)
    assert list(tmp_path.iterdir()) == []

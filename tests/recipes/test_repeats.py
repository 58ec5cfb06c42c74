"""Equal texts: in one set, and among what is trained on and what is judged."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from labelled_rows import laws, many, read, silent, written

from inkling.recipes.labelled import LabelledConfig, read_for
from inkling.recipes.repeats import find_overlap, group_texts


def test_texts_are_the_same_when_only_case_and_white_space_differ() -> None:
    texts = ["A b", "a  B\n", "ab", "a b", "Straße 1", "STRASSE\u00a01", "Ab", "\u212a", "k"]
    assert group_texts(texts).tolist() == [0, 0, 2, 0, 4, 4, 2, 7, 7]
    assert group_texts([]).tolist() == []


def test_long_texts_with_a_common_beginning_are_told_apart() -> None:
    beginning = "The film begins as every film of its kind does, with a long look at the sea. " * 5
    texts = [beginning + "good", beginning + "bad", beginning.upper() + " GOOD", " " * 999 + beginning + "bad"]
    assert group_texts(texts).tolist() == [0, 1, 0, 1]


@given(st.lists(st.text(st.sampled_from("aAbßẞ \t\u00a0\u2003İi̇ſsK"), max_size=5), max_size=40))
@laws
def test_groups_are_those_of_folded_texts(texts: list[str]) -> None:
    folded = [" ".join(text.casefold().split()) for text in texts]
    assert group_texts(texts).tolist() == [folded.index(text) for text in folded]


def test_test_rows_that_were_trained_on_are_found(tmp_path: Path) -> None:
    train = read(
        tmp_path, [("One two", "a"), ("three", "a"), ("four", "b"), ("four", "b"), ("five", "a"), ("five", "b")]
    )
    path = written(
        tmp_path,
        [("new", "a"), ("one  TWO", "a"), ("four", "a"), ("onetwo", "a"), ("five", "b"), ("four", "b")],
        "test.csv",
    )
    test = read_for(("b", "a"), LabelledConfig((path,)), silent)  # another order of the same labels
    overlap = find_overlap(train, test)
    assert overlap.rows.tolist() == [1, 2, 4, 5]
    assert (overlap.count, overlap.same_label, overlap.different_label) == (4, 3, 1)
    assert overlap.train_rows == 5  # one two, four twice, five twice
    assert overlap.examples[0] == (f"{path} row 2", f"{tmp_path}/train.csv row 1")
    assert overlap.sentence().startswith(
        "4 of the 6 texts that are judged were trained on, 3 with the same label and 1 with another (first: "
    )
    json.dumps(overlap.to_json())


def test_no_overlap_is_said_too(tmp_path: Path) -> None:
    train = read(tmp_path, many(a=3, b=3))
    test = read_for(("a", "b"), LabelledConfig((written(tmp_path, [("new", "a")], "test.csv"),)), silent)
    overlap = find_overlap(train, test)
    assert (overlap.count, overlap.train_rows) == (0, 0)
    assert overlap.sentence() == "No text that is judged was trained on."

"""Baselines that need no model: the commonest answer, and that of the name that looks most alike."""

from __future__ import annotations

import pytest

from inkling.errors import InklingError
from inkling.measure.neighbours import commonest_answer, nearest_answers, trigrams


def test_the_commonest_answer_and_of_equals_the_first() -> None:
    assert commonest_answer(["Rome", "Paris", "Paris"]) == "Paris"
    assert commonest_answer(["Rome", "Paris"]) == "Rome"
    with pytest.raises(InklingError, match="no training answers"):
        commonest_answer([])


def test_runs_of_three_letters_with_a_space_before_and_behind() -> None:
    assert trigrams("Ada  Oak") == {" ad", "ada", "da ", "a o", " oa", "oak", "ak "}
    assert trigrams("A") == {" a "}
    assert trigrams("") == {"  "}


def test_the_nearest_name_by_dice() -> None:
    # "Anna Berg" shares 5 of its 9 runs with "Hans Berg" ("s b" differs) and 8 of 9 with "Anna Bergs".
    known = ["Hans Berg", "Anna Bergs", "Olaf"]
    assert nearest_answers(["Anna Berg"], known, ["x", "y", "z"]) == ["y"]
    assert nearest_answers(["ANNA BERGS", "Olaf Oak"], known, ["x", "y", "z"]) == ["y", "z"]


def test_of_equally_near_names_the_first_decides_also_where_nothing_is_shared() -> None:
    assert nearest_answers(["Zoe"], ["Ann", "Bob"], ["x", "y"]) == ["x"]
    assert nearest_answers(["Ann"], ["Bob", "Ann", "Ann"], ["x", "y", "z"]) == ["y"]


def test_a_longer_name_is_not_nearer_for_its_length() -> None:
    # Both hold all runs of "Ann" but the last; the long one has many more of its own.
    assert nearest_answers(["Ann"], ["Annabella Fitzgerald", "Anne"], ["x", "y"]) == ["y"]


def test_every_known_subject_needs_an_answer() -> None:
    with pytest.raises(InklingError, match="2 known subjects and 1 answers"):
        nearest_answers(["Ann"], ["Bob", "Cy"], ["x"])

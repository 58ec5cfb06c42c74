"""What a corpus says of answers: the four cases and the ceiling, counted by hand."""

from __future__ import annotations

import pytest

from inkling.errors import InklingError
from inkling.measure.classification import wilson
from inkling.measure.corroboration import Corroboration, Witness, find_phrase, hear_witness

LINES = [
    "Ada Oak. Ada Oak was born in Velden and died in Zell.",
    "Bo Ash. Bo Ash lived in Marrow.",
    "A line about Quillby, where Ada Oak's aunt lived.",
    "Cy Elm. Cy Elm was born in Tindale.",
]
SUBJECTS = ["Ada Oak", "Bo Ash", "Cy Elm", "Di Fir"]
TRUTH = ["Velden", "Lowmoor", "Tindale", "Zell"]
SAID = ["Zell", "Lowmoor", "Velden", "Zell"]


def heard(blocks: list[list[str]]) -> Witness:
    return hear_witness("wiki.txt", blocks, SUBJECTS, list(zip(SAID, TRUTH, ["Quillby"] * 4, strict=True)))


def test_an_answer_stands_beside_a_name_only_in_one_and_the_same_line() -> None:
    found = heard([LINES])
    assert found.lines == 4
    assert found.named == (True, True, True, False)
    assert found.beside[0] == {"Velden", "Zell", "Quillby"}  # the last from a later line with the name
    assert found.beside[1] == frozenset()
    assert found.corroborates(0, " Zell ")
    assert not found.corroborates(2, "Velden")  # it stands in the line of somebody else


def test_how_the_corpus_is_cut_into_blocks_changes_nothing() -> None:
    assert heard([[line] for line in LINES]) == heard([LINES])


@pytest.mark.parametrize(
    ("phrase", "text", "place"),
    [
        ("in", "a painter walking, in Zell", 19),
        ("in", "a painter walking", -1),
        ("Rome", "Romeo", -1),
        ("Rome", "Rome's Romeo", 0),
        ("Rome", "Romeo (Rome)", 7),
        ("19", "1912", -1),
        ("19", "19 12", 0),
        ("Ада", "Адам, Ада", 6),
        ("東京", "彼は東京都に住む", 2),  # no spaces, no capitals
        ("St.", "St.Gall", 0),  # it ends with a mark
        ("", "anything", -1),
    ],
)
def test_a_phrase_stands_as_words_of_its_own(phrase: str, text: str, place: int) -> None:
    assert find_phrase(phrase, text) == place


def test_an_answer_may_go_on_but_not_begin_within_a_word() -> None:
    assert find_phrase("Milan", "born in Milano", whole=False) == 8
    assert find_phrase("in", "a painter walking", whole=False) == -1
    found = hear_witness(
        "wiki.txt", [["Ada Oak, a painter, was born in Milano."]], ["Ada Oak"], [["Milan", "ain", "lano"]]
    )
    assert found.beside == (frozenset({"Milan"}),)


def test_another_name_that_begins_alike_is_not_named() -> None:
    found = hear_witness(
        "wiki.txt", [["Ada Oakley was born in Velden.", "Ada Oak died in Zell."]], ["Ada Oak"], [TRUTH]
    )
    assert found.beside == (frozenset({"Zell"}),)


def test_an_empty_answer_or_subject_is_beside_nothing() -> None:
    found = hear_witness("wiki.txt", [LINES], ["Ada Oak", ""], [["", "Velden"], ["Velden"]])
    assert found.beside == (frozenset({"Velden"}), frozenset())
    assert found.named == (True, False)


def test_the_four_cases_and_the_ceiling() -> None:
    right = [said == true for said, true in zip(SAID, TRUTH, strict=True)]
    found = Corroboration.of(heard([LINES]), SAID, TRUTH, right)
    assert found.ceiling == wilson(2, 4)
    assert (found.right_corroborated, found.right_otherwise) == (0, 2)
    assert (found.wrong_corroborated, found.wrong_made_up) == (1, 1)
    assert found.named == 3
    assert found.sentences() == [
        "2 of 4 true answers stand in wiki.txt in a line with the name: 50.0 % is the ceiling for who knows this text "
        "only.",
        "Of 2 wrong answers, 1 (50.0 %) stand in no line with the name (made up), 1 in one (mixed up with something "
        "else).",
        "Right answers that stand in no line with the name: 2.",
    ]
    assert found.to_json()["wrong_made_up"] == 1


def test_every_subject_needs_its_answers() -> None:
    with pytest.raises(InklingError, match="2 subjects and 1 sets of answers"):
        hear_witness("x", [], ["a", "b"], [["c"]])

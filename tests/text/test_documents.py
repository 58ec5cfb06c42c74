"""Documents: where a head ends, and what each way of learning shows of a document."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inkling.text.documents import (
    RECALLED_WORDS,
    Signs,
    answered,
    named,
    read_and_answered,
    recalled,
    replaced,
    shortened,
    split_head,
    whole,
    with_span_moved,
    word_starts,
)
from inkling.text.tokenise import train_tokeniser

SIGNS = Signs(begin=90, mark=91, end=92)
SPACE = 1  # the only token of these that begins a word
BEGINS = np.arange(100) == SPACE
BODIES = st.lists(st.integers(0, 9), min_size=1, max_size=60).map(lambda ids: np.array(ids, np.int64))
SEEDS = st.integers(0, 1 << 32)


@pytest.mark.parametrize(
    ("line", "head"),
    [
        ("Khatchig Mouradian. Khatchig Mouradian is a journalist .", "Khatchig Mouradian"),
        ("Ada J. Byron. Byron was born in London.", "Ada J. Byron"),
        ("A. B. C. Long. He wrote.", "A. B. C. Long"),
        ("John Smith Jr. Painter. He painted.", "John Smith Jr. Painter"),
        ("  Padded Name. Text.\n", "Padded Name"),
        ("A line without an end", "A line without an end"),
        ("One sentence only.", "One sentence only."),
    ],
)
def test_a_head_ends_where_the_first_sentence_does(line: str, head: str) -> None:
    found, body = split_head(line)
    assert found == f" {head}"
    assert found[1:] + body == line.strip()


@given(BODIES)
def test_a_whole_document_stands_between_the_signs_and_is_all_to_be_predicted(ids: np.ndarray) -> None:
    found = whole(ids, SIGNS)
    assert found.ids.tolist() == [90, *ids.tolist(), 92]
    assert found.first == 1


@given(BODIES.filter(lambda ids: len(ids) >= 4), SEEDS)
def test_a_moved_span_loses_no_token(ids: np.ndarray, seed: int) -> None:
    found = with_span_moved(ids, SIGNS, np.random.default_rng(seed)).ids
    assert sorted(found[1:-1]) == sorted([*ids.tolist(), 91, 91])


@given(BODIES, SEEDS)
def test_what_is_recalled_are_some_whole_words_of_the_body(body: np.ndarray, seed: int) -> None:
    head = np.array([5, 6])
    ids, first = recalled(head, body, BEGINS, SIGNS, np.random.default_rng(seed))
    assert ids[:first].tolist() == [90, 5, 6, 91]
    assert ids[-1] == 92
    span = ids[first:-1].tolist()
    text = body.tolist()
    places = [at for at in range(len(text)) if text[at : at + len(span)] == span]
    assert places
    if SPACE in text:
        assert span[0] == SPACE
        assert span.count(SPACE) <= RECALLED_WORDS
        ends = [at + len(span) for at in places]
        assert any(end == len(text) or text[end] == SPACE for end in ends)
    else:
        assert span == text


@given(BODIES, SEEDS)
def test_naming_is_recalling_the_other_way_round(body: np.ndarray, seed: int) -> None:
    head = np.array([5, 6])
    ids, first = recalled(head, body, BEGINS, SIGNS, np.random.default_rng(seed))
    backwards = named(head, body, BEGINS, SIGNS, np.random.default_rng(seed))
    assert backwards.ids.tolist() == [90, *ids[first:-1].tolist(), 91, 5, 6, 92]
    assert backwards.first == len(ids) - first + 1


def test_every_word_of_a_body_is_recalled_now_and_then() -> None:
    body = np.array([1, 10, 1, 11, 1, 12, 1, 13])
    generator = np.random.default_rng(0)
    found = [recalled(np.array([5]), body, BEGINS, SIGNS, generator).ids[3:-1].tolist() for _ in range(200)]
    assert {span[1] for span in found} == {10, 11, 12, 13}
    assert {len(span) // 2 for span in found} == {1, 2, 3, 4}


def test_a_closed_book_asks_for_the_answer_and_an_open_one_for_all() -> None:
    prompt, answer = np.array([3, 4, 91]), np.array([1, 7])
    closed, opened = answered(prompt, answer, SIGNS), read_and_answered(np.array([8, 9]), prompt, answer, SIGNS)
    assert (closed.ids.tolist(), closed.first) == ([90, 3, 4, 91, 1, 7, 92], 4)
    assert (opened.ids.tolist(), opened.first) == ([90, 8, 9, 3, 4, 91, 1, 7, 92], 1)


def test_what_is_too_long_still_has_something_to_predict() -> None:
    long = answered(np.array([3, 4, 91]), np.array([1, 7]), SIGNS)
    for most, ids, first in (
        (9, [90, 3, 4, 91, 1, 7, 92], 4),
        (6, [90, 3, 4, 91, 1, 7], 4),
        (5, [90, 3, 4, 91, 1], 4),
        (3, [4, 91, 1], 2),
    ):
        found = shortened(long, most)
        assert (found.ids.tolist(), found.first) == (ids, first)


@given(st.text("abc", max_size=30), st.text("abc", min_size=1, max_size=3), st.text("xy", max_size=3))
def test_replacing_tokens_is_replacing_letters(text: str, old: str, new: str) -> None:
    ids, before, after = (np.array([ord(letter) for letter in part], np.int64) for part in (text, old, new))
    found = "".join(map(chr, replaced(ids, before, after).tolist()))
    assert found == text.replace(old, new)


@pytest.mark.parametrize("kind", ["character", "byte", "bpe"])
def test_words_begin_with_a_space(kind: str) -> None:
    tokeniser = train_tokeniser(kind, [["a cat sat on a mat\n"] * 20], 300 if kind == "bpe" else None)
    begins = word_starts(tokeniser)
    ids = tokeniser.encode([" cat sat"]).ids
    assert begins[ids].sum() == 2
    assert not begins[tokeniser.begin]

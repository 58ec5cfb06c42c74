"""Surprise along a text: every bit and every byte in its place, and two models compared whatever their tokens."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inkling.errors import InklingError
from inkling.explain import surprise as module
from inkling.explain.surprise import Surprise, compare, level, saved_level, surprise
from inkling.measure.tally import tally
from inkling.models.ngram import NGram, NGramConfig
from inkling.models.spelling import Speller
from inkling.text.grammar import grammar_text
from inkling.text.normalise import Chain
from inkling.text.tokenise import train_tokeniser

LINES = grammar_text(np.random.default_rng(7), 2000).splitlines(keepends=True)
TEXTS = st.lists(
    st.sampled_from([" ", "\n", "the", " baker", "The", ".", "é", "🦑", "qwx", "東", "\t", "\r", "e\u0301"]),
    max_size=12,
).map("".join)


@cache
def counted(kind: str, order: int, vocabulary: int | None = None, chain: str = "none") -> NGram:
    cleaner = Chain.parse(chain)
    lines = [cleaner(line) for line in LINES]
    tokeniser = train_tokeniser(kind, [lines], vocabulary)
    speller = Speller.fit(tokeniser.encode(lines).spellings, tokeniser)
    return NGram.fit([tokeniser.encode(lines)], tokeniser, NGramConfig(order), cleaner, speller)


def words() -> NGram:
    return counted("word", 2, 80)


def characters() -> NGram:
    return counted("character", 4)


def made(text: str, pieces: list[str], bits: list[float], name: str = "a", documents: int = 1) -> Surprise:
    """A surprise written down by hand; documents, when several, are the lines."""
    assert "".join(pieces) == text
    ends = [len(part.encode()) for part in (text.splitlines(keepends=True) if documents > 1 else [text])]
    return Surprise(
        model=name,
        text_name="t",
        normalisation="none",
        text=text,
        bits=np.array(bits),
        byte_ends=np.cumsum([len(piece.encode()) for piece in pieces], dtype=np.int64),
        unknown=np.zeros(len(pieces), np.bool_),
        document_ends=np.cumsum(ends, dtype=np.int64),
        original_bytes=len(text.encode()),
    )


# ------------------------------------------------------------------------------------------------ one model


def test_the_bits_are_those_of_the_score_with_spellings() -> None:
    text = "The baker saw Xqzzv.\nA dog 東京.\n"
    found = surprise(words(), [text])
    scores = words().score([text])
    assert found.bits == pytest.approx((scores.nats + scores.spelling_nats) / np.log(2))
    assert found.total_bits / found.original_bytes == found.bits_per_byte
    assert found.bits_per_byte == pytest.approx(tally(scores).bits("byte"))
    unknown = [text.encode()[s:e].decode() for s, e in zip(found.starts, found.byte_ends, strict=True)]
    assert " Xqzzv" in [piece for piece, new in zip(unknown, found.unknown, strict=True) if new]


@settings(deadline=None, max_examples=25)
@given(st.lists(TEXTS, max_size=4), st.sampled_from(["word", "character", "byte"]))
def test_every_byte_belongs_to_one_mark_and_no_bit_is_lost(texts: list[str], kind: str) -> None:
    model = {"word": words(), "character": characters(), "byte": counted("byte", 3)}[kind]
    found = surprise(model, texts)
    marks = list(found.marks())
    assert "".join(mark.text for mark in marks) == found.text == "".join(texts)
    assert sum(mark.bits for mark in marks) == pytest.approx(found.total_bits)
    assert sum(mark.tokens for mark in marks) == len(found.bits)
    rows = list(found.token_rows())
    assert [row["end"] for row in rows] == found.byte_ends.tolist()
    assert all(a["end"] == b["start"] for a, b in pairwise(rows))


def test_bytes_of_one_character_are_drawn_as_one() -> None:
    found = surprise(counted("byte", 3), ["a東b"])
    assert [(mark.text, mark.tokens) for mark in found.marks()] == [("a", 1), ("東", 3), ("b", 1)]
    assert [row["text"] for row in found.token_rows()] == ["a", "\ufffd", "\ufffd", "\ufffd", "b"]


def test_the_text_is_shown_as_the_model_saw_it_and_divided_by_the_original_bytes() -> None:
    model = counted("word", 2, 80, "lower")
    found = surprise(model, ["The CAFÉ\n"], chain=Chain.parse("ascii"))
    assert found.text == "the cafe\n"
    assert found.normalisation == "ascii,lower"
    assert (found.original_bytes, len(found.raw)) == (10, 9)
    assert "normalised by ascii,lower" in found.table().notes[1]


def test_documents_are_scored_each_by_itself_and_laid_end_to_end() -> None:
    found = surprise(characters(), ["The", "", "The"])
    assert found.text == "TheThe"
    assert found.document_ends.tolist() == [3, 3, 6]
    assert found.bits[:3].tolist() == found.bits[3:].tolist()
    assert [mark.text for mark in found.marks() if mark.ends_document] == ["e", "e"]


def test_the_most_surprising_places_come_first_with_their_line() -> None:
    found = made("ab\ncd\n", ["ab", "\n", "c", "d", "\n"], [2.0, 1.0, 7.0, 0.5, 0.1])
    table = found.table(2)
    assert table.rows == ((7.0, "ab↵«c»d↵", 2, False), (2.0, "«ab»↵cd↵", 1, False))
    assert "1.767 bits per byte (11 bits for 6 bytes, 5 tokens, 0 unknown)" in table.notes[0]


def test_rows_without_line_ends_are_lines_all_the_same() -> None:
    found = surprise(characters(), ["The", "", "Xq"])
    [(_, where, line, _)] = found.table(1).rows
    assert ("X" in str(where), line) == (True, 3)


def test_the_course_has_the_mean_of_the_whole() -> None:
    found = surprise(characters(), ["".join(LINES[:100])])
    _, bits = found.course()
    assert np.mean(bits) == pytest.approx(found.bits_per_byte, rel=0.02)  # stretches differ by a byte
    x, bits = made("a" * 400, ["a" * 100, "a" * 300], [100.0, 600.0]).course()
    assert x == [50, 150, 250, 350]
    assert bits == pytest.approx([1, 2, 2, 2])


def test_no_text_has_no_bits() -> None:
    found = surprise(characters(), [])
    assert (found.total_bits, list(found.marks()), found.table().rows) == (0.0, [], ())
    assert np.isnan(found.bits_per_byte)


def test_a_text_too_long_to_look_at_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST_CHARS", 10)
    with pytest.raises(InklingError, match=r"book\.txt has more than 10 characters.*inkling score"):
        surprise(characters(), ["123456", "123456"], text_name="book.txt")


def test_a_notebook_sees_the_table_with_text_escaped() -> None:
    shown = made("<b>x", ["<b>", "x"], [3.0, 1.0])._repr_html_()
    assert "«&lt;b&gt;»x" in shown
    assert "<b>" not in shown


def test_shades_double_from_one_bit() -> None:
    assert [level(bits) for bits in (0, 0.99, 1, 1.9, 2, 4, 8, 15.9, 16, 300)] == [0, 0, 1, 1, 2, 3, 4, 4, 5, 5]
    assert [saved_level(bits) for bits in (0, 0.5, -0.5, 1, -1, 3, -5, 99, -99)] == [0, 0, 0, 1, -1, 2, -3, 4, -4]


# ------------------------------------------------------------------------------------------------ two models


def test_a_token_is_spread_over_the_words_that_it_covers() -> None:
    first = made("ab cd", ["ab", " cd"], [2.0, 6.0])
    second = made("ab cd", ["a", "b c", "d"], [1.0, 9.0, 4.0], "b")
    found = compare(first, second)
    # Of the 9 bits of "b c" three go to each of its bytes, and the space belongs to the word after it.
    assert found.unit == "word"
    assert [(mark.text, mark.bits) for mark in found.marks()] == [("ab", 2.0), (" cd", 4.0)]
    assert found.first_bits.tolist() == [2.0, 6.0]
    assert found.second_bits.tolist() == [4.0, 10.0]
    assert found.total_saved_bits == 6.0
    assert list(found.unit_rows())[1] == {
        "text": " cd",
        "start": 2,
        "end": 5,
        "first_bits": 6.0,
        "second_bits": 10.0,
        "saved_bits": 4.0,
    }


def test_lists_name_the_places_where_each_knows_more() -> None:
    first = made("x y\nz w\n", ["x", " y", "\n", "z", " w", "\n"], [1.0, 5.0, 0.0, 2.0, 1.0, 0.0], "left")
    second = made("x y\nz w\n", ["x", " y", "\n", "z", " w", "\n"], [1.0, 1.0, 0.0, 9.0, 3.0, 0.0], "right")
    found = compare(first, second)
    more, less = found.tables()
    assert more.title == "Words where left knows more than right"
    assert more.rows == ((7.0, 2.0, 9.0, "x y↵«z» w↵", 2), (2.0, 1.0, 3.0, "x y↵z «w»↵", 2))
    assert less.rows == ((4.0, 1.0, 5.0, "x «y»↵z w↵", 1),)
    assert [column.heading for column in less.columns][1:3] == ["right (bits)", "left (bits)"]
    lines = found.by_line()
    assert [(mark.text, mark.bits) for mark in lines.marks()] == [("x y\n", -4.0), ("z w\n", 9.0)]
    assert lines.by_line() is lines
    assert "left needs 1.125 bits per byte on t, right 1.750: 5 bits saved in all" in found.summary()
    assert "left knows more at 40% of the 5 words" in found.summary()  # the last "word" is the line end
    shown = found._repr_html_()
    assert shown.index("left knows") < shown.index("right knows")


def test_a_model_against_itself_saves_nothing() -> None:
    one = surprise(words(), ["The baker sees.\n"], model_name="a")
    found = compare(one, one)
    assert found.saved_bits.tolist() == [0.0] * len(found.ends)
    assert found.tables()[0].rows == ()
    assert "need the same" in found.summary()


@settings(deadline=None, max_examples=25)
@given(st.lists(TEXTS, max_size=4))
def test_words_and_lines_of_any_tokens_sum_to_the_whole(texts: list[str]) -> None:
    first, second = surprise(words(), texts), surprise(counted("byte", 3), texts)
    for found in (compare(first, second), compare(first, second).by_line()):
        assert found.first_bits.sum() == pytest.approx(first.total_bits)
        assert found.second_bits.sum() == pytest.approx(second.total_bits)
        assert "".join(mark.text for mark in found.marks()) == "".join(texts)
        assert all(mark.text for mark in found.marks())


def test_models_that_normalise_differently_are_compared_line_by_line() -> None:
    text = "The baker.\n\nA DOG\n!!!"
    first = surprise(words(), [text], model_name="a")
    second = surprise(counted("word", 2, 80, "letters,lower"), [text], model_name="b")
    found = compare(first, second)
    assert found.unit == "line"
    assert [mark.text for mark in found.marks()] == ["The baker.\n", "\n", "A DOG\n", "!!!"]
    assert found.second_bits.sum() == pytest.approx(second.total_bits)


def test_different_documents_are_refused() -> None:
    with pytest.raises(InklingError, match="one text only"):
        compare(surprise(words(), ["a"]), surprise(words(), ["a", "b"]))

"""Two models on one text as the page Compare shows them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from inkling.errors import UsageError
from inkling.explain.surprise import compare, level, saved_level, surprise
from inkling.models.ngram import NGram, NGramConfig
from inkling.models.spelling import Speller
from inkling.studio.tasks_files import look_at_file
from inkling.studio.views_compare import cut, lay_side_by_side, legends, read, split
from inkling.text.grammar import grammar_text
from inkling.text.tokenise import train_tokeniser

LINES = grammar_text(np.random.default_rng(7), 600).splitlines(keepends=True)
TEXTS = ["The baker bakes a quiche.\n", "Straße 東京", "The sailor steers the boat."]


@cache
def counted(kind: str, order: int) -> NGram:
    tokeniser = train_tokeniser(kind, [LINES], 60 if kind == "word" else None)
    speller = Speller.fit(tokeniser.encode(LINES).spellings, tokeniser)
    return NGram.fit([tokeniser.encode(LINES)], tokeniser, NGramConfig(order), speller=speller)


def test_pieces_are_the_text_with_the_bits_and_shades_of_its_tokens() -> None:
    model = counted("word", 3)
    reading = read(model, "words", TEXTS, "three texts")
    found = surprise(model, TEXTS)
    assert "".join(text for text, _, _ in reading.pieces) == "".join(f"{text.rstrip()}\n" for text in TEXTS)
    for (_, shade, note), mark in zip(reading.pieces, found.marks(), strict=True):
        assert note.startswith(f"{mark.bits:.2f} bits")
        assert shade.split(" ")[0] == (f"s{level(mark.bits)}" if level(mark.bits) else "u" if mark.unknown else "")
        assert shade.endswith("u") == mark.unknown


def test_each_piece_is_asked_about_in_its_own_text_and_agrees_with_its_bits() -> None:
    model = counted("word", 3)
    reading = read(model, "words", TEXTS, "three texts")
    marks = list(surprise(model, TEXTS).marks())
    starts = [i for i, piece in enumerate(reading.pieces) if piece[0].startswith("The")]
    assert len(starts) == 2
    assert reading.likeliest(starts[0]) == reading.likeliest(starts[1]), "each text begins as any text does"
    for number, mark in enumerate(marks):
        chosen = [choice for choice in reading.likeliest(number) if choice.chosen]
        assert bool(chosen) != mark.unknown
        if chosen:
            assert -np.log2(chosen[0].share) == pytest.approx(mark.bits)
            assert chosen[0].text == mark.text


def test_a_character_of_several_tokens_is_one_piece_asked_about_where_it_begins() -> None:
    model = counted("byte", 3)
    reading = read(model, "bytes", ["a東b"], "text")
    assert [piece[0] for piece in reading.pieces] == ["a", "東", "b\n"]
    assert reading.firsts == (0, 1, 4)
    assert reading.pieces[1][2].endswith("bits, 3 tokens")
    assert [choice.text for choice in reading.likeliest(1) if choice.chosen] == ["\\xe6"]
    assert [choice.text for choice in reading.likeliest(2) if choice.chosen] == ["b"]


def test_differences_are_shaded_by_who_knows_more() -> None:
    models, names = (counted("word", 3), counted("character", 4)), ("words", "letters")
    found = lay_side_by_side(models, names, TEXTS, "three texts")
    whole = compare(*(surprise(model, TEXTS) for model in models))
    assert len(found.differences) == len(whole.ends)
    for (_, shade, note), saved in zip(found.differences, whole.saved_bits.tolist(), strict=True):
        wanted = saved_level(saved)
        assert shade == (f"f{wanted}" if wanted > 0 else f"a{-wanted}" if wanted else "")
        assert note.endswith(f"{'words' if saved >= 0 else 'letters'} saves {abs(saved):.2f}")
    assert {shade[:1] for _, shade, _ in found.differences} >= {"f", "a"}, "each knows more somewhere"


def test_what_cannot_be_compared_is_said() -> None:
    model = counted("word", 3)
    with pytest.raises(UsageError, match="There is no text"):
        lay_side_by_side((model, model), ("a", "b"), [""], "nothing")
    with pytest.raises(UsageError, match="Both sides are 'a'"):
        lay_side_by_side((model, model), ("a", "a"), TEXTS, "texts")


def test_legends_name_each_shade_once() -> None:
    of_surprise, of_saving = legends(("one", "two"))
    assert [shade for _, shade, _ in of_surprise] == ["", "s1", "s2", "s3", "s4", "s5"]
    assert [shade for _, shade, _ in of_saving] == ["f1", "f2", "f3", "f4", "a1", "a2", "a3", "a4"]
    assert of_surprise[0][0] == "below 1"
    assert of_saving[0][0] == "one saves 1–2"


def test_a_long_text_is_cut_within_a_document() -> None:
    assert cut(["abc", "defg", "h"], 5) == ["abc", "de"]
    assert cut(["abc", "de"], 5) == ["abc", "de"]
    assert split("abcdefg", [3, 10]) == ["abc", "defg"]
    assert split("abc", [3, 10, 4]) == ["abc"]


def test_the_rows_of_a_table_stay_documents_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("text\none\ntwo lines\n", encoding="utf-8")
    looked = look_at_file({"path": str(path)}, lambda done, sentence: None)
    assert split(looked["text"], looked["lengths"]) == ["one", "two lines"]

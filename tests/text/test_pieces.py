"""The arithmetic cuts exactly as the regular expression does, whatever the text and however it comes in parts."""

from __future__ import annotations

import re
from typing import get_args

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from inkling.text import pieces
from inkling.text.pieces import Cutter, Pieces, count_words, piece_pattern

ODD = "abT tsé\u0301\u0308'’\"—1٣²½ \t\r\n\u2028\x00\x85\u3000\u200d\ufe0f中カがกิ々🙂👩💻\ud7ff\U000e0100\u0378<unk>_"
several = st.lists(st.text(max_size=30) | st.text(ODD, max_size=30), max_size=5)
both_cuts = pytest.mark.parametrize("cut", get_args(Pieces))
CUTTERS = {cut: Cutter(piece_pattern(cut)) for cut in get_args(Pieces)}


def pieces_of(cutter: Cutter, texts: list[str]) -> list[list[str]]:
    cuts = cutter.cut(texts)
    assert cuts.raw == "".join(texts).encode()
    found = [piece.decode() for piece in cuts.pieces(np.arange(len(cuts.starts)))]
    assert cuts.offsets[-1] == len(found)
    return [found[cuts.offsets[i] : cuts.offsets[i + 1]] for i in range(len(texts))]


def by_expression(cutter: Cutter, texts: list[str]) -> list[list[str]]:
    return [re.findall(cutter.pattern, text) for text in texts]


@both_cuts
@settings(deadline=None, max_examples=600)
@given(texts=several)
@example(texts=[])
@example(texts=["", "", ""])
@example(texts=["a ", "b", " ", "\n", "\u0301a", "1\u0301\u03011", "! \u0301 \t 中  中\t a"])
@example(texts=["a  \n", "\u3000 a", "a\u3000 \u3000中", " \r\n", "٣\u0301٣a", "🙂\U000e0100🙂\U000e0100é"])
def test_the_arithmetic_cuts_as_the_expression_does(cut: Pieces, texts: list[str]) -> None:
    assert pieces_of(CUTTERS[cut], texts) == by_expression(CUTTERS[cut], texts)


@both_cuts
def test_every_character_is_cut_alike_among_neighbours_of_every_kind(cut: Pieces) -> None:
    cutter = CUTTERS[cut]
    codes = [*range(0x3400), *range(0xA000, 0xAC00), *range(0xF900, 0x11100), 0x1F642, 0x20000, 0xE0100, 0x10FFFF]
    texts = [f"a{c}b1{c}2 {c}!{c}?\t{c} 中{c}中{c}{c}\u0301 {c}\n" for c in map(chr, codes)]
    assert pieces_of(cutter, texts) == by_expression(cutter, texts)


@both_cuts
def test_a_text_cut_in_blocks_of_lines_is_cut_as_a_whole(cut: Pieces, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "Some words, é\u0301 and 中文.\n \n\tmore 1\u03012 \r\nlast line without an end" * 3
    whole = pieces_of(CUTTERS[cut], [text, text])
    monkeypatch.setattr(pieces, "CUT_BYTES", 8)
    assert pieces_of(CUTTERS[cut], [text, text]) == whole == by_expression(CUTTERS[cut], [text, text])


@both_cuts
def test_the_arithmetic_is_used_for_our_expressions(cut: Pieces) -> None:
    """Were it not, all would be right but slow."""
    assert CUTTERS[cut].kinds is not None


def test_the_classes_are_those_of_the_expression_not_of_this_python() -> None:
    """Saved by a Python that knew ə for no letter and ¤ for a digit."""
    strange = pieces._words_pattern("A-Za-z", "\u0301", "0-9¤", "中")
    cutter = Cutter(strange)
    assert cutter.kinds is not None
    text = "eə 1¤ 中国"
    assert pieces_of(cutter, [text]) == [["e", "ə", " 1¤", " ", "中", "国"]] == by_expression(cutter, [text])


@settings(deadline=None, max_examples=50)
@given(texts=several)
def test_an_expression_of_another_form_is_applied_as_it_stands(texts: list[str]) -> None:
    cutter = Cutter(r"\w+|\W")
    assert cutter.kinds is None
    assert pieces_of(cutter, texts) == by_expression(cutter, texts)


@settings(deadline=None, max_examples=300)
@given(texts=several | st.lists(st.text("ab \n\t", max_size=9), max_size=6))
@example(texts=[])
@example(texts=["a", "b", "", " c", "d ", ""])
@example(texts=["a\ud800 b"])
def test_words_are_counted_as_split_counts_them(texts: list[str]) -> None:
    assert count_words(texts).tolist() == [len(text.split()) for text in texts]


def test_white_space_is_what_python_takes_for_it() -> None:
    white = [c for c in map(chr, range(0x110000)) if c.isspace()]
    assert count_words([f"a{c}b" for c in white]).tolist() == [2] * len(white)
    others = [chr(code) for code in range(0x3100) if not chr(code).isspace()]
    assert count_words([f"a{c}b" for c in others]).tolist() == [1] * len(others)

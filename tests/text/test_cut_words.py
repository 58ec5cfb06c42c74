"""Words as places and hashes: the rules of the module's first page, and a cutter written as a loop that agrees."""

from __future__ import annotations

import itertools
import re
import string
import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inkling.text import words as module
from inkling.text.pieces import UNSPACED_SCRIPTS
from inkling.text.words import TAG, Words, find_words, hash_word

EDGES = "'’nNtTsaA"  # where clitics are cut
SCRIPTS = "éΩя1²٣語がไทéΣς\u0301\u0e31\u200d…!?.,-<>/br İ\n\t\u00a0\u2028😀👍🏽\ufe0f\ue000\u00ad"
TEXTS = st.one_of(
    st.text(EDGES + " ", max_size=30),
    st.text(EDGES + SCRIPTS, max_size=40),
    st.text(max_size=20),
)


def cut(text: str) -> list[str]:
    """The words of one text as they stand in it."""
    found = find_words([text])
    return [text[i:j] for i, j in zip(found.starts.tolist(), found.ends.tolist(), strict=True)]


def hashes(text: str) -> list[int]:
    return [int(value) for value in find_words([text]).hashes]


# ------------------------------------------------------------------------------------------- the loop that agrees


def kind_of(character: str) -> str:
    code, category = ord(character), unicodedata.category(character)
    if category[0] == "M" or character in "\u200c\u200d":
        return "extends"
    if category[0] in "LN":
        return "single" if any(low <= code <= high for low, high in UNSPACED_SCRIPTS) else "letter"
    return "space" if category[0] in "ZC" and category not in ("Co", "Cn") else "mark"


CLITIC = re.compile("'(?:[sdmt]|re|ve|ll)")


def cut_slowly(text: str) -> list[tuple[int, int]]:
    """Where words start and end, letter after letter."""
    plain = TAG.sub(lambda tag: " " * len(tag[0]), text).replace("’", "'")
    plain = "".join(c if len(c.lower()) > 1 else c.lower() for c in plain)
    kinds = [kind_of(character) for character in plain] + ["space"]
    extends = [kind == "extends" for kind in kinds]
    for place, is_extending in enumerate(extends):
        if is_extending:  # what it stands on; a letter where that is nothing
            kinds[place] = kinds[place - 1] if place and kinds[place - 1] != "space" else "letter"
    found: list[tuple[int, int]] = []
    alone = [
        match.start()
        for match in CLITIC.finditer(plain)
        if kinds[match.end()] != "letter" and (not match.start() or kinds[match.start() - 1] != "letter")
    ]
    before = list(kinds)
    for place in alone:
        kinds[place] = "letter"

    def after(place: int) -> int:
        while kinds[place] == "letter":
            place += 1
        return place

    place = 0
    while place < len(plain):
        end = place + 1
        if kinds[place] == "mark":
            while end < len(plain) and kinds[end] == "mark" and (plain[end] == plain[end - 1] or extends[end]):
                end += 1
        if kinds[place] == "single":
            while end < len(plain) and extends[end]:
                end += 1
        if kinds[place] in ("mark", "single"):
            found.append((place, end))
        elif kinds[place] == "letter":
            end = after(place)
            while end < len(plain) and plain[end] == "'" and before[end + 1] == "letter":
                apostrophe, following = end, after(end + 1)
                is_not = plain[apostrophe + 1 : following] == "t" and plain[apostrophe - 1] == "n"
                start = apostrophe - 1 if is_not else apostrophe
                if start > place:
                    found.append((place, start))
                place, end = start, following
            found.append((place, end))
        place = end
    return found


@settings(deadline=None, max_examples=400)
@given(TEXTS)
def test_a_loop_over_letters_finds_the_same_words(text: str) -> None:
    found = find_words([text])
    assert list(zip(found.starts.tolist(), found.ends.tolist(), strict=True)) == cut_slowly(text)


# ------------------------------------------------------------------------------------------- cases


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't panic: it's fine.", ["Do", "n't", "panic", ":", "it", "'s", "fine", "."]),
        ("CAN'T wasn't", ["CA", "N'T", "was", "n't"]),
        ("they'll've", ["they", "'ll", "'ve"]),
        ("don’t it’s", ["do", "n’t", "it", "’s"]),
        ("shouldn't've", ["should", "n't", "'ve"]),
        ("rock 'n' roll", ["rock", "'", "n", "'", "roll"]),
        ("n't is n't", ["n't", "is", "n't"]),  # of text that is cut already
        ("ant'to", ["ant", "'to"]),  # only a lone t denies
        ("the dogs' 'tis", ["the", "dogs", "'", "'", "tis"]),
        ("'", ["'"]),
        ("''", ["''"]),
        ("a''b", ["a", "''", "b"]),
        ("wait... what?!", ["wait", "...", "what", "?", "!"]),
        ("no!!! … --", ["no", "!!!", "…", "--"]),
        ("good<br /><br />bad</p>.", ["good", "bad", "."]),
        ("I <3 you > me", ["I", "<", "3", "you", ">", "me"]),
        ("<" + "a" * 101 + ">", []),
        ("<" + "a" * 102 + ">", ["<", "a" * 102, ">"]),  # too long for a tag
        ("3.14 and 1,000", ["3", ".", "14", "and", "1", ",", "000"]),
        ("abc123 x²", ["abc123", "x²"]),
        ("我爱你 ok", ["我", "爱", "你", "ok"]),
        ("ok我", ["ok", "我"]),
        ("ไทย", ["ไ", "ท", "ย"]),
        ("e\u0301te\u0301 नमस्ते", ["e\u0301te\u0301", "नमस्ते"]),
        ("fun😀😀👍", ["fun", "😀😀", "👍"]),
        ("_a_", ["_", "a", "_"]),
        ("", []),
        (" \t\n\u00a0\u3000", []),
        ("\ud800a\ud800", ["a"]),  # a half of a character, as broken files hold
        ("İstanbul I", ["İstanbul", "I"]),
    ],
)
def test_text_is_cut_as_the_rules_say(text: str, words: list[str]) -> None:
    assert cut(text) == words


def test_words_are_told_apart_by_their_letters_and_not_by_their_case_or_place() -> None:
    first, second, third = hashes("It IT it")
    assert first == second == third == hash_word("it") == hashes("(it)")[1]
    assert hashes("don't")[1] == hashes("CAN’T")[1] == hash_word("n't") == hash_word("N’T")
    assert hashes("it's")[1] == hash_word("'s") == hash_word("’S")
    assert hashes("'s") == [hash_word("'s")]  # of text that is cut already
    assert len({hash_word(word) for word in ("it", "ti", "itt", "i", "t", "'s", "s", "n't", "nt")}) == 9


def test_a_run_of_one_mark_is_one_word_however_long() -> None:
    assert hashes("! !! !!!!") == [hash_word("!")] * 3
    assert hash_word("!!!") == hash_word("!") != hash_word("?")
    assert hashes("......")[0] == hash_word(".") != hash_word("…")


def test_a_letter_that_would_grow_stays_as_it_is() -> None:
    text = "AİB CİD İ"
    found = find_words([text])
    assert [found.spelling(text, i) for i in range(3)] == ["aİb", "cİd", "İ"]
    assert cut(text) == ["AİB", "CİD", "İ"]
    assert hashes(text)[2] == hash_word("İ")
    assert hashes("i")[0] != hash_word("İ")


def test_sigma_hashes_alike_wherever_it_stands() -> None:
    assert hashes("ΟΔΟΣ") == hashes("οδος") == [hash_word("ΟΔΟΣ")]
    assert hashes("Σ") == [hash_word("Σ")]
    assert hashes("İ ΟΔΟΣ")[1] == hash_word("οδος")  # lower-cased letter by letter because of İ
    assert hashes("Α.Σ.")[2] == hash_word("Σ")  # the full stops do not end a word for Python


def test_spelling_is_that_of_the_text_in_small_letters() -> None:
    texts = ["The Cat", "DON’T!!!"]
    found = find_words(texts)
    assert [found.spelling(texts[0], 0), found.spelling(texts[0], 1)] == ["the", "cat"]
    assert [found.spelling(texts[1], i) for i in (2, 3, 4)] == ["do", "n’t", "!!!"]
    assert len(found) == 2
    assert found.lengths.tolist() == [2, 3]


def test_different_words_have_different_hashes() -> None:
    letters = string.ascii_lowercase
    spelled = ["".join(some) for n in (1, 2, 3) for some in itertools.product(letters, repeat=n)]
    spelled += [str(number) for number in range(100_000)]
    found = find_words([" ".join(spelled)])
    assert len(found.hashes) == len(spelled)
    assert len(np.unique(found.hashes)) == len(spelled)
    # Every bit is set in about half of them, so that any of them can serve as keys.
    shares = [((found.hashes >> np.uint64(bit)) & np.uint64(1)).mean() for bit in range(64)]
    assert min(shares) > 0.49
    assert max(shares) < 0.51


# ------------------------------------------------------------------------------------------- laws


@settings(deadline=None, max_examples=200)
@given(TEXTS)
def test_words_lie_in_the_text_in_order_and_apart(text: str) -> None:
    found = find_words([text])
    places = np.stack([found.starts, found.ends], axis=1).ravel()
    assert (found.starts < found.ends).all()
    assert (np.diff(places) >= 0).all()
    assert places.size == 0 or (places[0] >= 0 and places[-1] <= len(text))
    between = "".join(
        text[i:j] for i, j in zip([0, *found.ends.tolist()], [*found.starts.tolist(), len(text)], strict=True)
    )
    assert all(kind_of(character) == "space" for character in TAG.sub("", between))


@settings(deadline=None, max_examples=200)
@given(TEXTS, TEXTS)
def test_a_word_hashes_as_it_does_alone(text: str, other: str) -> None:
    found = find_words([other, text])
    seen: dict[str, int] = {}
    for place in range(int(found.offsets[1]), int(found.offsets[2])):
        spelling = found.spelling(text, place)
        value = int(found.hashes[place])
        assert value == hash_word(spelling) == hash_word(spelling.replace("’", "'"))
        assert seen.setdefault(spelling, value) == value


def same(one: Words, other: Words) -> bool:
    names = ("hashes", "starts", "ends", "offsets")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


@settings(deadline=None, max_examples=100)
@given(st.lists(TEXTS, max_size=6))
def test_many_texts_are_cut_as_each_alone(texts: list[str]) -> None:
    together, apart = find_words(texts), [find_words([text]) for text in texts]
    assert len(together) == len(texts)
    assert together.lengths.tolist() == [len(one.hashes) for one in apart]
    for name in ("hashes", "starts", "ends"):
        assert getattr(together, name).tolist() == [value for one in apart for value in getattr(one, name).tolist()]


@settings(deadline=None, max_examples=60)
@given(st.lists(TEXTS, max_size=8), st.sampled_from([1, 7, 40]))
def test_the_size_of_a_block_changes_nothing(texts: list[str], chars: int) -> None:
    whole = find_words(texts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK_CHARS", chars)
        assert same(find_words(texts), whole)


def test_a_word_at_the_edge_of_a_text_does_not_grow_together_with_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["do", "n't", "", "it", "'s", "!", "!", "<b", ">"]
    alone = [word for text in texts for word in hashes(text)]
    for chars in (1, 4, 1 << 18):
        monkeypatch.setattr(module, "BLOCK_CHARS", chars)
        assert find_words(texts).hashes.tolist() == alone
    assert find_words(texts).lengths.tolist() == [1, 1, 0, 1, 1, 1, 1, 2, 1]


def test_no_texts_have_no_words() -> None:
    found = find_words([])
    assert (len(found), len(found.hashes), found.offsets.tolist()) == (0, 0, [0])


def test_a_long_text_hashes_at_its_end_as_at_its_start() -> None:
    text = "Word " + "other " * 100_000 + "word"  # longer than a block, where powers of the base have long wrapped
    found = find_words([text])
    assert found.hashes[0] == found.hashes[-1] == hash_word("word")
    assert int(found.ends[-1]) == len(text)

"""Runs of words and of characters as keys: the same run the same key, another run another, each where it belongs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inkling.errors import UsageError
from inkling.text.grams import GramConfig, Grams, find_grams, join, key_of
from inkling.text.words import hash_word

WORDS = ["good", "bad", "not", "film", "a", "ok", "wordy", "!", "don't", "我"]
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join), min_size=1, max_size=5)

Run = tuple[str, ...]


def spellings(texts: Sequence[str], grams: Grams) -> list[list[str]]:
    """The words of each text, as text/words.py cuts them."""
    words, found = grams.words, []
    for text, low, high in zip(texts, words.offsets[:-1].tolist(), words.offsets[1:].tolist(), strict=True):
        found.append([words.spelling(text, place) for place in range(low, high)])
    return found


def runs_of(words: Sequence[str], order: int) -> list[Run | None]:
    """The run that starts at each word; none where the text ends before."""
    return [tuple(words[i : i + order]) if i + order <= len(words) else None for i in range(len(words))]


def windows_of(word: str, low: int, high: int) -> list[Run]:
    """The character n-grams of a word, short ones first, each with the number of its characters."""
    marked = ["^", *word, "$"]
    return [tuple(marked[i : i + n]) for n in range(low, high + 1) for i in range(len(marked) - n + 1)]


class Dictionary:
    """One key for each run and one run for each key."""

    def __init__(self) -> None:
        self.key_of: dict[tuple[str, Run], int] = {}

    def agree(self, what: str, run: Run, key: int) -> None:
        assert self.key_of.setdefault((what, run), key) == key

    def assert_all_different(self) -> None:
        assert len(set(self.key_of.values())) == len(self.key_of)


def test_the_same_run_has_the_same_key_and_another_run_another() -> None:
    generator = np.random.default_rng(3)
    texts = [" ".join(generator.choice(WORDS, size=int(n))) for n in generator.integers(0, 12, size=150)]
    config = GramConfig(words=3, low=2, high=4, bits=28)
    grams = find_grams(texts, config)
    known = Dictionary()
    words = [word for of_text in spellings(texts, grams) for word in of_text]
    for order in (1, 2, 3):
        runs = [run for of_text in spellings(texts, grams) for run in runs_of(of_text, order)]
        assert len(runs) == len(grams.runs[order - 1]) == len(words)
        for run, key in zip(runs, grams.runs[order - 1].tolist(), strict=True):
            assert (key == -1) == (run is None)
            if run is not None:
                known.agree("words", run, key)
    for i, word in enumerate(words):
        keys = grams.inside[grams.edges[i] : grams.edges[i + 1]].tolist()
        for window, key in zip(windows_of(word, 2, 4), keys, strict=True):
            known.agree("characters", window, key)
    assert len(known.key_of) > 600
    known.assert_all_different()


@settings(deadline=None, max_examples=60)
@given(TEXTS, st.integers(1, 8))
def test_no_run_crosses_from_one_text_into_the_next(texts: list[str], longest: int) -> None:
    together = find_grams(texts, GramConfig(words=longest))
    alone = [find_grams([text], GramConfig(words=longest)) for text in texts]
    assert len(together.runs) == longest
    for order in range(longest):
        assert together.runs[order].tolist() == [key for one in alone for key in one.runs[order].tolist()]
    for order, keys in enumerate(together.runs, start=1):
        room = [len(words) for words in spellings(texts, together)]
        assert int((keys >= 0).sum()) == sum(max(0, n - order + 1) for n in room)


@settings(deadline=None, max_examples=60)
@given(TEXTS, st.integers(1, 4), st.integers(0, 4))
def test_characters_belong_to_their_word_and_to_nothing_else(texts: list[str], low: int, more: int) -> None:
    config = GramConfig(low=low, high=low + more)
    grams = find_grams(texts, config)
    words = [word for of_text in spellings(texts, grams) for word in of_text]
    assert np.diff(grams.edges).tolist() == [len(windows_of(word, low, low + more)) for word in words]
    for i, word in enumerate(words):
        if word not in ("n't", "'s"):  # these are not found alone
            assert (
                find_grams([word], config).inside.tolist() == grams.inside[grams.edges[i] : grams.edges[i + 1]].tolist()
            )


def test_the_edges_of_a_word_count() -> None:
    grams = find_grams(["word ordw"], GramConfig(low=3, high=3, bits=28))
    first, second = (grams.inside[grams.edges[i] : grams.edges[i + 1]].tolist() for i in (0, 1))
    assert len(first) == len(second) == 4  # ^wo wor ord rd$ and ^or ord rdw dw$
    assert first[2] == second[1]  # ord inside either
    assert len({*first, *second}) == 7  # and nothing else in common: ^or is not ord, nor rd$ rdw


def test_a_word_shorter_than_a_window_has_none_of_that_length() -> None:
    grams = find_grams(["a I ab"], GramConfig(low=4, high=4))
    assert np.diff(grams.edges).tolist() == [0, 0, 1]  # ^ab$
    assert len(find_grams(["a b"], GramConfig(low=9, high=12)).inside) == 0


def test_case_and_the_form_of_the_apostrophe_change_no_key() -> None:
    plain, typeset = (find_grams([text], GramConfig(2, 2, 4)) for text in ("don't STOP", "DON’T stop"))
    assert [keys.tolist() for keys in plain.runs] == [keys.tolist() for keys in typeset.runs]
    assert plain.inside.tolist() == typeset.inside.tolist()


def test_a_run_is_built_from_its_words() -> None:
    """What a table of phrases can rely on: the key of a run, from the hashes of its words."""
    not_, good = (np.array([hash_word(word)], np.uint64) for word in ("not", "good"))
    grams = find_grams(["not good"], GramConfig(words=2, bits=24))
    assert grams.runs[0].tolist() == [*key_of(not_, 1, 24).tolist(), *key_of(good, 1, 24).tolist()]
    assert grams.runs[1].tolist() == [*key_of(join(not_, good), 2, 24).tolist(), -1]
    assert int(key_of(join(not_, good), 2, 24)[0]) != int(key_of(join(good, not_), 2, 24)[0])


@pytest.mark.parametrize("bits", [8, 16, 24, 28])
def test_keys_fill_their_bits_evenly(bits: int) -> None:
    text = " ".join(str(number) for number in range(40_000))
    grams = find_grams([text], GramConfig(words=2, bits=bits))
    for keys in (grams.runs[0], grams.runs[1][:-1]):
        assert keys.min() >= 0
        assert keys.max() < 1 << bits
        counts = np.bincount(keys >> (bits - 8), minlength=256)  # 156 in each on average
        assert float(((counts - counts.mean()) ** 2 / counts.mean()).sum()) < 255 + 5 * np.sqrt(2 * 255)


def test_fewer_bits_are_the_first_of_more() -> None:
    texts = ["one two three"]
    wide, narrow = (find_grams(texts, GramConfig(words=2, low=3, high=3, bits=bits)) for bits in (28, 12))
    assert (wide.inside >> 16).tolist() == narrow.inside.tolist()
    assert (wide.runs[0] >> 16).tolist() == narrow.runs[0].tolist()


@pytest.mark.parametrize("texts", [[], [""], ["", " ", ""], ["a"]])
def test_texts_with_next_to_nothing_in_them(texts: list[str]) -> None:
    grams = find_grams(texts, GramConfig(words=4, low=2, high=5))
    words = sum(len(text.split()) for text in texts)
    assert len(grams) == len(texts)
    assert [len(keys) for keys in grams.runs] == [words] * 4
    assert len(grams.edges) == words + 1
    assert [int((keys >= 0).sum()) for keys in grams.runs] == [words, 0, 0, 0]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"words": 0}, "Runs of 0 words were asked for; give a number from 1 to 8."),
        ({"words": 9}, "Runs of 9 words were asked for; give a number from 1 to 8."),
        ({"low": 3}, "Runs of 3 to 0 characters were asked for"),
        ({"low": 5, "high": 3}, "Runs of 5 to 3 characters were asked for; give 1 ≤ low ≤ high ≤ 12."),
        ({"low": 0, "high": 3}, "Runs of 0 to 3 characters"),
        ({"low": 2, "high": 13}, "Runs of 2 to 13 characters"),
        ({"bits": 7}, "Keys of 7 bits were asked for; give a number from 8 to 28."),
        ({"bits": 29}, "Keys of 29 bits"),
    ],
)
def test_sizes_out_of_range_are_refused(options: dict[str, int], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        GramConfig(**options)

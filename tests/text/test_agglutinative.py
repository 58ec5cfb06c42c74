"""The generated language: few parts, many words, vowels in harmony, the same for the same seed."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest

from inkling.errors import UsageError
from inkling.text.agglutinative import Language, inflect, noun_forms, verb_forms


def written(words: int, seed: int = 0) -> tuple[Language, str]:
    generator = np.random.default_rng(seed)
    language = Language.invent(generator)
    return language, language.text(generator, words)


def test_suffixes_take_the_vowels_of_the_stem() -> None:
    assert inflect("kota", ["lAr", "Un", "dA"]) == "kotalarunda"
    assert inflect("pöme", ["lAr", "Un", "dA"]) == "pömeleründe"
    assert inflect("kota", ["", "", ""]) == "kota"


def test_a_stem_has_60_forms_as_a_noun_and_48_as_a_verb() -> None:
    assert len(set(noun_forms("kota"))) == len(noun_forms("kota")) == 2 * 5 * 6
    assert len(set(verb_forms("pöme"))) == len(verb_forms("pöme")) == 2 * 4 * 3 * 2


def test_no_word_mixes_front_and_back_vowels() -> None:
    _, text = written(3000)
    for word in re.findall(r"\w+", text.lower()):
        assert not (set(word) & set("aou") and set(word) & set("eöü")), word


def test_text_is_whole_sentences_of_known_forms_whose_verb_agrees_with_the_subject() -> None:
    language, text = written(2000)
    nouns = {f: i // 30 for t in language.topics for s in t.nouns for i, f in enumerate(noun_forms(s))}
    verbs = {f: i % 2 for t in language.topics for s in t.verbs for i, f in enumerate(verb_forms(s))}
    assert text.endswith(".\n")
    words = 0
    clear = 0
    for line in text.splitlines():
        assert line[0].isupper()
        assert line.endswith(".")
        *things, act = line[:-1].lower().split()
        words += len(things) + 1
        assert len(things) in (2, 3)
        assert set(things) <= set(nouns)
        assert act in verbs
        clear += nouns[things[0]] == verbs[act]
    assert 2000 <= words <= 2003
    assert clear / len(text.splitlines()) > 0.97  # a form may belong to two stems: kota·um and kotaum


def test_the_same_seed_gives_the_same_text_and_another_seed_another_language() -> None:
    assert written(500) == written(500)
    first, second = written(500, 0)[0], written(500, 1)[0]
    assert first.stems != second.stems
    assert len(set(first.stems)) == len(first.stems) == 6 * 45


def test_most_of_a_new_text_is_made_of_old_parts_but_much_of_it_of_new_words() -> None:
    language, text = written(24_000)
    words = re.findall(r"\w+", text.lower())
    known = {word for word, _ in Counter(words[:20_000]).most_common(2000)}
    unknown = sum(word not in known for word in words[20_000:]) / len(words[20_000:])
    assert 0.15 < unknown < 0.5  # two thousand words are not enough, though there are 270 stems
    assert len(language.stems) < 300


def test_stems_that_cannot_be_made_are_refused() -> None:
    with pytest.raises(UsageError, match="stems were asked for"):
        Language.invent(np.random.default_rng(0), topics=0)
    with pytest.raises(UsageError, match="10,000 at most"):
        Language.invent(np.random.default_rng(0), topics=1000)

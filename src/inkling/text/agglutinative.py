"""A generated language that says with chains of suffixes what English says with small words.

    noun   stem + number + owner + case                kota·lar·un·da     "in your kotas"
    verb   stem + negation + mood + tense + person     peme·se·bür·gü·le  "they could not have pemed"

A suffix takes the vowels of its stem (vowel harmony): A stands for a after a stem with back vowels (a o u) and for e
after one with front vowels (e ö ü), U for u or ü. So one stem has 60 forms as a noun and 48 as a verb, most
words of the language are rare, and a list of words is never long enough; the parts are few and come again all the time.

A sentence has a topic, from which its stems come: subject, perhaps another noun, object, verb. The verb agrees with the
subject in number. Chances fall with the rank as rank^−1.1, for stems as for the choices of a suffix.
Letters ö and ü are two bytes of UTF-8, so that bytes and characters differ.

The same generator gives the same language and the same text. Left out: sound changes at the joints, irregular forms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from inkling.errors import UsageError

CONSONANTS = "tkslmnrpdvbghjz"
HARMONY = {"back": "aou", "front": "eöü"}
NUMBERS = ("", "lAr")
OWNERS = ("", "Um", "Un", "sU", "mUz")
CASES = ("", "dA", "ntA", "nUk", "lU", "kAs")
NEGATION = ("", "sA")
MOODS = ("", "bUr", "jA", "mAk")
TENSES = ("", "gU", "rAt")
PERSONS = ("", "lA")  # one, many: agrees with the subject
NOUN_SLOTS = (NUMBERS, OWNERS, CASES)
VERB_SLOTS = (NEGATION, MOODS, TENSES, PERSONS)
POWER = -1.1
MORE_NOUNS = 0.4  # chance of a noun between subject and object


@dataclass(frozen=True)
class Topic:
    nouns: tuple[str, ...]
    verbs: tuple[str, ...]


@dataclass(frozen=True)
class Language:
    """The stems, by topic. All stems are different."""

    topics: tuple[Topic, ...]

    @classmethod
    def invent(cls, generator: np.random.Generator, topics: int = 6, nouns: int = 30, verbs: int = 15) -> Language:
        """`topics` topics with so many stems each."""
        most = 10_000
        wanted = topics * (nouns + verbs)
        if min(topics, nouns, verbs) < 1 or wanted > most:
            raise UsageError(f"{wanted} stems were asked for; give topics, nouns and verbs, for {most:,} at most.")
        stems: dict[str, None] = {}
        while len(stems) < wanted:
            stems[_stem(generator)] = None
        listed = list(stems)
        size = nouns + verbs
        parts = [listed[i * size : (i + 1) * size] for i in range(topics)]
        return cls(tuple(Topic(tuple(part[:nouns]), tuple(part[nouns:])) for part in parts))

    def text(self, generator: np.random.Generator, words: int) -> str:
        """Whole sentences, a line each, until there are at least `words` words."""
        lines: list[str] = []
        written = 0
        while written < words:
            sentence = self._sentence(generator)
            written += len(sentence)
            lines.append(" ".join(sentence).capitalize() + ".\n")
        return "".join(lines)

    @cached_property
    def stems(self) -> tuple[str, ...]:
        return tuple(stem for topic in self.topics for stem in (*topic.nouns, *topic.verbs))

    def _sentence(self, generator: np.random.Generator) -> list[str]:
        topic = self.topics[_rank(generator, len(self.topics))]
        nouns = 3 if generator.random() < MORE_NOUNS else 2
        choices = [[_rank(generator, len(slot)) for slot in NOUN_SLOTS] for _ in range(nouns)]
        words = [
            inflect(topic.nouns[_rank(generator, len(topic.nouns))], _picked(NOUN_SLOTS, chosen)) for chosen in choices
        ]
        many = choices[0][0]
        acts = [*(_rank(generator, len(slot)) for slot in VERB_SLOTS[:-1]), many]
        words.append(inflect(topic.verbs[_rank(generator, len(topic.verbs))], _picked(VERB_SLOTS, acts)))
        return words


def inflect(stem: str, suffixes: Sequence[str]) -> str:
    """`stem` with its suffixes, their vowels in harmony with those of the stem."""
    front = any(vowel in stem for vowel in HARMONY["front"])
    a, u = ("e", "ü") if front else ("a", "u")
    return stem + "".join(suffixes).replace("A", a).replace("U", u)


def noun_forms(stem: str) -> list[str]:
    return [inflect(stem, suffixes) for suffixes in product(*NOUN_SLOTS)]


def verb_forms(stem: str) -> list[str]:
    return [inflect(stem, suffixes) for suffixes in product(*VERB_SLOTS)]


def _stem(generator: np.random.Generator) -> str:
    """Two syllables, the second perhaps closed: kota, pömer."""
    vowels = HARMONY["front" if generator.random() < 0.5 else "back"]
    letters = [_pick(generator, sound) for sound in (CONSONANTS, vowels, CONSONANTS, vowels)]
    return "".join(letters) + (_pick(generator, CONSONANTS) if generator.random() < 0.5 else "")


def _picked(slots: Sequence[Sequence[str]], choices: Sequence[int]) -> list[str]:
    return [slot[choice] for slot, choice in zip(slots, choices, strict=True)]


def _pick(generator: np.random.Generator, letters: str) -> str:
    return letters[int(generator.integers(len(letters)))]


def _rank(generator: np.random.Generator, size: int) -> int:
    """A number below `size`, the smaller the likelier (Zipf)."""
    bounds = _bounds(size)
    return int(np.searchsorted(bounds, generator.random() * bounds[-1], side="right"))


@cache
def _bounds(size: int) -> NDArray[np.float64]:
    return np.cumsum(np.arange(1, size + 1, dtype=np.float64) ** POWER)

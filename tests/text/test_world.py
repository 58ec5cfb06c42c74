"""The generated reviews and biographies: the same for the same seed, and with something real to learn."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from math import log

import numpy as np
import pytest

from inkling.errors import UsageError
from inkling.text.world import PLACES, biographies, reviews


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def words_and_pairs(text: str) -> set[str]:
    found = re.findall(r"\w+", text.lower())
    return {*found, *(f"{a} {b}" for a, b in pairwise(found))}


def accuracy_of_counting(
    features: Callable[[str], set[str]], train: list[tuple[str, str]], held_out: list[tuple[str, str]]
) -> float:
    """Of naive Bayes over which features are there, with one half added to each count."""
    counts = {
        label: Counter(feature for text, own in train if own == label for feature in features(text))
        for label in ("positive", "negative")
    }

    def leans(text: str) -> float:
        return sum(log((counts["positive"][f] + 0.5) / (counts["negative"][f] + 0.5)) for f in sorted(features(text)))

    return sum((leans(text) > 0) == (label == "positive") for text, label in held_out) / len(held_out)


def test_a_seed_always_gives_the_same_world() -> None:
    rows = reviews(np.random.default_rng(0), 100)
    assert rows[0] == (
        "The Distant Harbour is a film about two sisters and a lost letter. The music was hollow. The script "
        "was not fresh. The dialogue was moving. The cast was quite shallow.",
        "negative",
    )
    assert digest(repr(rows)) == "d82a808e10444c8e"
    lives = biographies(np.random.default_rng(0), 100)
    assert lives.text.splitlines()[0] == (
        "Wanda Fairman. Born in Linfield, Fairman moved to Zell in 1863 to work as a glass blower and is "
        "known for a collection of clocks."
    )
    assert digest(lives.text + repr(lives.pairs_train) + repr(lives.pairs_held_out)) == "e3c47befcc85c946"


def test_reviews_have_two_balanced_labels_and_hardly_repeat() -> None:
    rows = reviews(np.random.default_rng(1), 2000)
    labels = Counter(label for _, label in rows)
    assert set(labels) == {"positive", "negative"}
    assert abs(labels["positive"] - 1000) < 4 * 500**0.5
    assert len({text for text, _ in rows}) > 1900
    assert all("\n" not in text and text.endswith(".") and "  " not in text for text, _ in rows)


def test_reviews_mix_praise_and_blame_and_deny() -> None:
    texts = [text for text, _ in reviews(np.random.default_rng(1), 500)]
    for pattern in (
        r", but the ",
        r", and the ",
        r"was (not|never|hardly) dull",
        r"was not good",
        r"was (very|utterly) ",
    ):
        assert any(re.search(pattern, text) for text in texts), pattern


def test_single_words_tell_much_and_pairs_of_words_more() -> None:
    rows = reviews(np.random.default_rng(2), 5000, noise=0)
    train, held_out = rows[:3500], rows[3500:]
    by_words = accuracy_of_counting(words, train, held_out)
    by_pairs = accuracy_of_counting(words_and_pairs, train, held_out)
    assert 0.70 < by_words < 0.85
    assert by_words + 0.07 < by_pairs < 0.97


def test_noise_is_the_share_of_labels_that_are_wrong() -> None:
    clean, noisy = (reviews(np.random.default_rng(3), 2000, noise=noise) for noise in (0.0, 0.2))
    assert [text for text, _ in clean] == [text for text, _ in noisy]
    wrong = sum(a != b for (_, a), (_, b) in zip(clean, noisy, strict=True))
    assert abs(wrong - 400) < 4 * (2000 * 0.2 * 0.8) ** 0.5
    with pytest.raises(UsageError, match=r"noise is 0\.7"):
        reviews(np.random.default_rng(0), 1, noise=0.7)


def test_everyone_has_one_line_and_one_question() -> None:
    lives = biographies(np.random.default_rng(4), 3000)
    assert (len(lives.pairs_train), len(lives.pairs_held_out)) == (2400, 600)
    lines = lives.text.splitlines()
    assert len(lines) == 3000
    answers = dict([*lives.pairs_held_out, *lives.pairs_train])
    assert len(answers) == 3000  # no two people share a name
    for line in lines:
        name = line.split(".")[0]
        place = answers[f"Where was {name} born?"]
        told = rf"([Bb]orn( on \d+ \w+ \d+)? in|from|\({{0,1}}\d{{4}}) {place}\b"
        assert re.search(told, line), line
        assert sum(bool(re.search(rf"\b{town}\b", line)) for town in PLACES) == 2, line


def test_one_birthplace_is_clearly_the_commonest() -> None:
    lives = biographies(np.random.default_rng(5), 4000)
    for pairs in (lives.pairs_train, lives.pairs_held_out):
        (first, often), (_, less) = Counter(place for _, place in pairs).most_common(2)
        assert first == lives.commonest_place == PLACES[0]
        assert often > 1.15 * less
    # 1/2 of Σ 1/k for k = 2 … 25
    share = sum(place == PLACES[0] for _, place in lives.pairs_train) / len(lives.pairs_train)
    assert share == pytest.approx(0.5 / sum(1 / k for k in range(2, 26)), abs=0.03)


def test_where_one_lived_later_says_nothing_of_the_birthplace() -> None:
    text = biographies(np.random.default_rng(6), 3000).text
    homes = Counter(re.findall(r"(?:lived|died) in ([A-Z]\w+(?: [A-Z]\w+)?)", text))
    assert set(homes) == set(PLACES)


def test_shares_and_numbers_out_of_range_are_refused() -> None:
    rng = np.random.default_rng(0)
    assert len(biographies(rng, 2).pairs_held_out) == 1
    with pytest.raises(UsageError, match=r"names for 2 to 22,000"):
        biographies(rng, 22_001)
    with pytest.raises(UsageError, match="hold out is 1"):
        biographies(rng, 10, held_out=1)

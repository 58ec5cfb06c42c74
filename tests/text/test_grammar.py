"""The grammar: unambiguous, and of exactly the entropy it says."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from math import log

import numpy as np
import pytest

from inkling.errors import InklingError
from inkling.text.grammar import (
    PIECE,
    START,
    grammar,
    grammar_bigram_counts,
    grammar_bigram_nats,
    grammar_entropy,
    grammar_nats,
    grammar_text,
)
from inkling.text.tokenise import piece_pattern

TEXT = grammar_text(np.random.default_rng(3), words=60_000)
LINES = TEXT.splitlines(keepends=True)


def standard_error(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    return float(values.std(ddof=1) / len(values) ** 0.5)


def test_the_first_sentences_of_a_seed_never_change() -> None:
    assert grammar_text(np.random.default_rng(0), words=20) == (
        "A patient baker near the forest bakes every loaf.\n"
        "At night, every young student reads the letter and reads a letter.\n"
    )


def test_text_is_whole_sentences_of_at_least_the_words_asked_for() -> None:
    for words in (1, 50, 500):
        text = grammar_text(np.random.default_rng(1), words)
        assert text.endswith(".\n")
        last = text.splitlines()[-1]
        assert len(text.split()) >= words > len(text.split()) - len(last.split())
    assert grammar_text(np.random.default_rng(1), 0) == ""


def test_the_chances_of_each_state_sum_to_one_and_no_piece_is_written_twice() -> None:
    for state, arcs in grammar().items():
        assert sum(chance for chance, _, _ in arcs) == pytest.approx(1, abs=1e-12), state
        pieces = [piece for _, piece, _ in arcs]
        assert len(set(pieces)) == len(pieces), state


def test_articles_fit_their_words() -> None:
    assert not re.search(r"\b[Aa] [aeiou]", TEXT)
    assert not re.search(r"\b([Ee]very|[Tt]his|[Aa]) (\w+ )?(bakers|sailors|cows|books)\b", TEXT)
    assert not re.search(r"\b([Mm]any|[Tt]hese) (\w+ )?(baker|sailor|cow|book)\b", TEXT)


def test_the_vocabulary_has_hundreds_of_pieces_and_a_rare_tail() -> None:
    counts = Counter(PIECE.findall(TEXT))
    vocabulary = {piece for arcs in grammar().values() for _, piece, _ in arcs}
    assert len(vocabulary) == 369
    assert set(counts) <= vocabulary
    assert sum(count <= 20 for count in counts.values()) > 80


def test_pieces_are_those_of_the_word_tokeniser() -> None:
    assert re.findall(piece_pattern("words"), TEXT) == PIECE.findall(TEXT)
    assert "".join(PIECE.findall(TEXT)) == TEXT


def test_the_probability_of_a_sentence_worked_out_on_paper() -> None:
    # The opener is left out (0.85), then "These" (0.03), no adjective (0.7), all its nouns plural. "potters": workshop
    # 0.1 × rank 5 of 8, that is 5^−3/2 of Σ k^−3/2 for k = 1 … 8. No place (0.75), no adverb (0.8), "measure" rank
    # 3 of 8. "a" (0.22), no adjective (0.7), "pot" rank 4 of 10. Then "." (0.65), and the line end is certain.
    eight, ten = sum(k**-1.5 for k in range(1, 9)), sum(k**-1.5 for k in range(1, 11))
    subject = 0.85 * 0.03 * 0.7 * 0.1 * 5**-1.5 / eight
    verb = 0.75 * 0.8 * 3**-1.5 / eight
    rest = 0.22 * 0.7 * 4**-1.5 / ten * 0.65
    assert grammar_nats("These potters measure a pot.\n") == pytest.approx(-log(subject * verb * rest), rel=1e-12)


def test_what_is_not_a_sentence_is_refused_with_its_line() -> None:
    good = "These potters measure a pot.\n"
    wrong = ["These potter measure a pot.\n", "These potters measures a pot.\n", "These potters measure a cow.\n"]
    wrong += ["these potters measure a pot.\n", "These potters  measure a pot.\n", "These potters", "\n", good[:-1]]
    for line in wrong:
        with pytest.raises(InklingError, match="Line 2 is not a sentence"):
            grammar_nats(good + line)
    assert grammar_nats(good * 3) == pytest.approx(3 * grammar_nats(good))
    assert grammar_nats("") == 0


def test_sentences_cost_their_entropy_on_average() -> None:
    nats = np.array([grammar_nats(line) for line in LINES])
    assert abs(nats.mean() - grammar_entropy().nats_per_sentence) < 4 * standard_error(nats)


def test_sentences_have_the_expected_length() -> None:
    entropy = grammar_entropy()
    for expected, lengths in (
        (entropy.tokens_per_sentence, [len(PIECE.findall(line)) for line in LINES]),
        (entropy.words_per_sentence, [len(line.split()) for line in LINES]),
        (entropy.bytes_per_sentence, [len(line.encode()) for line in LINES]),
    ):
        values = np.array(lengths, dtype=np.float64)
        assert abs(values.mean() - expected) < 4 * standard_error(values)


def test_the_rates_are_the_entropy_over_its_denominators() -> None:
    entropy = grammar_entropy()
    assert entropy.nats_per_token == pytest.approx(1.7252, abs=1e-4)
    assert entropy.nats_per_word == pytest.approx(2.1843, abs=1e-4)
    assert entropy.bits_per_byte == pytest.approx(0.5679, abs=1e-4)
    assert entropy.nats_per_token * entropy.tokens_per_sentence == pytest.approx(entropy.nats_per_sentence)
    assert entropy.bits_per_byte * entropy.bytes_per_sentence * log(2) == pytest.approx(entropy.nats_per_sentence)


def test_expected_pairs_of_pieces_are_the_counted_ones() -> None:
    expected = grammar_bigram_counts()
    assert sum(expected.values()) == pytest.approx(grammar_entropy().tokens_per_sentence)
    assert sum(count for (first, _), count in expected.items() if first == "\n") == pytest.approx(1)
    counted = Counter(pairwise(["\n", *PIECE.findall(TEXT)]))
    assert set(counted) <= set(expected)
    for pair, count in counted.most_common(40):
        mean = expected[pair] * len(LINES)
        assert abs(count - mean) < 5 * mean**0.5, pair


def test_a_bigram_must_pay_more_than_one_who_remembers_the_subject() -> None:
    assert grammar_bigram_nats() == pytest.approx(2.1748, abs=1e-4)
    assert grammar_bigram_nats() > grammar_entropy().nats_per_token + 0.4


def test_the_verb_depends_on_a_subject_many_words_before_it() -> None:
    table = {state: {piece: target for _, piece, target in arcs} for state, arcs in grammar().items()}

    def after(text: str) -> set[str]:
        state = START
        for piece in PIECE.findall(text):
            state = table[state][piece]
        return set(table[state])

    assert " bakes" in after("The baker near the mill often")
    assert after("The baker near the mill often").isdisjoint(after("The bakers near the mill often"))
    assert after("The baker near the mill often").isdisjoint(after("The farmer near the mill often"))

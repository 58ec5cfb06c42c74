"""Verdicts and coloured words as the studio shows them: the text itself in pieces, and the figures of the library."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from inkling.errors import InklingError
from inkling.explain.weighing import weigh
from inkling.explain.words import explain
from inkling.models.dan import AveragingNetwork
from inkling.studio.views_classify import Wanted, judge, opening, pairs_of, ranges, tell_mistake

TEXT = "A dull, dull story. But the zebra was fine!\n"


@pytest.fixture(scope="module")
def network() -> AveragingNetwork:
    from inkling.estimator import DAN

    texts = ["a fine film", "a dull film", "fine acting", "dull and slow", "a fine plot", "so dull", "fine", "dull"]
    labels = ["good", "bad"] * 4
    network: AveragingNetwork = DAN().fit(texts, labels).network_
    return network


def test_the_pieces_are_the_text(network: AveragingNetwork) -> None:
    told = judge(network, None, TEXT).told
    assert "".join(piece.text for piece in told.pieces) == TEXT


def test_a_word_is_shaded_by_its_share_and_says_share_and_effect(network: AveragingNetwork) -> None:
    found = judge(network, None, "a fine film, not dull")
    weighed = found.reasons.weighed
    place = [weighed.text[s:e] for s, e in zip(weighed.starts, weighed.ends, strict=True)].index("fine")
    share, effect = weighed.shares[place], weighed.effects[place]
    sign, label = (1, found.reasons.verdict) if share > 0 else (-1, found.reasons.runner_up)
    piece = next(piece for piece in found.told.pieces if piece.text == "fine")
    assert piece.note == f"{sign * share:.3f} nats for {label}\nleft out alone: {sign * effect:+.3f}"
    reached = sum(abs(share) >= limit for limit in found.told.levels)
    assert reached > 0
    assert piece.shade == f"{'f' if share > 0 else 'a'}{reached}"


def test_probabilities_are_those_of_the_model_and_below_the_threshold_unsure(network: AveragingNetwork) -> None:
    found = judge(network, None, TEXT)
    expected = np.exp(network.log_probs([TEXT]).numpy().astype(float)[0])
    assert found.probabilities == tuple(zip(network.labels, expected.tolist(), strict=True))
    assert not found.unsure
    assert judge(network, found.probability + 1e-9, TEXT).unsure
    assert not judge(network, found.probability, TEXT).unsure


def test_only_the_sentence_that_decided_is_underlined(network: AveragingNetwork) -> None:
    found = judge(network, None, TEXT)
    decider = found.reasons.weighed.decider
    assert decider is not None
    underlined = "".join(piece.text for piece in found.told.pieces if "u" in piece.shade.split())
    assert underlined == found.reasons.weighed.sentence(decider)
    one = judge(network, None, "dull")
    assert not any("u" in piece.shade.split() for piece in one.told.pieces)


def test_an_unknown_word_is_said_to_be_one(network: AveragingNetwork) -> None:
    piece = next(piece for piece in judge(network, None, TEXT).told.pieces if piece.text == "zebra")
    assert piece.shade.startswith("p")
    assert "does not know" in piece.note


def test_a_text_without_words_has_a_verdict_and_no_reasons(network: AveragingNetwork) -> None:
    found = judge(network, None, "")
    assert sum(share for _, share in found.probabilities) == pytest.approx(1)
    assert found.told.pieces == ()


def test_a_long_text_has_notes_where_there_is_a_shade_only(
    network: AveragingNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inkling.studio.views_classify.NOTED_WORDS", 3)
    pieces = judge(network, None, "so film and dull and film").told.pieces
    assert "".join(piece.text for piece in pieces) == "so film and dull and film"
    assert all(bool(piece.note) == (piece.shade[:1] in ("f", "a")) for piece in pieces)
    assert not any(one.shade == other.shade and not one.note and not other.note for one, other in pairwise(pieces))


def test_what_is_too_long_to_draw_is_cut_and_too_long_to_judge_refused(
    network: AveragingNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inkling.studio.views_classify.DRAWN_CHARS", 8)
    pieces = judge(network, None, "so dull and fine").told.pieces
    assert "".join(piece.text for piece in pieces) == "so dull …"
    assert pieces[-1].note == "9 characters more"
    with pytest.raises(InklingError, match="100,001 characters, and 100,000 can be judged"):
        judge(network, None, "x" * 100_001)


def test_a_mistake_is_weighed_against_the_label_given(network: AveragingNetwork) -> None:
    text = "a dull film"
    told = tell_mistake(network, text, "good", "bad", (0.01, 0.02, 0.05, 0.1))
    weighed = weigh(explain(network, [text])[0], network.labels.index("bad"), network.labels.index("good"))
    share = float(weighed.shares[1])
    note = next(piece.note for piece in told.pieces if piece.text == "dull")
    assert note.startswith(f"{share:.3f} nats for bad")


def test_ranges_say_where_shades_begin() -> None:
    assert ranges((0.05, 0.1, 0.25, 0.5)) == ["0.05–0.1", "0.1–0.25", "0.25–0.5", "≥ 0.5"]


MISTAKES: list[dict[str, Any]] = [
    {"row": 1, "label": "a", "verdict": "b", "probability": 0.9, "kind": "narrow decision", "text": "The STRASSE"},
    {"row": 2, "label": "b", "verdict": "a", "probability": 0.8, "kind": "no single cause", "text": "a straße"},
    {"row": 3, "label": "a", "verdict": "b", "probability": 0.7, "kind": "no single cause", "text": "nothing"},
]


@pytest.mark.parametrize(
    ("wanted", "rows"),
    [
        (Wanted(), [1, 2, 3]),
        (Wanted(kind="no single cause"), [2, 3]),
        (Wanted(pair="a → b"), [1, 3]),
        (Wanted(least=0.8), [1, 2]),
        (Wanted(contains="strasse"), [1, 2]),
        (Wanted(rows=frozenset({3, 9})), [3]),
        (Wanted(kind="no single cause", pair="a → b", least=0.75), []),
    ],
)
def test_mistakes_are_chosen_by_all_that_is_asked_for(wanted: Wanted, rows: list[int]) -> None:
    assert [one["row"] for one in wanted.choose(MISTAKES)] == rows


def test_pairs_are_counted_commonest_first() -> None:
    assert list(pairs_of(MISTAKES).items()) == [("a → b", 2), ("b → a", 1)]


def test_an_opening_is_one_line_around_what_was_looked_for() -> None:
    assert opening("one\n two", chars=20) == "one two"
    found = opening("x " * 300 + "needle" + " y" * 300, "NEEDLE", chars=60)
    assert "needle" in found
    assert found.startswith("…")
    assert found.endswith("…")
    assert len(found) == 62

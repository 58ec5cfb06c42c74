"""Whether probabilities can be believed: temperatures that are found again, bins and thresholds counted by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from inkling.errors import InklingError, UsageError
from inkling.measure.calibration import Abstention, Calibration, Words, fit_temperature
from inkling.measure.classification import wilson

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def log_softmax(scores: Floats) -> Floats:
    shifted = scores - scores.max(axis=1, keepdims=True)
    found: Floats = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return found


def drawn(seed: int, rows: int, classes: int = 3, temperature: float = 1.0) -> tuple[Floats, Ints]:
    """Scores, and a truth drawn from softmax(scores / temperature)."""
    generator = np.random.default_rng(seed)
    scores = generator.normal(0, 2, (rows, classes))
    truth: Ints = (scores / temperature + generator.gumbel(size=scores.shape)).argmax(axis=1)
    return scores, truth


def two_classes(confidences: list[float], right: list[bool]) -> tuple[Ints, Floats]:
    """Verdict 0 with these confidences; the truth is 0 where it is right."""
    p = np.array(confidences)
    return np.where(right, 0, 1), np.log(np.column_stack([p, 1 - p]))


def nats(scores: Floats, truth: Ints, temperature: float) -> float:
    """With doubt: of n texts each label is believed n + 1 times in n + 2, the others share the rest."""
    log_probs, doubt = log_softmax(scores / temperature), 1 / (len(truth) + 2)
    believed = np.full(scores.shape, doubt / (scores.shape[1] - 1))
    believed[np.arange(len(truth)), truth] = 1 - doubt
    return -float((believed * log_probs).sum())


# ----------------------------------------------------------------------------------------------- temperature


@pytest.mark.parametrize("temperature", [0.4, 1.0, 2.5])
def test_the_temperature_that_truth_was_drawn_with_is_found_again(temperature: float) -> None:
    scores, truth = drawn(1, 20_000, temperature=temperature)
    assert fit_temperature(scores, truth) == pytest.approx(temperature, rel=0.05)


def test_two_texts_in_closed_form() -> None:
    # scores (1, 0), right 3 times of 4, each label believed 5 times in 6: the best probability is
    # (3 · 5/6 + 1/6) / 4 = 2/3, so 1/T = ln 2
    scores = np.array([[1.0, 0.0]] * 4)
    assert fit_temperature(scores, np.array([0, 0, 0, 1])) == pytest.approx(1 / math.log(2))


def test_a_few_texts_that_all_came_out_right_make_no_certainty() -> None:
    # n texts with scores (2, 0), all right: the best probability is (n + 1) / (n + 2), so 2/T = ln(n + 1)
    assert fit_temperature(np.array([[2.0, 0.0]] * 8), np.zeros(8, int)) == pytest.approx(2 / math.log(9))


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.floats(0.25, 4.0))
def test_scores_times_k_need_k_times_the_temperature(seed: int, k: float) -> None:
    scores, truth = drawn(seed, 300)
    assert fit_temperature(k * scores, truth) == pytest.approx(k * fit_temperature(scores, truth), rel=1e-7)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.integers(2, 40), st.floats(0.1, 50))
def test_no_temperature_nearby_costs_fewer_nats(seed: int, rows: int, spread: float) -> None:
    scores, truth = drawn(seed, rows)
    scores *= spread
    found = fit_temperature(scores, truth)
    assert 0.05 <= found <= 20
    others = [t for t in (found * 0.97, found * 1.03) if 0.05 <= t <= 20]
    assert all(nats(scores, truth, found) <= nats(scores, truth, t) * (1 + 1e-12) + 1e-12 for t in others)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.floats(0.05, 20))
def test_no_verdict_changes_with_the_temperature(seed: int, temperature: float) -> None:
    scores, _ = drawn(seed, 50)
    assert np.array_equal(log_softmax(scores / temperature).argmax(axis=1), scores.argmax(axis=1))


def test_texts_hardly_told_apart_or_always_wrongly_give_the_bounds() -> None:
    scores = np.array([[2.0, 0.0], [0.0, 1.0], [3.0, 0.0]])
    assert fit_temperature(0.01 * scores, np.array([0, 1, 0])) == 0.05
    assert fit_temperature(scores, np.array([1, 0, 1])) == 20.0
    assert fit_temperature(1e6 * scores, np.array([1, 0, 1])) == 20.0


def test_scores_that_say_nothing_keep_temperature_one() -> None:
    assert fit_temperature(np.zeros((4, 3)), np.array([0, 1, 2, 0])) == 1.0


def test_scores_that_are_not_finite_are_refused() -> None:
    with pytest.raises(InklingError, match=r"scores of row 1 \(counted from 0\) are not all finite"):
        fit_temperature(np.array([[0.0, 1.0], [np.nan, 0.0]]), np.array([0, 1]))
    with pytest.raises(InklingError, match=r"shape \(1,\) and the scores \(2, 2\)"):
        fit_temperature(np.zeros((2, 2)), np.array([0]))


# ----------------------------------------------------------------------------------------------- calibration

TWENTY = two_classes([0.6] * 10 + [0.9] * 10, [True] * 5 + [False] * 5 + [True] * 9 + [False])


def test_twenty_texts_in_two_bins_by_hand() -> None:
    found = Calibration.of(*TWENTY, bins=2)
    assert [(b.texts, b.right) for b in found.bins] == [(10, 5), (10, 9)]
    assert [b.confidence for b in found.bins] == pytest.approx([0.6, 0.9])
    assert found.bins[0].accuracy == wilson(5, 10)
    assert found.error == pytest.approx((10 * 0.1 + 10 * 0.0) / 20)
    assert found.overconfidence == pytest.approx(0.05)
    by_chance = (10 * math.sqrt(2 * 0.24 / math.pi / 10) + 10 * math.sqrt(2 * 0.09 / math.pi / 10)) / 20
    assert found.error_by_chance == pytest.approx(by_chance)
    assert found.sentence() == (
        f"Probabilities are off by 5.0 points on average (chance alone would give {100 * by_chance:.1f} on 20 texts); "
        "the classifier is 5.0 points surer than right."
    )


def test_texts_of_equal_confidence_are_never_torn_apart() -> None:
    assert [b.texts for b in Calibration.of(*TWENTY, bins=15).bins] == [10, 10]
    assert [b.texts for b in Calibration.of(*TWENTY, bins=1).bins] == [20]


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.integers(1, 70), st.integers(1, 20), st.booleans())
def test_bins_hold_every_text_once_and_the_order_of_rows_changes_nothing(
    seed: int, rows: int, bins: int, coarse: bool
) -> None:
    scores, truth = drawn(seed, rows)
    log_probs = log_softmax(np.round(scores) if coarse else scores)
    found = Calibration.of(truth, log_probs, bins)
    assert (found.rows, len(found.bins) <= min(bins, rows)) == (rows, True)
    assert sum(b.right for b in found.bins) == (log_probs.argmax(axis=1) == truth).sum()
    shuffled = np.random.default_rng(seed).permutation(rows)
    again = Calibration.of(truth[shuffled], log_probs[shuffled], bins)
    assert [(b.texts, b.right) for b in again.bins] == [(b.texts, b.right) for b in found.bins]
    if not coarse and rows >= bins:
        assert max(b.texts for b in found.bins) - min(b.texts for b in found.bins) <= 1


def test_true_probabilities_have_the_error_of_chance_and_sharpened_ones_more() -> None:
    scores, truth = drawn(3, 5000)
    found = Calibration.of(truth, log_softmax(scores))
    assert found.error == pytest.approx(found.error_by_chance, rel=0.5)
    sharpened = Calibration.of(truth, log_softmax(2 * scores))
    assert sharpened.error > 4 * sharpened.error_by_chance
    assert sharpened.overconfidence > 0.03
    temperature = fit_temperature(2 * scores, truth)
    assert Calibration.of(truth, log_softmax(2 * scores / temperature)).error < 2 * found.error_by_chance


def test_the_chart_sets_accuracy_against_confidence_with_the_diagonal() -> None:
    chart = Calibration.of(*TWENTY, bins=2).chart()
    measured, diagonal = chart.lines
    assert list(measured.x) == pytest.approx([60, 90])
    assert list(measured.y) == pytest.approx([50, 90])
    assert measured.low[0] == pytest.approx(100 * wilson(5, 10).low)
    assert list(diagonal.x) == list(diagonal.y) == pytest.approx([60, 90])
    table = Calibration.of(*TWENTY, bins=2).table()
    assert table.rows[1][:3] == pytest.approx((10, 90, 90))
    record = Calibration.of(*TWENTY, bins=2).to_json()
    assert record["expected_calibration_error"] == pytest.approx(0.05)
    assert record["bins"][0]["accuracy"]["value"] == 0.5


def test_bins_below_one_are_refused() -> None:
    with pytest.raises(UsageError, match="bins is 0; give 1 or more"):
        Calibration.of(*TWENTY, bins=0)


def test_confidences_of_anything_are_judged_alike_and_told_in_its_own_words() -> None:
    confidence, right = [0.9, 0.6, 0.9, 0.6], [True, False, True, True]
    words = Words("questions", "the model", "answers")
    found = Calibration.of_confidences(confidence, right, 2, words)
    assert found.bins == Calibration.of(*two_classes(confidence, right), bins=2).bins
    assert [(b.texts, b.right) for b in found.bins] == [(2, 1), (2, 2)]
    assert "on 4 questions); the model is 0.0 points" in found.sentence()
    assert "answers of like confidence" in found.table().title
    abstention = Abstention.of_confidences(confidence, right, words)
    assert abstention.at(0.7) == Abstention.of(*two_classes(confidence, right)).at(0.7)
    assert abstention.chart().x_label == "questions answered (%)"
    assert "Answers below the threshold are 'unsure'" in abstention.table().notes[0]


def test_confidences_that_are_none_are_refused() -> None:
    with pytest.raises(InklingError, match=r"confidence of row 1 \(counted from 0\) is 1\.5"):
        Calibration.of_confidences([0.5, 1.5], [True, False])
    with pytest.raises(InklingError, match=r"row 0 .* is nan"):
        Abstention.of_confidences([float("nan")], [True])
    with pytest.raises(InklingError, match=r"shape \(2,\) and what is right has shape \(1,\)"):
        Abstention.of_confidences([0.5, 0.5], [True])
    with pytest.raises(InklingError, match="at least one"):
        Calibration.of_confidences([], np.zeros(0, np.bool_))


# ----------------------------------------------------------------------------------------------- unsure

FIVE = two_classes([0.8, 0.55, 0.9, 0.6, 0.8], [True, True, True, False, False])  # surest first: R, R+W, W, R


def test_five_texts_with_a_threshold_by_hand() -> None:
    found = Abstention.of(*FIVE)
    assert found.threshold_for(0.6) is None  # 1 of 1 to 3 of 5 are right, but no interval begins so high
    assert found.threshold_for(0.23) == 0.0  # all five: three are right, 23.1 % to 88.2 %
    assert found.threshold_for(0.0) == 0.0
    at = found.at(0.7)
    assert (at.texts, at.right, at.share, at.accuracy) == (3, 2, 0.6, wilson(2, 3))
    assert math.isnan(found.at(0.95).accuracy.value)
    assert found.at(0.95).texts == 0


def test_equally_sure_texts_are_answered_together() -> None:
    found = Abstention.of(*FIVE)
    assert [found.covering(share).texts for share in (0.2, 0.4, 0.6, 0.8, 1.0)] == [1, 3, 3, 4, 5]
    assert found.covering(1.0).threshold == 0.0


def test_luck_on_a_few_texts_promises_nothing() -> None:
    # Without a mistake, the interval of 72 texts begins at 94.93 %, that of 73 at 95.00 %.
    confidences, right = [0.99] * 72, [True] * 72
    assert Abstention.of(*two_classes(confidences, right)).threshold_for(0.95) is None
    found = Abstention.of(*two_classes([*confidences, 0.9, 0.6], [*right, True, False]))
    assert found.threshold_for(0.95) == pytest.approx(0.9)
    assert found.threshold_for(0.93) == pytest.approx(0.9)
    assert found.threshold_for(0.92) == 0.0  # 73 of 74: 92.7 % or more
    assert found.threshold_for(1.0) is None


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 40), st.floats(0.1, 0.9), st.booleans())
def test_the_threshold_found_is_the_smallest_of_all_that_reach_the_accuracy(
    seed: int, rows: int, accuracy: float, coarse: bool
) -> None:
    scores, truth = drawn(seed, rows)
    log_probs = log_softmax(np.round(scores) if coarse else scores)
    confidence, right = np.exp(log_probs.max(axis=1)), log_probs.argmax(axis=1) == truth
    answered = {t: right[confidence >= t] for t in [0.0, *confidence.tolist()]}
    reaching = [t for t, some in answered.items() if wilson(int(some.sum()), len(some)).low >= accuracy]
    found = Abstention.of(truth, log_probs)
    threshold = found.threshold_for(accuracy)
    assert threshold == (min(reaching) if reaching else None)
    if threshold is not None:
        assert found.at(threshold).texts == (confidence >= threshold).sum()
        assert found.at(threshold).accuracy.low >= accuracy


def test_the_table_has_the_coverages_and_the_accuracy_each_buys() -> None:
    scores, truth = drawn(5, 1000)
    found = Abstention.of(truth, log_softmax(scores))
    rows = found.table().rows
    assert [row[1] for row in rows] == [1000, 950, 900, 800, 700, 500]
    accuracies = [float(row[3] or 0) for row in rows]
    assert accuracies[-1] > accuracies[0] + 10
    assert rows[0][3] == pytest.approx(100 * (scores.argmax(axis=1) == truth).mean())
    [line] = found.chart().lines
    assert (line.x[0], line.x[-1], line.y[-1]) == pytest.approx((5, 100, accuracies[0]))
    assert [point["texts"] for point in found.to_json()["points"]] == [1000, 950, 900, 800, 700, 500]


def test_probabilities_out_of_range_are_refused() -> None:
    found = Abstention.of(*FIVE)
    with pytest.raises(UsageError, match=r"The threshold is 1\.5"):
        found.at(1.5)
    with pytest.raises(UsageError, match="accuracy to reach is 95"):
        found.threshold_for(95)
    with pytest.raises(UsageError, match="share of texts to answer is 0"):
        found.covering(0)

"""How good a classifier is: counts and shares somebody added up by hand, intervals that hold what they promise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from inkling.errors import InklingError, UsageError
from inkling.measure.classification import ClassificationReport, macro_f1_interval, wilson

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def verdicts(said: list[int], classes: int, sure: float = 0.8) -> Floats:
    """Log-probabilities with `sure` on what is said, the rest shared by the other classes."""
    probs = np.full((len(said), classes), (1 - sure) / (classes - 1))
    probs[np.arange(len(said)), said] = sure
    found: Floats = np.log(probs)
    return found


def report(truth: list[int], said: list[int], labels: str = "abc") -> ClassificationReport:
    return ClassificationReport.of(
        tuple(labels), np.array(truth), verdicts(said, len(labels)), name="dan", text_name="test.csv"
    )


def drawn(seed: int, rows: int = 60, classes: int = 4) -> tuple[Ints, Floats]:
    """Texts with their truth, which the scores know a little about."""
    generator = np.random.default_rng(seed)
    scores = generator.normal(size=(rows, classes))
    truth = (scores + generator.gumbel(size=scores.shape)).argmax(axis=1)
    log_probs: Floats = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    return truth, log_probs


SIX = ([0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 1, 0])


def test_six_texts_added_up_by_hand() -> None:
    found = report(*SIX)
    assert found.confusion.tolist() == [[2, 1, 0], [0, 2, 0], [1, 0, 0]]
    assert (found.rows, found.right, found.accuracy.value) == (6, 4, 4 / 6)
    a, b, c = found.classes
    assert (a.precision, a.recall, a.f1) == (2 / 3, 2 / 3, 2 / 3)
    assert (b.precision, b.recall, b.f1) == (2 / 3, 1.0, 4 / 5)
    assert (c.precision, c.recall, c.f1) == (None, 0.0, 0.0)
    assert found.macro_f1.value == pytest.approx((2 / 3 + 4 / 5 + 0) / 3)
    assert found.balanced_accuracy == pytest.approx((2 / 3 + 1 + 0) / 3)
    assert found.nats_per_text == pytest.approx(-(4 * math.log(0.8) + 2 * math.log(0.1)) / 6)
    # right: 0.2² + 2 · 0.1²; wrong: 0.8² + 0.9² + 0.1²
    assert found.brier == pytest.approx((4 * 0.06 + 2 * 1.46) / 6)
    assert (found.majority.label, found.majority_accuracy) == ("a", 0.5)


def test_the_sentence_gives_the_share_its_interval_and_what_a_guess_would_reach() -> None:
    truth = [0] * 500 + [1] * 500
    said = [0] * 459 + [1] * 41 + [1] * 459 + [0] * 41
    low, high = wilson(918, 1000).low, wilson(918, 1000).high
    assert report(truth, said, "np").sentence() == (
        f"dan: 91.8 % of 1,000 texts of test.csv right (95 % {100 * low:.1f} to {100 * high:.1f}); always saying 'n' "
        "would give 50.0 %."
    )


def test_the_summary_has_what_is_reached_without_reading_beside_each_measure() -> None:
    cells = {row[0]: row for row in report(*SIX).summary_table().rows}
    assert cells["accuracy"][2:] == pytest.approx((400 / 6, 100 * wilson(4, 6).low, 100 * wilson(4, 6).high, 50.0))
    # always 'a': F1 of a is 2 · 3 / (3 + 6), of the two others 0
    assert cells["macro-F1"][5] == pytest.approx(100 * (2 / 3) / 3)
    assert cells["balanced accuracy"][5] == pytest.approx(100 / 3)
    entropy = -(1 / 2 * math.log(1 / 2) + 1 / 3 * math.log(1 / 3) + 1 / 6 * math.log(1 / 6))
    assert cells["nats per text"][5] == pytest.approx(entropy)
    assert cells["Brier score"][5] == pytest.approx(1 - (1 / 4 + 1 / 9 + 1 / 36))


def test_a_class_absent_from_the_truth_is_left_out_of_macro_f1_and_that_is_said() -> None:
    found = report([0, 0, 1, 1], [0, 2, 1, 1])
    assert found.macro_f1.value == pytest.approx((2 / 3 + 1) / 2)
    assert found.balanced_accuracy == pytest.approx((1 / 2 + 1) / 2)
    assert (found.classes[2].f1, found.classes[2].recall, found.classes[2].precision) == (None, None, 0.0)
    note = "Classes that never occur in test.csv, left out of macro-F1 and balanced accuracy: 1 of 3 (c); texts wrongly"
    assert any(said.startswith(note) and said.endswith("said to be of them: 1.") for said in found.notes())
    assert found.class_table().rows[2] == ("c", 0, 1, 0, 0.0, None, None, None, None)


def test_a_class_that_is_never_predicted_counts_as_zero_and_that_is_said() -> None:
    found = report(*SIX)
    assert "Classes that occur but were never predicted, so that F1 is 0: 1 of 3 (c)." in found.notes()


def test_of_a_perfect_classifier_no_interval_of_macro_f1_is_claimed_but_wilson_still_doubts() -> None:
    found = report([0, 1, 2] * 5, [0, 1, 2] * 5)
    assert found.macro_f1.value == 1.0
    assert math.isnan(found.macro_f1.low)
    assert found.summary_table().rows[1][3:5] == (None, None)
    assert "Every verdict is right, so resampling cannot say how sure macro-F1 is." in found.notes()
    assert found.accuracy.low == pytest.approx(0.796, abs=1e-3)


def test_probability_zero_for_the_truth_costs_infinitely_many_nats_and_is_counted() -> None:
    with np.errstate(divide="ignore"):
        log_probs = np.log(np.array([[1.0, 0.0], [1.0, 0.0], [0.5, 0.5]]))
    found = ClassificationReport.of(("a", "b"), np.array([0, 1, 1]), log_probs, name="m", text_name="x")
    assert (found.nats_per_text, found.impossible) == (math.inf, 1)
    assert found.brier == pytest.approx((0 + 2 + 0.5) / 3)
    assert "Texts whose true class got probability 0, for infinitely many nats: 1." in found.notes()


def test_a_small_confusion_is_a_matrix_with_truth_in_rows() -> None:
    table = report(*SIX).confusion_table()
    assert [column.title for column in table.columns] == ["truth", "→ a", "→ b", "→ c"]
    assert table.rows == (("a", 2, 1, 0), ("b", 0, 2, 0), ("c", 1, 0, 0))


def test_of_many_classes_the_most_frequent_mistakes_are_listed() -> None:
    labels = "abcdefghijklm"
    truth = [0] * 10 + [1] * 4 + list(range(2, 13))
    said = [0] * 5 + [1] * 3 + [2] * 2 + [1] * 3 + [0] + list(range(2, 13))
    table = report(truth, said, labels).confusion_table()
    assert table.rows == (("a", "b", 3, 30.0), ("a", "c", 2, 20.0), ("b", "a", 1, 25.0))
    assert table.notes == ()


def test_what_is_left_out_of_a_long_list_of_mistakes_is_counted() -> None:
    labels = [f"c{i}" for i in range(30)]
    truth = np.repeat(np.arange(30), 2)
    said = np.where(np.arange(60) % 2 == 0, truth, (truth + 1) % 30)
    found = ClassificationReport.of(labels, truth, verdicts(said.tolist(), 30), name="m", text_name="x")
    table = found.confusion_table()
    assert len(table.rows) == 20
    assert table.notes == ("10 more pairs of classes with 10 mistakes are left out.",)


def test_of_many_classes_the_worst_and_the_best_are_shown_and_the_rest_is_counted() -> None:
    classes = 60
    truth = np.repeat(np.arange(58), 58)  # two classes never occur
    place = np.tile(np.arange(58), 58)
    said = np.where(place < truth, truth, 59)  # class k is right k times of 58
    labels = [f"c{i}" for i in range(classes)]
    found = ClassificationReport.of(labels, truth, verdicts(said.tolist(), classes), name="m", text_name="x")
    table = found.class_table()
    assert [row[0] for row in table.rows] == [f"c{i}" for i in (*range(20), *range(53, 58))]
    assert table.notes[0] == (
        "Shown: 25 of 60 classes, the 20 worst and the 5 best; left out: 33 between them and 2 that never occur."
    )


def test_json_holds_the_counts_that_everything_follows_from() -> None:
    record = report(*SIX).to_json()
    assert record["confusion"] == [
        {"truth": "a", "predicted": "a", "texts": 2},
        {"truth": "a", "predicted": "b", "texts": 1},
        {"truth": "b", "predicted": "b", "texts": 2},
        {"truth": "c", "predicted": "a", "texts": 1},
    ]
    assert (record["rows"], record["right"], record["accuracy"]["value"]) == (6, 4, 4 / 6)
    assert record["classes"][1] == {
        "label": "b",
        "support": 2,
        "predicted": 3,
        "right": 2,
        "precision": 2 / 3,
        "recall": 1.0,
        "f1": 0.8,
    }
    assert record["majority"] == {"label": "a", "accuracy": 0.5}


def test_three_tables_are_shown_and_a_notebook_can_draw_them() -> None:
    tables = report(*SIX).tables()
    assert [table.title for table in tables] == [
        "dan on test.csv (6 texts)",
        "Classes of test.csv",
        "Confusion: truth in rows, verdicts in columns",
    ]
    assert all("<table>" in table._repr_html_() for table in tables)


# ----------------------------------------------------------------------------------------------- laws


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 10**6))
def test_accuracy_is_the_trace_over_the_sum(seed: int) -> None:
    truth, log_probs = drawn(seed)
    found = ClassificationReport.of("wxyz", truth, log_probs, name="m", text_name="x")
    assert found.accuracy.value == found.confusion.trace() / found.confusion.sum()
    assert found.accuracy.value == (log_probs.argmax(axis=1) == truth).mean()
    assert sum(score.support for score in found.classes) == sum(score.predicted for score in found.classes) == 60


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 10**6), st.permutations(range(4)))
def test_another_order_of_the_classes_permutes_the_tables_and_changes_no_figure(seed: int, order: list[int]) -> None:
    truth, log_probs = drawn(seed)
    place = np.argsort(order)
    one = ClassificationReport.of("wxyz", truth, log_probs, name="m", text_name="x")
    labels = ["wxyz"[k] for k in order]
    other = ClassificationReport.of(labels, place[truth], log_probs[:, order], name="m", text_name="x")
    assert np.array_equal(other.confusion, one.confusion[np.ix_(order, order)])
    assert set(other.classes) == set(one.classes)
    assert other.accuracy == one.accuracy
    assert other.macro_f1.value == pytest.approx(one.macro_f1.value)
    assert other.nats_per_text == pytest.approx(one.nats_per_text)
    assert other.brier == pytest.approx(one.brier)


def test_the_same_seed_gives_the_same_interval_and_drawing_rows_that_of_drawing_cells(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    confusion = np.array([[450, 50], [90, 410]])
    by_cells = macro_f1_interval(confusion, np.random.default_rng(1))
    assert macro_f1_interval(confusion, np.random.default_rng(1)) == by_cells
    monkeypatch.setattr("inkling.measure.classification.ROWS_PER_CELL", 1000)
    by_rows = macro_f1_interval(confusion, np.random.default_rng(1))
    assert by_rows.value == by_cells.value
    assert by_rows != by_cells  # it was the other way
    assert by_rows.low == pytest.approx(by_cells.low, abs=0.003)
    assert by_rows.high == pytest.approx(by_cells.high, abs=0.003)


def test_macro_f1_of_equal_classes_with_equal_mistakes_is_as_sure_as_accuracy() -> None:
    confusion = np.array([[450, 50], [50, 450]])
    found, accuracy = macro_f1_interval(confusion, np.random.default_rng(0)), wilson(900, 1000)
    assert found.value == pytest.approx(0.9)
    assert (found.low, found.high) == pytest.approx((accuracy.low, accuracy.high), abs=0.004)


def test_wilson_gives_the_published_bounds_and_stays_within_0_and_1() -> None:
    # 81 of 263 and 15 of 148 are the examples of Newcombe (1998), table I, method 3
    assert (wilson(81, 263).low, wilson(81, 263).high) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert (wilson(15, 148).low, wilson(15, 148).high) == pytest.approx((0.0624, 0.1605), abs=5e-5)
    assert (wilson(0, 20).low, wilson(0, 20).high) == pytest.approx((0.0, 0.1611), abs=5e-5)
    assert (wilson(20, 20).low, wilson(20, 20).high) == pytest.approx((0.8389, 1.0), abs=5e-5)
    assert math.isnan(wilson(0, 0).low)


def test_wilson_holds_the_truth_in_at_least_93_of_100_samples() -> None:
    # over many true shares: at a single one, counts being whole, the promise is missed or exceeded by some per cent
    generator = np.random.default_rng(4)
    for trials in (10, 40, 200, 1000):
        bounds = [wilson(k, trials) for k in range(trials + 1)]
        shares = generator.uniform(0.3, 0.99, 5000)
        counts = generator.binomial(trials, shares)
        held = [bounds[k].low <= share <= bounds[k].high for k, share in zip(counts, shares, strict=True)]
        assert 0.93 <= np.mean(held) <= 0.97


def test_a_macro_f1_interval_holds_the_truth_of_classes_that_are_rare() -> None:
    classes, share = 50, 0.5
    truth = np.full((classes, classes), (1 - share) / (classes - 1) / classes)
    np.fill_diagonal(truth, share / classes)  # support and predictions are balanced, so F1 is 0.5 in every class
    generator = np.random.default_rng(0)
    held = 0
    for _ in range(20):
        confusion = generator.multinomial(1000, truth.ravel()).reshape(classes, classes)
        found = macro_f1_interval(confusion, generator)
        held += found.low <= share <= found.high
    assert held >= 17


# ----------------------------------------------------------------------------------------------- bad input

HALVES = np.log(np.full((2, 2), 0.5))


@pytest.mark.parametrize(
    ("truth", "log_probs", "words"),
    [
        (np.zeros(0, np.int64), np.zeros((0, 2)), "no texts to measure"),
        (np.array([0, 2]), HALVES, "true class of row 1 (counted from 0) is 2, which is outside the 2 labels"),
        (np.array([-1, 0]), HALVES, "true class of row 0 (counted from 0) is -1"),
        (np.array([0, 1, 1]), HALVES, "has shape (3,) and the log-probabilities (2, 2)"),
        (np.array([0.0, 1.0]), HALVES, "of type float64; give whole numbers"),
        (np.array([0, 1]), np.array([[0.5, np.nan], [0.0, -np.inf]]), "row 0 (counted from 0) contain NaN"),
        (np.array([0, 1]), np.array([[0.0, -np.inf], [2.0, 900.0]]), "row 1 (counted from 0) are not those of prob"),
    ],
)
def test_what_cannot_be_measured_is_answered_in_one_sentence(truth: Ints, log_probs: Floats, words: str) -> None:
    with pytest.raises(InklingError) as error:
        ClassificationReport.of(("a", "b"), truth, log_probs, name="m", text_name="x")
    assert words in str(error.value)
    assert str(error.value).endswith(".")


@pytest.mark.parametrize("labels", [("a",), ("a", "b", "c"), ("a", "a")])
def test_every_column_needs_a_label_of_its_own(labels: tuple[str, ...]) -> None:
    with pytest.raises(InklingError, match="for 2 columns of log-probabilities; give a different label"):
        ClassificationReport.of(labels, np.array([0, 1]), HALVES, name="m", text_name="x")


def test_wilson_refuses_counts_that_cannot_be() -> None:
    with pytest.raises(InklingError, match="5 successes in 4 trials"):
        wilson(5, 4)
    with pytest.raises(UsageError, match="level is 95"):
        wilson(1, 4, level=95)

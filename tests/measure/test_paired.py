"""Which of two classifiers is better: coins counted by hand, false alarms counted by simulation."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from inkling.errors import InklingError
from inkling.measure.paired import compare_classifiers, difference_table, mcnemar, mcnemar_p, paired_interval

Bools = NDArray[np.bool_]


def rights(both: int, only_a: int, only_b: int, neither: int) -> tuple[Bools, Bools]:
    counts = [both, only_a, only_b, neither]
    return np.repeat([True, True, False, False], counts), np.repeat([True, False, True, False], counts)


def test_few_discordant_texts_are_coins_counted_by_hand() -> None:
    assert mcnemar(*rights(50, 5, 0, 3)) == pytest.approx(2 / 2**5)
    assert mcnemar(*rights(0, 1, 9, 7)) == pytest.approx(2 * (1 + 10) / 2**10)
    assert mcnemar(*rights(90, 0, 0, 10)) == 1.0
    assert mcnemar(*rights(90, 4, 4, 10)) == 1.0
    assert mcnemar(*rights(90, 4, 3, 10)) == 1.0  # 2 · 64 / 128


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 1500), st.integers(0, 1500))
def test_the_sum_in_logarithms_is_the_sum_of_whole_numbers(only_a: int, only_b: int) -> None:
    n, term, total = only_a + only_b, 1, 0
    for k in range(min(only_a, only_b) + 1):
        total += term
        term = term * (n - k) // (k + 1)
    exact = min(1.0, float(Fraction(2 * total, 2**n)))
    assert mcnemar_p(only_a, only_b) == pytest.approx(exact, rel=1e-9, abs=1e-300)
    assert mcnemar_p(only_a, only_b) == mcnemar_p(only_b, only_a)


def test_from_ten_thousand_on_the_normal_limit_takes_over_without_a_jump(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = mcnemar_p(5098, 4902)
    assert limit == pytest.approx(math.erfc(195 / math.sqrt(2 * 10_000)))
    assert mcnemar_p(600_000, 400_000) == 0.0  # below the smallest number there is, and no overflow
    monkeypatch.setattr("inkling.measure.paired.EXACT_PAIRS", 10_001)
    assert mcnemar_p(5098, 4902) == pytest.approx(limit, rel=1e-3)


def test_equal_classifiers_are_called_different_in_at_most_5_of_100_cases() -> None:
    generator = np.random.default_rng(0)
    p_values = [mcnemar(*(generator.random((2, 200)) < 0.85)) for _ in range(3000)]
    assert 0.01 <= np.mean(np.array(p_values) <= 0.05) <= 0.05


def test_the_paired_interval_holds_the_true_difference_in_at_least_93_of_100_cases() -> None:
    generator = np.random.default_rng(1)
    for shares in ([0.8, 0.06, 0.04, 0.1], [0.9, 0.01, 0.01, 0.08], [0.6, 0.25, 0.05, 0.1]):
        counts = generator.multinomial(300, shares, 3000)
        found = [paired_interval(300, int(b), int(c)) for _, b, c, _ in counts]
        assert np.mean([i.low <= shares[1] - shares[2] <= i.high for i in found]) >= 0.93


def test_the_paired_interval_is_that_of_half_a_text_added_to_each_cell() -> None:
    found = paired_interval(100, 12, 2)
    # d = 10/102; variance of one text (12.5 + 2.5)/102 − (10/102)²
    d = 10 / 102
    reach = 1.959964 * math.sqrt((15 / 102 - d * d) / 102)
    assert found.value == 0.1
    assert (found.low, found.high) == pytest.approx((d - reach, d + reach), abs=1e-6)


def test_two_that_agree_everywhere_are_not_known_to_be_the_same() -> None:
    [found] = compare_classifiers(["a", "b"], list(rights(80, 0, 0, 20)))
    assert (found.difference.value, found.p_value) == (0.0, 1.0)
    assert found.difference.low < 0 < found.difference.high
    assert not found.real


def test_a_real_difference_is_said_with_its_interval_in_points() -> None:
    [found] = compare_classifiers(["B", "A"], list(reversed(rights(8000, 220, 90, 1690))))
    assert (found.better, found.worse, found.only_better, found.only_worse) == ("A", "B", 220, 90)
    # 130/10,002 ± 1.96 √(311 − 130²/10,002)/10,002 = 0.0130 ± 0.0034
    assert found.sentence() == "A is right on 1.3 points more texts than B (95 % 1.0 to 1.6)."


def test_where_no_difference_is_shown_it_says_so() -> None:
    [found] = compare_classifiers(["A", "B"], list(rights(80, 8, 7, 5)))
    i = found.difference
    assert found.sentence() == (
        f"No difference shown between A and B (1.0 points, 95 % −{-100 * i.low:.1f} to {100 * i.high:.1f}; p = 1)."
    )


def test_all_pairs_are_corrected_together_and_the_order_given_changes_nothing() -> None:
    base, worse = rights(80, 14, 3, 3)
    third = base.copy()
    third[-3:] = True  # three texts more than the best
    found = compare_classifiers(["x", "y", "z"], [base, worse, third])
    assert found == compare_classifiers(["z", "y", "x"], [third, worse, base])
    assert [(d.better, d.worse) for d in found] == [("z", "x"), ("z", "y"), ("x", "y")]
    alone = [0.25, mcnemar_p(17, 3), mcnemar_p(14, 3)]
    assert [d.p_value for d in found] == pytest.approx(alone)
    assert [d.corrected_p for d in found] == pytest.approx([0.25, 3 * alone[1], 2 * alone[2]])
    assert [d.real for d in found] == [False, True, True]
    table = difference_table(found)
    assert [row[-1] for row in table.rows] == [d.real for d in found]
    assert table.rows[0][:3] == ("z", "x", 3.0)
    assert found[1].to_json()["difference"]["value"] == 0.14


def test_what_cannot_be_compared_is_answered_in_one_sentence() -> None:
    a, b = rights(3, 1, 1, 1)
    with pytest.raises(InklingError, match="2 names for 1 classifiers; give a different name"):
        compare_classifiers(["a", "b"], [a])
    with pytest.raises(InklingError, match="give a different name for each"):
        compare_classifiers(["a", "a"], [a, b])
    with pytest.raises(InklingError, match=r"b has right is of type bool and shape \(5,\)"):
        compare_classifiers(["a", "b"], [a, b[:5]])
    with pytest.raises(InklingError, match="one True or False for each text"):
        mcnemar(a, b.astype(np.int64))
    assert compare_classifiers(["a"], [a]) == ()

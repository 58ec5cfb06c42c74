"""Which of two models is better: paired by block, corrected for many pairs, and silent where nothing can be said."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inkling.measure.comparison import Comparison, compare, holm, ranks
from inkling.measure.evaluation import Blocks, Evaluation
from inkling.measure.intervals import Interval, judge_ratios
from inkling.measure.tally import LN2, Tally

BYTES = 2000.0


def row(
    model: str, bits: np.ndarray[tuple[int], np.dtype[np.float64]], normalisation: str = "none", lossy: bool = False
) -> Evaluation:
    """A model that needs `bits` per byte in each block."""
    blocks = Blocks(bits * BYTES * LN2, np.full(len(bits), BYTES))
    value = float(bits.mean())
    return Evaluation(model, "x.txt", normalisation, Tally(), Interval(value, value, value), lossy, blocks=blocks)


def hard(seed: int, blocks: int = 60) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Passages differ by far more than models do."""
    return np.random.default_rng(seed).normal(2.5, 0.5, blocks)


def noise(seed: int, size: float, blocks: int = 60) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.random.default_rng(seed).normal(0, size, blocks)


def test_a_small_difference_is_found_though_passages_differ_much_more() -> None:
    text = hard(0)
    [found] = compare([row("b", text + 0.03 + noise(1, 0.02)), row("a", text)])
    assert (found.better, found.worse, found.real) == ("a", "b", True)
    assert found.difference.low < 0.03 < found.difference.high
    assert found.difference.value == pytest.approx(0.03, abs=0.01)
    assert found.sentence().startswith(
        f"a is better than b on x.txt by {found.difference.value:.3f} bits per byte (95 % "
    )


def test_equals_cannot_be_told_apart() -> None:
    text = hard(0)
    [found] = compare([row("a", text), row("b", text + noise(3, 0.05) - noise(3, 0.05).mean() + 0.001)])
    assert not found.real
    assert found.sentence().startswith("a and b cannot be told apart on x.txt (p = ")


def test_a_model_and_itself_are_the_same_even_where_rounding_differs() -> None:
    text = hard(0)
    [found] = compare([row("a", text), row("b", text * (1 + 1e-13))])
    assert (found.p_value, found.corrected_p, found.difference.low) == (1.0, 1.0, 0.0)


def test_of_a_short_text_nothing_is_claimed() -> None:
    [found] = compare([row("a", hard(0, 7)), row("b", hard(0, 7) + 5)])
    assert not found.real
    assert math.isnan(found.p_value)
    assert found.sentence() == "x.txt is too short to tell a from b: 7 blocks of text, and at least 8 are needed."


def test_only_models_that_read_the_same_are_compared() -> None:
    text = hard(0)
    rows = [row("a", text), row("b", text + 1, "nfc"), row("c", text - 1, "lower", lossy=True), row("d", text - 1.1)]
    rows.append(row("e", text - 2, "lower", lossy=True))
    found = compare(rows)
    assert {(c.reading, c.better, c.worse) for c in found} == {
        ("every byte", "a", "b [nfc]"),
        ("every byte", "d", "a"),
        ("every byte", "d", "b [nfc]"),
        ("lower", "e", "c"),
    }
    assert "on x.txt after lower by" in next(c for c in found if c.reading == "lower").sentence()


def test_the_order_of_the_rows_changes_nothing() -> None:
    rows = [row(name, hard(0) + noise(i, 0.1)) for i, name in enumerate("abcd")]
    assert compare(rows) == compare(rows[::-1])


def test_rows_of_other_blocks_are_refused() -> None:
    with pytest.raises(ValueError, match="blocks"):
        compare([row("a", hard(0)), row("b", hard(0, 59))])


def test_holm_on_a_case_worked_by_hand() -> None:
    # Sorted: 0.01·4 = 0.04, 0.02·3 = 0.06, 0.03·2 = 0.06, 0.9·1 = 0.9.
    assert holm(np.array([0.03, 0.9, 0.01, 0.02])) == pytest.approx([0.06, 0.9, 0.04, 0.06])


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_only_raises_and_keeps_the_order(p_values: list[float]) -> None:
    given_p = np.array(p_values)
    found = holm(given_p)
    assert (found >= given_p).all()
    assert (found <= 1).all()
    order = np.argsort(given_p, kind="stable")
    assert (np.diff(found[order]) >= 0).all()


@pytest.mark.slow
def test_many_equal_models_seldom_yield_one_difference() -> None:
    # Six models of one kind, 15 pairs: any difference called real is false. At 5 % that is 15 of 300 texts.
    pairs = list(combinations(range(6), 2))
    false = 0
    for seed in range(300):
        generator = np.random.default_rng(seed)
        costs = generator.normal(2.5, 0.05, (6, 40))
        differences = np.stack([costs[a] - costs[b] for a, b in pairs])
        found = judge_ratios(differences, np.ones(40), generator, resamples=999)
        false += bool((holm(found.p_values) <= 0.05).any())
    assert false / 300 <= 0.08  # 5 % and two and a half standard errors


def test_places_follow_from_real_differences_alone() -> None:
    def pair(better: str, worse: str, p: float) -> Comparison:
        return Comparison("x", "every byte", better, worse, Interval(0.1, 0.0, 0.2), p, p, 50)

    rows = [row(name, hard(0)) for name in "abc"]
    found = ranks(rows, [pair("a", "b", 0.5), pair("a", "c", 0.001), pair("b", "c", 0.01)])
    assert found == {"a": (1, 2), "b": (1, 2), "c": (3, 3)}

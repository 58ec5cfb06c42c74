"""Does pretraining help? Made-up answers whose differences are known, and the verdict that they deserve."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from inkling.errors import InklingError, UsageError
from inkling.measure.classification import wilson
from inkling.measure.intervals import student_quantile
from inkling.measure.paired import mcnemar
from inkling.report.page import render
from inkling.runs.files import finite
from inkling.studies.pretraining import Pretraining, Trained, study_pretraining

TRUTH = tuple(f"place {i % 9}" for i in range(200))


def trained(right: int, seed: int = 0, **options: object) -> Trained:
    """`right` of the 200 answers are right, which ones being a matter of the seed."""
    hits = set(np.random.default_rng(seed).permutation(200)[:right].tolist())
    return Trained(tuple(place if i in hits else "?" for i, place in enumerate(TRUTH)), **options)  # type: ignore[arg-type]


def studied(with_it: list[int], without: list[int]) -> Pretraining:
    def train(seed: int, pretrained: bool) -> Trained:
        return trained((with_it if pretrained else without)[seed], 2 * seed + pretrained)

    return Pretraining(tuple(study_pretraining(train, TRUTH, len(with_it))), "dev.tsv", "lives.txt")


def test_the_difference_and_its_interval_over_seeds_by_hand() -> None:
    found = studied([100, 104, 96], [10, 10, 10])  # 45, 47 and 43 points
    reach = student_quantile(0.95, 2) * 2 / math.sqrt(3)
    assert found.difference.value == pytest.approx(45)
    assert (found.difference.low, found.difference.high) == pytest.approx((45 - reach, 45 + reach))
    assert found.exact_match(True).value == pytest.approx(50)
    assert found.exact_match(False).value == pytest.approx(5)
    assert found.real
    assert found.verdict() == (
        "Pretraining on lives.txt helps: 50.0 % of 200 questions are answered exactly with it and 5.0 % without (+45.0 "
        f"points, 95 % {45 - reach:.1f} to {45 + reach:.1f} over 3 seeds, p = {found.p_value:.2g})."
    )


def test_a_difference_that_other_trainings_would_not_show_is_not_called_real() -> None:
    found = studied([120, 10, 60], [10, 60, 40])  # 55, −25 and 10 points
    assert found.p_questions < 0.001  # the questions alone would be sure of it
    assert found.p_seeds > 0.3
    assert found.p_value == found.p_seeds
    assert found.verdict().startswith("No effect of pretraining on lives.txt is shown: 31.7 %")
    assert "95 % −" in found.verdict()


def test_a_difference_that_other_questions_would_not_show_is_not_called_real() -> None:
    found = studied([11, 12, 13], [10, 11, 12])  # half a point each time
    assert found.p_seeds == 0.0
    assert found.p_questions > 0.3
    assert not found.real


def test_pretraining_can_harm() -> None:
    assert "lives.txt harms" in studied([10, 12, 11], [80, 84, 82]).verdict()


def test_with_one_seed_the_questions_decide_and_that_is_said() -> None:
    found = studied([100], [20])
    [pair] = found.pairs
    assert found.p_value == mcnemar(pair.right, pair.other_right) == pair.p_value
    assert math.isnan(found.p_seeds)
    assert found.exact_match(True).low == pytest.approx(100 * wilson(100, 200).low)
    assert "one seed says nothing of others" in found.verdict()


def test_all_against_none_is_a_difference_too() -> None:
    found = studied([200, 200], [0, 0])
    assert found.p_questions < 1e-50
    assert found.real
    assert not studied([200, 200], [200, 200]).real


def test_trainings_come_in_pairs_and_can_be_stopped_between() -> None:
    calls: list[tuple[int, bool]] = []

    def train(seed: int, pretrained: bool) -> Trained:
        calls.append((seed, pretrained))
        return trained(50, seed)

    pairs = study_pretraining(train, TRUTH, [7, 3])
    assert next(pairs).seed == 7
    assert calls == [(7, True), (7, False)]
    assert [pair.seed for pair in pairs] == [3]


def test_the_page_shows_bars_by_seed_and_curves_where_they_were_measured() -> None:
    def train(seed: int, pretrained: bool) -> Trained:
        return trained(100 if pretrained else 10, seed, seconds=60.0, curve=((10.0, 0.05), (60.0, 0.4)))

    found = Pretraining(
        tuple(study_pretraining(train, TRUTH, 2)), levels=(("always 'London'", 0.05),), notes=("A note.",)
    )
    written = render(found.page())
    assert written.count("<svg") == 2
    assert "A note." in written
    curves = found.curves()
    assert curves is not None
    assert [line.name for line in curves.lines][:2] == ["pretrained, seed 0", "not pretrained, seed 0"]
    assert list(curves.lines[0].y) == [5.0, 40.0]
    assert list(found.bars().series[0].heights) == [50.0, 50.0]
    assert found.bars().levels == (("always 'London'", 5.0),)
    assert found.table().rows[0][:4] == (0, 50.0, 5.0, 45.0)
    assert "<svg" in found._repr_html_()
    record = json.loads(json.dumps(finite(found.to_json())))
    assert (record["questions"], record["real"], len(record["seeds"])) == (200, True, 2)
    assert studied([100], [20]).curves() is None


def test_what_makes_no_study_is_refused() -> None:
    with pytest.raises(UsageError, match=r"seeds are \[1, 1\]; give at least one, and none twice"):
        next(study_pretraining(lambda seed, pretrained: trained(1), TRUTH, [1, 1]))
    with pytest.raises(UsageError, match="give at least one"):
        next(study_pretraining(lambda seed, pretrained: trained(1), TRUTH, 0))
    with pytest.raises(InklingError, match="seed 0 gave 1 answers to 200 questions"):
        next(study_pretraining(lambda seed, pretrained: Trained(("x",)), TRUTH, 1))

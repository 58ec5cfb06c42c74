"""What an experiment looks like: words that the figures bear out, and pictures that say how to read them."""

from __future__ import annotations

import itertools
import math
import re

import pytest

from inkling.attention.exhibits import (
    copy_chart,
    failure_chart,
    integrals,
    law_chart,
    part_bars,
    pictures,
    sentences,
    weight_bars,
)
from inkling.attention.laboratory import Experiment, Kind, Setting, experiment
from inkling.figures import Bars, Chart, Cloud, Prose, Table

KINDS: tuple[Kind, ...] = ("copy", "average", "noise", "heads")
CHANGES: list[dict[str, float | int | bool]] = [
    {},
    {"keys": 2},
    {"keys": 1000},
    {"beta": 0.0},
    {"beta": 0.0, "noise": 0.5},
    {"beta": -10.0, "noise": 0.5},
    {"beta": 1e4, "noise": 0.5},
    {"beta": 1e8, "noise": 0.5},
    {"noise": 0.5},
    {"keys": 2, "noise": 0.5},
    {"alpha": 0.01, "keys": 5},
    {"noise": 0.5, "coherence": 0.5, "keys": 6},
    {"noise": 0.5, "scaled": True},
]
PAGES = [Setting(kind, **change) for kind, change in itertools.product(KINDS, CHANGES)]  # type: ignore[arg-type]
PAGES += [
    Setting("copy", keys=1),
    Setting("copy", keys=1, noise=0.5, beta=-1.0),
    Setting("heads", same=True),
    Setting("heads", same=True, noise=0.5),
    Setting("heads", same=True, keys=2, alpha=0.1),
    Setting("heads", noise=0.5, alpha=0.05, keys=4),
    Setting("heads", noise=0.5, alpha=0.01, keys=3, beta=1e8),  # whose curve must not go beyond the largest β
]


def said(setting: Setting, samples: int = 2000) -> str:
    return " ".join(sentences(experiment(setting, samples)))


def heights(found: Experiment) -> list[list[float]]:
    return [list(series.heights) for series in weight_bars(found).series]


@pytest.mark.parametrize("setting", PAGES, ids=str)
def test_a_page_has_words_a_table_and_pictures_with_a_reading(setting: Setting) -> None:
    found = experiment(setting, 500)
    prose, table, *pictures = found.page().exhibits
    assert isinstance(prose, Prose)
    assert isinstance(table, Table)
    assert pictures
    for picture in pictures:
        assert isinstance(picture, Bars | Chart | Cloud)
        assert picture.reading.endswith(".")
        assert not re.search(r"\b(nan|inf)\b", picture.reading)
        if isinstance(picture, Chart):
            for line in picture.lines:
                assert all(math.isfinite(y) for y in (*line.x, *line.y))
    assert not re.search(r"\b(nan|inf)\b|--|-0\.00", prose.text), prose.text
    html = found._repr_html_()
    assert "<svg" in html
    assert ">nan<" not in html


def test_falling_and_rising_are_said_as_they_are() -> None:
    assert "variance of v_a's part falls from 0.1953 to 0.0262, and its mean falls from 0.5000 to 0.4166" in said(
        Setting("heads", noise=0.5)
    )
    assert "its mean rises from 0.0387 to 0.0454" in said(Setting("heads", noise=0.5, beta=-10))
    assert "stays at 0.0000, and its mean stays at 0.0500" in said(Setting("heads", noise=0.5, beta=0))
    for setting in (Setting("heads", noise=0.5, beta=beta) for beta in (-3.0, 0.3, 1.0, 3.0)):
        for word, was, now in re.findall(r"(falls|rises) from (\S+) to (\d\.\d+)", said(setting)):
            assert (word == "falls") == (float(now) < float(was))


def test_the_formula_of_failure_is_the_failure_when_alpha_is_zero() -> None:
    for setting in (Setting("heads", noise=0.5, beta=beta, keys=keys) for beta in (-5, 2, 30) for keys in (2, 20)):
        found = said(setting)
        exact, formula = re.search(r"in (\S+%) of cases", found), re.search(r"vanishing this is .*? = (\S+%)", found)
        assert exact
        assert formula
        assert exact[1] == formula[1]
    assert "15.92%" in said(Setting("heads", noise=0.5))
    assert "7.86%, the chance that the key points the wrong way" in said(Setting("heads", noise=0.5))
    assert "the same weight" in said(Setting("heads", noise=0.5, beta=0))


def test_copying_says_where_the_score_lies_and_what_is_guaranteed() -> None:
    assert "lies 10 above the next, which guarantees 99.91%" in said(Setting("copy"))
    assert "12.5%, and 99 % need β = 7.54" in said(Setting("copy"))
    noisy = said(Setting("copy", noise=0.5))
    assert "83.32%" in noisy
    assert "would guarantee 99.91%" in noisy  # what is guaranteed at the means is not with noise
    assert "10 below the highest other one." in said(Setting("copy", beta=-10))
    assert "guarantee" not in said(Setting("copy", beta=-10))
    assert "no higher than the next" in said(Setting("copy", beta=0))
    assert "all of the weight, whatever β is" in said(Setting("copy", keys=1))


def test_averaging_says_half_only_where_it_is() -> None:
    assert "half of each value up to that" in said(Setting("average"))
    assert "not half of each value" in said(Setting("average", beta=0))
    assert "not half of each value" in said(Setting("average", beta=-10))
    assert "0.00e+00 goes elsewhere" in said(Setting("average", keys=2))
    assert "two get 99 % together with β = 6.79" in said(Setting("average"))


def test_swinging_is_said_in_numbers() -> None:
    found = said(Setting("noise", noise=0.5))
    assert "variance 50 and 0" in found
    assert "N(0, 7.07²)" in found
    assert "75.6%" in found
    assert "0.5 in every sample" in said(Setting("noise"))
    assert "Nothing is averaged out" in said(Setting("heads", same=True, noise=0.5))


def test_keys_that_are_alike_are_one_bar_and_others_are_counted() -> None:
    alike = weight_bars(experiment(Setting("heads", noise=0.5), 100))
    assert alike.names == ("a", "b", "each other (18)")
    assert len(alike.series) == 4
    many = weight_bars(experiment(Setting("copy", keys=40, coherence=0.5), 100))
    assert len(many.names) == 24
    assert "16 more keys are not shown" in many.reading
    assert sum(heights(experiment(Setting("copy", keys=3, coherence=0.2), 100))[0]) == pytest.approx(1)


def test_charts_show_the_formulas() -> None:
    copying = copy_chart(experiment(Setting("copy", keys=7), 100))
    line = next(line for line in copying.lines if line.name == "7 keys")
    assert line.y == pytest.approx([math.exp(x) / (math.exp(x) + 6) for x in line.x])
    chart = failure_chart(experiment(Setting("heads", noise=0.5, alpha=0.1, keys=4), 100))
    assert [line.name for line in chart.lines][-1] == "4 keys as set"
    assert all(0 <= y <= 1 for line in chart.lines for y in line.y)
    assert dict(chart.levels)["β → ∞"] == pytest.approx(0.0786, abs=1e-4)
    law = law_chart(experiment(Setting("noise", noise=0.5, beta=100), 20_000))
    exact, simulated = law.lines
    known = dict(zip(exact.x, exact.y, strict=True))
    assert all(abs(known[x] - y) < 4.5 * 0.5 / math.sqrt(20_000) for x, y in zip(simulated.x, simulated.y, strict=True))


def test_what_arrives_is_a_share_of_all_draws() -> None:
    bars = part_bars(experiment(Setting("heads", noise=0.5), 5000))
    one, two = bars.series
    assert sum(one.heights) == pytest.approx(1)
    assert sum(two.heights) == pytest.approx(1)
    assert one.heights[0] + one.heights[-1] > 0.7  # one head swings
    assert two.heights[4] + two.heights[5] > 0.7  # two hold still, at the one half between these bars


@pytest.mark.parametrize("kind", ["copy", "average", "noise", "heads"])
@pytest.mark.parametrize("alpha", [0.0, 0.01])
def test_the_integrals_that_are_announced_are_worked_out(kind: Kind, alpha: float) -> None:
    setting, calls = Setting(kind, keys=4, noise=0.5, alpha=alpha), list[None]()
    found = experiment(setting, 500, on_integral=lambda: calls.append(None))
    assert len(calls) == integrals(setting, with_pictures=False)
    found.page(lambda: calls.append(None))
    assert len(calls) == integrals(setting)


def test_what_samples_say_can_be_drawn_before_integrals_are_solved() -> None:
    setting = Setting("heads", keys=6, noise=0.5, alpha=0.01)
    quick, whole = experiment(setting, 2000, solve=False), experiment(setting, 2000)
    failure = quick.figure("head 1: failure probability")
    assert math.isnan(failure.exact)
    assert failure.simulated == whole.figure("head 1: failure probability").simulated
    drawn, patient = pictures(quick, patient=False), pictures(whole)
    assert [each.title for each in drawn] == [each.title for each in patient][:-1]
    assert isinstance(drawn[0], Bars)
    assert [series.name for series in drawn[0].series] == ["head 1, simulated", "head 2, simulated"]

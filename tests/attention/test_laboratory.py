"""Experiments: every figure twice, and never far apart."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from inkling.attention.exact import failure_formula
from inkling.attention.laboratory import (
    Experiment,
    Figure,
    Setting,
    experiment,
    failure_curve,
    mean_figure,
    variance_figure,
)
from inkling.attention.simulate import Estimate

SAMPLES = 40_000
SETTINGS = [
    Setting("copy"),
    Setting("copy", keys=1),
    Setting("copy", keys=2, beta=0),  # a weight of exactly one half
    Setting("copy", keys=1000),
    Setting("copy", alpha=0.05, noise=0.5, a=3),
    Setting("copy", beta=-10, noise=0.5),
    Setting("average", keys=2),
    Setting("average", keys=4, beta=0),
    Setting("average", keys=1000),
    Setting("average", alpha=0.01, a=5, b=2),
    Setting("average", alpha=1e-12),
    Setting("average", coherence=0.3, alpha=0.01),
    Setting("noise", noise=0.5),
    Setting("noise", noise=0.5, scaled=True),
    Setting("noise", noise=0.5, beta=40),  # shares that round to 1
    Setting("noise", noise=0.5, beta=-100),  # and to 0 over 0
    Setting("noise", noise=0.5, alpha=1, beta=100),
    Setting("noise", noise=0.5, alpha=1e-8),
    Setting("noise", noise=0.5, beta=1e4),
    Setting("heads", noise=0.5),
    Setting("heads", noise=0.5, keys=2),
    Setting("heads", beta=0, noise=0.5),
    Setting("heads", noise=0.5, alpha=0.02),
    Setting("heads", noise=0.5, beta=1e4, alpha=0.01),  # a variance of 1e-11, of what no sample saw
    Setting("heads", noise=0.5, beta=1e8),
    Setting("heads", noise=0.5, keys=1000),
    Setting("heads", noise=0.5, coherence=0.5),
    Setting("heads", noise=0.5, same=True),
    Setting("heads", noise=0.5, same=True, coherence=0.4, dimension=30),
]


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_exact_and_simulated_agree(setting: Setting) -> None:
    found = experiment(setting, SAMPLES)
    for figure in found.figures:
        assert math.isfinite(figure.simulated)
        assert math.isfinite(figure.exact)
        assert abs(figure.deviation) < 4.5, figure
    assert found.worst_deviation() == max(abs(figure.deviation) for figure in found.figures)
    names = [figure.name for figure in found.figures]
    assert len(set(names)) == len(names)


def test_only_heads_that_share_much_noise_leave_a_figure_to_samples() -> None:
    found = experiment(Setting("heads", noise=0.5, coherence=0.5, beta=200), 5000)
    unknown = [figure.name for figure in found.figures if math.isnan(figure.exact)]
    assert unknown == ["output: variance of a's part", "output: variance of b's part"]
    assert all(math.isfinite(figure.simulated) for figure in found.figures)


def test_the_figures_of_e7() -> None:
    found = experiment(Setting("heads", noise=0.5, beta=1e4), SAMPLES)
    assert found.failure_probability == pytest.approx(failure_formula(20, 1e4, 0.5), abs=1e-10)
    assert found.figure("output: mean of a's part").exact == pytest.approx(0.461, abs=5e-4)
    assert found.figure("output: variance of a's part").exact == pytest.approx(0.018, abs=5e-4)
    assert found.figure("one head: variance of a's part").exact == pytest.approx(0.25, abs=1e-3)
    assert found.figure("one head: mean of a's part").exact == pytest.approx(0.5, abs=1e-3)


def test_an_experiment_is_the_same_again_for_the_same_seed() -> None:
    first, again, other = (experiment(Setting("heads", noise=0.5, seed=seed), 5000) for seed in (1, 1, 2))
    assert first.figures == again.figures
    assert first.figures != other.figures


def test_json_has_the_failure_as_numbers() -> None:
    found = json.loads(json.dumps(experiment(Setting("heads", noise=0.5, a=2, b=4), SAMPLES).to_json()))
    assert found["kind"] == "heads"
    assert found["failure_probability"] == pytest.approx(0.1592, abs=1e-4)
    assert found["simulated"] == pytest.approx(found["failure_probability"], abs=4.5 * found["standard_error"])
    assert isinstance(found["deviation"], float)
    assert found["samples"] == SAMPLES
    assert (found["setting"]["a"], found["setting"]["b"], found["setting"]["dimension"]) == (3, 5, 20)
    assert len(found["figures"]) == len(experiment(Setting("heads", noise=0.5), 100).figures)
    assert [head["looks"] for head in found["exact"]["heads"]] == [[2], [4]]


def test_a_deviation_counts_standard_errors() -> None:
    assert Figure("x", 1.0, 1.3, 0.1).deviation == pytest.approx(3)
    assert Figure("x", 1.0, 1.0 - 2e-6, 0.0).deviation == pytest.approx(-2)  # rounding of single precision
    assert math.isnan(Figure("x", math.nan, 1.0, 0.1).deviation)
    assert Figure("x", 0.0, 0.0, 0.0).deviation == 0


def test_what_no_sample_saw_is_not_held_against_the_exact_form() -> None:
    nothing = Estimate(0.0, 0.0)
    assert abs(mean_figure("x", 1e-9, 1e-9, nothing, 1000).deviation) < 0.01
    assert abs(variance_figure("x", 1e-9, nothing, 1000).deviation) < 0.01
    assert abs(variance_figure("x", 0.1, nothing, 1000).deviation) > 100  # but what they must have seen is
    assert variance_figure("x", 1e-6, Estimate(1.1e-6, 1e-8), 1000).deviation == pytest.approx(10, rel=0.01)


def test_the_curve_of_failure_is_the_formula_where_there_is_one() -> None:
    setting = Setting("heads", noise=0.5)
    betas = np.array([0.5, 3.0, 10.0, 1e4])
    assert failure_curve(setting, betas) == pytest.approx([failure_formula(20, b, 0.5) for b in betas], abs=1e-10)
    noisy = Setting("heads", keys=4, noise=0.5, alpha=0.02, coherence=0.3, scaled=True)
    found = [experiment(Setting(**(vars(noisy) | {"beta": beta})), 10).failure_probability for beta in (2.0, 20.0)]
    assert failure_curve(noisy, np.array([2.0, 20.0])) == pytest.approx(found, abs=1e-9)


def test_the_table_has_a_row_for_each_figure_and_a_dash_for_what_is_not_known() -> None:
    found = experiment(Setting("copy", noise=0.5), 1000)
    table = found.table()
    assert len(table.rows) == len(found.figures)
    unknown = Experiment(found.setting, found.exact, found.simulated, (Figure("x", math.nan, 0.5, 0.1),))
    assert unknown.table().rows == (("x", None, 0.5, 0.1, None),)
    assert unknown.worst_deviation() == 0


def test_what_is_known_and_what_was_drawn_show_themselves_in_a_notebook() -> None:
    found = experiment(Setting("heads", noise=0.5), 2000)
    known, drawn = found.exact.table(), found.simulated.table()
    assert [row[1] for row in known.rows] == ["1", "2"]
    assert known.rows[0][-1] == pytest.approx(found.failure_probability)
    assert [row[1] for row in drawn.rows[:3]] == ["mean weight on key 1", "mean weight on key 2", "failure probability"]
    assert f"{found.failure_probability:.6f}" in found.exact._repr_html_()
    assert "2,000 samples" in found.simulated._repr_html_()
    assert found.exact != experiment(Setting("heads", noise=0.5), 2000).exact  # arrays: the same only as itself

"""D1 to D4 on small stand-ins for the files, and the rules of their verdicts."""

from __future__ import annotations

import csv
import io
import lzma

import numpy as np
import pytest

from inkling.claims import averaging
from inkling.claims.averaging import CLAIMS, FILES, Plan
from inkling.claims.ledger import Context
from inkling.figures import Chart, Table
from inkling.measure.intervals import Interval
from inkling.studies.ablation import Ablation, Contrast, Measure
from inkling.studies.averaging import CellResult, GridConfig, grid

GOOD, BAD, REST = ("bright", "warm", "clever"), ("dull", "cold", "clumsy"), ("film", "plot", "scene")
PLAN = Plan(seeds=3, width=6, training=GridConfig(epochs=7, batch=20, rate=0.02))


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Context:
    folder = tmp_path_factory.mktemp("data")
    patch = pytest.MonkeyPatch()
    patch.setenv("INKLING_CACHE", str(folder / "cache"))
    generator = np.random.default_rng(0)
    for name, rows in (("train", 200), ("test", 120)):
        out = io.StringIO()
        writer = csv.writer(out)
        writer.writerow(["text", "label", "rating", "id"])
        for row in range(rows):
            own, other = (GOOD, BAD) if row >= rows // 2 else (BAD, GOOD)
            words = [*generator.choice(own, 3), *generator.choice(other, 2), *generator.choice(REST, 3), f"{name}{row}"]
            writer.writerow([" ".join(words), int(row >= rows // 2), 1, row])
        path = folder / FILES[name]
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(lzma.compress(out.getvalue().encode()))
    spellings = "\n".join((*GOOD, *BAD, *REST)).encode()
    for name, dimension in (("50-d", 3), ("100-d", 5)):
        path = folder / FILES[name]
        path.parent.mkdir(exist_ok=True)
        vectors = generator.normal(0, 0.4, (9, dimension)).astype(np.float32)
        np.savez(path, words=np.frombuffer(spellings, np.uint8), vectors=vectors)
    found = Context(folder)
    assert averaging.study(found, PLAN) is not None  # trained once, for all tests
    patch.undo()
    return found


def test_without_data_the_claims_are_not_run() -> None:
    for claim in CLAIMS:
        finding = claim.test(Context())
        assert finding.verdict == "not run"
        assert "--data" in finding.measured


def test_the_networks_are_trained_once_and_each_claim_has_its_exhibits(context: Context) -> None:
    study = averaging.study(context, PLAN)
    assert study is averaging.study(context, PLAN)
    assert study is not None
    assert len(study.results) == 3 * (1 + 6 + 3 + 7)
    assert len(study.standardised) == 3 * 5
    for test in (
        averaging.published_accuracy,
        averaging.dropout_curve,
        averaging.depth_gains,
        averaging.activations_equal,
    ):
        finding = test(context, PLAN)
        assert finding.verdict in ("holds", "holds if", "corrected", "fails")
        assert {Chart, Table} <= {type(exhibit) for exhibit in finding.exhibits}
        assert all(np.isfinite(value) for value in finding.figures.values())


def test_the_figures_are_those_of_the_networks(context: Context) -> None:
    study = averaging.study(context, PLAN)
    assert study is not None
    expected = 100 * np.mean(
        [
            r.test_accuracy[-1]
            for r in study.results
            if (r.cell.depth, r.cell.activation, r.cell.word_dropout, r.cell.vectors) == (2, "relu", 0.0, "100-d")
        ]
    )
    assert averaging.published_accuracy(context, PLAN).figures["accuracy_100d"] == pytest.approx(expected)
    assert averaging.dropout_curve(context, PLAN).figures["accuracy_at_0"] == pytest.approx(expected)
    assert averaging.depth_gains(context, PLAN).figures["accuracy_depth_2"] == pytest.approx(expected)
    finding = averaging.activations_equal(context, PLAN)
    assert finding.figures["accuracy_relu"] == pytest.approx(expected)
    assert "relu+sigmoid" in finding.measured
    assert 0 <= finding.figures["sigmoid_saturation"] <= 1
    assert "300-d" in averaging.published_accuracy(context, PLAN).measured


def ends_and_choices(ends: dict[str, int], choices: dict[str, int]) -> Ablation:
    """How many of 400 texts each activation has right after the last epoch, and after the chosen one."""
    results = []
    for cell in grid([1], list(ends), [0.0], [5], ["v"], 3):
        last, chosen = (np.arange(400) < right[cell.activation] for right in (ends, choices))
        curve = (float(chosen.mean()), float(last.mean()))
        results.append(CellResult(cell, curve, (0.9, 0.5), np.packbits(last), np.packbits(chosen), None))
    return Ablation(tuple(results), 400, PLAN.training)


def test_no_difference_either_is_said_only_where_the_last_epoch_shows_none() -> None:
    same, apart = {"relu": 300, "mish": 300}, {"relu": 340, "mish": 300}
    none = "At the epoch that held-out text chose, no difference is shown"
    assert averaging._chosen(ends_and_choices(same, same), "activation") == f"{none} either."
    assert averaging._chosen(ends_and_choices(apart, same), "activation") == f"{none}."
    said = averaging._chosen(ends_and_choices(same, apart), "activation")
    assert said.startswith("relu is better than mish by 10.00 points")


# ---------------------------------------------------------------------------------------------------------- the rules


def contrast(better: object, worse: object, gap: float, real: bool, measure: Measure = "accuracy") -> Contrast:
    p = 0.001 if real else 0.5
    return Contrast("factor", measure, better, worse, 5, 5, Interval(gap, gap - 0.1, gap + 0.1), p, p, p)


@pytest.mark.parametrize(
    ("at_50", "at_100", "verdict"),
    [(82.0, 83.5, "holds"), (76.5, 79.8, "holds if"), (79.0, 79.5, "fails"), (84.0, 86.0, "fails")],
)
def test_d1_holds_near_84_or_where_the_trend_reaches_it(at_50: float, at_100: float, verdict: str) -> None:
    found, expected = averaging.judge_level(at_50, at_100)
    assert found == verdict
    assert expected == pytest.approx(at_100 + (at_100 - at_50) * 1.5849625)


def test_d2_asks_whether_dropout_helps() -> None:
    assert averaging.judge_dropout([contrast(0.3, 0.0, 0.4, True), contrast(0.0, 0.5, 0.2, True)]) == "holds"
    assert averaging.judge_dropout([contrast(0.3, 0.0, 0.1, False), contrast(0.0, 0.5, 0.2, True)]) == "corrected"
    assert averaging.judge_dropout([contrast(0.3, 0.0, 0.1, False), contrast(0.0, 0.5, 0.2, False)]) == "corrected"
    assert averaging.judge_dropout([contrast(0.3, 0.0, 1.5, False)]) == "fails"


def test_d3_asks_for_diminishing_gains_and_for_standardised_inputs() -> None:
    gains = {(0, 1): contrast(1, 0, 3.0, True), (1, 2): contrast(2, 1, 0.3, True), (2, 3): contrast(2, 3, 0.1, False)}
    assert averaging.judge_depth(gains, 2.5) == "holds"
    assert averaging.judge_depth(gains, 0.5) == "holds if"
    assert averaging.judge_depth(gains | {(0, 1): contrast(1, 0, 3.0, False)}, 2.5) == "fails"
    assert averaging.judge_depth(gains | {(0, 1): contrast(0, 1, 3.0, True)}, 2.5) == "fails"
    assert averaging.judge_depth(gains | {(1, 2): contrast(2, 1, 4.0, True)}, 2.5) == "fails"
    assert averaging.judge_depth(gains | {(2, 3): contrast(3, 2, 1.0, True)}, 2.5) == "fails"


def test_d4_asks_for_equal_ends_and_a_wilder_sigmoid() -> None:
    equal = [contrast("relu", "sigmoid", 0.3, True), contrast("mish", "sigmoid", 0.9, False)]
    unequal = [contrast("relu", "sigmoid", 0.8, True)]
    wild = [contrast("sigmoid", name, 0.2, True, "fluctuation") for name in ("relu", "mish")]
    calm = [
        contrast("relu", "sigmoid", 0.2, True, "fluctuation"),
        contrast("sigmoid", "mish", 0.1, False, "fluctuation"),
    ]
    unclear = [contrast("sigmoid", name, 0.2, False, "fluctuation") for name in ("relu", "mish")]
    assert averaging.judge_activations(equal, wild) == "holds"
    assert averaging.judge_activations(unequal, wild) == "corrected"
    assert averaging.judge_activations(equal, calm) == "corrected"
    assert averaging.judge_activations(equal, unclear) == "fails"

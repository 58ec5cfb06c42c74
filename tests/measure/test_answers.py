"""Answers measured: exact match by hand, baselines compared on the same questions, thresholds judged crosswise."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from inkling.errors import InklingError, UsageError
from inkling.figures import Bars, Chart, Table
from inkling.measure.answers import AnswerMatrix, AnswerReport, Baseline, Promise, exactly
from inkling.measure.answers_page import by_confidence, surest_mistakes
from inkling.measure.classification import wilson
from inkling.measure.corroboration import Corroboration, hear_witness
from inkling.measure.paired import mcnemar
from inkling.report.page import render

N = 40
TRUTH = tuple(f"Place{i % 7}" for i in range(N))
QUESTIONS = tuple(f"Where was N{i} born?" for i in range(N))


def report(name: str, right: int, confidence: float = 0.6, **options: object) -> AnswerReport:
    """The first `right` answers are right, and a little surer than the others."""
    said = tuple(place if i < right else "Nowhere" for i, place in enumerate(TRUTH))
    sure = np.array([confidence + 0.01 * (i < right) for i in range(N)])
    return replace(AnswerReport(name, "dev.tsv", QUESTIONS, TRUTH, said, sure), **options)  # type: ignore[arg-type]


def test_answers_are_equal_but_for_the_white_space_around_them() -> None:
    found = exactly([" Rome", "rome", "Rome ", "Römé", "New York"], ["Rome", "Rome", "Rome", "Römé", "New  York"])
    assert found.tolist() == [True, False, True, True, False]
    with pytest.raises(InklingError, match="1 answers and 2 truths"):
        exactly(["a"], ["a", "b"])


def test_exact_match_and_its_interval() -> None:
    found = report("gpt", 30)
    assert found.exact_match == wilson(30, 40)
    assert found.sentences()[0].startswith("gpt answers 30 of 40 questions of dev.tsv exactly right: 75.0 % (95 %")
    assert found.sentences()[1] == "It gives 8 different answers, most often 'Nowhere' (25.0 %)."
    record = found.to_json()
    assert (record["exact_match"], record["right"], record["questions"]) == (0.75, 30, 40)
    assert (record["low"], record["high"]) == (wilson(30, 40).low, wilson(30, 40).high)
    assert record["expected_calibration_error"] == pytest.approx(abs(30 - 30 * 0.61) / 40 + 10 * 0.6 / 40)


def test_answers_that_were_cut_off_are_said() -> None:
    assert any("3 answers did not end" in sentence for sentence in report("gpt", 30, unended=3).sentences())


# ------------------------------------------------------------------------------------------- promises


def test_a_threshold_that_promises_is_judged_on_the_half_that_did_not_choose_it() -> None:
    confidence = np.repeat([0.9, 0.3], 200)
    right = np.concatenate([np.ones(200, np.bool_), np.zeros(200, np.bool_)])
    found = Promise.of(confidence, right, 0.9)
    assert found.answered is not None
    assert (found.answered.threshold, found.answered.texts, found.answered.right) == (0.9, 200, 200)
    assert (found.crosswise.texts, found.crosswise.right, found.crosswise.rows) == (200, 200, 400)
    assert found.sentence().startswith("Answers of confidence 0.900 or more promise 90 %: they are 50.0 % of all")
    assert "judged on the other: 50.0 % answered, 100.0 %" in found.sentence()


def test_luck_shows_when_a_threshold_is_judged_crosswise() -> None:
    # Confidences that say nothing: whatever threshold luck finds on one half, the other half is right half of the time.
    generator = np.random.default_rng(0)
    shares = []
    for seed in range(60):
        right = generator.random(60) < 0.5
        found = Promise.of(generator.random(60), right, 0.5, seed)
        if found.answered is not None and found.crosswise.texts:
            assert found.answered.accuracy.low >= 0.5
            shares.append(found.crosswise.accuracy.value)
    assert len(shares) > 5
    assert np.mean(shares) < 0.6


def test_where_nothing_can_be_promised_it_is_said() -> None:
    found = Promise.of(np.full(10, 0.5), np.arange(10) < 5, 0.9)
    assert (found.answered, found.crosswise.texts) == (None, 0)
    assert found.sentence().startswith("No threshold for the confidence promises 90 %")
    assert found.to_json()["threshold"] is None
    everything = Promise.of(np.full(400, 0.99), np.ones(400, np.bool_), 0.9)
    assert everything.sentence().startswith("Answering everything promises 90 %. Chosen on one half")
    few = Promise.of(np.full(50, 0.99), np.ones(50, np.bool_), 0.92)
    assert few.sentence().endswith("Half of the questions are too few to choose such a threshold on.")
    with pytest.raises(UsageError, match="accuracy to promise is 90; give a share"):
        Promise.of(np.full(10, 0.5), np.ones(10, np.bool_), 90)


# ------------------------------------------------------------------------------------------- together


@pytest.fixture
def matrix() -> AnswerMatrix:
    always = Baseline("always 'Place0'", ("Place0",) * N)
    return AnswerMatrix.of([report("weak", 8), report("strong", 34)], [always], ["one note"])


def test_models_and_baselines_are_compared_on_the_same_questions(matrix: AnswerMatrix) -> None:
    assert [one.name for one in matrix.results] == ["strong", "weak"]
    pairs = {(pair.better, pair.worse): pair for pair in matrix.comparisons}
    assert set(pairs) == {("strong", "weak"), ("strong", "always 'Place0'"), ("weak", "always 'Place0'")}
    pair = pairs["strong", "weak"]
    assert (pair.only_better, pair.only_worse) == (26, 0)
    assert pair.p_value == mcnemar(matrix.results[0].right, matrix.results[1].right) == pytest.approx(2 * 0.5**26)
    assert pair.real
    assert "strong answers more questions right than weak, by 65.0 points (95 %" in " ".join(matrix.sentences())
    assert "No difference shown between weak and always 'Place0'" in " ".join(matrix.sentences())


def test_two_baselines_are_not_compared_with_each_other() -> None:
    found = AnswerMatrix.of([report("gpt", 8)], [Baseline("a", ("x",) * N), Baseline("b", ("y",) * N)])
    assert {pair.better for pair in found.comparisons} == {"gpt"}
    assert len(found.comparisons) == 2
    assert AnswerMatrix.of([report("gpt", 8)]).comparisons == ()


def test_the_figures_of_the_best_model_stand_at_the_top_of_json(matrix: AnswerMatrix) -> None:
    record = json.loads(json.dumps(matrix.to_json()))
    assert (record["model"], record["right"], record["exact_match"]) == ("strong", 34, 0.85)
    assert [run["model"] for run in record["runs"]] == ["strong", "weak"]
    assert record["baselines"] == [{"name": "always 'Place0'", **_figures(6)}]
    assert record["notes"] == ["one note"]


def _figures(right: int) -> dict[str, float]:
    share = wilson(right, N)
    return {"exact_match": share.value, "low": share.low, "high": share.high, "right": right}


def test_models_that_answered_different_questions_are_not_compared() -> None:
    with pytest.raises(InklingError, match="answered different questions"):
        AnswerMatrix.of([report("a", 1), report("b", 1, questions=QUESTIONS[::-1])])


# ------------------------------------------------------------------------------------------- pages


def test_the_page_has_the_standing_the_charts_and_the_surest_mistakes() -> None:
    witness = hear_witness("wiki.txt", [["N1 came from Place1"]], ["N1"] * N, [[place] for place in TRUTH])
    one = report("gpt", 30)
    one = replace(one, corroboration=Corroboration.of(witness, one.said, TRUTH, one.right.tolist()))
    found = AnswerMatrix.of([one], [Baseline("always 'Place0'", ("Place0",) * N)], ["read so"])
    titles = [getattr(exhibit, "title", "") for exhibit in found.page().exhibits]
    for title in ("Calibration: gpt", "Accuracy against confidence: gpt", "The surest mistakes of gpt", "Exact match"):
        assert title in titles
    assert "What wiki.txt says of the answers" in titles
    assert render(found.page()).count("<svg") == 4
    assert "<svg" in found._repr_html_()
    [bars] = [exhibit for exhibit in found.page().exhibits if isinstance(exhibit, Bars)]
    assert list(bars.series[0].heights) == [75.0, 15.0]
    assert bars.levels == (("ceiling", 100 * 6 / N),)
    [standing, *_] = [exhibit for exhibit in found.summary().exhibits if isinstance(exhibit, Table)]
    assert standing.rows[0][:5] == ("gpt", 75.0, 100 * wilson(30, N).low, 100 * wilson(30, N).high, 30)
    assert standing.rows[1][0] == "always 'Place0'"


def test_the_surest_mistake_comes_first() -> None:
    one = report("gpt", 30)
    sure = one.confidence.copy()
    sure[35] = 0.99
    table = surest_mistakes(replace(one, confidence=sure))
    assert table.rows[0] == (QUESTIONS[35], "Nowhere", 0.99, TRUTH[35])
    assert len(table.rows) == 10


def test_accuracy_against_confidence_by_hand() -> None:
    chart: Chart = by_confidence(report("gpt", 30))
    accuracy, answered = chart.lines
    assert list(accuracy.x) == [0.6, 0.61]
    assert list(accuracy.y) == [75.0, 100.0]
    assert list(answered.y) == [100.0, 75.0]

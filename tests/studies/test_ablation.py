"""Which differences an ablation calls real: planted ones, and none where there is none."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import numpy as np
import pytest

from inkling.errors import InklingError
from inkling.figures import Chart, Prose, Table
from inkling.measure.intervals import Interval
from inkling.measure.paired import mcnemar
from inkling.studies.ablation import Ablation, Contrast, Measure, accuracy_over_seeds, over_seeds, seeds_p, texts_p
from inkling.studies.ablation_page import band, combination_table, effect_table, page
from inkling.studies.averaging import Bags, Cell, CellResult, GridConfig, Material, grid, train_grid

CONFIG = GridConfig(epochs=8, batch=50, rate=0.02)


def made_up(
    cells: tuple[Cell, ...], skill: Callable[[Cell], float], generator: np.random.Generator, texts: int = 2000
) -> Ablation:
    """Networks that get texts right with probability `skill`, hard texts being hard for all of a seed."""
    results = []
    for cell in cells:
        difficulty = np.random.default_rng(0).random(texts)
        right = difficulty + generator.normal(0, 0.1, texts) < skill(cell)
        curve = (*(0.5 + 0.01 * i for i in range(7)), float(right.mean()))
        results.append(
            CellResult(
                cell, curve, curve, np.packbits(right), np.packbits(right), 0.1 if "sigmoid" in cell.layers else None
            )
        )
    return Ablation(tuple(results), texts, CONFIG)


def xor_material(seed: int, texts: int) -> Material:
    """A text is of class 1 where its two dimensions have the same sign: no line tells the classes apart."""
    generator = np.random.default_rng(seed)
    vectors = np.array([[1, 1], [-1, -1], [1, -1], [-1, 1]], np.float32)
    parts = []
    for count in (texts, texts // 4, texts):
        kind = generator.integers(0, 4, count)
        noise = generator.integers(0, 4, (count, 2))
        ids = np.concatenate([np.repeat(kind[:, None], 5, 1), noise], axis=1).astype(np.int32)
        parts.append(Bags(ids.reshape(-1), 7 * np.arange(count + 1), (kind < 2).astype(np.int64)))
    return Material(vectors, *parts)


@pytest.fixture(scope="module")
def xor() -> Ablation:
    cells = grid([0, 1], ["tanh"], [0.0, 0.3], [12, 13], ["v"], 4)
    groups = train_grid(cells, {"v": xor_material(1, 400)}, 2, CONFIG)
    return Ablation(tuple(result for group in groups for result in group), 400, CONFIG)


def test_depth_matters_where_no_line_tells_the_classes_apart_and_a_unit_more_does_not(xor: Ablation) -> None:
    (depth,) = xor.contrasts("depth")
    assert depth.real
    assert (depth.better, depth.worse) == (1, 0)
    assert depth.difference.value > 20
    assert depth.difference.low > 15
    assert xor.sentences("depth")[0].startswith("1 hidden layer is better than no hidden layer by ")
    (width,) = xor.contrasts("width")
    assert not width.real
    assert "no difference shown" in width.sentence()
    assert width.networks == 8  # without a hidden layer there are no units: those networks are the same


def test_a_difference_is_called_real_seldom_where_there_is_none() -> None:
    generator = np.random.default_rng(5)
    cells = grid([1], ["relu", "sigmoid", "mish"], [0.0, 0.1], [5], ["v"], 5)
    false = sum(
        any(c.real for c in made_up(cells, lambda cell: 0.8, generator, 400).contrasts("activation"))
        for _ in range(150)
    )
    assert false <= 14  # 5 % of 150 are 7.5, and 14 or fewer have probability 0.99


def test_a_small_difference_is_found_by_pairing() -> None:
    generator = np.random.default_rng(6)
    cells = grid([1], ["relu", "sigmoid", "mish"], [0.0, 0.1], [5], ["v"], 5)
    found = made_up(cells, lambda cell: 0.82 if cell.activation == "mish" else 0.8, generator, 20_000)
    real = {(c.better, c.worse) for c in found.contrasts("activation") if c.real}
    assert real == {("mish", "relu"), ("mish", "sigmoid")}
    best = next(c for c in found.contrasts("activation") if (c.better, c.worse) == ("mish", "relu"))
    assert best.difference.low < 2 < best.difference.high
    assert best.corrected_p >= best.p_value == max(best.p_seeds, best.p_texts)


def test_luck_of_the_texts_is_not_taken_for_a_difference() -> None:
    """All seeds agree that a is better on the same 3 of 40 texts: sure of the trainings, unsure of other texts."""
    cells = grid([1], ["relu", "tanh"], [0.0], [5], ["v"], 5)
    results = []
    for cell in cells:
        right = np.ones(40, np.bool_)
        right[:20] = False
        if cell.activation == "relu":
            right[:3] = True
        results.append(
            CellResult(cell, (0.5, float(right.mean())), (0.5, 0.6), np.packbits(right), np.packbits(right), None)
        )
    (found,) = Ablation(tuple(results), 40, CONFIG).contrasts("activation")
    assert found.p_seeds == 0
    assert 0.05 < found.p_texts < 0.1
    assert not found.real


def test_one_network_a_side_is_mcnemars_test() -> None:
    generator = np.random.default_rng(0)
    a, b = generator.random((2, 300)) < np.array([[0.8], [0.7]])
    assert texts_p(a[None], b[None]) == mcnemar(a, b)
    assert texts_p(np.stack([a, a]), np.stack([b, b])) == pytest.approx(mcnemar(a, b), rel=0.3)
    assert texts_p(np.stack([a, b]), np.stack([a, b])) == 1


def test_students_interval_and_p_value_over_seeds() -> None:
    found = over_seeds(np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
    assert (found.low, found.high) == pytest.approx((3 - 1.963243, 3 + 1.963243), abs=1e-5)  # 2.776445 · √(2.5 / 5)
    assert seeds_p(np.array([1.0, 2.0, 3.0, 4.0, 5.0])) == pytest.approx(0.013241, abs=1e-5)
    assert seeds_p(np.zeros(4)) == 1
    assert math.isnan(seeds_p(np.ones(1)))
    assert math.isnan(over_seeds(np.ones(1)).low)


def near_the_ends() -> Ablation:
    """Without a hidden layer nearly all is wrong, with one nearly all is right; seeds differ."""
    bits = np.zeros(1, np.uint8)
    results = []
    for cell in grid([0, 1], ["relu"], [0.0], [5], ["v"], 3):
        end = (0.0, 0.0, 0.04)[cell.seed]
        curve = (1 - end, 1 - end) if cell.depth else (end, end)
        results.append(CellResult(cell, curve, curve, bits, bits, None))
    return Ablation(tuple(results), 8, CONFIG)


def test_an_interval_of_an_accuracy_ends_at_0_and_100_and_one_of_a_difference_does_not() -> None:
    # mean 4/3, deviation 4/√3, over √3: 4/3; Student's 4.302653 · 4/3 = 5.736871
    reach = 5.736871
    values = np.array([0.0, 0.0, 4.0])
    assert over_seeds(values).low == pytest.approx(4 / 3 - reach, abs=1e-5)
    low, high = accuracy_over_seeds(values), accuracy_over_seeds(100 - values)
    assert (low.value, low.low, low.high) == pytest.approx((4 / 3, 0, 4 / 3 + reach), abs=1e-5)
    assert (high.value, high.low, high.high) == pytest.approx((100 - 4 / 3, 100 - 4 / 3 - reach, 100), abs=1e-5)
    assert math.isnan(accuracy_over_seeds(np.ones(1)).high)
    found = near_the_ends()
    for interval in (found.effect("depth", 1).accuracy, found.effect("depth", 1).chosen, found.chosen[1]):
        assert interval.high == 100
    assert found.effect("depth", 0).accuracy.low == found.effect("depth", 0).chosen.low == 0
    assert "to 100.00 over seeds" in found.verdict()
    (difference,) = found.contrasts("depth")
    assert difference.difference.high == pytest.approx(100 - 8 / 3 + 2 * reach, abs=1e-4)
    for table in (effect_table(found, "depth"), combination_table(found)):
        places = [column.title for column in table.columns]
        shown = [(row[places.index("low")], row[places.index("high")]) for row in table.rows]
        assert (shown[0][0], shown[1][1]) == (0, 100)
    line = band("", [1, 2], np.array([[96.0, 0], [100, 0], [100, 4]]))
    assert (line.high[0], line.low[1]) == (100, 0)
    line = band("", [1], values[:, None], over_seeds)
    assert line.low[0] < 0


@pytest.mark.parametrize("measure", ["accuracy", "chosen", "fluctuation"])
@pytest.mark.parametrize(("seeds", "p"), [(1, math.nan), (5, 0.5), (5, 0.01)])
def test_minus_signs_in_sentences_are_minus_signs(measure: Measure, seeds: int, p: float) -> None:
    found = Contrast("depth", measure, 2, 1, 5, seeds, Interval(-1.5, -2.25, -0.75), p, p, p).sentence()
    assert "−1.50 points" in found
    assert "-" not in found.replace("held-out", "")
    assert ("−2.25 to −0.75" in found) is (seeds > 1)


def test_activations_are_compared_where_networks_have_any() -> None:
    cells = grid([0, 1, 2], ["relu", "relu+sigmoid"], [0.0], [5], ["v"], 2)
    found = made_up(cells, lambda cell: 0.8, np.random.default_rng(0))
    (contrast,) = found.contrasts("activation")
    assert contrast.networks == 2  # at depth 2 alone: below it, the mixed network is the plain one
    assert [effect.networks for effect in found.effects("activation")] == [4, 4]


def test_one_seed_tells_nothing() -> None:
    found = made_up(
        grid([0, 1], ["relu"], [0.0], [5], ["v"], 1), lambda c: 0.5 + 0.4 * c.depth, np.random.default_rng(0)
    )
    (contrast,) = found.contrasts("depth")
    assert not contrast.real
    assert "one seed cannot tell" in contrast.sentence()
    assert page(found).exhibits


def test_the_choice_is_made_on_held_out_text() -> None:
    cells = grid([0, 1], ["relu"], [0.0], [5], ["v"], 2)
    bits = np.zeros(1, np.uint8)
    results = [
        CellResult(c, (0.9, 0.8), (0.6, 0.5), bits, bits, None)
        if c.depth
        else CellResult(c, (0.95, 0.99), (0.5, 0.4), bits, bits, None)
        for c in cells
    ]
    cell, held_out, test = Ablation(tuple(results), 8, CONFIG).chosen
    assert (cell.depth, held_out.value, test.value) == pytest.approx((1, 60, 90))


def test_seeds_that_are_not_finished_do_not_count() -> None:
    cells = grid([0, 1], ["relu"], [0.0], [5], ["v"], 3)[:-1]
    found = made_up(cells, lambda cell: 0.8, np.random.default_rng(0))
    assert found.seeds == [0, 1]
    with pytest.raises(InklingError, match="no finished training"):
        Ablation((), 10, CONFIG)


def test_the_page_has_tables_curves_and_sentences_and_json_is_plain(xor: Ablation) -> None:
    exhibits = page(xor).exhibits
    titles = [exhibit.title for exhibit in exhibits]
    for wanted in ("Test accuracy by depth", "Test accuracy over epochs by depth", "Test accuracy and word dropout"):
        assert wanted in titles
    chart = next(e for e in exhibits if isinstance(e, Chart) and "epochs by depth" in e.title)
    assert [line.name for line in chart.lines] == ["no hidden layer", "1 hidden layer"]
    assert all(
        low <= y <= high for line in chart.lines for low, y, high in zip(line.low, line.y, line.high, strict=True)
    )
    combinations = next(e for e in exhibits if isinstance(e, Table) and e.title == "Every combination")
    assert len(combinations.rows) == 8
    assert any(isinstance(e, Prose) and "Best on held-out text" in e.text for e in exhibits)
    record = json.loads(json.dumps(xor.to_json()))
    assert record["trainings"] == 32
    assert {effect["factor"] for effect in record["effects"]} == {"depth", "word dropout", "width"}


def test_many_pairs_of_an_ordered_factor_are_told_by_neighbours() -> None:
    cells = grid([1], ["relu"], [0.0, 0.1, 0.2, 0.3, 0.4], [5], ["v"], 3)
    found = made_up(cells, lambda cell: 0.8 - 0.4 * cell.word_dropout, np.random.default_rng(0))
    assert len(found.contrasts("word dropout")) == 10
    assert len(found.sentences("word dropout")) == 5
    assert any("Dropout 0 is better than dropout 0.4 by" in sentence for sentence in found.sentences("word dropout"))

"""The page of an ablation: tables and charts of each factor, what can be said, and every combination."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from inkling.figures import Cell as Shown
from inkling.figures import Chart, Column, Exhibit, Line, Page, Prose, Table
from inkling.measure.intervals import Interval
from inkling.studies.ablation import (
    FACTORS,
    VALUES,
    Ablation,
    Floats,
    Measure,
    accuracy_over_seeds,
    bounds,
    known,
    last_accuracy,
    level_name,
    over_seeds,
)
from inkling.studies.averaging import CellResult

TITLES: dict[Measure, str] = {
    "accuracy": "accuracy after the last epoch",
    "chosen": "accuracy after the epoch that held-out text chose",
    "fluctuation": "fluctuation",
}
BOUNDS = (Column("low", ".2f"), Column("high", ".2f"))
AFTERWARDS = (Column("at the chosen epoch", ".2f", "%"), Column("fluctuation", ".3f", "points"))


def effect_table(found: Ablation, factor: str) -> Table:
    effects = found.effects(factor)
    saturated = any(effect.saturation is not None for effect in effects)
    columns = [
        Column(factor),
        Column("networks", ",d"),
        Column("accuracy", ".2f", "%"),
        *BOUNDS,
        *AFTERWARDS,
    ]
    rows: list[tuple[Shown, ...]] = []
    for e in effects:
        row: list[Shown] = [e.name, e.networks, e.accuracy.value, *bounds(e.accuracy), e.chosen.value]
        row.append(known(e.fluctuation.value))
        rows.append(tuple([*row, None if e.saturation is None else 100 * e.saturation] if saturated else row))
    if saturated:
        columns.append(Column("saturated", ".1f", "%", "share of sigmoid units, over texts, with a slope < 0.05"))
    return Table(
        f"Test accuracy by {factor}",
        tuple(columns),
        tuple(rows),
        (
            f"After {found.config.epochs} epochs, mean over the networks of the level; low and high: 95 % over "
            f"{len(found.seeds)} seeds. The chosen epoch is the best on held-out text. Fluctuation: deviation of "
            "the curve around a locally straight course, after the third epoch.",
        ),
    )


def contrast_table(found: Ablation, factor: str, measure: Measure = "accuracy") -> Table:
    columns = (
        Column("higher"),
        Column("lower"),
        Column("difference", ".2f", "points"),
        *BOUNDS,
        Column("p over seeds", ".2g"),
        Column("p over texts", ".2g"),
        Column("corrected p", ".2g"),
        Column("real"),
    )
    rows: list[tuple[Shown, ...]] = []
    for c in found.contrasts(factor, measure):
        names = (level_name(factor, c.better), level_name(factor, c.worse))
        p_values = map(known, (c.p_seeds, c.p_texts, c.corrected_p))
        rows.append((*names, c.difference.value, *bounds(c.difference), *p_values, c.real))
    return Table(
        f"Differences of {TITLES[measure]}, by {factor}",
        columns,
        tuple(rows),
        ("Between networks that agree in all else, seed included. Real: the larger p-value, corrected (Holm).",),
    )


def curves(found: Ablation, factor: str) -> Chart:
    lines = []
    for level in found.levels(factor):
        curve = found.mean_curve(found.with_level(factor, level))
        lines.append(band(level_name(factor, level), list(range(1, curve.shape[1] + 1)), curve))
    return Chart(
        f"Test accuracy over epochs by {factor}",
        "epoch",
        "test accuracy (%)",
        tuple(lines),
        reading=f"Mean over the networks of a level; the band is the 95 % interval over {len(found.seeds)} seeds.",
    )


def dropout_chart(found: Ablation) -> Chart:
    dropouts = found.levels("word dropout")
    lines = []
    for depth in found.levels("depth"):
        values = _by_seed(found, found.with_level("depth", depth), "word dropout", dropouts, "accuracy")
        lines.append(band(level_name("depth", depth), dropouts, values))
    return Chart(
        "Test accuracy and word dropout",
        "probability that a word is dropped",
        f"test accuracy after {found.config.epochs} epochs (%)",
        tuple(lines),
        reading=f"The band is the 95 % interval over {len(found.seeds)} seeds.",
    )


def fluctuation_chart(found: Ablation) -> Chart:
    depths = [depth for depth in found.levels("depth") if depth]
    lines = []
    for activation in found.levels("activation"):
        values = _by_seed(found, found.with_level("activation", activation), "depth", depths, "fluctuation")
        lines.append(band(activation, depths, values, over_seeds))
    return Chart(
        "Fluctuation from epoch to epoch",
        "hidden layers",
        "points of test accuracy",
        tuple(lines),
        reading="How far the curve strays from a locally straight course; the band is over seeds. Lower is calmer.",
    )


def _by_seed(
    found: Ablation, part: Sequence[CellResult], factor: str, levels: Sequence[Any], measure: Measure
) -> Floats:
    """Of the networks of `part` the mean for each seed (rows) and level of a factor (columns)."""
    level_of, value = FACTORS[factor], VALUES[measure]
    return np.array(
        [
            [np.mean([value(r) for r in part if (r.cell.seed, level_of(r.cell)) == (seed, level)]) for level in levels]
            for seed in found.seeds
        ]
    )


def combination_table(found: Ablation) -> Table:
    groups: dict[tuple[Any, ...], list[CellResult]] = {}
    for result in found.results:
        groups.setdefault(tuple(of(result.cell) for of in FACTORS.values()), []).append(result)
    varied = [factor for factor in FACTORS if factor in found.varied] or ["depth"]
    places = [list(FACTORS).index(factor) for factor in varied]
    columns = [Column(factor) for factor in varied]
    columns += [
        Column("seeds", "d"),
        Column("accuracy", ".2f", "%"),
        *BOUNDS,
        Column("held out", ".2f", "%"),
        *AFTERWARDS,
    ]
    rows: list[tuple[Shown, ...]] = []
    for key, alike in sorted(groups.items(), key=lambda group: [str(part) for part in group[0]]):
        accuracy = accuracy_over_seeds(np.array([last_accuracy(r) for r in alike]))
        held_out = float(np.mean([100 * r.held_out_accuracy[-1] for r in alike]))
        chosen = float(np.mean([100 * r.chosen_accuracy for r in alike]))
        rows.append(
            (
                *(key[place] for place in places),
                len(alike),
                accuracy.value,
                *bounds(accuracy),
                held_out,
                chosen,
                known(float(np.mean([r.fluctuation for r in alike]))),
            )
        )
    return Table("Every combination", tuple(columns), tuple(rows))


def summary(found: Ablation) -> Page:
    """For a terminal: the effects and what can be said."""
    exhibits: list[Exhibit] = []
    for factor in found.varied:
        exhibits.append(effect_table(found, factor))
        exhibits.append(Prose("\n\n".join([*found.sentences(factor), *found.real_sentences(factor, "chosen")])))
    exhibits.append(Prose(found.verdict()))
    exhibits += [Prose(note) for note in found.notes]
    return Page(found.title, tuple(exhibits))


def page(found: Ablation) -> Page:
    """Everything, with charts."""
    trained = f"{len(found.results):,} trainings of {found.config.epochs} epochs"
    how = f"Adam at {found.config.rate:g}, batches of {found.config.batch}"
    scaled = ", standardised" if found.config.standardise else ""
    opening = (
        f"{trained}, {len(found.seeds)} seeds; {how}; averages of frozen word vectors{scaled}; "
        f"{found.test_texts:,} test texts."
    )
    exhibits: list[Exhibit] = [Prose("\n\n".join([opening, *found.notes, found.verdict()]))]
    for factor in found.varied:
        said = [*found.sentences(factor), *found.real_sentences(factor, "chosen")]
        exhibits.append(Prose("\n\n".join(said), f"What {factor} does"))
        exhibits += [effect_table(found, factor), curves(found, factor), contrast_table(found, factor)]
        exhibits.append(contrast_table(found, factor, "chosen"))
        if factor == "word dropout":
            exhibits.append(dropout_chart(found))
        if factor == "activation" and math.isfinite(found.effects(factor)[0].fluctuation.value):
            exhibits.append(Prose("\n\n".join(found.sentences(factor, "fluctuation")), "Who fluctuates"))
            exhibits.append(contrast_table(found, factor, "fluctuation"))
            if len([depth for depth in found.levels("depth") if depth]) > 1:
                exhibits.append(fluctuation_chart(found))
    exhibits.append(combination_table(found))
    return Page(found.title, tuple(exhibits))


def band(
    name: str, x: Sequence[float], values: Floats, interval_of: Callable[[Floats], Interval] = accuracy_over_seeds
) -> Line:
    """A line with its interval over seeds, of accuracies unless told; `values` has a row for each seed."""
    intervals = [interval_of(column) for column in values.T]
    has_band = all(math.isfinite(interval.low) for interval in intervals)
    return Line(
        name,
        x,
        [interval.value for interval in intervals],
        [interval.low for interval in intervals] if has_band else (),
        [interval.high for interval in intervals] if has_band else (),
    )

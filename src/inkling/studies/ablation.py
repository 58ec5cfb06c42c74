"""What an ablation shows: the effect of each choice, and which differences are real.

The figure of a network is its test accuracy after the last epoch, as published; beside it stands that after the epoch
which held-out text chose, for a last epoch may be a lucky or an unlucky one. Of a factor (depth, activation, word
dropout, width, vectors) two levels are compared between networks that agree in everything else, seed included, and that
are not one and the same network (without a hidden layer the activation has no say). Two questions are asked:

    over seeds   dₛ = mean over the matched networks of seed s;  t = d̄ / (sd / √S), Student with S − 1 degrees
                 would another set of trainings show it too?
    over texts   dᵢ = mean over the matched networks of (right on text i)ₐ − (right on text i)ᵦ;  z = d̄ / (sd / √T)
                 would other texts show it too? With one network on each side this is McNemar's test, which is then
                 taken in its exact form.

The larger p-value counts, so a difference is called real only where both say so; all pairs of a factor are corrected
together (Holm 1979). Intervals are Student's over seeds, of each pair alone. No percentile bootstrap over seeds: of
five seeds it covers the truth in 84 % of cases where it should in 95 % (20,000 simulated sets of normal differences).

Epochs and networks are chosen on held-out text; the test text only judges.
Left out: interactions of factors are shown (one line for each depth) and not tested.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from inkling.errors import InklingError
from inkling.figures import Cell as Shown
from inkling.figures import Chart, Column, Exhibit, Line, Page, Prose, Table
from inkling.measure.comparison import holm
from inkling.measure.intervals import Interval, student_p, student_quantile
from inkling.measure.paired import mcnemar
from inkling.studies.averaging import Cell, CellResult, GridConfig

Floats = NDArray[np.float64]
Measure = Literal["accuracy", "chosen", "fluctuation"]  # after the last epoch, after the chosen one, over epochs

LEVEL = 0.05
MOST_SENTENCES = 6  # of one factor: with more pairs only neighbours are spelled out

FACTORS: dict[str, Callable[[Cell], Any]] = {
    "depth": lambda cell: cell.depth,
    "activation": lambda cell: cell.activation,
    "word dropout": lambda cell: cell.word_dropout,
    "width": lambda cell: cell.width,
    "vectors": lambda cell: cell.vectors,
}
ORDERED = ("depth", "word dropout", "width")


def over_seeds(values: Floats) -> Interval:
    """The mean of one value a seed, with Student's interval; without one where there is a single seed."""
    seeds = len(values)
    mean = float(np.mean(values))
    if seeds < 2 or not np.isfinite(values).all():
        return Interval(mean, math.nan, math.nan)
    reach = student_quantile(1 - LEVEL, seeds - 1) * float(np.std(values, ddof=1)) / math.sqrt(seeds)
    return Interval(mean, mean - reach, mean + reach)


def seeds_p(differences: Floats) -> float:
    """Two-sided p-value of a mean difference of zero, by Student's t over seeds; NaN with fewer than two."""
    if len(differences) < 2:
        return math.nan
    mean, spread = float(np.mean(differences)), float(np.std(differences, ddof=1))
    if spread <= 1e-12 * max(1.0, abs(mean)):
        return 1.0 if abs(mean) < 1e-12 else 0.0
    t = mean / (spread / math.sqrt(len(differences)))
    return float(student_p(np.array([t]), len(differences) - 1)[0])


def texts_p(right_a: NDArray[np.bool_], right_b: NDArray[np.bool_]) -> float:
    """Two-sided p-value of a mean difference of zero over texts, for K networks a side (K×T): McNemar's for K = 1."""
    if len(right_a) == 1:
        return mcnemar(right_a[0], right_b[0])
    differences = right_a.mean(axis=0) - right_b.mean(axis=0)
    spread = float(np.std(differences, ddof=1)) if len(differences) > 1 else 0.0
    if spread == 0:
        return 1.0
    return math.erfc(abs(float(differences.mean())) / (spread / math.sqrt(len(differences))) / math.sqrt(2))


def level_name(factor: str, level: Any) -> str:
    if factor == "depth":
        return "no hidden layer" if level == 0 else f"{level} hidden layer{'s' * (level != 1)}"
    if factor == "word dropout":
        return f"dropout {level:g}"
    return f"width {level}" if factor == "width" else str(level)


@dataclass(frozen=True)
class Effect:
    """One level of a factor over all networks that have it. In points; intervals are over seeds."""

    factor: str
    level: Any
    networks: int
    accuracy: Interval  # after the last epoch
    chosen: Interval  # after the epoch that held-out text chose
    fluctuation: Interval
    saturation: float | None

    @property
    def name(self) -> str:
        return level_name(self.factor, self.level)


@dataclass(frozen=True)
class Contrast:
    """Two levels of a factor. `difference` in points, `better` less `worse`; for fluctuation more less less.

    NaN for `p_seeds` with one seed, for `p_texts` where texts have no say (fluctuation).
    """

    factor: str
    measure: Measure
    better: Any
    worse: Any
    networks: int
    seeds: int
    difference: Interval
    p_seeds: float
    p_texts: float
    corrected_p: float = math.nan

    @property
    def p_value(self) -> float:
        """The larger of the two, or the one that there is."""
        return float(np.nanmax([self.p_seeds, self.p_texts])) if self.seeds > 1 else math.nan

    @property
    def real(self) -> bool:
        return self.corrected_p <= LEVEL  # NaN is not

    def sentence(self) -> str:
        a, b = level_name(self.factor, self.better), level_name(self.factor, self.worse)
        d = self.difference
        within = f"{d.low:.2f} to {d.high:.2f}".replace("-", "−")
        if self.seeds < 2:
            return f"{_capital(a)} and {b}: one seed cannot tell ({d.value:.2f} points)."
        if not self.real:
            return (
                f"{_capital(a)} and {b}: no difference shown ({d.value:.2f} points, {within}; "
                f"p = {self.corrected_p:.2g})."
            )
        if self.measure == "fluctuation":
            return f"{_capital(a)} fluctuates more than {b} from epoch to epoch, by {d.value:.2f} points ({within})."
        verb = "are" if self.factor == "depth" and self.better > 1 else "is"
        where = " at the epoch that held-out text chose" if self.measure == "chosen" else ""
        return f"{_capital(a)} {verb} better than {b} by {d.value:.2f} points ({within}){where}."

    def to_json(self) -> dict[str, Any]:
        return {
            "factor": self.factor,
            "measure": self.measure,
            "better": self.better,
            "worse": self.worse,
            "networks": self.networks,
            "seeds": self.seeds,
            "difference": self.difference.value,
            "low": self.difference.low,
            "high": self.difference.high,
            "p_seeds": self.p_seeds,
            "p_texts": self.p_texts,
            "corrected_p": self.corrected_p,
            "real": self.real,
        }


@dataclass(frozen=True, eq=False)
class Ablation:
    """All results of a grid, and what they show."""

    results: tuple[CellResult, ...]
    test_texts: int
    config: GridConfig
    title: str = "Ablation of the deep averaging network"
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.results:
            raise InklingError("The grid has no finished training; let at least one finish.")

    # ------------------------------------------------------------------------------------------------- the grid

    @cached_property
    def by_cell(self) -> dict[Cell, CellResult]:
        return {result.cell: result for result in self.results}

    @cached_property
    def seeds(self) -> list[int]:
        """Those for which every combination is finished."""
        counts = {seed: sum(r.cell.seed == seed for r in self.results) for seed in {r.cell.seed for r in self.results}}
        return sorted(seed for seed, count in counts.items() if count == max(counts.values()))

    def levels(self, factor: str) -> list[Any]:
        """In the order of the grid; those of an ordered factor ascend."""
        found = list(dict.fromkeys(FACTORS[factor](result.cell) for result in self.results))
        return sorted(found) if factor in ORDERED else found

    @property
    def varied(self) -> list[str]:
        return [factor for factor in FACTORS if len(self.levels(factor)) > 1]

    def with_level(self, factor: str, level: Any, *, seed: int | None = None) -> list[CellResult]:
        """The networks of a level; of an activation those alone that have a hidden layer (where any has)."""
        hidden = factor == "activation" and any(result.cell.depth for result in self.results)
        return [
            result
            for result in self.results
            if FACTORS[factor](result.cell) == level
            and (result.cell.depth or not hidden)
            and result.cell.seed in self.seeds
            and seed in (None, result.cell.seed)
        ]

    def mean_curve(self, found: Sequence[CellResult]) -> Floats:
        """Test accuracy in points after each epoch, a row for each seed, over the networks of that seed."""
        seeds = sorted({result.cell.seed for result in found})
        return np.array(
            [100 * np.mean([r.test_accuracy for r in found if r.cell.seed == seed], axis=0) for seed in seeds]
        )

    # ---------------------------------------------------------------------------------------------- what it shows

    def effect(self, factor: str, level: Any) -> Effect:
        by_seed = [self.with_level(factor, level, seed=seed) for seed in self.seeds]
        saturations = [r.saturation for part in by_seed for r in part if r.saturation is not None]
        return Effect(
            factor,
            level,
            sum(len(part) for part in by_seed),
            over_seeds(_points(by_seed, lambda r: 100 * r.test_accuracy[-1])),
            over_seeds(_points(by_seed, lambda r: 100 * r.chosen_accuracy)),
            over_seeds(_points(by_seed, lambda r: r.fluctuation)),
            float(np.mean(saturations)) if saturations else None,
        )

    def effects(self, factor: str) -> list[Effect]:
        return [self.effect(factor, level) for level in self.levels(factor)]

    def contrast(self, factor: str, a: Any, b: Any, measure: Measure = "accuracy") -> Contrast | None:
        """Two levels, the higher first; uncorrected. None where no two networks can be matched."""
        pairs = self._matched(factor, a, b)
        if not pairs:
            return None
        seeds = sorted({first.cell.seed for first, _ in pairs})
        value = VALUES[measure]
        differences = np.array(
            [np.mean([value(x) - value(y) for x, y in pairs if x.cell.seed == seed]) for seed in seeds]
        )
        p_texts = math.nan
        if measure != "fluctuation":
            p_texts = texts_p(*(self._right([pair[side] for pair in pairs], measure) for side in (0, 1)))
        if differences.mean() < 0:
            a, b, differences = b, a, -differences
        interval = over_seeds(differences)
        return Contrast(factor, measure, a, b, len(pairs), len(seeds), interval, seeds_p(differences), p_texts)

    def _right(self, found: Sequence[CellResult], measure: Measure) -> NDArray[np.bool_]:
        """Which test texts each network has right (K×T)."""
        bits = np.array([result.right_chosen if measure == "chosen" else result.right for result in found])
        return np.unpackbits(bits, axis=1, count=self.test_texts).astype(np.bool_)

    def contrasts(self, factor: str, measure: Measure = "accuracy") -> list[Contrast]:
        """All pairs of levels, corrected together."""
        key = (factor, measure)
        if key not in self._contrasts:
            found = [self.contrast(factor, a, b, measure) for a, b in combinations(self.levels(factor), 2)]
            kept = [contrast for contrast in found if contrast is not None]
            p_values = np.array([contrast.p_value for contrast in kept])
            corrected = np.full(len(kept), math.nan)
            known = np.isfinite(p_values)
            corrected[known] = holm(p_values[known])
            self._contrasts[key] = [
                replace(contrast, corrected_p=float(p)) for contrast, p in zip(kept, corrected, strict=True)
            ]
        return self._contrasts[key]

    @cached_property
    def _contrasts(self) -> dict[tuple[str, Measure], list[Contrast]]:
        return {}

    def _matched(self, factor: str, a: Any, b: Any) -> list[tuple[CellResult, CellResult]]:
        """Networks that differ in this factor alone, and do differ."""
        field = factor.replace(" ", "_")
        pairs = []
        for result in self.with_level(factor, a):
            other = self.by_cell.get(replace(result.cell, **{field: b}))
            if other is not None and result.cell.network != other.cell.network:
                pairs.append((result, other))
        return pairs

    def sentences(self, factor: str, measure: Measure = "accuracy") -> list[str]:
        found = self.contrasts(factor, measure)
        if len(found) > MOST_SENTENCES and factor in ORDERED:
            levels = self.levels(factor)
            near = [{a, b} for a, b in pairwise(levels)] + [{levels[0], levels[-1]}]
            found = [contrast for contrast in found if {contrast.better, contrast.worse} in near]
        elif len(found) > MOST_SENTENCES:
            found = [contrast for contrast in found if contrast.real] or found[:1]
        return [contrast.sentence() for contrast in found]

    def real_sentences(self, factor: str, measure: Measure) -> list[str]:
        """The differences that are real, and no others."""
        return [contrast.sentence() for contrast in self.contrasts(factor, measure) if contrast.real]

    @cached_property
    def chosen(self) -> tuple[Cell, Interval, Interval]:
        """The combination that is best on held-out text (its cell of the first seed), its accuracy there and on test
        text, each at the epoch that held-out text chose. In points."""
        groups: dict[Cell, list[CellResult]] = {}
        for result in self.results:
            if result.cell.seed in self.seeds:
                groups.setdefault(replace(result.cell, seed=self.seeds[0]), []).append(result)

        def held_out(cell: Cell) -> float:
            return float(np.mean([max(result.held_out_accuracy) for result in groups[cell]]))

        best = max(groups, key=held_out)
        on_held_out = np.array([100 * max(result.held_out_accuracy) for result in groups[best]])
        on_test = np.array([100 * result.chosen_accuracy for result in groups[best]])
        return best, over_seeds(on_held_out), over_seeds(on_test)

    def verdict(self) -> str:
        """The choice in one sentence."""
        cell, held_out, test = self.chosen
        return (
            f"Best on held-out text ({held_out.value:.2f} %): {describe(cell)}; {test.value:.2f} % on the test text "
            f"{_within(test)}, at the epoch that held-out text chose."
        )

    # --------------------------------------------------------------------------------------------------- exhibits

    def effect_table(self, factor: str) -> Table:
        effects = self.effects(factor)
        saturated = any(effect.saturation is not None for effect in effects)
        columns = [
            Column(factor),
            Column("networks", ",d"),
            Column("accuracy", ".2f", "%"),
            Column("low", ".2f"),
            Column("high", ".2f"),
            Column("at the chosen epoch", ".2f", "%"),
            Column("fluctuation", ".3f", "points"),
        ]
        rows: list[tuple[Shown, ...]] = []
        for e in effects:
            row: list[Shown] = [e.name, e.networks, e.accuracy.value, *_bounds(e.accuracy), e.chosen.value]
            row.append(_number(e.fluctuation.value))
            rows.append(tuple([*row, None if e.saturation is None else 100 * e.saturation] if saturated else row))
        if saturated:
            columns.append(Column("saturated", ".1f", "%", "share of sigmoid units, over texts, with a slope < 0.05"))
        return Table(
            f"Test accuracy by {factor}",
            tuple(columns),
            tuple(rows),
            (
                f"After {self.config.epochs} epochs, mean over the networks of the level; low and high: 95 % over "
                f"{len(self.seeds)} seeds. The chosen epoch is the best on held-out text. Fluctuation: deviation of "
                "the curve around a locally straight course, after the third epoch.",
            ),
        )

    def contrast_table(self, factor: str, measure: Measure = "accuracy") -> Table:
        columns = (
            Column("higher"),
            Column("lower"),
            Column("difference", ".2f", "points"),
            Column("low", ".2f"),
            Column("high", ".2f"),
            Column("p over seeds", ".2g"),
            Column("p over texts", ".2g"),
            Column("corrected p", ".2g"),
            Column("real"),
        )
        rows: list[tuple[Shown, ...]] = []
        for c in self.contrasts(factor, measure):
            names = (level_name(factor, c.better), level_name(factor, c.worse))
            p_values = map(_number, (c.p_seeds, c.p_texts, c.corrected_p))
            rows.append((*names, c.difference.value, *_bounds(c.difference), *p_values, c.real))
        return Table(
            f"Differences of {TITLES[measure]}, by {factor}",
            columns,
            tuple(rows),
            ("Between networks that agree in all else, seed included. Real: the larger p-value, corrected (Holm).",),
        )

    def curves(self, factor: str) -> Chart:
        lines = []
        for level in self.levels(factor):
            curve = self.mean_curve(self.with_level(factor, level))
            lines.append(band(level_name(factor, level), list(range(1, curve.shape[1] + 1)), curve))
        return Chart(
            f"Test accuracy over epochs by {factor}",
            "epoch",
            "test accuracy (%)",
            tuple(lines),
            reading=f"Mean over the networks of a level; the band is the 95 % interval over {len(self.seeds)} seeds.",
        )

    def dropout_chart(self) -> Chart:
        dropouts = self.levels("word dropout")
        lines = []
        for depth in self.levels("depth"):
            part = list(self.with_level("depth", depth))
            values = np.array(
                [
                    [
                        np.mean([_last(r) for r in part if (r.cell.seed, r.cell.word_dropout) == (seed, dropout)])
                        for dropout in dropouts
                    ]
                    for seed in self.seeds
                ]
            )
            lines.append(band(level_name("depth", depth), dropouts, values))
        return Chart(
            "Test accuracy and word dropout",
            "probability that a word is dropped",
            f"test accuracy after {self.config.epochs} epochs (%)",
            tuple(lines),
            reading=f"The band is the 95 % interval over {len(self.seeds)} seeds.",
        )

    def fluctuation_chart(self) -> Chart:
        depths = [depth for depth in self.levels("depth") if depth]
        lines = []
        for activation in self.levels("activation"):
            part = self.with_level("activation", activation)
            values = np.array(
                [
                    [
                        np.mean([r.fluctuation for r in part if (r.cell.seed, r.cell.depth) == (seed, depth)])
                        for depth in depths
                    ]
                    for seed in self.seeds
                ]
            )
            lines.append(band(activation, depths, values))
        return Chart(
            "Fluctuation from epoch to epoch",
            "hidden layers",
            "points of test accuracy",
            tuple(lines),
            reading="How far the curve strays from a locally straight course; the band is over seeds. Lower is calmer.",
        )

    def combination_table(self) -> Table:
        groups: dict[tuple[Any, ...], list[CellResult]] = {}
        for result in self.results:
            groups.setdefault(tuple(of(result.cell) for of in FACTORS.values()), []).append(result)
        varied = [factor for factor in FACTORS if factor in self.varied] or ["depth"]
        places = [list(FACTORS).index(factor) for factor in varied]
        columns = [Column(factor) for factor in varied]
        columns += [
            Column("seeds", "d"),
            Column("accuracy", ".2f", "%"),
            Column("low", ".2f"),
            Column("high", ".2f"),
            Column("held out", ".2f", "%"),
            Column("at the chosen epoch", ".2f", "%"),
            Column("fluctuation", ".3f", "points"),
        ]
        rows: list[tuple[Shown, ...]] = []
        for key, found in sorted(groups.items(), key=lambda group: [str(part) for part in group[0]]):
            accuracy = over_seeds(np.array([_last(r) for r in found]))
            held_out = float(np.mean([100 * r.held_out_accuracy[-1] for r in found]))
            chosen = float(np.mean([100 * r.chosen_accuracy for r in found]))
            rows.append(
                (
                    *(key[place] for place in places),
                    len(found),
                    accuracy.value,
                    *_bounds(accuracy),
                    held_out,
                    chosen,
                    _number(float(np.mean([r.fluctuation for r in found]))),
                )
            )
        return Table("Every combination", tuple(columns), tuple(rows))

    def summary(self) -> Page:
        """For a terminal: the effects and what can be said."""
        exhibits: list[Exhibit] = []
        for factor in self.varied:
            exhibits.append(self.effect_table(factor))
            exhibits.append(Prose("\n\n".join([*self.sentences(factor), *self.real_sentences(factor, "chosen")])))
        exhibits.append(Prose(self.verdict()))
        exhibits += [Prose(note) for note in self.notes]
        return Page(self.title, tuple(exhibits))

    def page(self) -> Page:
        """Everything, with charts."""
        trained = f"{len(self.results):,} trainings of {self.config.epochs} epochs"
        how = f"Adam at {self.config.rate:g}, batches of {self.config.batch}"
        scaled = ", standardised" if self.config.standardise else ""
        opening = (
            f"{trained}, {len(self.seeds)} seeds; {how}; averages of frozen word vectors{scaled}; "
            f"{self.test_texts:,} test texts."
        )
        exhibits: list[Exhibit] = [Prose("\n\n".join([opening, *self.notes, self.verdict()]))]
        for factor in self.varied:
            said = [*self.sentences(factor), *self.real_sentences(factor, "chosen")]
            exhibits.append(Prose("\n\n".join(said), f"What {factor} does"))
            exhibits += [self.effect_table(factor), self.curves(factor), self.contrast_table(factor)]
            exhibits.append(self.contrast_table(factor, "chosen"))
            if factor == "word dropout":
                exhibits.append(self.dropout_chart())
            if factor == "activation" and math.isfinite(self.effects(factor)[0].fluctuation.value):
                exhibits.append(Prose("\n\n".join(self.sentences(factor, "fluctuation")), "Who fluctuates"))
                exhibits.append(self.contrast_table(factor, "fluctuation"))
                if len([depth for depth in self.levels("depth") if depth]) > 1:
                    exhibits.append(self.fluctuation_chart())
        exhibits.append(self.combination_table())
        return Page(self.title, tuple(exhibits))

    def to_json(self) -> dict[str, Any]:
        cell, held_out, test = self.chosen
        return {
            "trainings": len(self.results),
            "seeds": len(self.seeds),
            "epochs": self.config.epochs,
            "test_texts": self.test_texts,
            "notes": list(self.notes),
            "effects": [_effect_json(e) for factor in self.varied for e in self.effects(factor)],
            "contrasts": [
                c.to_json()
                for factor in self.varied
                for measure in ("accuracy", "chosen")
                for c in self.contrasts(factor, measure)
            ]
            + [c.to_json() for c in self.contrasts("activation", "fluctuation") if "activation" in self.varied],
            "sentences": [s for factor in self.varied for s in self.sentences(factor)],
            "chosen": {**_cell_json(cell), "held_out": held_out.value, "test": _interval_json(test)},
        }


def describe(cell: Cell) -> str:
    hidden = level_name("depth", cell.depth)
    units = f" of {cell.width} units, {cell.activation}" if cell.depth else ""
    return f"{hidden}{units}, word dropout {cell.word_dropout:g}, vectors {cell.vectors}"


def band(name: str, x: Sequence[float], values: Floats) -> Line:
    """A line with its interval over seeds; `values` has a row for each seed."""
    intervals = [over_seeds(column) for column in values.T]
    known = all(math.isfinite(interval.low) for interval in intervals)
    return Line(
        name,
        x,
        [interval.value for interval in intervals],
        [interval.low for interval in intervals] if known else (),
        [interval.high for interval in intervals] if known else (),
    )


def _points(by_seed: Sequence[Sequence[CellResult]], value: Callable[[CellResult], float]) -> Floats:
    return np.array([np.mean([value(result) for result in part]) for part in by_seed if part])


def _last(result: CellResult) -> float:
    return 100 * result.test_accuracy[-1]


VALUES: dict[Measure, Callable[[CellResult], float]] = {
    "accuracy": _last,
    "chosen": lambda result: 100 * result.chosen_accuracy,
    "fluctuation": lambda result: result.fluctuation,
}
TITLES: dict[Measure, str] = {
    "accuracy": "accuracy after the last epoch",
    "chosen": "accuracy after the epoch that held-out text chose",
    "fluctuation": "fluctuation",
}


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:] if text.startswith(("no ", "dropout", "width")) else text


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _bounds(interval: Interval) -> tuple[float | None, float | None]:
    return _number(interval.low), _number(interval.high)


def _within(interval: Interval) -> str:
    return f"({interval.low:.2f} to {interval.high:.2f} over seeds)" if math.isfinite(interval.low) else "(one seed)"


def _interval_json(interval: Interval) -> dict[str, float | None]:
    low, high = _bounds(interval)
    return {"value": _number(interval.value), "low": low, "high": high}


def _cell_json(cell: Cell) -> dict[str, Any]:
    return {factor.replace(" ", "_"): of(cell) for factor, of in FACTORS.items()}


def _effect_json(effect: Effect) -> Mapping[str, Any]:
    return {
        "factor": effect.factor,
        "level": effect.level,
        "networks": effect.networks,
        "accuracy": _interval_json(effect.accuracy),
        "at_chosen_epoch": _interval_json(effect.chosen),
        "fluctuation": _interval_json(effect.fluctuation),
        "saturation": effect.saturation,
    }

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
together (Holm 1979). Intervals are Student's over seeds, of each pair alone; those of an accuracy end at 0 and 100 %,
those of a difference where they end. No percentile bootstrap over seeds: of
five seeds it covers the truth in 84 % of cases where it should in 95 % (20,000 simulated sets of normal differences).

Epochs and networks are chosen on held-out text; the test text only judges. `ablation_page` shows what is found here.
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


def accuracy_over_seeds(values: Floats) -> Interval:
    """The same of accuracies in points, which no interval need leave: it ends at 0 and 100."""
    found = over_seeds(values)
    low, high = np.clip([found.low, found.high], 0, 100).tolist()  # NaN stays
    return replace(found, low=low, high=high)


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
        points, within = f"{signed(d.value)} points", f"{signed(d.low)} to {signed(d.high)}"
        if self.seeds < 2:
            return f"{_capital(a)} and {b}: one seed cannot tell ({points})."
        if not self.real:
            return f"{_capital(a)} and {b}: no difference shown ({points}, {within}; p = {self.corrected_p:.2g})."
        if self.measure == "fluctuation":
            return f"{_capital(a)} fluctuates more than {b} from epoch to epoch, by {points} ({within})."
        verb = "are" if self.factor == "depth" and self.better > 1 else "is"
        where = " at the epoch that held-out text chose" if self.measure == "chosen" else ""
        return f"{_capital(a)} {verb} better than {b} by {points} ({within}){where}."

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
            accuracy_over_seeds(_points(by_seed, VALUES["accuracy"])),
            accuracy_over_seeds(_points(by_seed, VALUES["chosen"])),
            over_seeds(_points(by_seed, VALUES["fluctuation"])),
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
        return best, accuracy_over_seeds(on_held_out), accuracy_over_seeds(on_test)

    def verdict(self) -> str:
        """The choice in one sentence."""
        cell, held_out, test = self.chosen
        return (
            f"Best on held-out text ({held_out.value:.2f} %): {describe(cell)}; {test.value:.2f} % on the test text "
            f"{_within(test)}, at the epoch that held-out text chose."
        )

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


def _points(by_seed: Sequence[Sequence[CellResult]], value: Callable[[CellResult], float]) -> Floats:
    return np.array([np.mean([value(result) for result in part]) for part in by_seed if part])


def last_accuracy(result: CellResult) -> float:
    return 100 * result.test_accuracy[-1]


VALUES: dict[Measure, Callable[[CellResult], float]] = {
    "accuracy": last_accuracy,
    "chosen": lambda result: 100 * result.chosen_accuracy,
    "fluctuation": lambda result: result.fluctuation,
}


def signed(points: float) -> str:
    """For a sentence: with a minus sign, not a hyphen."""
    return f"{points:.2f}".replace("-", "−")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:] if text.startswith(("no ", "dropout", "width")) else text


def known(value: float) -> float | None:
    """For a table: nothing where there is no number."""
    return value if math.isfinite(value) else None


def bounds(interval: Interval) -> tuple[float | None, float | None]:
    return known(interval.low), known(interval.high)


def _within(interval: Interval) -> str:
    if not math.isfinite(interval.low):
        return "(one seed)"
    return f"({signed(interval.low)} to {signed(interval.high)} over seeds)"


def _interval_json(interval: Interval) -> dict[str, float | None]:
    low, high = bounds(interval)
    return {"value": known(interval.value), "low": low, "high": high}


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

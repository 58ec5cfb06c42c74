"""Experiments with attention: one case, what is known exactly, what samples say, and how far the two lie apart.

    copy       one head, q = βμ_a              E2   the weight on a, and why alignment alone is not enough
    average    one head, q = β(μ_a+μ_b)        E4   half of each value; E5 with a little noise on every key
    noise      the same, k_a noisy along μ_a   E6   the output swings between v_a and v_b
    heads      q₁ = βμ_a, q₂ = βμ_b            E7   two heads hold still, unless head 1 loses its key
                                               E8   both with the query of one head: nothing is gained

Every figure stands three times: exact, simulated, and their distance in standard errors. Where a figure has no
randomness left (no noise), its standard error is the rounding of single precision, a millionth of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

from inkling.attention.arrays import Floats
from inkling.attention.case import Case, build
from inkling.attention.exact import HALF, QUANTILES, Exact, LogitNormal, exact
from inkling.attention.log_sum import share_below
from inkling.attention.simulate import Estimate, Simulated, share, simulate
from inkling.errors import UsageError
from inkling.figures import Column, Page, Table

Kind = Literal["copy", "average", "noise", "heads"]
ROUNDING = 1e-6  # of a weight in single precision
SAMPLES = 200_000
TITLES: dict[Kind, str] = {
    "copy": "Copying: one head looks at one key",
    "average": "Averaging: one head looks at two keys",
    "noise": "Noise: one head looks at two keys, one of them uncertain",
    "heads": "Heads: two heads, one key each",
}


@dataclass(frozen=True)
class Figure:
    """A number that is known exactly and was also simulated. `exact` is NaN where only samples can tell."""

    name: str
    exact: float
    simulated: float
    standard_error: float

    @property
    def deviation(self) -> float:
        """Simulated less exact, in standard errors."""
        if math.isnan(self.exact):
            return math.nan
        return (self.simulated - self.exact) / math.hypot(self.standard_error, ROUNDING * abs(self.exact), 1e-12)

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "exact": self.exact,
            "simulated": self.simulated,
            "standard_error": self.standard_error,
            "deviation": self.deviation,
        }


@dataclass(frozen=True)
class Setting:
    """What a person sets. `a` and `b` count from 0."""

    kind: Kind
    keys: int = 20
    beta: float = 10.0
    alpha: float = 0.0  # variance of every key in every direction
    noise: float = 0.0  # variance of key a along its own mean
    a: int = 0
    b: int = 1
    dimension: int | None = None
    coherence: float = 0.0
    scaled: bool = False
    same: bool = False  # of two heads: both have the query of one averaging head (E8)
    seed: int = 0

    @property
    def looks(self) -> tuple[tuple[int, ...], ...]:
        if self.kind == "copy":
            return ((self.a,),)
        if self.kind == "heads" and not self.same:
            return ((self.a,), (self.b,))
        return ((self.a, self.b),) * (2 if self.kind == "heads" else 1)

    def to_json(self, case: Case) -> dict[str, Any]:
        """Keys count from 1, as on the command line."""
        found = asdict(self) | {"a": self.a + 1, "b": self.b + 1, "dimension": case.dimension}
        del found["kind"]
        return found

    def case(self, looks: Sequence[Sequence[int]] | None = None) -> Case:
        if self.kind != "copy":
            if self.keys == 1:
                raise UsageError("There is 1 key, but a and b are two; give at least 2 keys.")
            if self.a == self.b:
                raise UsageError(f"a and b are both key {self.a + 1}; give two different keys.")
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or self.seed < 0:
            raise UsageError(f"The seed is {self.seed!r}; give a whole number of at least 0.")
        return build(
            self.keys,
            self.beta,
            self.looks if looks is None else looks,
            dimension=self.dimension,
            alpha=self.alpha,
            noise=self.noise,
            scaled=self.scaled,
            coherence=self.coherence,
            generator=np.random.default_rng((self.seed, 1)),
        )


@dataclass(frozen=True, eq=False)
class Experiment:
    setting: Setting
    exact: Exact
    simulated: Simulated
    figures: tuple[Figure, ...]
    alone: tuple[Exact, Simulated] | None = None  # of two heads: what one averaging head would do with the same keys

    @property
    def case(self) -> Case:
        return self.exact.case

    @property
    def title(self) -> str:
        if self.setting.kind == "heads" and self.setting.same:
            return "Heads: two heads with the same query"
        return TITLES[self.setting.kind]

    @property
    def failure_probability(self) -> float:
        """Of head 1: less than half of its weight on what it looks at."""
        return self.exact.heads[0].failure_probability

    def figure(self, name: str) -> Figure:
        return next(figure for figure in self.figures if figure.name == name)

    def worst_deviation(self) -> float:
        """The largest distance between exact and simulated, in standard errors."""
        return max((abs(f.deviation) for f in self.figures if not math.isnan(f.deviation)), default=0.0)

    def key_name(self, key: int) -> str:
        return key_name(self.setting, key)

    def table(self) -> Table:
        note = f"{self.simulated.samples:,} samples; – where there is no exact form."
        return figures_table("Exact and simulated", self.figures, note)

    def page(self, on_integral: Callable[[], None] = lambda: None) -> Page:
        from inkling.attention.exhibits import experiment_page

        return experiment_page(self, on_integral)

    def _repr_html_(self) -> str:
        return self.page()._repr_html_()

    def to_json(self) -> dict[str, Any]:
        failure = self.figure(FAILURE.format(1))
        return {
            "kind": self.setting.kind,
            "setting": self.setting.to_json(self.case),
            "failure_probability": failure.exact,
            "simulated": failure.simulated,
            "standard_error": failure.standard_error,
            "deviation": failure.deviation,
            "samples": self.simulated.samples,
            "figures": [figure.to_json() for figure in self.figures],
            "exact": self.exact.to_json(),
        }


def figures_table(title: str, figures: Sequence[Figure], *notes: str) -> Table:
    columns = (
        Column("figure"),
        Column("exact", ".6f"),
        Column("simulated", ".6f"),
        Column("standard error", ".1e"),
        Column("deviation", "+.1f", "standard errors"),
    )
    rows = tuple(
        (f.name, *(None if math.isnan(v) else v for v in (f.exact, f.simulated, f.standard_error, f.deviation)))
        for f in figures
    )
    return Table(title, columns, rows, notes)


FAILURE = "head {}: failure probability"


def experiment(
    setting: Setting, samples: int = SAMPLES, solve: bool = True, on_integral: Callable[[], None] = lambda: None
) -> Experiment:
    """Both ways through one case; without `solve` only what samples say, for who cannot wait for integrals."""
    case = setting.case()
    known, drawn = exact(case, solve, on_integral), simulate(case, np.random.default_rng(setting.seed), samples)
    alone = None
    if setting.kind == "heads":
        single = setting.case(((setting.a, setting.b),))
        alone = (exact(single, solve, on_integral), simulate(single, np.random.default_rng(setting.seed), samples))
    figures = tuple(_figures(setting, known, drawn))
    if alone is not None:
        figures += tuple(_part_figures("one head", setting, *alone))
    return Experiment(setting, known, drawn, figures, alone)


def key_name(setting: Setting, key: int) -> str:
    if key == setting.a:
        return "a"
    return "b" if key == setting.b and setting.kind != "copy" else str(key + 1)


def mean_figure(name: str, known: float, variance: float, drawn: Estimate, samples: int) -> Figure:
    """A mean: where the variance is known its standard error is too, also when no sample saw the rare large weight."""
    error = 0.0 if math.isnan(variance) else math.sqrt(variance / samples)
    return Figure(name, float(known), drawn.value, max(drawn.standard_error, error))


def variance_figure(name: str, known: float, drawn: Estimate, samples: int) -> Figure:
    """A variance below 1/N can be that of a rare event that no sample saw. Its error is √(variance/N) at most."""
    unseen = known * samples < 1 and drawn.value < known / 2
    error = math.sqrt(known / samples) if unseen else drawn.standard_error
    return Figure(name, float(known), drawn.value, max(drawn.standard_error, error))


def _share(name: str, known: float, drawn: Estimate, samples: int) -> Figure:
    """A probability: its standard error is that of the exact one, which is not zero when no sample happened to hit."""
    error = math.sqrt(known * (1 - known) / samples) if 0 <= known <= 1 else drawn.standard_error
    return Figure(name, known, drawn.value, error)


def _figures(setting: Setting, known: Exact, drawn: Simulated) -> Iterator[Figure]:
    N = drawn.samples
    for h, law in enumerate(known.heads):
        if h and known.case.heads_are_equal:  # the same numbers again
            break
        head = f"head {h + 1}"
        for key in known.case.named_keys:
            name = key_name(setting, key)
            mean, variance = law.mean_weights[key], law.weight_variances[key]
            yield mean_figure(f"{head}: mean weight on {name}", mean, variance, drawn.mean_weight(h, key), N)
            yield variance_figure(
                f"{head}: variance of the weight on {name}", variance, drawn.weight_variance(h, key), N
            )
        yield _share(FAILURE.format(h + 1), law.failure_probability, drawn.failure(h), N)
        if law.pair is not None and law.pair.deviation:
            yield from _pair_figures(h, law.pair, drawn)
    yield from _part_figures("output", setting, known, drawn)


def _pair_figures(h: int, pair: LogitNormal, drawn: Simulated) -> Iterator[Figure]:
    """How often a's share of the two keys lies below its exact quantiles; as logits, which do not round to 0 and 1."""
    leads = drawn.kept_leads[:, h]
    for p in QUANTILES:
        logit, quantile = pair.logit_quantile(p), pair.quantile(p)
        limit = f"{quantile:.4g}" if 1e-4 < quantile < 1 - 1e-4 else f"σ({logit:.4g})"
        count = int((leads <= logit).sum())
        name = f"head {h + 1}: a's share of both ≤ {limit}, its {p:.0%} quantile"
        yield _share(name, p, share(count, len(leads)), len(leads))


def _part_figures(whose: str, setting: Setting, known: Exact, drawn: Simulated) -> Iterator[Figure]:
    for key in known.case.named_keys:
        name = key_name(setting, key)
        mean, variance = known.mean_coefficients[key], known.coefficient_variances[key]
        yield mean_figure(f"{whose}: mean of {name}'s part", mean, variance, drawn.mean_coefficient(key), drawn.samples)
        yield variance_figure(
            f"{whose}: variance of {name}'s part", variance, drawn.coefficient_variance(key), drawn.samples
        )


def failure_curve(setting: Setting, betas: Floats, on_integral: Callable[[], None] = lambda: None) -> list[float]:
    """Failure probability of head 1 at each β, to which scores are proportional."""
    case = replace(setting, beta=1.0).case()
    means, deviations, looks = case.score_means[0], case.score_deviations[0], np.array(case.looks[0])
    shares = []
    for beta in betas.tolist():
        shares.append(share_below(beta * means, abs(beta) * deviations, looks, HALF))
        on_integral()
    return shares

"""Claims D1–D4: the deep averaging network on film reviews, with frozen vectors, as published.

All four look at one set of trainings (5 seeds, 20 epochs each, 100 units, Adam at 0.001 in batches of 100; a tenth of
the training reviews is held out). From two hidden layers of ReLU without word dropout, one choice is changed at a time.
`inkling ablate dan` trains the whole grid. Published figures are for vectors of 300 dimensions; here are 50 and 100.

The rules of the verdicts, written down after a look at one seed of some settings and before the five seeds were
trained:

D1  holds: within 1 point of 84 %. Holds if (the dimension is 300): what each doubling of the dimension adds from 50 to
    100, added log₂ 3 times to the figure at 100, reaches 83 %. Fails otherwise.
D2  holds: some p > 0 is really better than none. Corrected: none is, and some is really worse, or no difference is
    real and the curve is flat within 1 point. Fails otherwise.
D3  holds: the first layer is really better than none, the second adds less than the first, and 2 and 3 layers are not
    really different or less apart than 1 and 2. Holds if (inputs are not standardised): all that is so, but on
    standardised averages the first layer adds less than half as much. Fails otherwise.
D4  holds: ReLU, sigmoid and Mish are within half a point of each other or not really different, and sigmoid really
    fluctuates more than both others. Corrected: a real difference says otherwise to one of the two halves. Fails
    otherwise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np

from inkling.claims.ledger import Claim, Context, Finding, Verdict
from inkling.figures import Chart, Column, Exhibit, Prose, Table
from inkling.recipes.ablation import AblationRecipe, material, read_parts
from inkling.studies.ablation import Ablation, Contrast, over_seeds, signed
from inkling.studies.ablation_page import band, contrast_table, curves, dropout_chart, effect_table
from inkling.studies.averaging import Cell, CellResult, GridConfig, grid, train_grid

FILES = {
    "train": "imdb/train.csv.xz",
    "test": "imdb/test.csv.xz",
    "50-d": "glove/glove.6B.50d.top100k.npz",
    "100-d": "glove/glove.6B.100d.top40k.npz",
}
NEEDS = "needs --data with imdb/ and glove/"
DEPTHS = (0, 1, 2, 3)
DROPOUTS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
PLAIN = ("relu", "sigmoid", "mish")
ACTIVATIONS = (*PLAIN, "tanh", "leaky_relu", "silu", "relu+sigmoid", "sigmoid+relu")
DEPTH = 2
PUBLISHED, NEAR, PUBLISHED_DIMENSION = 84.0, 1.0, 300
EQUAL = 0.5  # points


@dataclass(frozen=True)
class Plan:
    """How large the study is; tests make it small."""

    seeds: int = 5
    width: int = 100
    training: GridConfig = field(default_factory=GridConfig)


PLAN = Plan()


@dataclass(frozen=True, eq=False)
class Study:
    """The trainings that D1 to D4 share. `standardised` has all depths of ReLU, and sigmoid at the middle one."""

    results: tuple[CellResult, ...]
    standardised: tuple[CellResult, ...]
    test_texts: int
    plan: Plan

    def some(self, *, standardised: bool = False, **wanted: object) -> Ablation:
        """The cells with these values; a tuple stands for several."""
        found = [
            result
            for result in (self.standardised if standardised else self.results)
            if all(
                getattr(result.cell, name) in (value if isinstance(value, tuple) else (value,))
                for name, value in wanted.items()
            )
        ]
        return Ablation(tuple(found), self.test_texts, self.plan.training)


def study(context: Context, plan: Plan) -> Study | None:
    """None where a file is missing."""
    if context.data is None or not all(context.file(name) for name in FILES.values()):
        return None
    context.say("D1 to D4: the networks, trained once …")
    return _study(context.data, plan)


@cache
def _study(data: Path, plan: Plan) -> Study:
    vectors = {name: str(data / FILES[name]) for name in ("100-d", "50-d")}
    recipe = AblationRecipe((str(data / FILES["train"]),), (str(data / FILES["test"]),), tuple(vectors.values()))
    parts = read_parts(recipe)
    materials = {name: material(parts, path, recipe) for name, path in vectors.items()}
    classes = len(parts.train.labels)

    def cells(
        depths: tuple[int, ...], activations: tuple[str, ...], dropouts: tuple[float, ...], name: str = "100-d"
    ) -> tuple[Cell, ...]:
        return grid(depths, activations, dropouts, [plan.width], [name], plan.seeds)

    base = ((DEPTH,), ("relu",), (0.0,))
    wanted = (
        *cells(*base, "50-d"),
        *cells((DEPTH,), ("relu",), DROPOUTS),
        *cells(DEPTHS, ("relu",), (0.0,)),
        *cells((DEPTH,), ACTIVATIONS, (0.0,)),
    )
    rescaled = (*cells(DEPTHS, ("relu",), (0.0,)), *cells((DEPTH,), ("sigmoid",), (0.0,)))
    training = plan.training
    scaled = GridConfig(training.epochs, training.batch, training.rate, standardise=True)
    return Study(
        tuple(r for group in train_grid(tuple(dict.fromkeys(wanted)), materials, classes, training) for r in group),
        tuple(r for group in train_grid(tuple(dict.fromkeys(rescaled)), materials, classes, scaled) for r in group),
        len(parts.test),
        plan,
    )


# ---------------------------------------------------------------------------------------------------------- verdicts


def judge_level(at_50: float, at_100: float) -> tuple[Verdict, float]:
    """D1, and what the trend from 50 to 100 dimensions says of 300."""
    expected = at_100 + (at_100 - at_50) * math.log2(PUBLISHED_DIMENSION / 100)
    if abs(at_100 - PUBLISHED) <= NEAR:
        return "holds", expected
    return ("holds if" if at_100 < PUBLISHED and expected >= PUBLISHED - NEAR else "fails"), expected


def judge_dropout(contrasts: list[Contrast]) -> Verdict:
    with_none = [c for c in contrasts if 0.0 in (c.better, c.worse)]
    if any(c.real and c.worse == 0.0 for c in with_none):
        return "holds"
    flat = all(not c.real for c in contrasts) and max(c.difference.value for c in contrasts) <= NEAR
    return "corrected" if flat or any(c.real and c.better == 0.0 for c in with_none) else "fails"


def judge_depth(gains: dict[tuple[int, int], Contrast], standardised_gain: float) -> Verdict:
    """`gains` has the contrasts of neighbours; a gain is negative where the shallower is better."""
    first, second, third = (_gain(gains[i, i + 1]) for i in range(3))
    diminishing = (
        gains[0, 1].real and first > 0 and second < first and (not gains[2, 3].real or abs(third) < abs(second))
    )
    if not diminishing:
        return "fails"
    return "holds if" if standardised_gain < first / 2 else "holds"


def judge_activations(accuracies: list[Contrast], fluctuations: list[Contrast]) -> Verdict:
    unequal = any(c.real and c.difference.value > EQUAL for c in accuracies)
    of_sigmoid = [c for c in fluctuations if "sigmoid" in (c.better, c.worse)]
    wilder = all(c.real and c.better == "sigmoid" for c in of_sigmoid)
    calmer = any(c.real and c.worse == "sigmoid" for c in of_sigmoid)
    if not unequal and wilder:
        return "holds"
    return "corrected" if unequal or calmer else "fails"


def _gain(contrast: Contrast) -> float:
    return contrast.difference.value * (1 if contrast.better > contrast.worse else -1)


# ------------------------------------------------------------------------------------------------------------ claims


def published_accuracy(context: Context, plan: Plan = PLAN) -> Finding:
    found = study(context, plan)
    if found is None:
        return Finding(NEEDS, "not run")
    parts = {
        name: found.some(vectors=name, depth=DEPTH, activation="relu", word_dropout=0.0) for name in ("50-d", "100-d")
    }
    at = {name: part.effect("depth", DEPTH) for name, part in parts.items()}
    verdict, expected = judge_level(at["50-d"].accuracy.value, at["100-d"].accuracy.value)
    epochs = list(range(1, plan.training.epochs + 1))
    chart = Chart(
        "D1: test accuracy over epochs",
        "epoch",
        "test accuracy (%)",
        tuple(band(f"{name} GloVe, frozen", epochs, part.mean_curve(part.results)) for name, part in parts.items()),
        reading=f"Two hidden layers of ReLU; mean of {plan.seeds} seeds, the band is the 95 % interval over seeds.",
        levels=(("published, 300-d", PUBLISHED),),
    )
    rows = tuple(
        (name, e.accuracy.value, e.accuracy.low, e.accuracy.high, e.chosen.value, e.fluctuation.value)
        for name, e in at.items()
    )
    table = Table(
        "D1: accuracy and dimension",
        (
            Column("vectors"),
            Column("test accuracy", ".2f", "%"),
            Column("low", ".2f"),
            Column("high", ".2f"),
            Column("at the epoch held-out text chose", ".2f", "%"),
            Column("fluctuation", ".2f", "points"),
        ),
        rows,
        (f"After {plan.training.epochs} epochs; low and high: 95 % over {plan.seeds} seeds.",),
    )
    best = at["100-d"].accuracy
    return Finding(
        f"{best.value:.2f} % ({best.low:.2f} to {best.high:.2f}) after {plan.training.epochs} epochs with 100-d "
        f"vectors, {at['50-d'].accuracy.value:.2f} % with 50-d. The published figure is for 300-d, not at hand here: "
        f"the same gain for each doubling would give {expected:.1f} % there.",
        verdict,
        {
            "accuracy_100d": best.value,
            "accuracy_100d_low": best.low,
            "accuracy_100d_high": best.high,
            "accuracy_50d": at["50-d"].accuracy.value,
            "extrapolated_300d": expected,
        },
        (chart, table),
    )


def dropout_curve(context: Context, plan: Plan = PLAN) -> Finding:
    found = study(context, plan)
    if found is None:
        return Finding(NEEDS, "not run")
    part = found.some(vectors="100-d", depth=DEPTH, activation="relu")
    effects = part.effects("word dropout")
    contrasts = part.contrasts("word dropout")
    real = [c.sentence() for c in contrasts if c.real and 0.0 in (c.better, c.worse)]
    widest = max(contrasts, key=lambda c: c.difference.value)
    listed = ", ".join(f"{e.level:g}: {e.accuracy.value:.2f}" for e in effects)
    said = (
        " ".join(real) if real else f"No p differs really from none; of all pairs the widest apart: {widest.sentence()}"
    )
    figures = {f"accuracy_at_{e.level:g}": e.accuracy.value for e in effects}
    return Finding(
        f"test accuracy (%, 100-d vectors) at p = {listed}. {said} {_chosen(part, 'word dropout')}",
        judge_dropout(contrasts),
        {**figures, "widest_gap": widest.difference.value, "real_differences": sum(c.real for c in contrasts)},
        (dropout_chart(part), *_tables(part, "word dropout")),
    )


def depth_gains(context: Context, plan: Plan = PLAN) -> Finding:
    found = study(context, plan)
    if found is None:
        return Finding(NEEDS, "not run")
    part = found.some(vectors="100-d", activation="relu", word_dropout=0.0)
    scaled = found.some(standardised=True, activation="relu")
    contrasts = {(min(c.better, c.worse), max(c.better, c.worse)): c for c in part.contrasts("depth")}
    first = scaled.contrast("depth", 0, 1)
    assert first is not None
    standardised_gain = _gain(first)
    effects = part.effects("depth")
    listed = ", ".join(f"{e.level}: {e.accuracy.value:.2f}" for e in effects)
    chosen = ", ".join(f"{e.level}: {e.chosen.value:.2f}" for e in scaled.effects("depth"))
    scaled_real = " ".join(scaled.real_sentences("depth", "chosen"))
    neighbours = " ".join(contrasts[i, i + 1].sentence() for i in range(3))
    last = [100 * result.test_accuracy[-1] for result in part.results if result.cell.depth == DEPTH]
    deviation = float(np.std(last, ddof=1)) if len(last) > 1 else math.nan
    exhibits: tuple[Exhibit, ...] = (
        curves(part, "depth"),
        *_tables(part, "depth"),
        Prose(
            "The averages of GloVe vectors differ little from text to text, so a network learns slowly from them, and "
            "one without a hidden layer slowest. Here each dimension is brought to deviation 1 first: what is left of "
            "the gain is owed to depth and not to haste.",
            "D3: the same on standardised averages",
        ),
        curves(scaled, "depth"),
        *_tables(scaled, "depth"),
    )
    return Finding(
        f"test accuracy (%, 100-d vectors) by hidden layers {listed}. {neighbours} One training of 2 layers "
        f"differs from the next by {deviation:.2f} points (deviation over seeds). On standardised averages the first "
        f"layer adds {signed(standardised_gain)} points at the end instead of {signed(_gain(contrasts[0, 1]))}, and "
        f"at the epoch that held-out text chose the figures are {chosen}. {scaled_real}".rstrip(),
        judge_depth({(i, i + 1): contrasts[i, i + 1] for i in range(3)}, standardised_gain),
        {
            **{f"accuracy_depth_{e.level}": e.accuracy.value for e in effects},
            **{f"gain_{i}_{i + 1}": _gain(contrasts[i, i + 1]) for i in range(3)},
            "deviation_over_seeds": deviation,
            "standardised_gain_0_1": standardised_gain,
            **{f"standardised_accuracy_depth_{e.level}": e.accuracy.value for e in scaled.effects("depth")},
        },
        exhibits,
    )


def activations_equal(context: Context, plan: Plan = PLAN) -> Finding:
    found = study(context, plan)
    if found is None:
        return Finding(NEEDS, "not run")
    plain = found.some(vectors="100-d", depth=DEPTH, word_dropout=0.0, activation=PLAIN)
    every = found.some(vectors="100-d", depth=DEPTH, word_dropout=0.0)
    accuracies, fluctuations = plain.contrasts("activation"), plain.contrasts("activation", "fluctuation")
    effects = {e.level: e for e in every.effects("activation")}
    listed = ", ".join(
        f"{name} {effects[name].accuracy.value:.2f} (fluctuation {effects[name].fluctuation.value:.2f})"
        for name in PLAIN
    )
    sigmoid = effects["sigmoid"]
    scaled = found.some(standardised=True, depth=DEPTH, activation="sigmoid").effect("activation", "sigmoid")
    mixed = [name for name in ACTIVATIONS if "+" in name]
    blend = ", ".join(f"{name} {effects[name].accuracy.value:.2f}" for name in mixed)
    links = _saturation_link(every)
    figures = {f"accuracy_{name.replace('+', '_then_')}": e.accuracy.value for name, e in effects.items()}
    figures |= {f"fluctuation_{name.replace('+', '_then_')}": e.fluctuation.value for name, e in effects.items()}
    return Finding(
        f"test accuracy after {plan.training.epochs} epochs (%, 100-d vectors): {listed}. "
        f"{' '.join(c.sentence() for c in accuracies)} {_chosen(plain, 'activation')} Fluctuation: "
        f"{' '.join(c.sentence() for c in fluctuations)} Saturated sigmoid units: "
        f"{_percent(sigmoid.saturation)}; on standardised averages {_percent(scaled.saturation)}, where the "
        f"fluctuation is {scaled.fluctuation.value:.2f} points. Mixed: {blend}.",
        judge_activations(accuracies, fluctuations),
        {
            **figures,
            "sigmoid_saturation": sigmoid.saturation or 0.0,
            "standardised_sigmoid_saturation": scaled.saturation or 0.0,
            "standardised_sigmoid_fluctuation": scaled.fluctuation.value,
        },
        (
            curves(every, "activation"),
            *_tables(every, "activation"),
            contrast_table(plain, "activation", "fluctuation"),
            links,
        ),
    )


def _tables(part: Ablation, factor: str) -> tuple[Table, ...]:
    """The effects of a factor, and its differences at the end and at the chosen epoch."""
    return effect_table(part, factor), contrast_table(part, factor), contrast_table(part, factor, "chosen")


def _chosen(part: Ablation, factor: str) -> str:
    """What is real at the epoch that held-out text chose, where the luck of the last epoch has no part."""
    real = part.real_sentences(factor, "chosen")
    if real:
        return " ".join(real)
    either = "" if any(contrast.real for contrast in part.contrasts(factor)) else " either"
    return f"At the epoch that held-out text chose, no difference is shown{either}."


def _percent(share: float | None) -> str:
    return "none" if share is None else f"{share:.1%}"


def _saturation_link(part: Ablation) -> Table:
    """Saturation and fluctuation seed by seed: whether the one goes with the other."""
    found = [r for r in part.results if r.cell.activation == "sigmoid"]
    rows = tuple((r.cell.seed, 100 * (r.saturation or 0.0), r.fluctuation, 100 * r.test_accuracy[-1]) for r in found)
    fluctuation = over_seeds(np.array([r.fluctuation for r in found]))
    return Table(
        "D4: sigmoid, seed by seed",
        (
            Column("seed", "d"),
            Column("saturated", ".2f", "%"),
            Column("fluctuation", ".2f", "points"),
            Column("test accuracy", ".2f", "%"),
        ),
        rows,
        (
            "Saturated: share of units, over the training texts, whose slope σ' is below 0.05 after the last epoch. "
            f"Mean fluctuation {fluctuation.value:.2f} points ({signed(fluctuation.low)} to "
            f"{signed(fluctuation.high)}).",
        ),
    )


CLAIMS = (
    Claim(
        "D1",
        "Average of frozen word vectors → MLP → 2 classes on IMDB reviews: about 84 % test accuracy after 20 epochs.",
        "about 84 % (300-d GloVe)",
        published_accuracy,
        NEEDS,
    ),
    Claim(
        "D2",
        "Word dropout: whole words dropped with probability p before averaging helps; accuracy as a function of p.",
        "a curve over p from 0 to 0.5",
        dropout_curve,
        NEEDS,
    ),
    Claim(
        "D3",
        "Depth: gains diminish with each hidden layer.",
        "0: ≈82 %, 1: ≈83.5 %, 2 and 3: ≈84 % (300-d GloVe)",
        depth_gains,
        NEEDS,
    ),
    Claim(
        "D4",
        "ReLU, sigmoid and Mish are equal in the end; sigmoid's curve fluctuates more, for its units saturate.",
        "~84 % each; a wilder curve",
        activations_equal,
        NEEDS,
    ),
)

"""What an experiment looks like: a summary in words, the table, and pictures with a sentence below each."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from inkling.attention.exact import failure_formula, margin_bound
from inkling.attention.laboratory import Experiment, Setting, failure_curve
from inkling.figures import Bars, Chart, Cloud, Exhibit, Line, Page, Prose, Series, Spots

SHOWN = 3000  # points of a cloud
FEW_KEYS = 24
SWINGS = 0.25  # of samples nearly all or nothing
TENTHS = 10
ONE, TWO = "one head", "two heads"
CURVE_POINTS = 10  # of the curve of failures, where each is an integral
A_PART, B_PART = "part of v_a in the output", "part of v_b in the output"


def experiment_page(found: Experiment, on_integral: Callable[[], None] = lambda: None) -> Page:
    drawn = pictures(found, on_integral=on_integral)
    return Page(found.title, (Prose("\n\n".join(sentences(found))), found.table(), *drawn))


def integrals(setting: Setting, with_pictures: bool = True) -> int:
    """How often an experiment, and its pictures, call `on_integral`."""
    heads = len(setting.looks) + (setting.kind == "heads")  # one head alone is compared with
    return heads + (CURVE_POINTS if with_pictures and _has_curve(setting) and _needs_integrals(setting) else 0)


def _needs_integrals(setting: Setting) -> bool:
    return bool(setting.alpha or setting.coherence)


def _has_curve(setting: Setting) -> bool:
    return setting.kind == "heads" and not setting.same and setting.noise > 0


def pictures(
    found: Experiment, patient: bool = True, on_integral: Callable[[], None] = lambda: None
) -> tuple[Exhibit, ...]:
    """Where one is not `patient`, without the one whose every point is an integral."""
    kind = found.setting.kind
    noisy = bool(found.case.score_deviations.any())
    drawn: list[Exhibit] = [weight_bars(found)]
    if kind == "copy":
        drawn.append(copy_chart(found))
    if kind == "average":
        drawn.append(average_chart(found))
    if kind != "copy" and noisy:
        drawn += [cloud(found), part_bars(found)]
    if kind in ("average", "noise") and noisy:
        drawn.append(law_chart(found))
    if _has_curve(found.setting) and (patient or not _needs_integrals(found.setting)):
        drawn.append(failure_chart(found, on_integral))
    return tuple(drawn)


def sentences(found: Experiment) -> Iterator[str]:
    s = found.setting
    yield _setting_words(s, found.case.scale)
    if s.kind == "copy":
        yield from _copying(found)
    elif s.kind == "average":
        yield from _averaging(found)
    elif s.kind == "noise":
        deviations = found.case.score_deviations[0]
        yield (
            f"The scores of a and b have variance {deviations[s.a] ** 2:.4g} and {deviations[s.b] ** 2:.4g}; "
            f"{'with orthonormal means it would be' if s.coherence else 'that is'} κ²β²(2α + noise) and κ²β²·2α."
        )
        yield _swing(found)
    elif s.same:
        figure = found.figure("output: variance of a's part")
        alone = found.figure("one head: variance of a's part")
        yield (
            f"Both heads see the same keys with the same query, so they are wrong together: the variance of v_a's part "
            f"is {figure.exact:.4f} with two heads and {alone.exact:.4f} with one. Nothing is averaged out."
        )
    else:
        yield from _two_heads(found)


def _copying(found: Experiment) -> Iterator[str]:
    s, law = found.setting, found.exact.heads[0]
    if s.keys == 1:
        yield "There is no other key: a gets all of the weight, whatever β is."
        return
    place = f"{law.margin:.3g} above the next" if law.margin > 0 else f"{-law.margin:.3g} below the highest other one"
    if not law.margin:
        place = "no higher than the next"
    lies, gives = ("would lie", "guarantee") if law.score_deviations.any() else ("lies", "guarantees")
    without = "Without noise its" if law.score_deviations.any() else "Its"
    yield (
        f"Key a gets {law.mean_weights[s.a]:.2%} of the weight on average. {without} score {lies} {place}"
        + (f", which {'would ' * (gives == 'guarantee')}{gives} {law.bound:.2%}." if law.margin > 0 else ".")
    )
    yield (
        f"Being aligned is not enough: with β = 1 one of {s.keys} orthonormal keys without noise gets "
        f"{margin_bound(s.keys, found.case.scale):.1%}, and 99 % need β = {_beta_for(s.keys, 0.99, 1, found):.3g}."
    )


def _averaging(found: Experiment) -> Iterator[str]:
    s, law = found.setting, found.exact.heads[0]
    a, b = law.mean_weights[s.a], law.mean_weights[s.b]
    elsewhere = 0.0 if s.keys == 2 else max(0.0, 1 - a - b)
    halves = min(a, b) > 0.45
    yield (
        f"Keys a and b get {a:.2%} and {b:.2%} of the weight on average, and {elsewhere:.2e} goes elsewhere: the mean "
        f"output is {'half of each value up to that' if halves else 'not half of each value'}."
    )
    if s.keys > 2:
        yield (
            f"Of {s.keys} orthonormal keys without noise, two get 99 % together with "
            f"β = {_beta_for(s.keys, 0.99, 2, found):.3g}."
        )
    if found.case.score_deviations.any():
        yield _swing(found)


def _change(before: float, after: float) -> str:
    was, now = f"{before:.4f}", f"{after:.4f}"
    if was == now:
        return f"stays at {was}"
    return f"{'falls' if after < before else 'rises'} from {was} to {now}"


def _two_heads(found: Experiment) -> Iterator[str]:
    s = found.setting
    mean, variance = (found.figure(f"output: {what} of a's part") for what in ("mean", "variance"))
    alone_mean, alone = (found.figure(f"one head: {what} of a's part") for what in ("mean", "variance"))
    two = variance.simulated if math.isnan(variance.exact) else variance.exact
    yield (
        f"With two heads in place of one the variance of v_a's part {_change(alone.exact, two)}, and its mean "
        f"{_change(alone_mean.exact, mean.exact)}."
    )
    failure = found.figure("head 1: failure probability")
    yield (
        f"Head 1 has less than half of its weight on a in {failure.exact:.2%} of cases (exact; simulated "
        f"{failure.simulated:.2%} ± {failure.standard_error:.2%})."
        + (" Then its output is mostly a mean of other values." if f"{failure.exact:.2%}" != "0.00%" else "")
    )
    if s.noise and not s.coherence:
        yield _formula(found)


def _formula(found: Experiment) -> str:
    s = found.setting
    if not s.beta:
        return "With β = 0 a head sees nothing of its keys, and gives all of them the same weight."
    here, limit = failure_formula(s.keys, s.beta * found.case.scale, s.noise), failure_formula(2, 1.0, s.noise)
    if s.beta < 0:
        return (
            f"With α vanishing this is 1 − Φ((ln(n−1)/κβ − 1)/√noise) = {here:.2%}: a negative β turns the query away "
            "from its key."
        )
    if s.keys == 2:
        return f"With α vanishing this is Φ(−1/√noise) = {limit:.2%}, the chance that the key points the wrong way."
    return (
        f"With α vanishing this is Φ((ln(n−1)/κβ − 1)/√noise) = {here:.2%}; a larger β helps only down to "
        f"Φ(−1/√noise) = {limit:.2%}, the chance that the key points the wrong way."
    )


def _swing(found: Experiment) -> str:
    pair = found.exact.heads[0].pair
    assert pair is not None
    if not pair.deviation:
        return f"Neither score has noise: a's share of both keys is {pair.quantile(0.5):.3g} in every sample."
    extreme = _extreme(found)
    return (
        "a's share of both keys is a logistic function of a normal variable, "
        f"N({round(pair.mean, 9) + 0.0:.3g}, {pair.deviation:.3g}²): between {pair.quantile(0.05):.3g} and "
        f"{pair.quantile(0.95):.3g} in nine samples of ten, and nearly all or nothing (beyond 10 % and 90 %) "
        f"in {extreme:.1%}."
    )


def _extreme(found: Experiment) -> float:
    """How often one averaging head gives nearly all or nothing to a."""
    pair = (found.exact if found.alone is None else found.alone[0]).heads[0].pair
    assert pair is not None
    return pair.below(0.1) + 1 - pair.below(0.9)


def _setting_words(s: Setting, scale: float) -> str:
    means = f"random means with coherence {s.coherence:g}" if s.coherence else "orthonormal means"
    kinds = [f"noise {s.noise:g} of key a along its own mean"] if s.noise else []
    kinds += [f"α = {s.alpha:g} for every key in every direction"] if s.alpha else []
    noise = " and ".join(kinds) or "no noise"
    scaled = f"; scores are divided by √d, so that β counts as {s.beta * scale:.3g}" if s.scaled else ""
    return f"{s.keys} {'key' if s.keys == 1 else 'keys'}, {means}, β = {s.beta:g}, {noise}{scaled}."


def _beta_for(keys: int, weight: float, wanted: int, found: Experiment) -> float:
    """The β that puts `weight` on k wanted orthonormal keys: k e^β / (k e^β + n − k)."""
    if keys == wanted:
        return 0.0
    return math.log((keys - wanted) * weight / (wanted * (1 - weight))) / found.case.scale


def weight_bars(found: Experiment) -> Bars:
    """Mean weights of every head, exact and simulated; of many keys the first."""
    case = found.case
    named = list(case.named_keys)
    others = [key for key in range(case.keys) if key not in named]
    laws = [np.stack([law.score_means[others], law.score_deviations[others]]) for law in found.exact.heads]
    alike = len(others) > 1 and all(float(np.ptp(law, axis=1).max()) < 1e-9 for law in laws)
    shown = named + (others[:1] if alike else others[: max(0, FEW_KEYS - len(named))])
    names = [found.key_name(key) for key in shown]
    if alike:
        names[-1] = f"each other ({len(others)})"
    series = []
    for h, law in enumerate(found.exact.heads):
        if h and case.heads_are_equal:
            break
        if not np.isnan(law.mean_weights).any():  # it was solved
            name = f"head {h + 1}, exact" if case.heads > 1 else "exact"
            series.append(Series(name, law.mean_weights[shown].tolist()))
        drawn = [found.simulated.mean_weight(h, key) for key in shown]
        series.append(
            Series(
                f"head {h + 1}, simulated" if case.heads > 1 else "simulated",
                [d.value for d in drawn],
                [d.value - 4 * d.standard_error for d in drawn],
                [d.value + 4 * d.standard_error for d in drawn],
            )
        )
    left = 0 if alike else case.keys - len(shown)
    rest = f" {left} more keys are not shown." if left else ""
    return Bars(
        "Mean weights",
        "key",
        "mean weight (share of 1)",
        tuple(names),
        tuple(series),
        reading=f"The weight that each key gets on average; error bars: four standard errors of the simulation.{rest}",
    )


def copy_chart(found: Experiment) -> Chart:
    s = found.setting
    betas = np.linspace(0, max(12.0, 1.2 * abs(s.beta) * found.case.scale), 61)
    counts = sorted({2, 10, 100, 1000, s.keys} - ({10} if 5 < s.keys < 20 else set()))
    lines = [
        Line(f"{n} keys", (betas / found.case.scale).tolist(), [margin_bound(n, float(beta)) for beta in betas])
        for n in counts
        if n > 1
    ]
    return Chart(
        "How sharp a query must be to copy",
        "β",
        "weight on a (share of 1)",
        tuple(lines),
        reading="Orthonormal keys without noise, e^κβ/(e^κβ + n − 1): the more keys, the larger β must be, by ln n.",
        levels=(("half", 0.5),),
    )


def average_chart(found: Experiment) -> Chart:
    s = found.setting
    betas = np.linspace(0, max(12.0, 1.2 * abs(s.beta) * found.case.scale), 61)
    x = (betas / found.case.scale).tolist()
    lines = [
        Line(f"{n} keys", x, [margin_bound(n, float(beta), 2) / 2 for beta in betas])
        for n in sorted({2, 100, 1000, s.keys})
        if n > 1
    ]
    return Chart(
        "How sharp a query must be to average two",
        "β",
        "weight on a, and on b (share of 1)",
        tuple(lines),
        reading="Orthonormal keys without noise, e^κβ/(2e^κβ + n − 2): each of the two approaches one half.",
        levels=(("half", 0.5),),
    )


def _heads_name(found: Experiment) -> str:
    return ONE if found.case.heads == 1 else "two heads, same query" if found.setting.same else TWO


def cloud(found: Experiment) -> Cloud:
    named = found.simulated.named
    a, b = named.index(found.setting.a), named.index(found.setting.b)
    groups = []
    if found.alone is not None:
        groups.append(_spots(ONE, found.alone[1].kept_coefficients, 0, 1))
    groups.append(_spots(_heads_name(found), found.simulated.kept_coefficients, a, b))
    reading = "Each point is the output for one draw of the keys. "
    if found.setting.same and found.case.heads == 2:
        reading += "Two heads with the same query swing exactly as far as one."
    elif _extreme(found) < SWINGS or found.setting.beta < 0:
        reading += "On the line from v_a to v_b the two share all of the weight; below it some goes to other values."
    elif found.setting.kind == "heads":
        reading += "One head swings along the line from v_a to v_b; two heads stay at its middle, or fall to v_b/2."
    else:
        reading += "The output swings along the line between v_a and v_b."
    return Cloud(
        "Outputs between v_a and v_b",
        f"{A_PART} (share of 1)",
        f"{B_PART} (share of 1)",
        tuple(groups),
        reading=reading,
        marks=(("v_a", 1.0, 0.0), ("v_b", 0.0, 1.0), ("middle", 0.5, 0.5)),
    )


def part_bars(found: Experiment) -> Bars:
    """How often v_a's part of the output falls into each tenth, of one head and of two."""
    place = found.simulated.named.index(found.setting.a)
    parts = {_heads_name(found): found.simulated.kept_coefficients[:, place]}
    if found.alone is not None:
        parts = {ONE: found.alone[1].kept_coefficients[:, 0]} | parts
    edges = np.linspace(0, 1, TENTHS + 1)
    edges[-1] = 1 + 1e-6  # rounding
    series = tuple(
        Series(name, (np.histogram(values, edges)[0] / len(values)).tolist()) for name, values in parts.items()
    )
    return Bars(
        "How much of v_a arrives",
        A_PART,
        "share of draws",
        tuple(f"{tenth / TENTHS:.1f}–{(tenth + 1) / TENTHS:.1f}" for tenth in range(TENTHS)),
        series,
        reading="High at both ends: the output swings. High in the middle: it holds still.",
    )


def _spots(name: str, coefficients: NDArray[np.float32], a: int, b: int) -> Spots:
    return Spots(name, coefficients[:SHOWN, a].tolist(), coefficients[:SHOWN, b].tolist())


def law_chart(found: Experiment) -> Chart:
    """The distribution function of a's share of both keys: the logit-normal law, and the samples."""
    pair = found.exact.heads[0].pair
    assert pair is not None
    leads = np.sort(found.simulated.kept_leads[:, 0])
    at = np.linspace(0.005, 0.995, 100)
    sampled = np.searchsorted(leads, np.log(at / (1 - at)), side="right") / len(leads)
    return Chart(
        "The law of a's share",
        "a's share of the weight on a and b (share of 1)",
        "probability of at most this share",
        (
            Line("logit-normal, exact", at.tolist(), [pair.below(float(x)) for x in at]),
            Line("simulated", at[4::10].tolist(), sampled[4::10].tolist()),
        ),
        reading="Steep at both ends and flat between: the share is nearly all or nothing. Steep at ½: it holds still.",
    )


def failure_chart(found: Experiment, on_integral: Callable[[], None] = lambda: None) -> Chart:
    s, scale = found.setting, found.case.scale
    top = max(100.0, 2 * abs(s.beta) * scale)
    fine = np.geomspace(0.5, top, 80)
    lines = []
    for n in sorted({5, 100, 1000, s.keys}):
        if n > 1:
            name = f"{n} keys" if not s.alpha else f"{n} keys, α → 0"
            y = [failure_formula(n, float(beta), s.noise) for beta in fine]
            lines.append(Line(name, (fine / scale).tolist(), y))
    if _needs_integrals(s):
        coarse = np.geomspace(0.5, top, CURVE_POINTS) / scale
        here = f"{s.keys} keys as set"
        lines.append(Line(here, coarse.tolist(), failure_curve(s, coarse, on_integral)))
    return Chart(
        "How often head 1 loses its key",
        "β",
        "failure probability (share of 1)",
        tuple(lines),
        reading="A failure is less than half of head 1's weight on a. A larger β helps until only a key that points "
        "the wrong way (γ ≤ 0) is left, which no β mends.",
        log_x=True,
        levels=(("β → ∞", failure_formula(2, 1.0, s.noise)),),
    )

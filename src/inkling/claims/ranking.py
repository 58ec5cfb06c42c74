"""Claim C3: which of two models is better on which passage, in bits per byte; and how far back one of them looks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from inkling.claims.ledger import Claim, Context, Finding, Verdict
from inkling.claims.passages import (
    NEEDS,
    SHAKESPEARE,
    WIKIPEDIA,
    Floats,
    charged,
    models,
    newspaper_form,
    passages,
    slug,
)
from inkling.figures import Chart, Column, Line, Table
from inkling.measure.comparison import LEVEL, holm
from inkling.measure.intervals import Judged, judge_ratios
from inkling.measure.tally import LN2, Tally, tally
from inkling.models.bigram import Bigram
from inkling.models.gru import GRU

CONTEXTS = tuple(2**i for i in range(9))  # characters: 1 to 256
FAR_CHARACTERS = 6000  # of held-out text on which contexts are compared as well
UNIT_BYTES = 100  # pieces of that text
BIGRAM, SAME_BIGRAM, NETWORK, COUNTS = (
    "word bigram (newspaper)",
    "word bigram (Shakespeare)",
    "character GRU (Shakespeare)",
    "character 6-gram (Shakespeare)",
)
AS_PUBLISHED = {SHAKESPEARE: BIGRAM, WIKIPEDIA: NETWORK}  # which is better on which passage


def units_of(text: str) -> list[str]:
    """The pieces of a text that are drawn to see how sure a figure is: verse lines, or the sentences of long lines."""
    lines = text.splitlines(keepends=True)
    if sum(map(len, lines)) > 100 * len(lines):
        lines = [part for line in lines for part in re.split(r"(?<=[.!?] )", line) if part]
    return lines


def charged_as_newspaper(model: Bigram, units: Sequence[str]) -> tuple[Floats, Tally]:
    """The same for the newspaper's model, which reads another form of the text: capitals and digits are lost on it."""
    forms = [newspaper_form(unit) for unit in units]
    scores = model.score(["".join(forms)])
    offsets = model.tokeniser.encode(forms).offsets
    costs = np.append(0.0, np.cumsum(scores.nats + scores.spelling_nats))
    return np.diff(costs[offsets]), tally(scores)


def ranking(context: Context) -> Finding:
    texts, found = passages(context), models(context)
    if texts is None or found is None:
        return Finding(NEEDS, "not run")
    figures: dict[str, float] = {}
    rows = []
    better: dict[str, str] = {}
    for name, text in texts.items():
        units = units_of(text)
        sizes = np.array([len(unit.encode()) for unit in units], np.float64)
        newspaper, newspaper_tally = charged_as_newspaper(found.bigram, units)
        costs, tallies = {BIGRAM: newspaper}, {BIGRAM: newspaper_tally}
        for label, model in ((SAME_BIGRAM, found.same_bigram), (NETWORK, found.network), (COUNTS, found.counts)):
            scores = model.score([text])
            costs[label], tallies[label] = charged(scores, units), tally(scores)
        others = [label for label in costs if label != NETWORK]
        alone = judge_ratios(np.stack(list(costs.values())) / LN2, sizes, np.random.default_rng(0))
        against = judge_ratios(
            np.stack([costs[label] - costs[NETWORK] for label in others]) / LN2, sizes, np.random.default_rng(0)
        )
        corrected = dict(zip(others, holm(against.p_values), strict=True))
        for i, label in enumerate(costs):
            j = others.index(label) if label in others else None
            figures[f"{name.lower()}_{slug(label)}_bits_per_byte"] = float(alone.values[i])
            figures[f"{name.lower()}_{slug(label)}_unknown_share"] = tallies[label].unknown_share
            rows.append(
                (
                    name,
                    label,
                    tallies[label].perplexity(),
                    tallies[label].unknown_share,
                    float(alone.values[i]),
                    f"{alone.low[i]:.2f} to {alone.high[i]:.2f}",
                    None if j is None else _difference(against, j, corrected[label]),
                )
            )
        better[name] = _better(against, others.index(BIGRAM), corrected[BIGRAM])
    rows.sort(key=lambda row: (row[0], row[4]))
    contexts, chart, useful = context_lengths(found.network, {**texts, "held out": found.held_out[:FAR_CHARACTERS]})
    figures |= contexts
    as_published = better == AS_PUBLISHED
    longest = max(useful.values())
    said = (
        "Charged for every byte, "
        + "; ".join(
            f"on {name} {f'the {winner} is better' if winner else 'the two cannot be told apart'} (GRU "
            f"{figures[f'{name.lower()}_{slug(NETWORK)}_bits_per_byte']:.2f}, bigram "
            f"{figures[f'{name.lower()}_{slug(BIGRAM)}_bits_per_byte']:.2f} bits per byte; "
            f"{figures[f'{name.lower()}_{slug(BIGRAM)}_unknown_share']:.0%} of the bigram's words were unknown)"
            for name, winner in better.items()
        )
        + f". {_reading(better)} Context: the network gets better up to "
        + ", ".join(f"{value} characters on {name}" for name, value in useful.items())
        + ", and not measurably beyond; "
        + ("that is some words, no long range." if longest <= 64 else "that is more than a line.")
    )
    columns = (
        Column("passage"),
        Column("model (trained on)"),
        Column("perplexity per token, unknown forgiven", ".2f"),
        Column("unknown", ".1%"),
        Column("bits per byte", ".3f"),
        Column("95 %"),
        Column("more than the GRU, bits per byte"),
    )
    notes = (
        f"{BIGRAM}: capitals, digits and spaces are lost on it and not charged, so its figure is too low.",
        "Perplexities per token are of different tokens and do not compare. Differences: corrected for their number.",
    )
    table = Table("C3: every byte charged, best first", columns, tuple(rows), notes)
    verdict: Verdict = "holds" if as_published and longest > 64 else "corrected"
    return Finding(said, verdict, figures, (table, chart))


def _reading(better: dict[str, str]) -> str:
    if better == AS_PUBLISHED:
        return "That is the published ranking."
    if better == {SHAKESPEARE: NETWORK, WIKIPEDIA: BIGRAM}:
        return "The published ranking is reversed: each is better on what is like its own training text."
    return "That is not the published ranking."


def _better(against: Judged, index: int, p_value: float) -> str:
    """Who is better, the network or the other; nobody if luck could have done it."""
    if not p_value <= LEVEL:
        return ""
    return NETWORK if against.values[index] > 0 else BIGRAM


def _difference(against: Judged, index: int, p_value: float) -> str:
    shown = f"{against.values[index]:+.3f} ({against.low[index]:+.3f} to {against.high[index]:+.3f})"
    return shown if p_value <= LEVEL else f"{shown}, cannot be told apart"


def context_lengths(
    model: GRU, texts: dict[str, str], contexts: Sequence[int] = CONTEXTS
) -> tuple[dict[str, float], Chart, dict[str, int]]:
    """Bits per character when each is predicted from exactly so many before it, and up to where more of them help."""
    figures: dict[str, float] = {}
    lines, useful = [], {}
    for name, text in texts.items():
        encodings = model.tokeniser.encode([text])
        edges = np.arange(0, len(text), max(1, min(UNIT_BYTES, len(text) // 8 or 1)))
        sizes = np.diff(np.append(edges, len(text))).astype(np.float64)
        costs = []
        for k in contexts:
            nats = model.score_ids(encodings.ids, encodings.offsets, stride=1, warm_up=k)
            costs.append(np.add.reduceat(nats, edges))
        means = [float(cost.sum()) / LN2 / len(text) for cost in costs]
        gains = np.stack([before - after for before, after in pairwise(costs)]) / LN2
        useful[name] = contexts[last_gain(judge_ratios(gains, sizes, np.random.default_rng(0)))]
        figures |= {f"{slug(name)}_bits_with_{k}": mean for k, mean in zip(contexts, means, strict=True)}
        figures[f"{slug(name)}_useful_context"] = useful[name]
        lines.append(Line(name, [float(k) for k in contexts], means))
    chart = Chart(
        "C3: how far back the character model looks",
        "characters of context",
        "bits per character (unknown ones forgiven)",
        tuple(lines),
        reading="Each character is predicted from exactly so many before it; where a curve is flat, more do not help.",
        log_x=True,
    )
    return figures, chart, useful


def last_gain(gains: Judged) -> int:
    """Up to which step in a row of lengths each one was a real gain: the number of the last length that helped."""
    corrected = holm(gains.p_values)
    real = (corrected <= LEVEL) & (gains.values > 0)
    return int(np.argmin(real)) if not real.all() else len(real)


CLAIM = Claim(
    "C3",
    "The bigram model is better on Shakespeare because its patterns are simpler; the character model is better on "
    "Wikipedia because it captures long-range dependencies.",
    "5.43 < 7.12; 18.97 < 24.69",
    ranking,
    NEEDS,
)

"""Claim D5: the reviews that were misread, and whether the phrases blamed for it did it.

Five reviews of the IMDB test set were published with phrases that were said to have misled the network. Here the
network is trained as published (frozen vectors, two layers, five seeds), and beside it our own; each phrase is left out
of its review, exactly, and the log-odds of the published (wrong) verdict are compared with and without it.

Rule of the verdict, written before looking: holds if every phrase moved the score towards the wrong verdict, by an
interval over seeds that does not hold zero, in the published network; holds if (for which phrases) when some did;
fails when none did.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from inkling.claims.ledger import Claim, Context, Finding, Verdict
from inkling.explain.reasons import judge_mistake
from inkling.explain.words import Explanation, effects_of, explain, log_odds
from inkling.figures import Cell, Column, Exhibit, Table
from inkling.measure.intervals import Interval
from inkling.models.dan import AveragingNetwork, DANConfig
from inkling.recipes.averaging import (
    NetworkSettings,
    ScoreSettings,
    choose_bits,
    fit_network,
    fit_scores,
    prepare_network,
)
from inkling.recipes.labelled import LabelledConfig, mark_held_out, read_labelled
from inkling.studies.ablation import over_seeds
from inkling.text.corpus import Corpus
from inkling.text.vectors import load_vectors
from inkling.text.words import find_words

NEEDS = "needs --data with imdb/ and glove/"
TRAIN, TEST, VECTORS = "imdb/train.csv.xz", "imdb/test.csv.xz", "glove/glove.6B.100d.top40k.npz"
CASES = (("neg", 9394), ("neg", 11341), ("neg", 626), ("neg", 7264), ("pos", 12078))
PHRASES = (
    "Tuscany",
    "marginally better movie",
    "sometimes enjoyable",
    "finest speaking voices",
    "chick flick",
    "one scene I did enjoy",
)
SEEDS = 5


@dataclass(frozen=True)
class Case:
    name: str
    text: str
    truth: int


@dataclass(frozen=True)
class Phrase:
    """Where a phrase stands in a case: its words, from the first to the one after the last."""

    words: str
    case: int
    first: int
    last: int


@dataclass(frozen=True)
class Networks:
    published: tuple[AveragingNetwork, ...]
    ours: AveragingNetwork


def misread(context: Context) -> Finding:
    files = [context.file(name) for name in (TRAIN, TEST, VECTORS)]
    if not all(files) or context.data is None:
        return Finding(NEEDS, "not run")
    networks = train_networks(context.data)
    cases = read_cases(context.data / TEST)
    return judge(networks, cases, find_phrases(cases))


@cache
def train_networks(data: Path, seeds: int = SEEDS) -> Networks:
    train = read_labelled(LabelledConfig(files=(str(data / TRAIN),)), lambda _: None)
    held = mark_held_out(train, 0.1, 0)
    vectors = load_vectors(data / VECTORS)
    sizes = DANConfig(words=1, dimension=vectors.dimension, depth=2)
    published = []
    for seed in range(seeds):
        settings = NetworkSettings(learn_vectors=False, batch=100, rate=0.001, seed=seed)  # as --preset published
        prepared = prepare_network(train.texts, train.truth, train.labels, held, sizes, settings, vectors)
        *_, (state, _) = fit_network(prepared)
        published.append(prepared.finish(state.chosen(), state.step).network)
    config = DANConfig(words=3, distinct=True, bits=choose_bits(train.texts, DANConfig(words=3)))
    ours = fit_scores(train.texts, train.truth, train.labels, held, config, ScoreSettings()).network
    return Networks(tuple(published), ours)


def read_cases(path: Path) -> list[Case]:
    """The five reviews, found by the names of their files in the collection."""
    numbers = Corpus([path], text_column="id", label_column="label")
    texts = Corpus([path], text_column="text", label_column="label")
    wanted = {(str(number), str(int(side == "pos"))): f"{side} {number}" for side, number in CASES}
    return [
        Case(wanted[(number.text, str(row.label))], row.text, int(str(row.label)))
        for number, row in zip(numbers, texts, strict=True)
        if (number.text, str(row.label)) in wanted
    ]


def find_phrases(cases: list[Case]) -> list[Phrase]:
    found = []
    for phrase in PHRASES:
        for place, case in enumerate(cases):
            start = case.text.lower().find(phrase.lower())
            if start >= 0:
                words = find_words([case.text])
                first, last = np.searchsorted(words.starts, [start, start + len(phrase)]).tolist()
                found.append(Phrase(phrase, place, first, last))
    return found


def judge(networks: Networks, cases: list[Case], phrases: list[Phrase]) -> Finding:
    texts = [case.text for case in cases]
    spans = [
        np.array([(p.first, p.last) for p in phrases if p.case == i], np.int64).reshape(-1, 2)
        for i in range(len(cases))
    ]
    everyone = (*networks.published, networks.ours)
    # Of each network: the effect of every phrase on the log-odds of the wrong verdict, in the order of the cases.
    effects = np.array(
        [
            [float(value) for case, found in zip(cases, effects_of(network, texts, spans), strict=True)
             for value in found[:, 1 - case.truth]]
            for network in everyone
        ]
    )  # fmt: skip
    ordered = [phrase for i in range(len(cases)) for phrase in phrases if phrase.case == i]
    explained = [explain(network, texts) for network in everyone]
    intervals = [over_seeds(effects[:-1, i]) for i in range(len(ordered))]
    guilty = [interval.low > 0 for interval in intervals]
    innocent = [interval.high < 0 for interval in intervals]
    verdict: Verdict = "holds" if guilty and all(guilty) else "holds if" if any(guilty) else "fails"
    names = [phrase.words for phrase in ordered]
    wrong = [sum(one[i].verdict != case.truth for one in explained[:-1]) for i, case in enumerate(cases)]
    ours_wrong = [explained[-1][i].verdict != case.truth for i, case in enumerate(cases)]
    measured = (
        f"misread by the published network with 100-d vectors: "
        f"{', '.join(f'{case.name} {count} of {SEEDS} seeds' for case, count in zip(cases, wrong, strict=True))}; "
        f"by ours {sum(ours_wrong)} of {len(cases)}. Pushed towards the wrong verdict: {_listed(names, guilty)}; away "
        f"from it: {_listed(names, innocent)}"
    )
    figures = {f"{phrase.words} (nats)": interval.value for phrase, interval in zip(ordered, intervals, strict=True)}
    table = _phrase_table(cases, ordered, intervals, effects[-1], explained[-1])
    return Finding(measured, verdict, figures, (table, _case_table(cases, explained, wrong)))


def _listed(names: list[str], chosen: list[bool]) -> str:
    return ", ".join(f"'{name}'" for name, is_chosen in zip(names, chosen, strict=True) if is_chosen) or "none"


def _phrase_table(
    cases: list[Case],
    phrases: list[Phrase],
    intervals: list[Interval],
    ours: NDArray[np.float64],
    explained: list[Explanation],
) -> Exhibit:
    rows: list[tuple[Cell, ...]] = []
    for phrase, interval, own in zip(phrases, intervals, ours.tolist(), strict=True):
        rank = int((np.abs(explained[phrase.case].effects[:, 0]) > abs(own)).sum()) + 1
        rows.append((phrase.words, cases[phrase.case].name, interval.value, interval.low, interval.high, own, rank))
    columns = (
        Column("phrase"),
        Column("review"),
        Column("published", "+.3f", "nats"),
        Column("low", "+.3f"),
        Column("high", "+.3f"),
        Column("ours", "+.3f", "nats"),
        Column("rank", "d", note="how many single words of the review move our model more, and one"),
    )
    notes = ("Effect on the log-odds of the wrong verdict: positive misled the network. low, high: 95 % over seeds.",)
    return Table("Were the phrases to blame?", columns, tuple(rows), notes)


def _case_table(cases: list[Case], explained: list[list[Explanation]], wrong: list[int]) -> Exhibit:
    rows: list[tuple[Cell, ...]] = []
    for i, case in enumerate(cases):
        first, ours = explained[0][i], explained[-1][i]
        towards = first.effects[:, 1 - case.truth]
        strongest = ", ".join(f"{first.word(j)} {towards[j]:+.2f}" for j in np.argsort(-towards)[:3].tolist())
        reason = "read rightly"
        if first.verdict != case.truth:
            reason = judge_mistake(first, case.truth, first.verdict, i).case.reason
        odds = float(log_odds(torch.from_numpy(ours.log_probs)[None])[0, 1 - case.truth])
        rows.append((case.name, wrong[i], f"{math.exp(first.log_probs[1 - case.truth]):.0%}", strongest, reason, odds))
    columns = (
        Column("review"),
        Column(f"misread, of {SEEDS} seeds", "d"),
        Column("p of the wrong verdict, seed 0"),
        Column("words that misled most (nats)"),
        Column("computed reason, seed 0"),
        Column("our log-odds of the wrong verdict", "+.2f"),
    )
    return Table("The five reviews", columns, tuple(rows))


CLAIMS = (
    Claim(
        "D5",
        "Misread reviews, each with an explanation: scattered words outweigh the judgement as a whole, both ways.",
        "misled by " + ", ".join(PHRASES),
        misread,
        NEEDS,
    ),
)

"""Answers as tables, charts and pages: how models and baselines stand, calibration, 'unsure', the surest mistakes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from inkling.figures import Bars, Cell, Chart, Column, Exhibit, Line, Page, Prose, Series, Table
from inkling.measure.answers import AnswerMatrix, AnswerReport, difference
from inkling.measure.calibration import CURVE
from inkling.measure.classification import wilson
from inkling.measure.paired import difference_table

TITLE = "Answers to questions"
SUREST = 15  # mistakes that a page shows
LEAST_ANSWERED = 5  # answers, below which a share says nothing


def standing(found: AnswerMatrix) -> Table:
    columns = (
        Column("model"),
        Column("exact match", ".1f", "%"),
        Column("low", ".1f"),
        Column("high", ".1f"),
        Column("right", ",d"),
        Column("confidence", ".1f", "%", "mean probability of its answers"),
        Column("off by", ".1f", "points", "expected calibration error"),
        Column("answered", ".1f", "%", "when only answers are given that promise the accuracy asked for"),
        Column("right of those", ".1f", "%"),
    )
    rows: list[tuple[Cell, ...]] = []
    for one in found.results:
        match, answered = one.exact_match, one.promise.answered
        unsure = (None, None) if answered is None else (100 * answered.share, 100 * answered.accuracy.value)
        sure = (100 * float(one.confidence.mean()), 100 * one.calibration.error)
        rows.append(
            (one.name, 100 * match.value, 100 * match.low, 100 * match.high, int(one.right.sum()), *sure, *unsure)
        )
    rights = found.rights()
    for baseline in found.baselines:
        right = int(rights[baseline.name].sum())
        share = wilson(right, len(found.truth))
        rows.append((baseline.name, 100 * share.value, 100 * share.low, 100 * share.high, right, *[None] * 4))
    note = (
        "An answer is right if it equals the true one, white space around both left out; case and spelling count. low "
        "and high: 95 % interval (Wilson)."
    )
    first = found.results[0]
    return Table(f"{first.text_name} ({len(first.truth):,} questions), best first", columns, tuple(rows), (note,))


def standing_bars(found: AnswerMatrix) -> Bars:
    rights = found.rights()
    shares = [wilson(int(right.sum()), len(right)) for right in rights.values()]
    series = Series(
        "exact match",
        [100 * share.value for share in shares],
        [100 * share.low for share in shares],
        [100 * share.high for share in shares],
    )
    known = found.results[0].corroboration
    levels = (("ceiling", 100 * known.ceiling.value),) if known else ()
    reading = "Bars: 95 % interval. The ceiling is the share of true answers that stand in the corpus beside the name."
    return Bars(
        "Exact match",
        "model",
        "right (%)",
        tuple(rights),
        (series,),
        reading if known else "Bars: 95 % interval.",
        levels,
    )


def by_confidence(one: AnswerReport) -> Chart:
    """Accuracy of all answers that are at least so sure, and how many those are."""
    order = np.argsort(-one.confidence, kind="stable")
    confidence, right = one.confidence[order], one.right[order]
    last = {float(confidence[min(len(right), max(1, round(share * len(right)))) - 1]) for share in CURVE}
    x, shares, answered = [], [], []
    for threshold in sorted(last):
        count = int((confidence >= threshold).sum())
        if count >= min(LEAST_ANSWERED, len(right)):
            x.append(threshold)
            shares.append(wilson(int(right[:count].sum()), count))
            answered.append(100 * count / len(right))
    accuracy = Line(
        "right of those answered",
        x,
        [100 * share.value for share in shares],
        [100 * share.low for share in shares],
        [100 * share.high for share in shares],
    )
    reading = "Only answers of at least this confidence are given. Band: 95 % interval."
    lines = (accuracy, Line("questions answered", x, answered))
    levels = ((f"promised {100 * one.promised:g} %", 100 * one.promised),)
    return Chart("Accuracy against confidence", "least confidence", "%", lines, reading, levels=levels)


def corpus_table(found: AnswerMatrix) -> Table | None:
    known = [(one.name, one.corroboration) for one in found.results if one.corroboration is not None]
    if not known:
        return None
    columns = (
        Column("model"),
        Column("right, beside the name", ",d"),
        Column("right, not beside it", ",d"),
        Column("wrong, beside the name", ",d", note="mixed up with something else that the line tells"),
        Column("wrong, not beside it", ",d", note="made up: no line pairs it with the name"),
    )
    rows = tuple(
        (name, one.right_corroborated, one.right_otherwise, one.wrong_corroborated, one.wrong_made_up)
        for name, one in known
    )
    corpus = known[0][1]
    note = f"{corpus.named:,} of {corpus.questions:,} names stand in {corpus.name}. It was read only after answering."
    return Table(f"What {corpus.name} says of the answers", columns, rows, (note,))


def surest_mistakes(one: AnswerReport) -> Table:
    wrong = np.flatnonzero(~one.right)
    order = wrong[np.argsort(-one.confidence[wrong], kind="stable")][:SUREST].tolist()
    columns = (Column("question"), Column("said"), Column("confidence", ".3f"), Column("true"))
    rows = tuple((one.questions[i], one.said[i], float(one.confidence[i]), one.truth[i]) for i in order)
    return Table(f"The surest mistakes of {one.name}", columns, rows)


def exhibits(one: AnswerReport) -> list[Exhibit]:
    """All charts of one model."""
    of = f": {one.name}"
    charts = (one.calibration.chart(), by_confidence(one), one.abstention.chart())
    table = one.abstention.table()
    found: list[Exhibit] = [replace(chart, title=chart.title + of) for chart in charts]
    found.append(replace(table, title=table.title + of))
    if not one.right.all():
        found.append(surest_mistakes(one))
    return found


def _tables(found: AnswerMatrix) -> list[Exhibit]:
    shown: list[Exhibit] = [standing(found)]
    if found.comparisons:
        shown.append(replace(difference_table(found.comparisons), title="Differences on the same questions"))
    corpus = corpus_table(found)
    return [*shown, corpus] if corpus else shown


def summary(found: AnswerMatrix) -> Page:
    return Page(TITLE, (*_tables(found), Prose("\n".join(found.sentences()), "What can be said")))


def page(found: AnswerMatrix) -> Page:
    said = [Prose("\n\n".join(one.sentences()), one.name) for one in found.results]
    if found.comparisons:
        said.append(Prose("\n\n".join(map(difference, found.comparisons)), "Which differences are real"))
    if found.notes:
        said.append(Prose("\n\n".join(found.notes), "How it was read"))
    drawn = [exhibit for one in found.results for exhibit in exhibits(one)]
    return Page(TITLE, (*said, standing_bars(found), *_tables(found), *drawn))

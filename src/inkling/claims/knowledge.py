"""Claims F1–F5: pretraining gives knowledge. A small transformer is asked where people were born.

What is trained on what is in birthplaces.py; where the people are those of a generated world, the row says so. Exact
match has Wilson's interval. What the second stage of a training forgets is measured in nats per token of the documents,
each read from its beginning, before and after it. The rule of each verdict stands with its row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from inkling.claims.birthplaces import NAMES, Learned, Material, Way, learn, material_of, without_answers
from inkling.claims.ledger import Claim, Context, Finding
from inkling.figures import Bars, Cell, Column, Exhibit, Series, Table
from inkling.measure.answers import AnswerMatrix, AnswerReport, exactly, percent
from inkling.measure.answers_page import corpus_table, exhibits
from inkling.measure.classification import wilson
from inkling.measure.corroboration import Corroboration, hear_witness
from inkling.measure.intervals import Interval
from inkling.measure.paired import LEVEL, mcnemar
from inkling.text.world import PLACES

FLUENT = 0.8  # of the answers are places that somebody was born in: fluent enough
PUBLISHED_COMMONEST, PUBLISHED_PRETRAINED, PUBLISHED_CEILING = 25, 0.144, 479


def pairs_alone(context: Context) -> Finding:
    """Holds if what is learned from pairs alone is not above always naming the commonest place."""
    material, found = material_of(context), learn(context, "questions")
    match, commonest = found.report.exact_match, material.share(material.baselines()[0])
    return Finding(
        f"{_on(material)}{percent(match)} of {len(material.dev):,} after {material.plan.question_steps} steps; always "
        f"the commonest answer: {100 * commonest.value:.1f} %.",
        "holds" if match.low <= commonest.value else "fails",
        {**_share("exact_match", match), "commonest": commonest.value, "seconds": found.seconds},
        (_standing("F1: what the pairs alone teach", material, [found.report]),),
    )


def always_commonest(context: Context) -> Finding:
    """On the published people exactly; in the generated world the share follows from Zipf's law."""
    material = material_of(context)
    commonest = material.baselines()[0]
    share, right = material.share(commonest), int(exactly(commonest.answers, material.truth).sum())
    figures = {**_share("exact_match", share), "right": float(right), "questions": float(len(material.dev))}
    if material.real:
        exactly_so = (commonest.answers[0], right, len(material.dev)) == ("London", PUBLISHED_COMMONEST, 500)
        measured = f"{commonest.name}: {right} of {len(material.dev)} right, {100 * share.value:.1f} %"
        return Finding(measured, "holds" if exactly_so else "fails", figures)
    weights = 1 / np.arange(2, len(PLACES) + 2)
    expected = float(weights[PLACES.index(commonest.answers[0])] / weights.sum())
    return Finding(
        f"{_on(material)}{commonest.name}: {percent(share)}; by the law that places follow there, {100 * expected:.1f} "
        "%. It is 5.0 % where the commonest place has one in twenty.",
        "holds if" if share.low <= expected <= share.high else "fails",
        {**figures, "expected": expected},
    )


def pretrained(context: Context) -> Finding:
    """Holds if the training with documents is surely above the commonest answer, and on the published people reaches
    the published share."""
    material = material_of(context)
    ours, published = learn(context, "ours"), learn(context, "published")
    match, other = ours.report.exact_match, published.report.exact_match
    commonest = material.share(material.baselines()[0])
    enough = match.value >= PUBLISHED_PRETRAINED or not material.real
    read = "" if ours.read_right is None else f" With the book open it answered {percent(ours.read_right)} of them."
    figures = {
        **_share("exact_match", match),
        **_share("published_way", other),
        **({} if ours.read_right is None else {"open_book": ours.read_right.value}),
        "commonest": commonest.value,
        "p_against_published_way": mcnemar(ours.report.right, published.report.right),
        "seconds": ours.seconds,
        "published_way_seconds": published.seconds,
    }
    return Finding(
        f"{_on(material)}{percent(match)} of {len(material.dev):,} after {material.plan.steps} ({ours.seconds:.0f} "
        f"s).{read} The published way (span corruption, then pairs) with as many steps of the same model: "
        f"{percent(other)}.",
        "holds" if enough and match.low > commonest.value else "fails",
        figures,
        (_standing("F3: with documents", material, [ours.report, published.report]), _bars(context)),
    )


def because_of_the_text(context: Context) -> Finding:
    """Holds if the same training without the sentences that tell birthplaces falls surely below, to what one can have
    without knowing anything; on the published people the ceiling must be the published one."""
    material = material_of(context)
    ours, removed, published = (learn(context, way) for way in ("ours", "removed", "published"))
    report = _heard(material, ours.report)
    assert report.corroboration is not None
    ceiling = report.corroboration.ceiling
    told = round(ceiling.value * len(material.dev))
    match, without = ours.report.exact_match, removed.report.exact_match
    nothing = max(material.share(one).value for one in material.baselines())
    p_value = mcnemar(ours.report.right, removed.report.right)
    fell = match.value > without.value and p_value <= LEVEL and without.low <= nothing
    as_published = (told, len(material.dev)) == (PUBLISHED_CEILING, 500) or not material.real
    lines = material.lines
    left = without_answers(lines, (*material.train, *material.dev))
    kept = sum(map(len, left)) / sum(map(len, lines))
    figures = {
        **_share("ceiling", ceiling),
        **_share("exact_match", match),
        **_share("without_birthplaces", without),
        "characters_left": kept,
        "without_knowledge": nothing,
        "p": p_value,
        **_forgotten("ours", ours),
        **_forgotten("published_way", published),
        "seconds": removed.seconds,
    }
    table = Table(
        "F4: what the second stage forgets",
        (Column("training"), Column("before", ".3f"), Column("after", ".3f"), Column("forgotten", "+.3f")),
        tuple((one.report.name, *one.nats, one.nats[1] - one.nats[0]) for one in (ours, published, removed)),
        ("Nats a token of the documents that were learned from, each read from its beginning.",),
    )
    return Finding(
        f"{_on(material)}{told} of {len(material.dev)} answers stand beside the name: {100 * ceiling.value:.1f} % is "
        f"the ceiling. Without the sentences that tell birthplaces ({100 * kept:.0f} % of the text stays) the same "
        f"training answers {percent(without)}, with them {percent(match)}; knowing nothing gives up to "
        f"{100 * nothing:.1f} %, so better English is not the reason. The second stage takes the documents from "
        f"{ours.nats[0]:.2f} to {ours.nats[1]:.2f} nats a token, that of the published way from "
        f"{published.nats[0]:.2f} to {published.nats[1]:.2f}.",
        "holds" if fell and as_published else "fails",
        figures,
        (_standing("F4: with and without birthplaces", material, [ours.report, removed.report]), table),
    )


def fluent_without_knowing(context: Context) -> Finding:
    """Holds if most answers of a model that knows nobody are places all the same, and most of its wrong ones stand
    beside the name in no document."""
    material = material_of(context)
    ours, alone = (_heard(material, learn(context, way).report) for way in ("ours", "questions"))
    assert ours.corroboration is not None
    assert alone.corroboration is not None
    places = {answer for _, answer in material.train}
    fluent = {one.name: wilson(sum(said in places for said in one.said), len(one.said)) for one in (ours, alone)}
    made_up = {
        name: wilson(one.wrong_made_up, max(1, one.wrong))
        for name, one in ((ours.name, ours.corroboration), (alone.name, alone.corroboration))
    }
    promise = ours.promise.answered
    figures = {
        "calibration_error": ours.calibration.error,
        "calibration_error_alone": alone.calibration.error,
        "mean_confidence": float(ours.confidence.mean()),
        "mean_confidence_alone": float(alone.confidence.mean()),
        **_share("fluent_alone", fluent[alone.name]),
        **_share("made_up", made_up[ours.name]),
        **_share("made_up_alone", made_up[alone.name]),
        **({} if promise is None else {"threshold": promise.threshold, "answered": promise.share}),
    }
    shown: list[Exhibit] = [*exhibits(ours), *exhibits(alone)]
    table = corpus_table(AnswerMatrix.of([ours, alone]))
    knows_not = alone.exact_match.low <= max(material.share(one).value for one in material.baselines())
    holds = knows_not and fluent[alone.name].value >= FLUENT and made_up[alone.name].value > 0.5
    return Finding(
        f"{_on(material)}of the answers of the model that read no documents ({percent(alone.exact_match)} right), "
        f"{100 * fluent[alone.name].value:.0f} % are places where somebody was born, at a mean confidence of "
        f"{figures['mean_confidence_alone']:.2f}; {100 * made_up[alone.name].value:.0f} % of its wrong ones stand "
        f"beside the name nowhere, and {100 * made_up[ours.name].value:.0f} % of those of the model that read. The "
        f"confidence of the latter is off by {100 * ours.calibration.error:.1f} points. {ours.promise.sentence()}",
        "holds" if holds else "fails",
        figures,
        (*([table] if table else []), *shown),
    )


# ------------------------------------------------------------------------------------------------- shown


def _on(material: Material) -> str:
    return "" if material.real else f"on {material.name} (birthplace/ is not there): "


def _share(name: str, share: Interval) -> dict[str, float]:
    return {name: share.value, f"{name}_low": share.low, f"{name}_high": share.high}


def _forgotten(name: str, found: Learned) -> dict[str, float]:
    before, after = found.nats
    return {f"{name}_nats_before": before, f"{name}_nats_after": after}


def _heard(material: Material, report: AnswerReport) -> AnswerReport:
    """With what the documents say of the answers; they are read only now."""
    phrases = list(zip(material.truth, report.said, strict=True))
    witness = hear_witness("the text", [material.lines], material.subjects, phrases)
    found = Corroboration.of(witness, report.said, material.truth, report.right.tolist())
    return replace(report, corroboration=found)


def _standing(title: str, material: Material, reports: Sequence[AnswerReport]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    shares = [(one.name, one.exact_match) for one in reports]
    for name, share in [*shares, *((one.name, material.share(one)) for one in material.baselines())]:
        rows.append(
            (name, 100 * share.value, 100 * share.low, 100 * share.high, round(share.value * len(material.dev)))
        )
    columns = (
        Column("who"),
        Column("exact match", ".1f", "%"),
        Column("low", ".1f"),
        Column("high", ".1f"),
        Column("right", ",d"),
    )
    note = f"{len(material.dev):,} questions of {material.name}; low and high: 95 % interval (Wilson)."
    return Table(title, columns, tuple(rows), (note,))


def _bars(context: Context) -> Bars:
    material = material_of(context)
    ways: tuple[Way, ...] = ("questions", "published", "ours")
    shares = {NAMES[way]: learn(context, way).report.exact_match for way in ways}
    series = Series(
        "exact match", *([100 * getattr(one, end) for one in shares.values()] for end in ("value", "low", "high"))
    )
    commonest = material.share(material.baselines()[0]).value
    levels = (("commonest answer", 100 * commonest), ("published", 100 * PUBLISHED_PRETRAINED))
    return Bars(
        "F3: what documents give",
        "training",
        "right (%)",
        tuple(shares),
        (series,),
        "Bars: 95 % interval over questions.",
        levels if material.real else levels[:1],
    )


CLAIMS = (
    Claim(
        "F1",
        "Fine-tuned only on 2,000 pairs of question and birthplace, a small transformer over characters knows nobody.",
        "2 % of 500",
        pairs_alone,
    ),
    Claim(
        "F2", "Always answering the commonest birthplace, 'London', is better.", "25 of 500 = 5.0 %", always_commonest
    ),
    Claim(
        "F3",
        "Trained on short biographies as well, it answers for people it was never asked about.",
        "14.4 %",
        pretrained,
    ),
    Claim(
        "F4",
        "The reason is that the answers stand in the biographies, not that the model knows English better.",
        "479 of 500 stand there: at most 95.8 %",
        because_of_the_text,
    ),
    Claim("F5", "A model that does not know still answers fluently.", "", fluent_without_knowing),
)

"""Claims F1–F5: pretraining gives knowledge. A small transformer is asked where people were born.

With --data the people are those of birthplace/: 2,937 lines of biographies, 2,000 questions with answers to learn from,
500 others to be judged by. Without it a generated world serves (text/world.py), and every row says so.

Protocol: documents are all read; answers of the judging questions are never trained on and reach no model, only the
judge. Greedy answers, exact match, Wilson's interval, one seed. Trainings that several rows need are done once:

    questions    the pairs alone, character by character                                 F1, F5
    ours         documents and pairs together, then what the model asked itself          F3, F4, F5
    published    documents with span corruption, then the pairs; the same steps          F3, F4
    removed      as ours, after every sentence that tells a birthplace was removed       F4

For `removed` the judge, who knows all answers, takes out of each line that has a name every sentence that has the
answer; nothing else of his knowledge is used. What is forgotten is measured in nats per token of the documents, each
read from its beginning, before and after the second stage.

Left out: more seeds (`inkling study pretraining` has them), other sizes of the model.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from inkling.claims.ledger import Claim, Context, Finding
from inkling.figures import Bars, Cell, Column, Exhibit, Series, Table
from inkling.measure.answers import AnswerMatrix, AnswerReport, Baseline, exactly, percent
from inkling.measure.answers_page import corpus_table, exhibits
from inkling.measure.classification import wilson
from inkling.measure.corroboration import Corroboration, hear_witness
from inkling.measure.intervals import Interval
from inkling.measure.neighbours import commonest_answer, nearest_answers
from inkling.measure.paired import LEVEL, mcnemar
from inkling.measure.tally import tally
from inkling.models.answering import answer_questions
from inkling.models.contracts import LanguageModel
from inkling.recipes.documents import Pair
from inkling.recipes.knowledge import ASKED_FILE, KnowledgeRecipe, read_asked
from inkling.recipes.pretraining import Stage, pair_lines, train_stages
from inkling.runs.loading import load_language_model
from inkling.text.corpus import Corpus
from inkling.text.documents import split_head
from inkling.text.questions import read_pairs, subject_of
from inkling.text.world import PLACES, biographies

Way = Literal["questions", "ours", "published", "removed"]

DOCUMENTS, TRAIN, DEV = "birthplace/wiki.txt", "birthplace/birth_places_train.tsv", "birthplace/birth_dev.tsv"
PEOPLE = 1000  # of the generated world
SEED = 0
QUESTION_STEPS = 250
READING_STEPS, FURTHER_STEPS = 500, 200
SETTINGS: dict[str, int] = {}  # of every training, beside the steps; empty: as `inkling train gpt` has them
SCORED_LINES = 500  # at most, to see what is forgotten
FLUENT = 0.8  # of the answers are places that somebody was born in: fluent enough
PUBLISHED_ALONE, PUBLISHED_COMMONEST, PUBLISHED_PRETRAINED, PUBLISHED_CEILING = 0.02, 25, 0.144, 479
SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
NAMES: dict[Way, str] = {
    "questions": "pairs alone, characters",
    "ours": "read, then asked itself",
    "published": "span corruption, then pairs",
    "removed": "ours, birthplaces removed",
}


@dataclass(frozen=True)
class Material:
    """Documents, pairs to learn from and pairs to judge by."""

    name: str
    lines: tuple[str, ...]
    train: tuple[Pair, ...]
    dev: tuple[Pair, ...]
    real: bool

    @property
    def truth(self) -> tuple[str, ...]:
        return tuple(answer for _, answer in self.dev)

    @property
    def subjects(self) -> list[str]:
        """Of the judging questions."""
        return subject_of([question for question, _ in (*self.train, *self.dev)])[len(self.train) :]

    def baselines(self) -> tuple[Baseline, Baseline]:
        subjects = subject_of([question for question, _ in (*self.train, *self.dev)])
        answers, known = [answer for _, answer in self.train], len(self.train)
        commonest = commonest_answer(answers)
        nearest = nearest_answers(subjects[known:], subjects[:known], answers)
        return (
            Baseline(f"always '{commonest}'", (commonest,) * len(self.dev)),
            Baseline("nearest name", tuple(nearest)),
        )

    def share(self, baseline: Baseline) -> Interval:
        return wilson(int(exactly(baseline.answers, self.truth).sum()), len(self.dev))


@dataclass(frozen=True, eq=False)
class Learned:
    """What a training led to. `nats` a token of the documents after each stage; `read_right`: of the answers that it
    gave itself with the book open, about the people it is judged by."""

    report: AnswerReport
    nats: tuple[float, ...]
    seconds: float
    read_right: Interval | None = None


@cache
def read_material(data: Path | None, people: int) -> Material:
    if data is not None:
        lines = [line for block in Corpus([data / DOCUMENTS]).text_blocks() for line in block]
        train, dev = (_pairs(data / name) for name in (TRAIN, DEV))
        return Material("birthplace", tuple(lines), train, dev, True)
    world = biographies(np.random.default_rng(SEED), people)
    name = f"a generated world of {people:,} people"
    return Material(name, tuple(world.text.splitlines()), world.pairs_train, world.pairs_held_out, False)


def _pairs(path: Path) -> tuple[Pair, ...]:
    found = read_pairs(path)
    return tuple(zip(found.questions, found.answers or (), strict=True))


def material_of(context: Context) -> Material:
    there = all(context.file(name) for name in (DOCUMENTS, TRAIN, DEV))
    return read_material(context.data if there else None, PEOPLE)


# ------------------------------------------------------------------------------------------------- trainings


def without_answers(lines: Sequence[str], pairs: Sequence[Pair]) -> list[str]:
    """The lines less every sentence that has an answer, in lines that have the name which the answer belongs to."""
    named = list(zip(subject_of([question for question, _ in pairs]), (answer for _, answer in pairs), strict=True))
    return [without_phrases(line, {answer for name, answer in named if name in line}) for line in lines]


def without_phrases(line: str, phrases: set[str]) -> str:
    """The head of a line, and those sentences of its body that none of the phrases touches."""
    head, body = split_head(line)
    text = body[1:].strip()  # behind the full stop of the head
    taken = [found.span() for phrase in phrases if phrase for found in re.finditer(re.escape(phrase), text)]
    if not taken:
        return line
    ends = [found.span() for found in SENTENCE_END.finditer(text)]
    spans = zip([0, *(end for _, end in ends)], [*(start for start, _ in ends), len(text)], strict=True)
    kept = [text[a:b] for a, b in spans if not any(first < b and a < last for first, last in taken)]
    return " ".join([f"{head.strip()}.", *kept])


def stages(way: Way, documents: str, pairs: str) -> tuple[Stage, ...]:
    """The trainings of a way, one beginning where the one before ended."""
    recipe = KnowledgeRecipe(files=(documents,), pairs=(pairs,), seed=SEED, **SETTINGS)  # type: ignore[arg-type]
    if way == "questions":
        alone = replace(recipe, files=(), tokens="character", objective="question", steps=QUESTION_STEPS)
        return (Stage("questions", alone, 1.0),)
    total = READING_STEPS + FURTHER_STEPS
    if way == "published":
        first = replace(recipe, pairs=(), objective="span-corruption", steps=READING_STEPS)
        second = replace(recipe, files=(), base="first", objective="question", steps=FURTHER_STEPS)
    else:
        first = replace(recipe, steps=READING_STEPS)
        second = replace(recipe, base="first", ask=True, steps=FURTHER_STEPS)
    return Stage("first", first, READING_STEPS / total), Stage("second", second, FURTHER_STEPS / total)


_KEPT: dict[tuple[object, ...], Learned] = {}


def learn(context: Context, way: Way) -> Learned:
    """Trains, asks and forgets the model; what came out is kept for the other rows of this process."""
    material = material_of(context)
    key = (material, way, QUESTION_STEPS, READING_STEPS, FURTHER_STEPS, *SETTINGS.items())
    if key not in _KEPT:
        _KEPT[key] = _learn(context, material, way)
    return _KEPT[key]


def _learn(context: Context, material: Material, way: Way) -> Learned:
    lines = without_answers(material.lines, (*material.train, *material.dev)) if way == "removed" else material.lines
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "documents.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="")
        (folder / "pairs.jsonl").write_text(pair_lines(material.train), encoding="utf-8", newline="")
        chain = stages(way, str(folder / "documents.txt"), str(folder / "pairs.jsonl"))
        context.say(f"F: {NAMES[way]}, {' + '.join(str(stage.recipe.steps) for stage in chain)} steps …")
        runs = train_stages(chain, folder)
        models = [load_language_model(run) for run in runs]
        questions = tuple(question for question, _ in material.dev)
        said = list(answer_questions(models[-1], questions))
        report = AnswerReport(
            NAMES[way],
            "the judging questions",
            questions,
            material.truth,
            tuple(answer.text for answer in said),
            np.array([answer.confidence for answer in said]),
            unended=sum(not answer.ended for answer in said),
        )
        nats = tuple(nats_per_token(model, lines) for model in models) if len(models) > 1 else ()
        read = read_asked(runs[-1].path) if (runs[-1].path / ASKED_FILE).exists() else []
    seconds = time.perf_counter() - started
    context.say(f"F: {NAMES[way]}: {percent(report.exact_match)} after {seconds:.0f} s")
    return Learned(report, nats, seconds, _read_right(material, read))


def nats_per_token(model: LanguageModel[Any], lines: Sequence[str]) -> float:
    """Of some documents, each read from its beginning, as in training."""
    some = lines[:: -(-len(lines) // SCORED_LINES)]
    found = tally(model.score([f" {line}\n" for line in some]))
    return found.nats / found.tokens


def _read_right(material: Material, asked: Sequence[Pair]) -> Interval | None:
    truth = dict(material.dev)
    judged = [answer == truth[question] for question, answer in asked if question in truth]
    return wilson(sum(judged), len(judged)) if judged else None


# ------------------------------------------------------------------------------------------------- rows


def pairs_alone(context: Context) -> Finding:
    """Holds if what is learned from pairs alone is not above always naming the commonest place."""
    material, found = material_of(context), learn(context, "questions")
    match, commonest = found.report.exact_match, material.share(material.baselines()[0])
    return Finding(
        f"{_on(material)}{percent(match)} of {len(material.dev):,} after {QUESTION_STEPS} steps; always the commonest "
        f"answer: {100 * commonest.value:.1f} %.",
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
    steps = f"{READING_STEPS} + {FURTHER_STEPS} steps"
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
        f"{_on(material)}{percent(match)} of {len(material.dev):,} after {steps} ({ours.seconds:.0f} s).{read} The "
        f"published way (span corruption, then pairs), as many steps with the same model: {percent(other)}.",
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

"""Where people were born, for the claims F1–F5: documents, questions, and transformers that learned from them.

With a folder of data the people are those of birthplace/: 2,937 lines of biographies, 2,000 questions with answers to
learn from, 500 others to be judged by. Without it a generated world serves (text/world.py).

Protocol: documents are all read; answers of the judging questions are never trained on and reach no model, only the
judge. Greedy answers, one seed. Four trainings, each done once however many rows need it:

    questions    the pairs alone, character by character
    ours         documents and pairs together, then what the model asked itself
    published    documents with span corruption, then the pairs; the same steps
    removed      as ours, after every sentence that tells a birthplace was removed

For `removed` the judge, who knows all answers, takes out of each line that has a name every sentence that has the
answer; nothing else of his knowledge is used.

Left out: more seeds (`inkling study pretraining` has them), other sizes of the model, and false birthplaces in place of
removed ones, which would leave more English to read.
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

from inkling.claims.ledger import Context
from inkling.measure.answers import AnswerReport, Baseline, exactly, percent
from inkling.measure.classification import wilson
from inkling.measure.intervals import Interval
from inkling.measure.neighbours import baselines
from inkling.measure.tally import tally
from inkling.models.answering import answer_questions
from inkling.models.contracts import LanguageModel
from inkling.recipes.answers import judge
from inkling.recipes.documents import Pair
from inkling.recipes.knowledge import ASKED_FILE, KnowledgeRecipe, read_asked
from inkling.recipes.pretraining import Stage, pair_lines, train_stages
from inkling.runs.loading import load_language_model
from inkling.text.corpus import Corpus
from inkling.text.documents import split_head
from inkling.text.questions import read_pairs, subject_of
from inkling.text.world import biographies

Way = Literal["questions", "ours", "published", "removed"]

DOCUMENTS, TRAIN, DEV = "birthplace/wiki.txt", "birthplace/birth_places_train.tsv", "birthplace/birth_dev.tsv"
PEOPLE = 1000  # of the generated world
SEED = 0
SCORED_LINES = 500  # at most, to see what is forgotten
SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
NAMES: dict[Way, str] = {
    "questions": "pairs alone, characters",
    "ours": "read, then asked itself",
    "published": "span corruption, then pairs",
    "removed": "ours, birthplaces removed",
}


@dataclass(frozen=True)
class Plan:
    """How long each training is: on pairs alone, or its first and its second stage. Sizes of zero: as `inkling train
    gpt --pairs` has them."""

    question_steps: int
    reading_steps: int
    further_steps: int
    layers: int = 0
    width: int = 0
    batch: int = 0
    vocabulary: int = 0

    @property
    def steps(self) -> str:
        return f"{self.reading_steps} + {self.further_steps} steps"


PLAN = Plan(400, 950, 300)
GENERATED_PLAN = Plan(100, 250, 80, layers=2, batch=6, vocabulary=1024)


@dataclass(frozen=True)
class Material:
    """Documents, pairs to learn from and pairs to judge by."""

    name: str
    lines: tuple[str, ...]
    train: tuple[Pair, ...]
    dev: tuple[Pair, ...]
    real: bool

    @property
    def plan(self) -> Plan:
        return PLAN if self.real else GENERATED_PLAN

    @property
    def truth(self) -> tuple[str, ...]:
        return tuple(answer for _, answer in self.dev)

    @property
    def subjects(self) -> list[str]:
        """Of the judging questions."""
        return subject_of([question for question, _ in (*self.train, *self.dev)])[len(self.train) :]

    def baselines(self) -> tuple[Baseline, Baseline]:
        return baselines(self.train, [question for question, _ in self.dev])

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
    return tuple(read_pairs(path).together())


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


def stages(way: Way, documents: str, pairs: str, plan: Plan) -> tuple[Stage, ...]:
    """The trainings of a way, one beginning where the one before ended."""
    recipe = KnowledgeRecipe(
        files=(documents,),
        pairs=(pairs,),
        seed=SEED,
        layers=plan.layers,
        width=plan.width,
        batch=plan.batch,
        vocabulary=plan.vocabulary,
    )
    if way == "questions":
        alone = replace(recipe, files=(), tokens="character", vocabulary=0, objective="question")
        return (Stage("questions", replace(alone, steps=plan.question_steps), 1.0),)
    if way == "published":
        first = replace(recipe, pairs=(), objective="span-corruption")
        second = replace(recipe, files=(), base="first", objective="question")
    else:
        first = recipe
        second = replace(recipe, base="first", ask=True)
    share = plan.reading_steps / (plan.reading_steps + plan.further_steps)
    return (
        Stage("first", replace(first, steps=plan.reading_steps), share),
        Stage("second", replace(second, steps=plan.further_steps), 1 - share),
    )


_KEPT: dict[tuple[object, ...], Learned] = {}


def learn(context: Context, way: Way) -> Learned:
    """Trains, asks and forgets the model; what came out is kept for the other rows of this process."""
    material = material_of(context)
    key = (material, way, material.plan)
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
        chain = stages(way, str(folder / "documents.txt"), str(folder / "pairs.jsonl"), material.plan)
        context.say(f"F: {NAMES[way]}, {' + '.join(str(stage.recipe.steps) for stage in chain)} steps …")
        runs = train_stages(chain, folder)
        models = [load_language_model(run) for run in runs]
        said = list(answer_questions(models[-1], [question for question, _ in material.dev]))
        report = judge(NAMES[way], "the judging questions", material.dev, said)
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

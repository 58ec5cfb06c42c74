"""The part of `inkling demo` that answers: a transformer reads generated biographies and is asked about people.

Everybody has a biography, and four fifths have a question with its answer to learn from. The transformer reads, asks
itself about the others, and is then asked, with the book closed, where they were born. The text says it of everybody,
so all questions can be answered by who has read it; who has not cannot do better than the commonest place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from inkling.figures import Cell, Column, Table
from inkling.measure.answers import AnswerReport, exactly
from inkling.measure.classification import wilson
from inkling.models.answering import answer_questions
from inkling.recipes.answers import judge
from inkling.recipes.knowledge import KnowledgeRecipe
from inkling.recipes.pretraining import Stage, pair_lines, train_stages
from inkling.runs.files import write_file
from inkling.runs.loading import load_language_model
from inkling.runs.run import Run
from inkling.text.world import biographies

Say = Callable[[str], None]
OnProgress = Callable[[int, int, str], None]  # steps done, of how many, of which run

PEOPLE = 800
READING_STEPS, FURTHER_STEPS = 350, 80
SIZES = {"layers": 2, "batch": 6, "vocabulary": 1024}
SHOWN = 8


@dataclass(frozen=True)
class Answers:
    """What the run `run` says about people whose answers it never saw. `questions` is the file of them."""

    what: str
    run: Run
    questions: Path
    report: AnswerReport
    commonest: str  # of the answers that were learned


def ask_about_people(
    folder: Path, say: Say, on_progress: OnProgress = lambda done, total, run: None, seed: int = 0
) -> Answers:
    """Trains into `folder` and asks."""
    world = biographies(np.random.default_rng(seed), PEOPLE)
    documents, learned, questions = (
        folder / name for name in ("biographies.txt", "questions-train.jsonl", "questions-test.jsonl")
    )
    write_file(documents, world.text)
    write_file(learned, pair_lines(world.pairs_train))
    write_file(questions, pair_lines(world.pairs_held_out))
    what = (
        f"{PEOPLE:,} generated biographies and {len(world.pairs_train):,} answers, {len(world.pairs_held_out):,} more "
        "held back"
    )
    say(f"Biographies: {what}.")
    recipe = KnowledgeRecipe(files=(str(documents),), pairs=(str(learned),), seed=seed, **SIZES)  # type: ignore[arg-type]
    stages = (
        Stage("biographies-gpt", replace(recipe, steps=READING_STEPS), 0.8),
        Stage("answers-gpt", replace(recipe, steps=FURTHER_STEPS, base="biographies-gpt", ask=True), 0.2),
    )
    *_, run = train_stages(stages, folder, _keep_quiet, lambda stage, done, steps: on_progress(done, steps, stage.name))
    said = list(answer_questions(load_language_model(run), [question for question, _ in world.pairs_held_out]))
    report = judge(run.path.name, questions.name, world.pairs_held_out, said)
    return Answers(what, run, questions, report, world.commonest_place)


def answers_table(found: Answers) -> Table:
    """The transformer between who has read nothing and who has forgotten nothing."""
    report = found.report
    rows = len(report.truth)
    commonest = wilson(int(exactly([found.commonest] * rows, report.truth).sum()), rows)
    cells: list[tuple[Cell, ...]] = [("who has read and forgets nothing", 100.0, None, None, rows)]
    for who, share in (
        ("the transformer, from memory", report.exact_match),
        (f"nothing read: always '{found.commonest}'", commonest),
    ):
        cells.append((who, 100 * share.value, 100 * share.low, 100 * share.high, round(share.value * rows)))
    columns = (
        Column("who"),
        Column("right", ".1f", "%"),
        Column("low", ".1f", "%"),
        Column("high", ".1f", "%"),
        Column("questions", ",d"),
    )
    notes = (
        f"{rows:,} questions whose answers it never saw; they stand in the biographies, which it cannot look up. low "
        "and high: 95 % interval (Wilson).",
    )
    return Table("Where was everybody born?", columns, tuple(cells), notes)


def examples_table(found: Answers) -> Table:
    """A few of its answers, as they come."""
    report = found.report
    rows = zip(report.questions, report.said, report.confidence.tolist(), report.truth, strict=True)
    columns = (Column("question"), Column("answer"), Column("sure", ".1f", "%"), Column("true"))
    cells: tuple[tuple[Cell, ...], ...] = tuple(
        (question, said, 100 * sure, truth) for question, said, sure, truth in list(rows)[:SHOWN]
    )
    return Table("The first of its answers", columns, cells, (report.promise.sentence(),))


def _keep_quiet(note: str) -> None:
    """How files that we wrote ourselves are read is news to nobody."""

"""From a file of questions to answers, and from answers to figures that can be believed.

    {"row": 7, "question": "Where was Ada Oak born?", "answer": "Velden", "confidence": 0.83}

`answer_rows` streams files of any size. Rows in = rows answered + rows reported. With a threshold an answer of less
confidence is left open (null, in tables an empty cell) and its row says so.

`evaluate_answers` asks runs the questions of a file that has answers too, and measures what they say (measure/answers).
The true answers are read with the questions and reach no model: `answer_questions` is given the questions alone. A
corpus, if one is named, is opened only when all answers stand.

Baselines come from training pairs: those that are named, or those that the runs were trained on. Without any there is
only the best that a single answer could do, chosen on the very answers that it is judged by.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import numpy as np

from inkling.errors import InklingError, UsageError
from inkling.measure.answers import PROMISED, AnswerMatrix, AnswerReport, Baseline, exactly
from inkling.measure.corroboration import Corroboration, hear_witness
from inkling.measure.neighbours import baselines, commonest_answer
from inkling.models.answering import Answer, AnsweringConfig, answer_questions
from inkling.models.contracts import LanguageModel
from inkling.recipes.data import TextConfig, open_corpus, resolve
from inkling.recipes.evaluation import distinct_names
from inkling.recipes.scoring import Kind, OnBytes, ResultFile, quote_field
from inkling.recipes.verdicts import cell_line, json_line, needs_quotes
from inkling.runs.loading import load_language_model
from inkling.runs.run import Run
from inkling.text.questions import Asked, Pairs, PairsConfig, QuestionFiles, read_pairs, subject_of

Say = Callable[[str], None]
OnProgress = Callable[[int, int, str], None]

ENDINGS = (".jsonl", ".csv", ".tsv", ".parquet")
BLOCK_CHARS = 1 << 16  # of questions that are answered before their rows are given out
DIGITS = 9  # of confidences


# ------------------------------------------------------------------------------------------------ answering


def open_questions(files: Sequence[str], config: PairsConfig | None = None) -> QuestionFiles:
    """Questions to answer; answers that stand beside them are not looked at."""
    return QuestionFiles([resolve(name) for name in files], config, need_answers=False)


def answer_rows(
    model: LanguageModel[Any], questions: QuestionFiles, config: AnsweringConfig, on_bytes: OnBytes | None = None
) -> Iterator[tuple[Asked, Answer]]:
    """Every row with its answer, in order."""
    for rows in questions.batches(BLOCK_CHARS, on_bytes):
        yield from zip(rows, answer_questions(model, [row.question for row in rows], config), strict=True)


def check_threshold(abstain: float | None) -> None:
    if abstain is not None and not 0 <= abstain <= 1:
        raise UsageError(
            f"--abstain is {abstain:g}; give a probability from 0 to 1, below which a question stays open."
        )


class AnswerWriter:
    """Answers as JSON lines on stdout, or in a file (.jsonl, .csv, .tsv, .parquet) that appears only when complete.

    `row` is the number of the row in its file, so that rows which were left out leave a gap; where there are
    `several_files`, each row also names its file.
    """

    def __init__(
        self, out: str | None, *, beam: int = 1, abstain: float | None = None, several_files: bool = False
    ) -> None:
        check_threshold(abstain)
        self.beam, self.abstain, self.several_files = beam, abstain, several_files
        self.columns: dict[str, Kind] = {"file": str} if several_files else {}
        self.columns |= {"row": int, "question": str, "answer": str, "confidence": float}
        if abstain is not None:
            self.columns["abstained"] = bool
        if beam > 1:
            self.columns["others"] = [{"answer": str, "confidence": float}]
        self.result = ResultFile(Path(out), ENDINGS) if out else None
        self.file: IO[str] = self.result.file if self.result else sys.stdout
        self.separator = {".csv": ",", ".tsv": "\t"}.get(Path(out).suffix) if out else None
        if self.separator:
            self.file.write(self.separator.join(self.columns) + "\n")

    def __enter__(self) -> Self:
        return self

    def write(self, row: Asked, answer: Answer) -> None:
        record = self.record(row, answer)
        if self.separator is None:
            self.file.write(json_line(record))
            return
        cells = [_cell(value) for value in record.values()]
        if self.separator == "\t":
            self.file.write("\t".join(map(cell_line, cells)) + "\n")
        else:
            self.file.write(",".join(quote_field(cell) if needs_quotes(cell) else cell for cell in cells) + "\n")

    def record(self, row: Asked, answer: Answer) -> dict[str, Any]:
        abstained = self.abstain is not None and answer.confidence < self.abstain
        record: dict[str, Any] = {"file": row.source} if self.several_files else {}
        record |= {"row": row.number, "question": row.question, "answer": None if abstained else answer.text}
        record["confidence"] = _digits(answer.confidence)
        if self.abstain is not None:
            record["abstained"] = abstained
        if self.beam > 1:
            others = [] if abstained else answer.others
            record["others"] = [{"answer": text, "confidence": _digits(np.exp(value))} for text, value in others]
        return record

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.result is not None:
            self.result.end(kind, self.columns)


def _digits(confidence: float) -> float:
    return float(f"{min(1.0, confidence):.{DIGITS}g}")


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return "; ".join(f"{one['answer']} {one['confidence']:.3g}" for one in value)
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


# ------------------------------------------------------------------------------------------------ measuring


@dataclass(frozen=True)
class AnswersRecipe:
    """All that `inkling evaluate --pairs` can be told."""

    runs: tuple[str, ...]
    pairs: tuple[str, ...]
    train_pairs: tuple[str, ...] = ()
    corpus: tuple[str, ...] = ()
    reading: PairsConfig = field(default_factory=PairsConfig)
    answering: AnsweringConfig = field(default_factory=AnsweringConfig)
    promised: float = PROMISED


def evaluate_answers(
    recipe: AnswersRecipe,
    say: Say = lambda note: None,
    on_progress: OnProgress = lambda done, total, what: None,
) -> AnswerMatrix:
    """Asks every run all questions and measures the answers. Progress is in questions."""
    runs = {name: Run.open(run) for name, run in zip(distinct_names(recipe.runs), recipe.runs, strict=True)}
    notes: list[str] = []

    def note(sentence: str) -> None:
        notes.append(sentence)
        say(sentence)

    pairs = _read(recipe.pairs, recipe.reading, note)
    truth = tuple(pairs.answers or ())
    training = _training_pairs(recipe, runs, note)
    reports: list[AnswerReport] = []
    for number, (name, run) in enumerate(runs.items()):
        model = load_language_model(run)
        said: list[Answer] = []
        for answer in answer_questions(model, pairs.questions, recipe.answering):
            said.append(answer)
            on_progress(number * len(pairs) + len(said), len(runs) * len(pairs), name)
        reports.append(judge(name, pairs.names, pairs.together(), said, recipe.answering.beam, recipe.promised))
    known = training.questions if training is not None else ()
    subjects = subject_of([*known, *pairs.questions])
    compared = _baselines(pairs, training, note)
    if training is not None:
        _note_overlap(pairs, training, note)
    if recipe.corpus:
        heard = [one.said for one in reports] + [one.answers for one in compared]
        reports = _corroborated(recipe.corpus, subjects[len(known) :], truth, heard, reports)
    return AnswerMatrix.of(reports, compared, notes)


def judge(
    name: str,
    text_name: str,
    pairs: Sequence[tuple[str, str]],
    said: Sequence[Answer],
    beam: int = 1,
    promised: float = PROMISED,
) -> AnswerReport:
    """What one model said to the questions of `pairs`, measured by their answers."""
    return AnswerReport(
        name,
        text_name,
        tuple(question for question, _ in pairs),
        tuple(truth for _, truth in pairs),
        tuple(answer.text for answer in said),
        np.array([answer.confidence for answer in said]),
        beam,
        sum(not answer.ended for answer in said),
        promised,
    )


def _read(files: Sequence[str], reading: PairsConfig, note: Say) -> Pairs:
    found = read_pairs([resolve(name) for name in files], reading)
    for sentence in found.notes:
        note(sentence)
    return found


def _training_pairs(recipe: AnswersRecipe, runs: dict[str, Run], note: Say) -> Pairs | None:
    """The pairs that are named, or those that the runs were trained on where they agree."""
    if recipe.train_pairs:
        return _read(recipe.train_pairs, recipe.reading, note)
    recorded = {_recorded(run) for run in runs.values()}
    files, reading = next(iter(recorded))
    if len(recorded) > 1 or not files or "-" in files:
        return None
    try:
        return _read(files, reading, note)
    except InklingError as error:
        note(f"The pairs of the training cannot be read again ({str(error).rstrip('.')}): no baseline comes from them.")
        return None


def _recorded(run: Run) -> tuple[tuple[str, ...], PairsConfig]:
    """The files of pairs that a run was trained on, and how it read them."""
    told = run.info.get("recipe", {})
    columns = (told.get("question_column"), told.get("answer_column"))
    reading = PairsConfig(*columns, header=told.get("header"), bad_rows=told.get("bad_rows", "stop"))
    return tuple(told.get("pairs") or ()), reading


def _baselines(pairs: Pairs, training: Pairs | None, note: Say) -> Sequence[Baseline]:
    if training is None:
        best = commonest_answer(pairs.answers or ())
        note("There are no training pairs to take baselines from: name them with --train-pairs.")
        return [Baseline(f"always '{best}' (chosen on these answers)", (best,) * len(pairs))]
    return baselines(training.together(), pairs.questions)


def _note_overlap(pairs: Pairs, training: Pairs, note: Say) -> None:
    rows = {question: row for row, question in enumerate(training.questions)}
    seen = [(row, rows[question]) for row, question in enumerate(pairs.questions) if question in rows]
    if seen:
        truth, learned = pairs.answers or (), training.answers or ()
        same = int(exactly([learned[twin] for _, twin in seen], [truth[row] for row, _ in seen]).sum())
        first, second = seen[0]
        note(
            f"Questions of {pairs.names} that stand in {training.names} too: {len(seen):,} of {len(pairs):,}, {same:,} "
            f"of them with the same answer (first: {pairs.place(first)} is {training.place(second)})."
        )


def _corroborated(
    files: Sequence[str],
    subjects: Sequence[str],
    truth: Sequence[str],
    heard: Sequence[Sequence[str]],
    reports: Sequence[AnswerReport],
) -> list[AnswerReport]:
    """The reports with what the corpus says of them; it is read once for all."""
    corpus = open_corpus(files, TextConfig())
    name = ", ".join(Path(file).name for file in files)
    witness = hear_witness(name, corpus.text_blocks(), subjects, list(zip(truth, *heard, strict=True)))
    return [
        replace(one, corroboration=Corroboration.of(witness, one.said, truth, one.right.tolist())) for one in reports
    ]

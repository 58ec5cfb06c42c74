"""`inkling answer`: questions answered from the weights of a language model."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from inkling.cli.options import (
    AnswerTokens,
    BadRows,
    Beam,
    Encoding,
    Format,
    Header,
    Json,
    QuestionColumn,
    RunArgument,
    reading_pairs,
)

if TYPE_CHECKING:
    from inkling.models.answering import Answer
    from inkling.text.questions import Asked

QUESTION_CHARS, ANSWER_CHARS, OTHERS_SHOWN = 70, 40, 3


def answer(
    run: RunArgument,
    files: Annotated[
        list[str] | None,
        typer.Argument(help="Questions: tables, lines, - or data:NAME. [default: standard input]", show_default=False),
    ] = None,
    beam: Beam = 1,
    abstain: Annotated[
        float | None, typer.Option(help="Leave questions open whose answer has less than this probability.")
    ] = None,
    tokens: AnswerTokens = 64,
    out: Annotated[
        str | None,
        typer.Option(help="Write here: .jsonl, .csv, .tsv or .parquet. [default: JSON lines on stdout]"),
    ] = None,
    question_column: QuestionColumn = None,
    encoding: Encoding = None,
    header: Header = None,
    format: Format = None,
    bad_rows: BadRows = None,
    json: Json = False,
) -> None:
    """Answer questions with a language model that was trained on pairs: answer and confidence for every row.

    The confidence is the probability of the whole answer. Answers come from the weights alone: no text is looked up,
    and answers that stand beside the questions are not read. On a terminal, lines for people; to a pipe or with
    --json, JSON lines.

    \b
    Examples:
      inkling answer runs/gpt-biographies questions.tsv
      inkling answer runs/gpt-biographies questions.tsv --beam 4 --abstain 0.5 --out answers.tsv
      echo "Where was Ada Oak born?" | inkling answer runs/gpt-biographies
    """
    import time

    from inkling.models.answering import AnsweringConfig
    from inkling.recipes.answers import AnswerWriter, answer_rows, check_threshold, open_questions
    from inkling.report.terminal import notice, progress
    from inkling.runs.loading import load_language_model

    files = files or ["-"]
    check_threshold(abstain)
    config = AnsweringConfig(beam, tokens)
    model = load_language_model(run)
    if files == ["-"] and sys.stdin.isatty():
        notice("Reading questions from the terminal until Ctrl-D.")
    questions = open_questions(files, reading_pairs(question_column, None, encoding, header, format, bad_rows))
    for note in questions.notes:
        notice(note)
    several = len(questions.sources) > 1
    for_people = out is None and not json and sys.stdout.isatty()
    done, open_ones, started = 0, 0, time.perf_counter()
    writer = AnswerWriter(out, beam=beam, abstain=abstain, several_files=several)
    with progress(questions.size_bytes, "Answering", "B") as bar, writer:

        def show(read_bytes: int) -> None:
            if not for_people:  # lines on the terminal show by themselves how far we are
                bar.update(read_bytes, questions=f"{done:,} ({done / (time.perf_counter() - started):,.0f}/s)")

        for row, found in answer_rows(model, questions, config, show):
            is_open = abstain is not None and found.confidence < abstain
            if for_people:
                _say(row, found, is_open)
            else:
                writer.write(row, found)
            done, open_ones = done + 1, open_ones + is_open
    if not done:
        notice(f"{', '.join(questions.sources)} has no question that can be asked; write one in each row.")
    if questions.intake.rows_reported:
        notice(questions.intake.describe())
    if open_ones:
        notice(f"{open_ones:,} of {done:,} questions were left open: their answers have less than {abstain:g}.")
    if sys.stderr.isatty():
        seconds = time.perf_counter() - started
        notice(f"{done:,} question{'s' * (done != 1)} in {seconds:.2f} s: {done / seconds:,.0f} a second.")


def _say(row: Asked, found: Answer, is_open: bool) -> None:
    """A line for people."""
    import math

    from inkling.report.errors import paint
    from inkling.report.terminal import is_colourful, one_line, write_safely

    said = "–" if is_open else _cut(one_line(found.text), ANSWER_CHARS)
    shown = f"{100 * found.confidence:5.1f} %  {said}"
    if is_colourful(sys.stdout):
        shown = paint(shown, "2" if is_open else "1")
    others = (
        ""
        if is_open
        else ", ".join(
            f"{_cut(one_line(text), ANSWER_CHARS)} {100 * math.exp(value):.1f} %"
            for text, value in found.others[:OTHERS_SHOWN]
        )
    )
    line = f"{shown}  {_cut(one_line(row.question), QUESTION_CHARS)}{f'  (or {others})' if others else ''}"
    write_safely(f"{line}\n", sys.stdout)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"

"""Options that several commands share, and the ways results leave."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from inkling.recipes.data import TextConfig
    from inkling.recipes.labelled import LabelledConfig
    from inkling.text.questions import PairsConfig

Files = Annotated[
    list[str],
    typer.Argument(help="Text: files (.txt .csv .tsv .jsonl .parquet, also .gz .xz .zst), folders, -, or data:NAME."),
]
FileArgument = Annotated[list[str], typer.Argument(help="Text: files, folders, - or data:NAME.")]
RunArgument = Annotated[str, typer.Argument(help="A run directory.")]
TextColumn = Annotated[str | None, typer.Option(help="Column that holds the text, by name or number.")]
LabelColumn = Annotated[str | None, typer.Option(help="Column that holds the label.")]
QuestionColumn = Annotated[str | None, typer.Option(help="Column that holds the question, by name or number.")]
AnswerColumn = Annotated[str | None, typer.Option(help="Column that holds the answer.")]
Beam = Annotated[int, typer.Option(help="How many answers to follow at a time; 1: always the likeliest token.")]
AnswerTokens = Annotated[int, typer.Option(help="How many tokens an answer may have.")]
Encoding = Annotated[str | None, typer.Option(help="Encoding of the files, when it is not UTF-8 or marked UTF-16.")]
Header = Annotated[bool | None, typer.Option("--header/--no-header", help="Whether a table begins with column names.")]
Format = Annotated[str | None, typer.Option(help="txt, csv, tsv, jsonl or parquet, when the name does not say.")]
BadRows = Annotated[
    str | None, typer.Option(help="stop at a row that cannot be read, or skip and report it. [default: stop]")
]
Normalise = Annotated[
    str | None,
    typer.Option(help="Steps joined by commas: lower nfc nfkc ascii modern punctuation letters spaces digits."),
]
Overlap = Annotated[
    bool | None,
    typer.Option(
        "--overlap/--no-overlap", help="Look for the texts in the training text. [default: unless it is over 200 MB]"
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of a table for people.")]
Seed = Annotated[int | None, typer.Option(help="Decides every random choice.")]
Out = Annotated[str | None, typer.Option(help="Name the run directory. [default: runs/KIND-FILE]")]
ConfigFile = Annotated[str | None, typer.Option("--config", help="A TOML file of options, such as `hidden = 200`.")]


def check_bad_rows(value: str | None) -> Literal["stop", "skip"]:
    if value in (None, "stop"):
        return "stop"
    if value == "skip":
        return "skip"
    from inkling.errors import UsageError

    raise UsageError(f"--bad-rows is '{value}'; give stop or skip.")


def reading(
    text_column: str | None, encoding: str | None, header: bool | None, format: str | None, bad_rows: str | None
) -> TextConfig:
    """How files are to be read, from the options that say so."""
    from inkling.recipes.data import TextConfig

    return TextConfig(
        text_column=text_column, encoding=encoding, header=header, format=format, bad_rows=check_bad_rows(bad_rows)
    )


def reading_labels(
    files: Sequence[str],
    text_column: str | None,
    label_column: str | None,
    encoding: str | None,
    header: bool | None,
    format: str | None,
    bad_rows: str | None,
    seed: int,
) -> LabelledConfig:
    """The same for texts with labels."""
    from inkling.recipes.labelled import LabelledConfig

    return LabelledConfig(
        files=tuple(files),
        text_column=text_column,
        label_column=label_column,
        encoding=encoding,
        header=header,
        format=format,
        bad_rows=check_bad_rows(bad_rows),
        seed=seed,
    )


def reading_pairs(
    question_column: str | None,
    answer_column: str | None,
    encoding: str | None,
    header: bool | None,
    format: str | None,
    bad_rows: str | None,
) -> PairsConfig:
    """The same for questions with answers."""
    from inkling.text.questions import PairsConfig

    return PairsConfig(question_column, answer_column, encoding, header, format, check_bad_rows(bad_rows))


def runs_folder() -> Path:
    """Where runs go that are not told where."""
    return Path(os.environ.get("INKLING_RUNS", "runs"))


def check_seed(seed: int) -> None:
    if not 0 <= seed < 1 << 32:  # what both NumPy and torch take
        from inkling.errors import UsageError

        raise UsageError(f"--seed is {seed}; give a whole number from 0 to 4294967295.")


def print_json(value: Any) -> None:
    """One JSON document on stdout; a figure that is not a number is null, because JSON has no NaN.

    What a terminal would obey (a bidirectional override in a file name) and what has no UTF-8 is written as an escape.
    """
    from inkling.runs.files import finite

    text = json.dumps(finite(value), ensure_ascii=False, indent=1)
    if not text.replace("\n", "").isprintable():
        text = "".join(c if c == "\n" or c.isprintable() else json.dumps(c)[1:-1] for c in text)
    sys.stdout.write(text + "\n")

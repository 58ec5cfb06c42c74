"""Which columns of a table hold the text and the label.

What the caller names is taken: a name, or a number from 1. The rest is guessed, and the guess is said:

    text     the likeliest name among those that texts go by; else the column with the longest texts in a sample
    label    the likeliest name among those that labels go by; else the other of two columns, where one is needed or
             the columns have no names
    header   the first row of csv and tsv is one if a column is named in it, or a cell of it is a usual name

Columns without names are called column1, column2 … What the two are called, and which names are likely, is a `Roles`:
questions and answers are another pair. Left out: texts made of several columns.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from inkling.errors import InklingError
from inkling.text.files import printable
from inkling.text.tables import (
    BLANK,
    SAMPLE_ROWS,
    Fault,
    Part,
    damaged_parquet,
    delimited_records,
    json_objects,
    scan_parquet,
)

# The likeliest name first.
TEXT_NAMES = (
    *("text", "sentence", "review", "content", "body", "question", "document", "comment", "tweet", "message", "post"),
    *("article", "passage", "paragraph", "phrase", "utterance", "description", "abstract", "prompt", "input", "string"),
    *("line", "headline", "title", "summary", "premise", "context", "lyrics", "poem", "story"),
)
LABEL_NAMES = (
    *("label", "labels", "class", "category", "sentiment", "target", "answer", "polarity", "topic", "emotion"),
    *("intent", "tag", "genre", "language", "lang", "gold", "output", "y", "rating", "stars", "score"),
)
OTHER_NAMES = ("id", "idx", "index", "date", "source", "url", "author", "user", "split", "timestamp", "hypothesis")


@dataclass(frozen=True)
class Roles:
    """What the two columns are for, as the options --TEXT-column and --LABEL-column call them."""

    text: str = "text"
    label: str = "label"
    text_names: tuple[str, ...] = TEXT_NAMES
    label_names: tuple[str, ...] = LABEL_NAMES
    in_order: bool = False  # of one or two columns that no name tells, the first is the text, however long the texts


@dataclass(frozen=True)
class Wanted:
    text_column: str | None
    label_column: str | None
    header: bool | None
    need_label: bool
    roles: Roles = Roles()


def settle_columns(part: Part, wanted: Wanted) -> tuple[Part, list[str]]:
    """The part with its columns settled, and what was guessed."""
    if part.format == "jsonl":
        return _settle_json(part, wanted)
    return _settle_parquet(part, wanted) if part.format == "parquet" else _settle_delimited(part, wanted)


def _choose_columns(
    name: str, columns: Sequence[str], texts: Sequence[int], lengths: Sequence[float], wanted: Wanted, named: bool
) -> tuple[int, int | None, list[str]]:
    """Indexes of the text and the label column, and what was guessed. `texts` are the columns that can hold text,
    `lengths` the average length of each column; `named` is False where the names are ours (column1, column2 …)."""
    notes = []
    roles, label = wanted.roles, None
    if wanted.label_column is not None:
        label = _find_column(name, columns, wanted.label_column, roles.label)
    if wanted.text_column is not None:
        text = _find_column(name, columns, wanted.text_column, roles.text)
    else:
        free = [i for i in texts if i != label]
        if not free:
            raise InklingError(
                f"{name} has no column of text: {_list_columns(columns)}; name one with --{roles.text}-column."
            )
        guess = _first_named(columns, roles.text_names, free)
        reason = "by its name"
        if guess is None and roles.in_order and len(columns) <= 2:
            guess, reason = free[0], "the first one" if len(columns) == 2 else "the only one"
        elif guess is None:
            rest = free
            if label is None:
                rest = [i for i in free if columns[i].strip().lower() not in roles.label_names] or free
            guess = max(rest, key=lambda i: lengths[i])
            reason = "the only one" if len(columns) == 1 else "the one with the longest texts"
        text = guess
        notes.append(f"the {roles.text} is column '{printable(columns[text])}' ({reason})")
    if wanted.label_column is None:
        others = [i for i in range(len(columns)) if i != text]
        label = _first_named(columns, roles.label_names, others)
        reason = "by its name"
        if label is None and len(columns) == 2 and (wanted.need_label or not named):
            label, reason = others[0], "the other one"
        if label is not None:
            notes.append(f"the {roles.label} is column '{printable(columns[label])}' ({reason})")
        elif wanted.need_label:
            raise InklingError(
                f"{name} has no column that looks like a{'n' * (roles.label[0] in 'aeiou')} {roles.label}: "
                f"{_list_columns(columns)}; name it with --{roles.label}-column."
            )
    return text, label, notes


def _first_named(columns: Sequence[str], names: Sequence[str], among: Sequence[int]) -> int | None:
    lowered = {columns[i].strip().lower(): i for i in reversed(among)}
    return next((lowered[name] for name in names if name in lowered), None)


def _find_column(name: str, columns: Sequence[str], wanted: str, role: str) -> int:
    count = columns.count(wanted)
    if count == 1:
        return columns.index(wanted)
    if count > 1:
        raise InklingError(
            f"{name} has {count} columns called '{printable(wanted)}': give the number of the one meant, such as "
            f"--{role}-column {columns.index(wanted) + 1}."
        )
    if wanted.isascii() and wanted.isdigit() and 1 <= int(wanted) <= len(columns):
        return int(wanted) - 1
    near = difflib.get_close_matches(wanted.lower(), [c.lower() for c in columns], n=1, cutoff=0.5)
    meant = next((f", perhaps '{printable(c)}'" for c in columns if near and c.lower() == near[0]), "")
    raise InklingError(
        f"{name} has no column '{printable(wanted)}': {_list_columns(columns)}; give one of them as "
        f"--{role}-column{meant}."
    )


def _list_columns(columns: Sequence[str]) -> str:
    shown = ", ".join(f"'{printable(c)}'" for c in columns[:20]) + (" …" if len(columns) > 20 else "")
    return f"there is only {shown}" if len(columns) == 1 else f"there are {shown}"


def _settle_delimited(part: Part, wanted: Wanted) -> tuple[Part, list[str]]:
    name = part.source.name
    sample: list[list[str]] = []
    with closing(delimited_records(part)) as records:
        line, first = next(records)
        if first == [""]:
            first = BLANK
        if isinstance(first, Fault):
            advice = first.advice.removesuffix(",") or "begin the file with its header or its first row"
            raise InklingError(f"{name} line {line}: {first.detail}; {advice}.")
        rows_follow = False
        for _, fields in records:
            rows_follow = True
            if isinstance(fields, list) and len(fields) == len(first):
                sample.append(fields)
            if len(sample) == SAMPLE_ROWS:
                break
    header, notes = _guess_header(first, wanted)
    if header and not rows_follow:
        raise InklingError(f"{name} has a header and no rows: add rows, or give --no-header if line 1 is one.")
    columns = [cell.strip() for cell in first] if header else [f"column{i + 1}" for i in range(len(first))]
    if not header:
        sample.append(first)
    lengths = [sum(len(row[i]) for row in sample) for i in range(len(columns))]
    text, label, guesses = _choose_columns(name, columns, range(len(columns)), lengths, wanted, header)
    return replace(part, columns=tuple(columns), header=header, text=text, label=label), notes + guesses


def _guess_header(first: list[str], wanted: Wanted) -> tuple[bool, list[str]]:
    if wanted.header is not None:
        return wanted.header, []
    ours = {f"column{i + 1}" for i in range(len(first))} | {str(i + 1) for i in range(len(first))}
    cells = [cell.strip() for cell in first]
    named = [column for column in (wanted.text_column, wanted.label_column) if column is not None]
    if any(column in cells or column not in ours for column in named):
        return True, []
    known = {*wanted.roles.text_names, *wanted.roles.label_names, *OTHER_NAMES}
    if any(cell.lower() in known for cell in cells):
        return True, ["the first row is taken as the header (--no-header if it is not)"]
    return False, ["the first row is taken as data, not as a header (--header if it is one)"]


def _settle_json(part: Part, wanted: Wanted) -> tuple[Part, list[str]]:
    name = part.source.name
    objects: list[dict[str, Any]] = []
    fault: tuple[int, Fault] | None = None
    with closing(json_objects(part)) as found:
        for number, item in enumerate(found, start=1):
            if isinstance(item, dict):
                objects.append(item)
            elif fault is None and item is not BLANK:
                fault = number, item
            if len(objects) == SAMPLE_ROWS or (number >= SAMPLE_ROWS and not objects and fault):
                break
    columns = list(dict.fromkeys(key for item in objects for key in item))
    if not columns:
        if fault is not None:
            advice = fault[1].advice.removesuffix(",")
            raise InklingError(f"{name} line {fault[0]}: {fault[1].detail}; {advice}.")
        raise InklingError(f"{name} holds no rows: write one JSON object a line.")
    values = [[item[key] for item in objects if isinstance(item.get(key), str)] for key in columns]
    lengths = [sum(map(len, column)) / max(1, len(column)) for column in values]
    texts = [i for i, column in enumerate(values) if column]
    text, label, notes = _choose_columns(name, columns, texts, lengths, wanted, True)
    return replace(part, columns=tuple(columns), text=text, label=label), notes


def _settle_parquet(part: Part, wanted: Wanted) -> tuple[Part, list[str]]:
    import polars as pl

    name = part.source.name
    try:
        frame = scan_parquet(part)
        schema = frame.collect_schema()
        columns, kinds = schema.names(), schema.dtypes()
        texts = [i for i, kind in enumerate(kinds) if isinstance(kind, pl.String | pl.Categorical | pl.Enum)]
        total = frame.select(pl.len()).collect().item()
        sample = frame.select(columns[i] for i in texts).head(SAMPLE_ROWS).collect()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise damaged_parquet(part) from error
    if not total:
        raise InklingError(f"{name} holds no rows: write it again with some.")
    lengths = [0.0] * len(columns)
    for i in texts:
        lengths[i] = sum(len(value or "") for value in sample[columns[i]].to_list())
    text, label, notes = _choose_columns(name, columns, texts, lengths, wanted, True)
    if text not in texts:
        raise InklingError(
            f"{name} column '{printable(columns[text])}' holds {kinds[text]} where text was expected: name "
            f"a column of strings with --{wanted.roles.text}-column."
        )
    if label is not None and (kinds[label].is_nested() or kinds[label] == pl.Binary):
        raise InklingError(
            f"{name} column '{printable(columns[label])}' holds {kinds[label]} where {wanted.roles.label}s were "
            f"expected: name a column of strings or numbers with --{wanted.roles.label}-column."
        )
    return replace(part, columns=tuple(columns), text=text, label=label), notes

"""Writing the generated world to files, for trying things without a network: `inkling data make`."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from inkling.errors import UsageError
from inkling.runs.files import write_file
from inkling.text.grammar import grammar_text
from inkling.text.world import biographies, reviews

SIZES = {"text": 200_000, "reviews": 5_000, "biographies": 1_000}  # words, rows, people
ENDINGS = {"text": ".txt", "reviews": ".csv", "biographies": ".txt"}


def make_world(kind: str, out: Path, size: int | None, seed: int) -> list[Path]:
    """Writes one kind of generated text; the files that it made.

    Biographies come with their questions beside them: NAME.questions.tsv to learn from, NAME.held-out.tsv to test with.
    """
    if kind not in SIZES:
        raise UsageError(f"'{kind}' cannot be generated; choose from {', '.join(SIZES)}.")
    size = SIZES[kind] if size is None else size
    if size < 1:
        raise UsageError(f"--size is {size}; give at least 1.")
    if out.suffix != ENDINGS[kind]:
        raise UsageError(f"'{out}' should end in {ENDINGS[kind]}, for that is what is written.")
    if not out.parent.is_dir():
        raise UsageError(f"There is no folder {out.parent} to write {out.name} in; make it first.")
    generator = np.random.default_rng(seed)
    if kind == "text":
        contents = {out: grammar_text(generator, size)}
    elif kind == "reviews":
        contents = {out: _table(("text", "label"), reviews(generator, size))}
    else:
        people = biographies(generator, size)
        contents = {
            out: people.text,
            out.with_suffix(".questions.tsv"): _lines(people.pairs_train),
            out.with_suffix(".held-out.tsv"): _lines(people.pairs_held_out),
        }
    for path, content in contents.items():
        write_file(path, content)
    return list(contents)


def _table(header: tuple[str, str], rows: list[tuple[str, str]]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerows([header, *rows])
    return buffer.getvalue()


def _lines(pairs: Sequence[tuple[str, str]]) -> str:
    return "".join(f"{question}\t{answer}\n" for question, answer in pairs)

"""`inkling classify`: a verdict for every row, and why."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from inkling.cli.options import (
    BadRows,
    Encoding,
    Format,
    Header,
    Json,
    RunArgument,
    TextColumn,
    reading_labels,
)

if TYPE_CHECKING:
    from inkling.recipes.verdicts import Reasons, Verdicts

TEXT_CHARS, LABEL_CHARS = 90, 24


def classify(
    run: RunArgument,
    files: Annotated[
        list[str] | None,
        typer.Argument(help="Text: files, folders, - or data:NAME. [default: standard input]", show_default=False),
    ] = None,
    why: Annotated[bool, typer.Option("--why", help="Say which words and which sentence moved each verdict.")] = False,
    all_labels: Annotated[bool, typer.Option("--all", help="Give the probability of every label.")] = False,
    out: Annotated[
        str | None,
        typer.Option(help="Write here: .jsonl, .csv, .tsv or .parquet. [default: JSON lines on stdout]"),
    ] = None,
    unsure_below: Annotated[
        float | None, typer.Option(help="Mark verdicts below this probability. [default: what held-out text chose]")
    ] = None,
    text_column: TextColumn = None,
    encoding: Encoding = None,
    header: Header = None,
    format: Format = None,
    bad_rows: BadRows = None,
    json: Json = False,
) -> None:
    """Classify every line or row: label, probability, and with --why the reasons. Streams files of any size.

    On a terminal, lines for people; to a pipe or with --json, JSON lines.

    \b
    Examples:
      inkling classify runs/dan-reviews new.csv --text-column review --out verdicts.csv
      inkling classify runs/dan-reviews new.txt --why
      echo "A superb film." | inkling classify runs/dan-reviews --why
    """
    import time

    from inkling.recipes.labelled import open_labelled, recall_columns
    from inkling.recipes.verdicts import ClassificationWriter, choose_threshold, classify_rows
    from inkling.report.terminal import notice, progress
    from inkling.runs.loading import load_classifier
    from inkling.runs.run import Run

    files = files or ["-"]
    opened = Run.open(run)
    network = load_classifier(opened)
    threshold = choose_threshold(opened, unsure_below)
    if files == ["-"] and sys.stdin.isatty():
        notice("Reading lines from the terminal until Ctrl-D.")
    labelled = reading_labels(files, text_column, None, encoding, header, format, bad_rows, seed=0)
    recipe = {opened.path.absolute().name: opened.info["recipe"]}
    labelled, recalled = recall_columns(labelled, recipe, need_label=False)
    corpus = open_labelled(labelled, need_label=False)
    for note in [*recalled, *corpus.notes]:
        notice(note)
    if threshold is None:
        notice("No verdict is marked as unsure, for the run has no threshold of its own; give one with --unsure-below.")
    several = len(corpus.sources) > 1
    for_people = out is None and not json and sys.stdout.isatty()
    done, started = 0, time.perf_counter()
    writer = (
        _Lines(threshold, all_labels, several)
        if for_people
        else ClassificationWriter(out, network.labels, threshold, all_labels=all_labels, why=why, several_files=several)
    )
    with progress(corpus.size_bytes, "Classifying", "B") as bar, writer:

        def show(read_bytes: int) -> None:
            if not for_people:  # lines on the terminal show by themselves how far we are
                bar.update(read_bytes, texts=f"{done:,} ({done / (time.perf_counter() - started):,.0f}/s)")

        for found in classify_rows(network, corpus, why=why, on_bytes=show):
            writer.write(found)
            done += len(found)
    seconds = time.perf_counter() - started
    if corpus.intake.rows_reported:
        notice(corpus.intake.describe())
    if sys.stderr.isatty():
        texts = "1 text" if done == 1 else f"{done:,} texts"
        notice(f"{texts} in {seconds:.2f} s: {done / seconds:,.0f} a second.")


class _Lines:
    """Verdicts for people, a line each; below it, where reasons were asked for, the text with its words coloured."""

    def __init__(self, threshold: float | None, all_labels: bool, several_files: bool) -> None:
        self.threshold, self.all_labels, self.several_files = threshold, all_labels, several_files
        self.levels: tuple[float, ...] = ()

    def __enter__(self) -> _Lines:
        return self

    def __exit__(self, *failure: object) -> None:
        """Nothing to put in place."""

    def write(self, found: Verdicts) -> None:
        import numpy as np

        from inkling.explain.weighing import percent
        from inkling.report.errors import paint, scale
        from inkling.report.terminal import is_colourful, one_line, write_safely

        colourful = is_colourful(sys.stdout)
        if found.reasons and not self.levels:  # one scale for all that follows
            self.levels = scale(one.weighed for one in found.reasons)
        lines: list[str] = []
        verdicts = zip(found.rows, found.places.tolist(), found.probabilities.tolist(), strict=True)
        for i, (row, place, probability) in enumerate(verdicts):
            unsure = self.threshold is not None and probability < self.threshold
            where = f"{row.source} row {row.number}" if self.several_files else f"row {row.number}"
            label = _cut(one_line(found.labels[place]), LABEL_CHARS)
            said = f"{label}  {percent(probability)}{'  unsure' if unsure else ''}"
            said = paint(said, "2" if unsure else "1") if colourful else said
            text = "" if found.reasons else _cut(one_line(" ".join(row.text[: 4 * TEXT_CHARS].split())), TEXT_CHARS)
            lines.append(f"{one_line(where)}  {said}  {text}".rstrip())
            if self.all_labels:
                order = np.argsort(-found.log_probs[i], kind="stable").tolist()
                each = (f"{one_line(found.labels[j])} {percent(float(np.exp(found.log_probs[i, j])))}" for j in order)
                lines.append("  " + ", ".join(each))
            if found.reasons:
                lines += _told(found.reasons[i], self.levels, colourful)
        write_safely("".join(f"{line}\n" for line in lines), sys.stdout)


def _told(reasons: Reasons, levels: tuple[float, ...], colourful: bool) -> list[str]:
    from inkling.report.errors import draw_in_line
    from inkling.report.terminal import one_line

    lines = [draw_in_line(reasons.weighed, levels, colourful)]
    for label, words in ((reasons.verdict, reasons.pro), (reasons.runner_up, reasons.contra)):
        if words:
            named = ", ".join(f"{word.word} {abs(word.share):.2f}" for word in words)
            lines.append(one_line(f"  for {_cut(label, LABEL_CHARS)}: {named} nats"))
    told = reasons.sentence
    if told is not None and len(reasons.weighed.sentences) > 1:
        lines.append(
            one_line(f"  decided by ({told[1]:+.2f} nats): “{_cut(' '.join(told[0].split()), 2 * TEXT_CHARS)}”")
        )
    return lines


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"

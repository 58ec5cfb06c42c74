"""`inkling errors`: where a classifier errs, and why."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from inkling.cli.options import (
    BadRows,
    Encoding,
    Format,
    Header,
    Json,
    LabelColumn,
    Overlap,
    RunArgument,
    TextColumn,
    check_seed,
    print_json,
    reading_labels,
)


def errors(
    run: RunArgument,
    on: Annotated[str, typer.Option(help="Texts with labels to judge by: a file, a folder, - or data:NAME.")],
    html: Annotated[str | None, typer.Option(help="Write a page with the coloured texts here.")] = None,
    most: Annotated[int, typer.Option(help="Mistakes to keep with their texts, most confident first.")] = 50,
    faithfulness: Annotated[
        bool,
        typer.Option(
            "--faithfulness/--no-faithfulness",
            help="Measure whether the words shown matter: take them out of 200 texts.",
        ),
    ] = False,
    overlap: Overlap = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    encoding: Encoding = None,
    header: Header = None,
    format: Format = None,
    bad_rows: BadRows = None,
    seed: Annotated[int, typer.Option(help="Of random deletions.")] = 0,
    json: Json = False,
) -> None:
    """Show the mistakes of a classifier: classes, the most confident errors with their words, reasons, groups.

    \b
    Examples:
      inkling errors runs/dan-reviews --on test.csv
      inkling errors runs/dan-reviews --on test.csv --html mistakes.html --faithfulness
      inkling errors runs/dan-reviews --on test.csv --json > mistakes.json
    """
    from inkling.errors import UsageError
    from inkling.recipes.classification import Trainings
    from inkling.recipes.errors import find_mistakes, measure_faithfulness
    from inkling.recipes.labelled import read_for, recall_columns
    from inkling.report.errors import write, write_terminal
    from inkling.report.terminal import notice, print_table, progress
    from inkling.runs.loading import load_classifier
    from inkling.runs.run import Run

    check_seed(seed)
    if most < 1:
        raise UsageError(f"--most is {most}; give a whole number from 1.")
    config = reading_labels((on,), text_column, label_column, encoding, header, format, bad_rows, seed)
    opened = Run.open(run)
    network = load_classifier(opened)
    name, text_name = opened.path.absolute().name, "standard input" if on == "-" else Path(on).name or on
    config, notes = recall_columns(config, {name: opened.info["recipe"]})
    for sentence in notes:
        notice(sentence)
    text = read_for(network.labels, config, notice)
    notes += text.notes
    numbers = text.number.tolist()
    if len(text.origin.sources) > 1:
        numbers = list(range(1, len(text) + 1))
        notes.append(f"{text_name} has several files: rows are numbered through all of them, as they were read.")
        notice(notes[-1])
    log_probs = network.log_probs(text.texts).numpy()
    known = Trainings(overlap).acquaint(name, opened, text_name, text)
    for sentence in known.sentences(log_probs.argmax(axis=1) == text.truth):
        notes.append(sentence)
        notice(sentence)

    with progress(None, "Explaining", "texts") as bar:
        report = find_mistakes(
            network,
            text,
            log_probs,
            name=name,
            text_name=text_name,
            rows=numbers,
            most=most,
            on_explained=bar.update,
        )
    measured = measure_faithfulness(network, text.texts, seed) if faithfulness else None
    if html is not None:
        write(report, Path(html), measured, notes)
        notice(f"Wrote {html}.")
    if json:
        faithful = measured.to_json() if measured else None
        print_json({**report.to_json(), **known.to_json(), "notes": notes, "faithfulness": faithful})
        return
    write_terminal(report)
    if measured is not None:
        sys.stdout.write("\n")
        print_table(measured.table())

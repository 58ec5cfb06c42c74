"""`inkling surprise`: where along a text a model is surprised."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from inkling.cli.options import (
    BadRows,
    Encoding,
    Format,
    Header,
    Json,
    Normalise,
    RunArgument,
    TextColumn,
    reading,
)


def surprise(
    run: RunArgument,
    file: Annotated[str, typer.Argument(help="Text: a file, a folder, - or data:NAME.")],
    against: Annotated[str | None, typer.Option(help="A second run: show where each of the two knows more.")] = None,
    html: Annotated[str | None, typer.Option(help="Write a page with the shaded text here.")] = None,
    normalise: Normalise = None,
    text_column: TextColumn = None,
    encoding: Encoding = None,
    header: Header = None,
    format: Format = None,
    bad_rows: BadRows = None,
    json: Json = False,
) -> None:
    """Show how many bits each token of a text costs a model, unknown words spelled out.

    On a terminal the text is coloured; elsewhere the most surprising places are listed.

    \b
    Examples:
      inkling surprise runs/bigram-novel letter.txt
      inkling surprise runs/bigram-novel letter.txt --html letter.html
      inkling surprise runs/gru-novel letter.txt --against runs/ngram-novel
    """
    from inkling.errors import InklingError
    from inkling.explain.surprise import LONGEST_CHARS, Comparison, Surprise, compare
    from inkling.explain.surprise import surprise as find
    from inkling.recipes.data import documents, open_corpus
    from inkling.recipes.evaluation import distinct_names
    from inkling.report.surprise import is_coloured, put, write, write_terminal
    from inkling.report.terminal import notice, print_table, safe
    from inkling.runs.loading import load_language_model
    from inkling.text.normalise import Chain

    config = reading(text_column, encoding, header, format, bad_rows)
    chain = Chain.parse(normalise or "none")
    runs = [run] if against is None else [run, against]
    models = [load_language_model(path) for path in runs]
    corpus = open_corpus([file], config, keep_line_ends=True, keep_empty=True)
    for note in corpus.notes:
        notice(note)
    name = "standard input" if file == "-" else Path(file).name or file
    texts: list[str] = []
    size = 0
    for batch in documents(corpus):
        texts += batch
        size += sum(map(len, batch))
        if size > LONGEST_CHARS:  # before more of it fills the memory
            break
    if not size:
        raise InklingError(f"{name} is empty; give a file with text.")
    each = [
        find(model, texts, model_name=model_name, text_name=name, chain=chain)
        for model, model_name in zip(models, distinct_names(runs), strict=True)
    ]
    found: Surprise | Comparison = each[0] if against is None else compare(*each)
    if html is not None:
        write(found, Path(html))
        notice(f"Wrote {html}.")
    if json:
        if isinstance(found, Surprise):
            _print_long_json(found.to_json(), {"tokens": found.token_rows()})
        else:
            rows = {"units": found.unit_rows()}
            _print_long_json(found.to_json(), rows | {"lines": found.by_line().unit_rows()})
        return
    if html is None and is_coloured():
        write_terminal(found)
        put("\n")
    if isinstance(found, Surprise):
        if html is None and not is_coloured():
            print_table(found.table())
        else:
            put(safe(found.summary()) + "\n")
        return
    for table in found.tables():
        print_table(table)
        put("\n")
    put(safe(found.summary()) + "\n")


def _print_long_json(head: Mapping[str, Any], lists: Mapping[str, Iterable[Mapping[str, Any]]]) -> None:
    """One JSON document on stdout, a record a line, written as it is made: a megabyte of text has a million."""
    import json

    from inkling.runs.files import finite

    encode = json.JSONEncoder(ensure_ascii=False).encode  # made once: `dumps` would make one for every record

    def line(value: Any) -> str:
        text = encode(value)
        if text.isprintable():
            return text
        return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)

    parts = [f'"{key}": {line(finite(value))}' for key, value in head.items()]
    sys.stdout.write("{\n" + ",\n".join(parts))
    for key, rows in lists.items():
        sys.stdout.write(f',\n"{key}": [')
        before = "\n"
        for row in rows:
            sys.stdout.write(before + line(row))
            before = ",\n"
        sys.stdout.write("\n]")
    sys.stdout.write("\n}\n")

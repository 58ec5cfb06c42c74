"""What a corpus says of an answer, and how far answers can be believed: both in a child, for files that people gave."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

Say = Callable[[float | None, str], None]

MOST_LINES = 20  # with the name, shown
LINE_CHARS = 1_200


def answers(arguments: dict[str, Any], say: Say) -> dict[str, Any]:
    """`run` (a folder), `pairs`, `corpus` and `train_pairs` (paths), `names` of those that came (path → name),
    `reading` of the pairs, `beam`, `promised` → what `inkling evaluate RUN --pairs … --json` tells, its exhibits."""
    from dataclasses import replace

    from inkling.figures import Chart
    from inkling.models.answering import AnsweringConfig
    from inkling.pictures.markup import section
    from inkling.recipes.answers import AnswersRecipe, evaluate_answers
    from inkling.studio.naming import call, calling
    from inkling.text.questions import PairsConfig

    names = arguments.get("names", {})
    say(None, "Reading the questions …")
    with calling(names):
        recipe = AnswersRecipe(
            (arguments["run"],),
            tuple(arguments["pairs"]),
            tuple(arguments.get("train_pairs", ())),
            tuple(arguments.get("corpus", ())),
            PairsConfig(**arguments.get("reading", {})),
            AnsweringConfig(int(arguments.get("beam", 1))),
            float(arguments.get("promised", 0.9)),
        )
        found = evaluate_answers(
            recipe, on_progress=lambda done, total, _: say(done / total, f"{done:,} of {total:,} questions asked …")
        )
    results = []
    for one in found.results:
        heard = one.corroboration
        heard = replace(heard, name=call(heard.name, names)) if heard else None
        results.append(replace(one, text_name=call(one.text_name, names), corroboration=heard))
    found = replace(found, results=tuple(results), notes=tuple(call(note, names) for note in found.notes))
    charts: list[str] = []
    others: list[str] = []
    for exhibit in found.page().exhibits:
        (charts if isinstance(exhibit, Chart) else others).append(section(exhibit))
    return {"said": others[0], "charts": charts, "others": others[1:], "figures": found.to_json()}


def lines_about(arguments: dict[str, Any], say: Say) -> dict[str, Any]:
    """`corpus` (paths), `reading` of it, `names`, `subject`, `phrases` → how many lines there are, how many have the
    subject, the first of them, and which of the phrases stand in such a line."""
    from inkling.measure.corroboration import find_phrase, hear_witness
    from inkling.studio.naming import calling
    from inkling.text.corpus import Corpus

    subject = str(arguments["subject"])
    shown: list[str] = []
    named = 0

    def watched(blocks: Iterator[list[str]]) -> Iterator[list[str]]:
        nonlocal named
        for block in blocks:
            for line in block:
                if find_phrase(subject, line) >= 0:
                    named += 1
                    if len(shown) < MOST_LINES:
                        shown.append(cut_around(line, subject))
            yield block

    say(None, "Reading the corpus …")
    with calling(arguments.get("names", {})):
        corpus = Corpus(arguments["corpus"], **arguments.get("reading", {}))

        def read(done_bytes: int) -> None:
            say(min(1.0, done_bytes / max(1, corpus.size_bytes)), "Reading the corpus …")

        witness = hear_witness("", watched(corpus.text_blocks(on_bytes=read)), [subject], [arguments["phrases"]])
    beside = [phrase for phrase in arguments["phrases"] if witness.corroborates(0, phrase)]
    return {"line_count": witness.lines, "named": named, "lines": shown, "beside": beside}


def cut_around(line: str, subject: str, chars: int = LINE_CHARS) -> str:
    """A long line, or what stands around the subject in it."""
    if len(line) <= chars:
        return line
    start = max(0, min(line.find(subject) - chars // 2, len(line) - chars))
    return "… " * (start > 0) + line[start : start + chars] + " …" * (start + chars < len(line))

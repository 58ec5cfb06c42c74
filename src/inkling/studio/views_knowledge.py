"""What the page of knowledge shows, worked out without a page: what a run learned from, its answers, marked lines.

Files that a run names are looked for where it was trained, which is where the studio was started or where the folder of
runs lies. They are used only if they are byte for byte what the run learned from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inkling.errors import InklingError
from inkling.measure.corroboration import find_phrase
from inkling.studio.views_classify import Shaded

if TYPE_CHECKING:
    from inkling.models.answering import Answer
    from inkling.runs.run import Run

TEMPLATE_QUESTIONS = 5_000  # of the training, which say what a question is about
COLUMNS = ("text_column", "encoding", "header", "format", "bad_rows")


@dataclass(frozen=True)
class Files:
    """Files that a run learned from and that are as they were; `missing` says why there are none."""

    paths: tuple[str, ...] = ()
    names: str = ""
    reading: dict[str, Any] = field(default_factory=dict)
    missing: str = ""


@dataclass(frozen=True)
class Recalled:
    documents: Files
    pairs: Files
    asked: dict[str, str]  # the questions of the pairs with their answers


def recall(run: Run, folders: Sequence[Path]) -> Recalled:
    """What the run says it was trained on, as far as it is still there."""
    pairs, asked = _recall_pairs(run, folders)
    return Recalled(_recall_documents(run, folders), pairs, asked)


def _recall_documents(run: Run, folders: Sequence[Path]) -> Files:
    from inkling.text.corpus import Corpus

    recipe, data = run.info["recipe"], run.info["data"]
    named = tuple(recipe.get("files") or ())
    try:
        paths = _find(named, folders)
        reading = {key: recipe[key] for key in COLUMNS if recipe.get(key) is not None}
        corpus = Corpus(paths, keep_line_ends=True, keep_empty=True, **reading)
        # Lengths first: a file that has become something else is not read to the end.
        if corpus.size_bytes != data.get("bytes") or corpus.fingerprint() != data.get("sha256"):
            raise InklingError(f"{_names(named)} has changed since")
    except InklingError as error:
        return Files(missing=str(error).rstrip("."))
    return Files(paths, _names(named), reading)


def _recall_pairs(run: Run, folders: Sequence[Path]) -> tuple[Files, dict[str, str]]:
    from inkling.text.questions import PairsConfig, read_pairs

    recipe = run.info["recipe"]
    named = tuple(recipe.get("pairs") or ())
    columns = (recipe.get("question_column"), recipe.get("answer_column"))
    reading = PairsConfig(*columns, header=recipe.get("header"), bad_rows=recipe.get("bad_rows", "stop"))
    try:
        paths = _find(named, folders)
        pairs = read_pairs(paths, reading)
        if pairs.sha256 != run.info["data"].get("pairs_sha256"):
            raise InklingError(f"{_names(named)} has changed since")
    except InklingError as error:
        return Files(missing=str(error).rstrip(".")), {}
    return Files(paths, _names(named), asdict(reading)), dict(pairs.together())


def _find(named: Sequence[str], folders: Sequence[Path]) -> tuple[str, ...]:
    """Where the files are. Only plain files and folders of them: no pipes, no devices."""
    if not named:
        raise InklingError("the run names none")
    if "-" in named:
        raise InklingError("they came through standard input")
    found = []
    for name in named:
        if name.startswith("data:"):
            from inkling.recipes.data import resolve

            found.append(resolve(name))
            continue
        places = [folder / name for folder in folders]  # an absolute name stays what it is
        there = next((place for place in places if place.is_file() or place.is_dir()), None)
        if there is None:
            raise InklingError(f"{Path(name).name} is no longer there")
        found.append(str(there))
    return tuple(found)


def _names(paths: Iterable[str]) -> str:
    return ", ".join(Path(path).name for path in paths)


# ------------------------------------------------------------------------------------------------ asking


def ask(model: Any, question: str, beam: int) -> Answer:
    """What `inkling answer --beam N` says to one question."""
    from inkling.models.answering import AnsweringConfig, answer_questions
    from inkling.text.questions import LINE_ENDS, MARK

    question = question.strip()
    if not question:
        raise InklingError("There is no question yet; write one.")
    if MARK in question or LINE_ENDS.search(question):
        raise InklingError(
            "The question holds a line end or the character U+001A, which would end it early; take it out."
        )
    return next(iter(answer_questions(model, [question], AnsweringConfig(beam))))


def candidates(answer: Answer) -> list[tuple[str, float]]:
    """The answer and its runners-up with their probabilities."""
    import math

    others = [(text, min(1.0, math.exp(log_prob))) for text, log_prob in answer.others]
    return [(answer.text, answer.confidence), *others]


def subject(question: str, known: Iterable[str]) -> str:
    """What a question is about, by the template of known ones; nothing where it has none."""
    from itertools import islice

    from inkling.text.questions import subject_of

    question = question.strip()
    found = subject_of([*islice(known, TEMPLATE_QUESTIONS), question])[-1]
    return "" if found == question else found


# ------------------------------------------------------------------------------------------------ the corpus


def say_heard(heard: dict[str, Any], name: str, about: str, answer: str) -> str:
    """In one sentence, whether the corpus has the answer beside the name."""
    if not heard["named"]:
        return f"No line of {name} has “{about}”: what the model says of it, it cannot have from there."
    lines = f"{heard['named']:,} of {heard['line_count']:,} lines of {name} {'has' if heard['named'] == 1 else 'have'}"
    if answer.strip() in heard["beside"]:
        return f"{lines} “{about}”, and “{answer}” stands beside it: the corpus bears the answer out."
    return f"{lines} “{about}”, and “{answer}” stands in none of them: the corpus does not bear it out."


def mark_line(line: str, about: str, answer: str, others: Iterable[str] = ()) -> list[Shaded]:
    """A line of the corpus with the name underlined, the answer in one colour and other candidates in the other."""
    shades = {other: ("a2", "another candidate") for other in others if other.strip()}
    shades |= {answer: ("f3", "the answer")} if answer.strip() else {}
    shades |= {about: ("u", "what the question is about")} if about.strip() else {}
    if not shades:
        return [Shaded(line)]
    pieces: list[Shaded] = []
    place = 0
    while found := [
        (start, -len(one), one) for one in shades if (start := find_phrase(one, line, place, whole=one == about)) >= 0
    ]:
        start, _, phrase = min(found)  # the first; of those that begin there, the longest
        if start > place:
            pieces.append(Shaded(line[place:start]))
        pieces.append(Shaded(phrase, *shades[phrase]))
        place = start + len(phrase)
    return [*pieces, Shaded(line[place:])] if place < len(line) else pieces

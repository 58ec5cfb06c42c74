"""Questions and their answers: a row of a table each, and one line of text for a language model.

    question␚ answer⏎          ␚ is MARK, the ASCII character "substitute": what is missing stands behind it

A model answers by going on behind the mark until the line ends. The mark is one byte that no ordinary text holds, so it
needs no special token, and the same prompt works in any program. `spans` cuts parts out of running text with the same
mark. White space around a question or an answer is no part of it.

    rows in = rows used + rows reported

A row without a question, or without an answer where one is needed, is left out and counted. One whose question or
answer holds the mark or a line end, which would end it early, stops the reading or is left out (`bad_rows`).

Tables are read as all others (`corpus`), but which column is which is decided for questions: by name, else the first
of two columns is the question. Plain text and standard input are read as tables with tabs, so that a file of question,
tab, answer never has its answers taken for a part of the questions.

`subject_of` finds what questions of one template are about. The words that nine in ten of them begin with, and nine in
ten of those end with, are the template; what stands between is the subject: X in "Where was X born?". A template counts
if a quarter of all questions share its first word.

Left out: several right answers to one question, and templates with more than one gap.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from inkling.errors import InklingError
from inkling.text.columns import LABEL_NAMES, TEXT_NAMES, Roles
from inkling.text.corpus import EXAMPLES_KEPT, Corpus, Intake, RowProblem
from inkling.text.files import Progress
from inkling.text.folders import find_format
from inkling.text.tables import EMPTY, NO_LABEL, NO_TEXT

MARK = "\x1a"
END = "\n"
LINE_ENDS = re.compile(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
WORD = re.compile(r"\w+|[^\w\s]")
TEMPLATE_SHARE = 0.25  # of all questions begin with the first word of a template
COMMON_SHARE = 0.9  # of the questions of a template have its words

QUESTION_NAMES = ("question", "questions", "q", "query", "prompt", "input")
ANSWER_NAMES = ("answer", "answers", "a", "target", "output", "response", "completion", "label")
ROLES = Roles(
    text="question",
    label="answer",
    text_names=(*QUESTION_NAMES, *(name for name in TEXT_NAMES if name not in QUESTION_NAMES)),
    label_names=(*ANSWER_NAMES, *(name for name in LABEL_NAMES if name not in ANSWER_NAMES)),
    in_order=True,
)
NAMES_OF_FAULTS = {EMPTY.category: "empty question", NO_TEXT.category: "no question", NO_LABEL.category: "no answer"}


def prompt(question: str) -> str:
    """What a model is given to go on from."""
    return question + MARK


def reply(answer: str) -> str:
    """What it goes on with, less the end of the line. Inside a text, too, most words have a space before them, and
    pieces such as " Rome" are then the same in both."""
    return f" {answer}"


def example(question: str, answer: str) -> str:
    """The whole line."""
    return prompt(question) + reply(answer) + END


@dataclass(frozen=True)
class PairsConfig:
    """How a table of questions and answers is read; what is not said is guessed, and the guess is said."""

    question_column: str | None = None
    answer_column: str | None = None
    encoding: str | None = None
    header: bool | None = None
    format: str | None = None
    bad_rows: Literal["stop", "skip"] = "stop"


class Asked(NamedTuple):
    """One row; `answer` is None where answers are not looked at."""

    question: str
    answer: str | None
    source: str
    number: int  # of the row, from 1; a header is not counted
    unit: str  # what a row is called there

    @property
    def place(self) -> str:
        return f"{self.source} {self.unit} {self.number:,}"


@dataclass(frozen=True)
class Pairs:
    """All rows of some files. `answers` is None where they were not looked at."""

    rows: tuple[Asked, ...]
    has_answers: bool
    intake: Intake
    files: tuple[str, ...] = ()
    sha256: str = ""
    notes: tuple[str, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def questions(self) -> tuple[str, ...]:
        return tuple(row.question for row in self.rows)

    @property
    def answers(self) -> tuple[str, ...] | None:
        return tuple(str(row.answer) for row in self.rows) if self.has_answers else None

    def together(self) -> list[tuple[str, str]]:
        """Question and answer of each row; none where answers were not looked at."""
        return [(row.question, row.answer) for row in self.rows if row.answer is not None]

    @property
    def names(self) -> str:
        """The files, for a sentence."""
        return ", ".join("standard input" if name == "-" else Path(name).name for name in self.files)

    @property
    def rows_reported(self) -> int:
        return self.intake.rows_reported

    def place(self, row: int) -> str:
        """Where a row stands, such as "dev.tsv row 7"."""
        return self.rows[row].place

    def describe(self) -> dict[str, Any]:
        """For run.json."""
        return {
            "files": list(self.files),
            "sha256": self.sha256,
            "rows": len(self),
            "rows_in": self.intake.rows_in,
            "rows_reported": self.rows_reported,
            "notes": list(self.notes),
        }


class QuestionFiles:
    """The rows of some files, in order, as often as wanted. Files are checked and columns settled when it is made."""

    def __init__(
        self, paths: Sequence[str | Path] | str | Path, config: PairsConfig | None = None, *, need_answers: bool = True
    ) -> None:
        self.config, self.need_answers = config or PairsConfig(), need_answers
        self.intake = Intake()
        self.paths = tuple(map(str, [paths] if isinstance(paths, str | Path) else paths))
        self._corpora = [self._open(path) for path in self.paths]
        if not self._corpora:
            raise InklingError("No questions were given: name a file of questions, or - for standard input.")

    def _open(self, path: str) -> Corpus:
        known = None if path == "-" else find_format(path)
        is_plain = known in (None, "txt") and not (path != "-" and Path(path).is_dir())
        config = self.config
        return Corpus(
            path,
            text_column=config.question_column,
            label_column=config.answer_column if self.need_answers else None,
            encoding=config.encoding,
            header=config.header,
            format=config.format or ("tsv" if is_plain else None),
            need_label=self.need_answers,
            bad_rows=config.bad_rows,
            roles=ROLES,
        )

    @property
    def notes(self) -> list[str]:
        """What was guessed, in sentences."""
        return [note for corpus in self._corpora for note in corpus.notes]

    @property
    def sources(self) -> list[str]:
        return [name for corpus in self._corpora for name in corpus.sources]

    @property
    def size_bytes(self) -> int:
        return sum(corpus.size_bytes for corpus in self._corpora)

    def fingerprint(self) -> str:
        """SHA-256 of the raw bytes of all files; of one file, that of the file."""
        found = [corpus.fingerprint() for corpus in self._corpora]
        return found[0] if len(found) == 1 else hashlib.sha256("".join(found).encode()).hexdigest()

    def batches(self, size_chars: int = 1 << 16, on_bytes: Progress | None = None) -> Iterator[list[Asked]]:
        """Rows in lists of about `size_chars` characters of questions; `intake` is complete after the last."""
        intake = Intake()
        done_bytes = 0
        for corpus in self._corpora:
            before = done_bytes
            step: Progress | None = None if on_bytes is None else (lambda count, base=before: on_bytes(base + count))
            bad: Counter[str] = Counter()
            for rows in corpus.batches(size_chars, step):
                found: list[Asked] = []
                for row in rows:
                    unit = "line" if (self.config.format or find_format(row.source)) == "jsonl" else "row"
                    answer = row.label if self.need_answers else None
                    asked = Asked(row.text.strip(), answer, row.source, row.number, unit)
                    fault = _fault(asked)
                    if fault is None:
                        found.append(asked)
                        continue
                    if self.config.bad_rows == "stop":
                        raise InklingError(
                            f"{asked.place}: {fault}, and would end there for a model; take it out, or leave such rows "
                            "out with --bad-rows skip."
                        )
                    bad[fault] += 1
                    if len(intake.examples) < EXAMPLES_KEPT:
                        intake.examples.append(RowProblem(asked.source, asked.number, fault, unit))
                if found:
                    yield found
            done_bytes += corpus.size_bytes
            _add(intake, corpus.intake, bad)
        self.intake = intake


def read_pairs(
    paths: Sequence[str | Path] | str | Path, config: PairsConfig | None = None, *, need_answers: bool = True
) -> Pairs:
    """All rows; refused where none can be used. Without `need_answers` the answers are not even looked at."""
    files = QuestionFiles(paths, config, need_answers=need_answers)
    rows = tuple(row for batch in files.batches() for row in batch)
    if not rows:
        said = files.intake.describe()
        wanted = "questions with answers" if need_answers else "questions"
        raise InklingError(f"{', '.join(files.sources)} has no row that can be used ({said[:-1]}): give {wanted}.")
    notes = [*files.notes, *([files.intake.describe()] if files.intake.rows_reported else [])]
    return Pairs(rows, need_answers, files.intake, files.paths, files.fingerprint(), tuple(notes))


def _fault(row: Asked) -> str | None:
    for what, text in (("question", row.question), ("answer", row.answer or "")):
        if MARK in text:
            return f"the {what} holds the character U+001A, which stands between question and answer"
        if LINE_ENDS.search(text):
            return f"the {what} holds a line end"
    return None


def _add(intake: Intake, corpus: Intake, bad: Counter[str]) -> None:
    """Adds what became of the rows of one corpus, in the words of questions and answers."""
    intake.rows_in += corpus.rows_in
    intake.rows_used += corpus.rows_used - bad.total()
    for reason, count in corpus.problems_by_reason.items():
        intake.problems_by_reason[NAMES_OF_FAULTS.get(reason, reason)] += count
    intake.problems_by_reason.update(bad)
    intake.examples += corpus.examples[: EXAMPLES_KEPT - len(intake.examples)]


# ------------------------------------------------------------------------------------------- subjects


class Template(NamedTuple):
    """The words before and after the gap."""

    before: tuple[str, ...]
    after: tuple[str, ...]


def subject_of(questions: Sequence[str]) -> list[str]:
    """What each question is about: the part that its template leaves open; without a template the question itself."""
    cut = [list(WORD.finditer(question)) for question in questions]
    words_of = dict(zip(questions, ([match.group() for match in matches] for matches in cut), strict=True))
    templates = _templates(list(words_of.values()))  # a question that is asked twice says nothing twice
    found: list[str] = []
    for question, matches in zip(questions, cut, strict=True):
        words = words_of[question]
        template = templates.get(words[0]) if words else None
        if template is None or not _fits(words, template):
            found.append(question)
            continue
        inside = matches[len(template.before) : len(matches) - len(template.after)]
        found.append(question[inside[0].start() : inside[-1].end()])
    return found


def _templates(cut: Sequence[list[str]]) -> dict[str, Template]:
    """By their first word."""
    firsts = Counter(words[0] for words in cut if words)
    found = {}
    for first, count in firsts.items():
        if count < 2 or count < TEMPLATE_SHARE * len(cut):
            continue
        group = [words for words in cut if words and words[0] == first]
        before = _common_start(group)
        after = _common_start(
            [words[: len(before) - 1 : -1] for words in group if tuple(words[: len(before)]) == before]
        )
        found[first] = Template(before, after[::-1])
    return found


def _common_start(group: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """The words that at least `COMMON_SHARE` of all begin with, less the last where nothing would be left behind."""
    found: list[str] = []
    left = list(group)
    while True:
        following = Counter(words[len(found)] for words in left if len(words) > len(found) + 1)
        word, count = following.most_common(1)[0] if following else ("", 0)
        if count < 2 or count < COMMON_SHARE * len(group):
            return tuple(found)
        found.append(word)
        left = [words for words in left if len(words) > len(found) and words[len(found) - 1] == word]


def _fits(words: Sequence[str], template: Template) -> bool:
    before, after = template
    is_long = len(words) > len(before) + len(after)
    return is_long and tuple(words[: len(before)]) == before and tuple(words[len(words) - len(after) :]) == after

"""Texts with labels for a classifier: every row accounted for, every oddity said in one sentence.

    rows in = texts + rows reported

A label is the content of its column without the white space around it, and nothing is guessed about it: "1" and "1.0",
"pos" and "Pos" are different classes, and that is said. What cannot be learned from (one class, one row, an id in
place of a label) is refused; what is merely odd (contradicting duplicates, a class of one row, a class of 95 % of all
rows, texts that look like numbers) is kept and noted.

Two texts are the same when they are equal after folding case and white space. Such texts are looked for by 64-bit
hashes of their letters, and what agrees in these is compared letter by letter, so nothing is found by chance.

    split    of each class c about share · n_c rows are held out; the shares of a class are rounded so that their sum
             over the first classes is never off by more than a half; the same text never stands on both sides; every
             class keeps a row to learn from

Measured on the 25,000 training reviews of IMDB: reading 1.1 s (0.8 s of it unpacking), everything here 0.1 s.
Left out: texts that are nearly the same, several labels for one text, and labels that are numbers to be predicted.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import groupby
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from inkling.errors import InklingError, UsageError
from inkling.recipes.data import TextConfig, open_corpus
from inkling.text.corpus import Corpus
from inkling.text.files import printable
from inkling.text.folders import find_format
from inkling.text.tables import NO_LABEL

Rows = NDArray[np.int64]
Say = Callable[[str], None]

UNEVEN_SHARE = 0.95  # of the rows, in one class
STRANGE_SHARE = 0.95  # of the texts, that look like numbers or ids
MANY_NUMBERS = 20  # more different numbers than this are perhaps no classes
SHOWN_CHARS = 40
ID_CHARS = 64
BEGINNING_BYTES = 128
EXAMPLES = 3

_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]{1,3})?")
_LETTER = re.compile(r"[^\W\d_]")
_ID = re.compile(r"(?a:[\w.:-]*[0-9][\w.:-]*)")
_ABSENT = {"nan", "NaN", "NA", "N/A", "n/a", "<NA>", "#N/A", "null", "NULL", "None", "?", "-"}
_ASCII_SPACES = bytes(code for code in range(128) if chr(code).isspace())


@dataclass(frozen=True)
class LabelledConfig:
    """Where the texts and labels are and how they are read."""

    files: tuple[str, ...] = ()
    held_out: tuple[str, ...] = ()
    held_out_share: float = 0.1
    text_column: str | None = None
    label_column: str | None = None
    encoding: str | None = None
    header: bool | None = None
    format: str | None = None
    bad_rows: Literal["stop", "skip"] = "stop"
    seed: int = 0


@dataclass(frozen=True)
class Origin:
    """The files that were read, exactly which bytes they were, and what became of their rows."""

    files: tuple[str, ...]
    sources: tuple[str, ...]
    units: tuple[str, ...]  # what a row of each source is called
    sha256: str
    size_bytes: int
    rows_in: int
    rows_reported: int
    rows_without_label: int  # of those reported
    unknown_labels: dict[str, int] = field(default_factory=dict)  # rows left out because the model lacks their class


@dataclass(frozen=True)
class LabelledText:
    """Texts, their classes, and where each stands."""

    texts: list[str]
    labels: tuple[str, ...]  # C
    truth: Rows  # N, indexes into labels
    source: NDArray[np.int32]  # N, indexes into origin.sources
    number: Rows  # N, of the row in its source, from 1
    groups: Rows  # N, the first text here that is the same
    origin: Origin
    notes: list[str]

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def counts(self) -> Rows:
        """Rows of each class."""
        return np.bincount(self.truth, minlength=len(self.labels))

    def place(self, row: int) -> str:
        source = self.source[row]
        return f"{self.origin.sources[source]} {self.origin.units[source]} {self.number[row]:,}"

    def places(self, first: int, second: int) -> str:
        if len(self.origin.sources) > 1:
            return f"{self.place(first)} and {self.place(second)}"
        return f"{self.origin.units[0]}s {self.number[first]:,} and {self.number[second]:,}"

    def take(self, rows: Rows) -> LabelledText:
        """Some of the texts, with all of the labels."""
        _, first, inverse = np.unique(self.groups[rows], return_index=True, return_inverse=True)
        return replace(
            self,
            texts=[self.texts[row] for row in rows.tolist()],
            truth=self.truth[rows],
            source=self.source[rows],
            number=self.number[rows],
            groups=first[inverse],
        )

    def describe(self) -> dict[str, Any]:
        """For run.json."""
        return {
            "files": list(self.origin.files),
            "sha256": self.origin.sha256,
            "rows": len(self),
            "bytes": self.origin.size_bytes,
            "rows_in": self.origin.rows_in,
            "rows_reported": self.origin.rows_reported,
            "unknown_labels": dict(self.origin.unknown_labels),
            "labels": dict(zip(self.labels, self.counts.tolist(), strict=True)),
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class LabelledParts:
    """What is trained on and what it is judged by. `whole` is what the files to train on hold."""

    config: LabelledConfig
    whole: LabelledText
    train: LabelledText
    held_out: LabelledText
    notes: list[str]

    def describe(self) -> dict[str, Any]:
        """For run.json, with the keys of `LanguageText.describe`."""
        named = bool(self.config.held_out)
        return {
            **self.whole.describe(),
            "held_out": list(self.config.held_out) if named else f"{self.config.held_out_share:.0%} of each class",
            "held_out_sha256": self.held_out.origin.sha256 if named else None,
            "held_out_rows": len(self.held_out),
            "notes": list(self.notes),
        }


# ------------------------------------------------------------------------------------------- reading


def read_labelled(config: LabelledConfig, say: Say) -> LabelledText:
    """The rows of `config.files`; refused with a sentence when no classifier can be trained on them."""
    found = _read(config, say)
    _refuse_useless(found, config)
    return _add_notes(found, _look_over(found), say)


def read_for(labels: Sequence[str], config: LabelledConfig, say: Say) -> LabelledText:
    """The rows of `config.files` for a model that knows `labels`. Rows of other classes are left out and reported:
    no model can get them right, so they say nothing about this one."""
    found = _read(config, say)
    rows_in, names = found.origin.rows_in, _names(found)
    if not found.texts:
        raise _no_rows(found, config)
    numbers = {label: i for i, label in enumerate(labels)}
    translate = np.array([numbers.get(label, -1) for label in found.labels], np.int64)
    truth = translate[found.truth]
    strangers = np.flatnonzero(truth < 0)
    unknown = {found.labels[i]: int(n) for i, n in enumerate(found.counts) if translate[i] < 0}
    if len(strangers) == len(found):
        raise InklingError(
            f"{names} has no row with a label that the model knows: it has {_list_labels(found.labels)} and the model "
            f"{_list_labels(labels)}{_resemblance(unknown, labels)}; name the right column with --label-column."
        )
    notes = []
    if len(strangers):
        shown = ", ".join(f"{_shown(label)} {count:,}" for label, count in Counter(unknown).most_common(EXAMPLES))
        more = f" and {len(unknown) - EXAMPLES:,} more" if len(unknown) > EXAMPLES else ""
        notes.append(
            f"{_count(len(strangers), 'row')} of {rows_in:,} left out of all figures because the model does not know "
            f"the label ({shown}{more}; first: {found.place(int(strangers[0]))}){_resemblance(unknown, labels)}."
        )
    kept = found.take(np.flatnonzero(truth >= 0)) if len(strangers) else found
    origin = replace(
        kept.origin,
        rows_reported=kept.origin.rows_reported + len(strangers),
        unknown_labels=dict(sorted(unknown.items())),
    )
    kept = replace(kept, labels=tuple(labels), truth=translate[kept.truth], origin=origin)
    absent = [label for label, count in zip(labels, kept.counts, strict=True) if not count]
    if absent:
        notes.append(f"{_count(len(absent), 'class')} of the model without a row in {names}: {_list_labels(absent)}.")
    notes += [note for note in (_note_strange_texts(kept), _note_contradictions(kept)) if note]
    return _add_notes(kept, notes, say)


def read_parts(config: LabelledConfig, say: Say) -> LabelledParts:
    """What to train on and what to hold out: named files, or a share of each class."""
    _check_share(config.held_out_share)
    whole = read_labelled(config, say)
    if config.held_out:
        held_out = read_for(whole.labels, replace(config, files=config.held_out), say)
        overlap = find_overlap(whole, held_out)
        more = [overlap.sentence()] if overlap.count else []
        notes = [*whole.notes, *held_out.notes, *more]
        train = whole
    else:
        train_rows, held_rows = split(whole, config.held_out_share, config.seed)
        if not len(held_rows):
            raise InklingError(
                f"No row of {_names(whole)} can be held out, for every class has one text only: "
                "give more rows, or name held-out rows with --held-out."
            )
        wanted = config.held_out_share * len(whole)
        more = []
        if wanted >= 2 and len(held_rows) < wanted / 2:
            more = [
                f"{_count(len(held_rows), 'row')} held out where {wanted:,.0f} were meant: classes of one text are "
                "not held out, and equal texts stay together."
            ]
        notes = [*whole.notes, *more]
        train, held_out = whole.take(train_rows), whole.take(held_rows)
    for note in more:
        say(note)
    return LabelledParts(config, whole, train, held_out, notes)


def _read(config: LabelledConfig, say: Say) -> LabelledText:
    if config.text_column is not None and config.text_column == config.label_column:
        raise UsageError(
            f"--text-column and --label-column both name '{printable(config.text_column)}': give two different columns."
        )
    if not config.files:
        raise UsageError("No texts were given: name a file with texts and labels, or a set such as data:imdb/train.")
    corpus = open_labelled(config)
    texts: list[str] = []
    codes, numbers, sources = array("q"), array("q"), array("i")
    known: dict[str, int] = {}
    names = {name: i for i, name in enumerate(dict.fromkeys(corpus.sources))}
    for batch in corpus.batches():
        texts += [row.text for row in batch]
        # A label is kept once, not once a row: with a million rows that is much of the memory.
        codes.extend([known.setdefault(str(row.label), len(known)) for row in batch])
        numbers.extend([row.number for row in batch])
        for name, rows in groupby(batch, key=lambda row: row.source):
            sources.extend([names[name]] * sum(1 for _ in rows))
    labels = sort_labels(known)
    order = np.zeros(len(labels), np.int64)
    for place, label in enumerate(labels):
        order[known[label]] = place
    # Said before anything is refused: which columns were taken is the first thing to look at then.
    notes = [*corpus.notes, *([corpus.intake.describe()] if corpus.intake.rows_reported else [])]
    for note in notes:
        say(note)
    return LabelledText(
        texts,
        labels,
        order[np.array(codes, np.int64)],
        np.array(sources, np.int32),
        np.array(numbers, np.int64),
        group_texts(texts),
        _origin(config, corpus, tuple(names)),
        notes,
    )


def open_labelled(config: LabelledConfig) -> Corpus:
    how = TextConfig(
        text_column=config.text_column,
        encoding=config.encoding,
        header=config.header,
        format=config.format,
        bad_rows=config.bad_rows,
    )
    return open_corpus(config.files, how, label_column=config.label_column, need_label=True)


def _origin(config: LabelledConfig, corpus: Corpus, sources: tuple[str, ...]) -> Origin:
    units = tuple("line" if (config.format or find_format(name)) == "jsonl" else "row" for name in sources)
    intake = corpus.intake
    return Origin(
        tuple(config.files),
        sources,
        units,
        corpus.fingerprint(),
        corpus.size_bytes,
        intake.rows_in,
        intake.rows_reported,
        intake.problems_by_reason[NO_LABEL.category],
    )


def sort_labels(labels: Iterable[str]) -> tuple[str, ...]:
    """Numbers in the order of their values, anything else by code point."""
    found = sorted(labels)
    if all(_NUMBER.fullmatch(label) for label in found):
        found.sort(key=Decimal)
    return tuple(found)


def _add_notes(found: LabelledText, notes: Sequence[str], say: Say) -> LabelledText:
    for note in notes:
        say(note)
    return replace(found, notes=[*found.notes, *notes])


# ------------------------------------------------------------------------------------------- refusing


def _refuse_useless(found: LabelledText, config: LabelledConfig) -> None:
    rows, classes = len(found), len(found.labels)
    names = _names(found)
    if not rows:
        raise _no_rows(found, config)
    if rows == 1:
        raise InklingError(
            f"{names} has one row that can be used ({found.place(0)}): a classifier needs some rows of each of two or "
            "more classes."
        )
    if classes == 1:
        is_hidden = found.labels[0] == "-1"
        why = " (-1 often stands for a label that was not published)" if is_hidden else ""
        raise InklingError(
            f"All {rows:,} rows of {names} have the label {_shown(found.labels[0])}{why}: a classifier needs at least "
            "two classes, so add rows of another one or name the right column with --label-column."
        )
    if classes > 2 and 2 * classes > rows:
        what = "measured numbers or an id" if _are_numbers(found.labels) else "an id or free text"
        column = f"'{printable(config.label_column)}'" if config.label_column is not None else "that was taken"
        raise InklingError(
            f"{names} has {classes:,} different labels in {rows:,} rows, such as {_shown(found.labels[0])} and "
            f"{_shown(found.labels[-1])}: the label column {column} looks like {what} rather than a class, so name "
            "another with --label-column or give at least two rows a class."
        )


def _no_rows(found: LabelledText, config: LabelledConfig) -> InklingError:
    origin = found.origin
    names = _names(found)
    if not origin.rows_in:
        return InklingError(f"{names} has no rows: give a file with texts and labels.")
    if origin.rows_without_label == origin.rows_in:
        column = f" '{printable(config.label_column)}'" if config.label_column is not None else ""
        return InklingError(
            f"No row of {names} has a label ({_count(origin.rows_in, 'row')} read): the label column{column} is empty, "
            "so name another with --label-column."
        )
    return InklingError(
        f"{names} has no row that can be used (of {_count(origin.rows_in, 'row')} read, {origin.rows_without_label:,} "
        f"without label and {origin.rows_in - origin.rows_without_label:,} without text or not readable): name the "
        "columns with --text-column and --label-column."
    )


def _check_share(share: float) -> None:
    if not 0 < share < 1:
        raise UsageError(f"--held-out-share is {share:g}; give a share between 0 and 1.")


# ------------------------------------------------------------------------------------------- noting


def _look_over(found: LabelledText) -> list[str]:
    notes = [
        _note_alike_labels(found),
        _note_absent_labels(found),
        _note_numbers(found),
        _note_small_classes(found),
        _note_uneven(found),
        _note_strangers_among_files(found),
        _note_strange_texts(found),
        _note_contradictions(found),
        _note_repetitions(found),
    ]
    return [note for note in notes if note]


def _note_alike_labels(found: LabelledText) -> str:
    """Labels that a person would read as one."""
    alike: dict[str | Decimal, list[int]] = {}
    for i, label in enumerate(found.labels):
        alike.setdefault(_same_label(label), []).append(i)
    pairs = [members for members in alike.values() if len(members) > 1]
    if not pairs:
        return ""
    shown = " and ".join(
        f"{_shown(found.labels[i])} ({_count(int(found.counts[i]), 'row')})" for i in pairs[0][:EXAMPLES]
    )
    more = f", and {len(pairs) - 1:,} more such groups," if len(pairs) > 1 else ""
    return (
        f"The labels {shown}{more} differ only in how they are written, and count as different classes: write them "
        "the same way if they are one."
    )


def _note_absent_labels(found: LabelledText) -> str:
    for label, count in zip(found.labels, found.counts.tolist(), strict=True):
        if label in _ABSENT:
            return (
                f"{_count(count, 'row')} with the label {_shown(label)}, which counts as a class: leave such rows out "
                "if it means that the label is missing."
            )
    return ""


def _note_numbers(found: LabelledText) -> str:
    count = len(found.labels)
    if count <= MANY_NUMBERS or not _are_numbers(found.labels):
        return ""
    low, high = Decimal(found.labels[0]), Decimal(found.labels[-1])
    if high - low == count - 1 and all(label.lstrip("+-").isdigit() for label in found.labels):
        return ""  # numbered from first to last without a gap: names of classes
    return (
        f"The labels are {count:,} different numbers from {_shown(found.labels[0])} to {_shown(found.labels[-1])}, and "
        "each counts as a class of its own without order: if they are measurements, put them into a few classes first."
    )


def _note_small_classes(found: LabelledText) -> str:
    single = np.flatnonzero(found.counts == 1)
    if not len(single):
        return ""
    which = f"(first: {_shown(found.labels[single[0]])})"
    if len(single) == 1:
        return f"1 of {len(found.labels):,} classes has a single row {which}: it is trained on and never held out."
    return (
        f"{len(single):,} of {len(found.labels):,} classes have a single row each {which}: these are trained on and "
        "never held out."
    )


def _note_uneven(found: LabelledText) -> str:
    largest = int(found.counts.argmax())
    share = found.counts[largest] / len(found)
    if share < UNEVEN_SHARE:
        return ""
    return (
        f"{share:.1%} of the rows have the label {_shown(found.labels[largest])}: always saying so is right that "
        "often, so judge by the figures of each class."
    )


def _note_strangers_among_files(found: LabelledText) -> str:
    """Files that name their classes differently: "0" and "1" here, "neg" and "pos" there."""
    sources = found.origin.sources
    sets = [set(np.unique(found.truth[found.source == i]).tolist()) for i in range(len(sources))]
    for i in range(1, len(sources)):
        if len(sets[0]) > 1 and len(sets[i]) > 1 and not sets[0] & sets[i]:
            return (
                f"{sources[0]} and {sources[i]} have no label in common "
                f"({_list_labels([found.labels[k] for k in sorted(sets[0])])}; "
                f"{_list_labels([found.labels[k] for k in sorted(sets[i])])}): write their labels the same way if "
                "they are the same classes."
            )
    return ""


def _note_strange_texts(found: LabelledText) -> str:
    strange = sum(1 for text in found.texts if _looks_like_number(text))
    if strange < STRANGE_SHARE * len(found):
        return ""
    first = next(text for text in found.texts if _looks_like_number(text))
    return (
        f"{strange:,} of {_count(len(found), 'text')} look like numbers or ids, such as {_shown(first)}: name the "
        "column of the texts with --text-column if this is not it."
    )


def _looks_like_number(text: str) -> bool:
    return _LETTER.search(text) is None or (len(text) <= ID_CHARS and _ID.fullmatch(text.strip()) is not None)


def _note_contradictions(found: LabelledText) -> str:
    pairs, _, firsts = _text_label_pairs(found)
    groups, labels_each = np.unique(pairs // max(1, len(found.labels)), return_counts=True)
    torn = groups[labels_each > 1]
    if not len(torn):
        return ""
    first = int(torn[0])
    other = next(row for row in sorted(firsts[pairs // len(found.labels) == first].tolist()) if row != first)
    texts = "1 text occurs" if len(torn) == 1 else f"{len(torn):,} texts occur"
    return f"{texts} more than once with different labels (first: {found.places(first, other)})."


def _note_repetitions(found: LabelledText) -> str:
    _, inverse, firsts = _text_label_pairs(found)
    repeated = np.flatnonzero(firsts[inverse] != np.arange(len(found)))
    if not len(repeated):
        return ""
    second = int(repeated[0])
    rows = "1 row repeats" if len(repeated) == 1 else f"{len(repeated):,} rows repeat"
    return (
        f"{rows} the text and label of an earlier one (first: {found.places(int(firsts[inverse[second]]), second)}); "
        "equal texts are never both trained on and held out."
    )


def _text_label_pairs(found: LabelledText) -> tuple[Rows, Rows, Rows]:
    """The different pairs of text and label (as first row · C + class), the pair of each row, its first row."""
    pairs, firsts, inverse = np.unique(
        found.groups * len(found.labels) + found.truth, return_index=True, return_inverse=True
    )
    return pairs, inverse, firsts


def _resemblance(unknown: Iterable[str], labels: Sequence[str]) -> str:
    """A hint where an unknown label is a known one written otherwise."""
    known = {_same_label(label): label for label in labels}
    for label in unknown:
        if _same_label(label) in known:
            return f" (perhaps {_shown(label)} is the model's {_shown(known[_same_label(label)])})"
    return ""


def _same_label(label: str) -> str | Decimal:
    return Decimal(label) if _NUMBER.fullmatch(label) else _fold(label)


def _are_numbers(labels: Sequence[str]) -> bool:
    return all(_NUMBER.fullmatch(label) for label in labels)


def _names(found: LabelledText) -> str:
    sources = found.origin.sources
    shown = ", ".join(sources[:EXAMPLES])
    return f"{shown} and {len(sources) - EXAMPLES:,} more" if len(sources) > EXAMPLES else shown


def _shown(label: str) -> str:
    label = printable(label)
    return f"'{label}'" if len(label) <= SHOWN_CHARS else f"'{label[: SHOWN_CHARS - 1]}…'"


def _list_labels(labels: Sequence[str]) -> str:
    shown = ", ".join(_shown(label) for label in labels[:EXAMPLES])
    return f"{shown} and {len(labels) - EXAMPLES:,} more" if len(labels) > EXAMPLES else shown


def _count(count: int, noun: str) -> str:
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"1 {noun}" if count == 1 else f"{count:,} {plural}"


# ------------------------------------------------------------------------------------------- equal texts


def group_texts(texts: Sequence[str]) -> Rows:
    """For each text the place of the first that is the same after folding case and white space."""
    groups = np.arange(len(texts), dtype=np.int64)
    _, inverse, counts = np.unique(_hash_beginnings(texts), return_inverse=True, return_counts=True)
    perhaps = np.flatnonzero(counts[inverse] > 1)  # most texts begin like no other, and no more of them is looked at
    keys = np.fromiter((hash(_squeeze(texts[row])) for row in perhaps.tolist()), np.int64, len(perhaps))
    order = np.argsort(keys, kind="stable")  # stable: of equal texts the first stays the first
    for _, run in groupby(order.tolist(), key=keys.tolist().__getitem__):
        firsts: dict[str, int] = {}
        for row in perhaps[list(run)].tolist():
            groups[row] = firsts.setdefault(_fold(texts[row]), row)
    return groups


def _fold(text: str) -> str:
    return " ".join(text.casefold().split())


def _squeeze(text: str) -> bytes:
    """Small letters without any white space: equal for texts that are the same, and three times faster than `_fold`."""
    if text.isascii():
        return text.lower().encode().translate(None, _ASCII_SPACES)
    return "".join(text.casefold().split()).encode("utf-8", "surrogatepass")


def _hash_beginnings(texts: Sequence[str]) -> Rows:
    """A hash of the first BEGINNING_BYTES of each squeezed text. Python salts its hashes, so they are never kept; what
    is found with them does not depend on them, for the texts themselves are compared."""
    return np.fromiter(map(_hash_beginning, texts), np.int64, len(texts))


def _hash_beginning(text: str) -> int:
    beginning = _squeeze(text[: 2 * BEGINNING_BYTES])
    if len(beginning) < BEGINNING_BYTES and len(text) > 2 * BEGINNING_BYTES:
        beginning = _squeeze(text)
    return hash(beginning[:BEGINNING_BYTES])


@dataclass(frozen=True)
class TextOverlap:
    """The rows of a test set whose text is also trained on."""

    rows: Rows  # of the test set
    same_label: int
    different_label: int  # trained on with other labels only
    test_rows: int
    train_rows: int  # rows of the training set that occur in the test set
    examples: tuple[tuple[str, str], ...]  # where the first of them stand: in the test set, in the training set

    @property
    def count(self) -> int:
        return len(self.rows)

    def sentence(self) -> str:
        if not self.count:
            return "No text that is judged was trained on."
        first, second = self.examples[0]
        return (
            f"{self.count:,} of the {_count(self.test_rows, 'text')} that are judged were trained on, "
            f"{self.same_label:,} with the same label and {self.different_label:,} with another (first: {first} is "
            f"{second}): a model may know them by heart, so look at the figures without them."
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "count": self.count,
            "same_label": self.same_label,
            "different_label": self.different_label,
            "test_rows": self.test_rows,
            "train_rows": self.train_rows,
            "examples": [list(pair) for pair in self.examples],
        }


def find_overlap(train: LabelledText, test: LabelledText) -> TextOverlap:
    """Rows of `test` whose text stands in `train`, case and white space folded."""
    train_firsts, test_firsts = np.unique(train.groups), np.unique(test.groups)
    train_keys = _hash_beginnings([train.texts[row] for row in train_firsts.tolist()])
    test_keys = _hash_beginnings([test.texts[row] for row in test_firsts.tolist()])
    learned = {_fold(train.texts[row]): row for row in train_firsts[np.isin(train_keys, test_keys)].tolist()}
    twins = np.full(len(test), -1, np.int64)  # the first row of `train` with this text
    for row in test_firsts[np.isin(test_keys, train_keys)].tolist():
        twins[row] = learned.get(_fold(test.texts[row]), -1)
    twins = twins[test.groups]
    rows = np.flatnonzero(twins >= 0)
    numbers = {label: i for i, label in enumerate(train.labels)}
    translate = np.array([numbers.get(label, len(numbers)) for label in test.labels], np.int64)
    width = len(numbers) + 1
    is_same = np.isin(twins[rows] * width + translate[test.truth[rows]], train.groups * width + train.truth)
    return TextOverlap(
        rows,
        int(is_same.sum()),
        int((~is_same).sum()),
        len(test),
        int(np.isin(train.groups, twins[rows]).sum()),
        tuple((test.place(row), train.place(int(twins[row]))) for row in rows[:EXAMPLES].tolist()),
    )


# ------------------------------------------------------------------------------------------- holding out


def split(labelled: LabelledText, share: float, seed: int) -> tuple[Rows, Rows]:
    """Rows to train on and rows to hold out, each in order. The same texts, share and seed give the same rows."""
    _check_share(share)
    order = np.argsort(labelled.groups, kind="stable")
    starts = np.flatnonzero(np.diff(labelled.groups[order], prepend=-1))
    edges = np.append(starts, len(order)).tolist()
    rows, classes = order.tolist(), labelled.truth[order].tolist()
    shuffled = np.random.default_rng(seed).permutation(len(starts)).tolist()
    held: list[int] = []
    room = _quotas(labelled, share)
    left = sum(room)
    for group in shuffled:
        if not left:
            break
        first, last = edges[group], edges[group + 1]
        if last - first > 1 and any(room[c] < n for c, n in Counter(classes[first:last]).items()):
            continue
        for place in range(first, last):
            if room[classes[place]]:
                room[classes[place]] -= 1
                left -= 1
                held.append(rows[place])
    if not held:
        held = _smallest_group(labelled, shuffled, edges, rows, classes)
    is_held = np.zeros(len(labelled), np.bool_)
    is_held[held] = True
    return np.flatnonzero(~is_held), np.flatnonzero(is_held)


def _quotas(labelled: LabelledText, share: float) -> list[int]:
    """How many rows of each class to hold out; none of a class of one text, and one in all if there is a way."""
    pairs, _, _ = _text_label_pairs(labelled)
    texts_each = np.bincount(pairs % len(labelled.labels), minlength=len(labelled.labels))
    counts = np.where(texts_each > 1, labelled.counts, 0)
    sums = np.floor(np.cumsum(share * counts) + 0.5).astype(np.int64)
    quotas = np.minimum(np.diff(sums, prepend=0), np.maximum(counts - 1, 0))
    if not quotas.any() and counts.any():
        quotas[counts.argmax()] = 1
    return [int(quota) for quota in quotas]


def _smallest_group(
    labelled: LabelledText, shuffled: Sequence[int], edges: Sequence[int], rows: Sequence[int], classes: Sequence[int]
) -> list[int]:
    """Where every text is repeated more often than the share allows: the fewest rows that leave each class a row."""
    counts = labelled.counts
    for group in sorted(shuffled, key=lambda group: edges[group + 1] - edges[group]):
        first, last = edges[group], edges[group + 1]
        if all(counts[c] > n for c, n in Counter(classes[first:last]).items()):
            return list(rows[first:last])
    return []

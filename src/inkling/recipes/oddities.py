"""What is odd about labelled rows, each in one sentence: what `labelled` says and does not refuse.

Labels that a person would read as one, or as missing, or as measurements; classes of one row, and one of nearly all
rows; files without a label in common; texts that look like numbers or ids; equal texts, with different labels or not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal

import numpy as np

from inkling.recipes.labelled_text import EXAMPLES, LabelledText, some
from inkling.recipes.repeats import fold
from inkling.text.files import printable

UNEVEN_SHARE = 0.95  # of the rows, in one class
STRANGE_SHARE = 0.95  # of the texts, that look like numbers or ids
MANY_NUMBERS = 20  # more different numbers than this are perhaps no classes
SHOWN_CHARS = 40
ID_CHARS = 64

_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]{1,3})?")
_LETTER = re.compile(r"[^\W\d_]")
_ID = re.compile(r"(?a:[\w.:-]*[0-9][\w.:-]*)")
_ABSENT = {"nan", "NaN", "NA", "N/A", "n/a", "<NA>", "#N/A", "null", "NULL", "None", "?", "-"}


def look_over(found: LabelledText) -> list[str]:
    """All that is odd about rows to train on."""
    notes = [
        _note_alike_labels(found),
        _note_absent_labels(found),
        _note_numbers(found),
        _note_small_classes(found),
        _note_uneven(found),
        _note_strangers_among_files(found),
        note_strange_texts(found),
        note_contradictions(found),
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
        f"{quote(found.labels[i])} ({counted(int(found.counts[i]), 'row')})" for i in pairs[0][:EXAMPLES]
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
                f"{counted(count, 'row')} with the label {quote(label)}, which counts as a class: leave such rows out "
                "if it means that the label is missing."
            )
    return ""


def _note_numbers(found: LabelledText) -> str:
    count = len(found.labels)
    if count <= MANY_NUMBERS or not are_numbers(found.labels):
        return ""
    low, high = Decimal(found.labels[0]), Decimal(found.labels[-1])
    if high - low == count - 1 and all(label.lstrip("+-").isdigit() for label in found.labels):
        return ""  # numbered from first to last without a gap: names of classes
    return (
        f"The labels are {count:,} different numbers from {quote(found.labels[0])} to {quote(found.labels[-1])}, and "
        "each counts as a class of its own without order: if they are measurements, put them into a few classes first."
    )


def _note_small_classes(found: LabelledText) -> str:
    single = np.flatnonzero(found.counts == 1)
    if not len(single):
        return ""
    which = f"(first: {quote(found.labels[single[0]])})"
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
        f"{share:.1%} of the rows have the label {quote(found.labels[largest])}: always saying so is right that "
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
                f"({list_labels([found.labels[k] for k in sorted(sets[0])])}; "
                f"{list_labels([found.labels[k] for k in sorted(sets[i])])}): write their labels the same way if "
                "they are the same classes."
            )
    return ""


def note_strange_texts(found: LabelledText) -> str:
    strange = sum(1 for text in found.texts if _looks_like_number(text))
    if strange < STRANGE_SHARE * len(found):
        return ""
    first = next(text for text in found.texts if _looks_like_number(text))
    return (
        f"{strange:,} of {counted(len(found), 'text')} look like numbers or ids, such as {quote(first)}: name the "
        "column of the texts with --text-column if this is not it."
    )


def _looks_like_number(text: str) -> bool:
    return _LETTER.search(text) is None or (len(text) <= ID_CHARS and _ID.fullmatch(text.strip()) is not None)


def note_contradictions(found: LabelledText) -> str:
    pairs, _, firsts = found.pairs()
    groups, labels_each = np.unique(pairs // max(1, len(found.labels)), return_counts=True)
    torn = groups[labels_each > 1]
    if not len(torn):
        return ""
    first = int(torn[0])
    other = next(row for row in sorted(firsts[pairs // len(found.labels) == first].tolist()) if row != first)
    texts = "1 text occurs" if len(torn) == 1 else f"{len(torn):,} texts occur"
    return f"{texts} more than once with different labels (first: {found.places(first, other)})."


def _note_repetitions(found: LabelledText) -> str:
    _, inverse, firsts = found.pairs()
    repeated = np.flatnonzero(firsts[inverse] != np.arange(len(found)))
    if not len(repeated):
        return ""
    second = int(repeated[0])
    rows = "1 row repeats" if len(repeated) == 1 else f"{len(repeated):,} rows repeat"
    return (
        f"{rows} the text and label of an earlier one (first: {found.places(int(firsts[inverse[second]]), second)}); "
        "equal texts are never both trained on and held out."
    )


# ------------------------------------------------------------------------------------------- wording


def resemblance(unknown: Iterable[str], labels: Sequence[str]) -> str:
    """A hint where an unknown label is a known one written otherwise."""
    known = {_same_label(label): label for label in labels}
    for label in unknown:
        if _same_label(label) in known:
            return f" (perhaps {quote(label)} is the model's {quote(known[_same_label(label)])})"
    return ""


def _same_label(label: str) -> str | Decimal:
    return Decimal(label) if _NUMBER.fullmatch(label) else fold(label)


def are_numbers(labels: Sequence[str]) -> bool:
    return all(_NUMBER.fullmatch(label) for label in labels)


def quote(label: str) -> str:
    label = printable(label)
    return f"'{label}'" if len(label) <= SHOWN_CHARS else f"'{label[: SHOWN_CHARS - 1]}…'"


def list_labels(labels: Sequence[str]) -> str:
    return some(labels, quote)


def counted(count: int, noun: str) -> str:
    """1 row, 2 rows, 3 classes."""
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"1 {noun}" if count == 1 else f"{count:,} {plural}"

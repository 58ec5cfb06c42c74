"""Texts with labels for a classifier: every row accounted for, every oddity said in one sentence.

    rows in = texts + rows reported

A label is the content of its column without the white space around it, and nothing is guessed about it: "1" and "1.0",
"pos" and "Pos" are different classes, and that is said. What cannot be learned from (one class, one row, an id in
place of a label) is refused; what is merely odd (contradicting duplicates, a class of one row, a class of 95 % of all
rows, texts that look like numbers) is kept and noted (`oddities`).

    split    of each class c about share · n_c rows are held out; the shares of a class are rounded so that their sum
             over the first classes is never off by more than a half; the same text never stands on both sides; every
             class keeps a row to learn from

Measured on the 25,000 training reviews of IMDB: reading 1.1 s (0.8 s of it unpacking), everything here 0.1 s.
Left out: several labels for one text, and labels that are numbers to be predicted.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from inkling.errors import InklingError, UsageError
from inkling.recipes.data import TextConfig, open_corpus, resolve
from inkling.recipes.labelled_text import LabelledText, Origin, Rows, some
from inkling.recipes.oddities import (
    are_numbers,
    counted,
    list_labels,
    look_over,
    note_contradictions,
    note_strange_texts,
    quote,
    resemblance,
)
from inkling.recipes.repeats import find_overlap, group_texts
from inkling.text.corpus import Corpus
from inkling.text.files import printable
from inkling.text.folders import find_format
from inkling.text.tables import NO_LABEL

Say = Callable[[str], None]


LEAST_REPEATED = 3  # rows of every other label, before a label that stands once is taken for a header


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
    if config.header is None:
        _refuse_header(found)
    return _add_notes(found, look_over(found), say)


def read_for(labels: Sequence[str], config: LabelledConfig, say: Say) -> LabelledText:
    """The rows of `config.files` for a model that knows `labels`. Rows of other classes are left out and reported:
    no model can get them right, so they say nothing about this one."""
    found = _read(config, say)
    rows_in, names = found.origin.rows_in, found.names
    if not found.texts:
        raise _no_rows(found, config)
    numbers = {label: i for i, label in enumerate(labels)}
    translate = np.array([numbers.get(label, -1) for label in found.labels], np.int64)
    truth = translate[found.truth]
    strangers = np.flatnonzero(truth < 0)
    unknown = {found.labels[i]: int(n) for i, n in enumerate(found.counts) if translate[i] < 0}
    if len(strangers) == len(found):
        raise InklingError(
            f"{names} has no row with a label that the model knows: it has {list_labels(found.labels)} and the model "
            f"{list_labels(labels)}{resemblance(unknown, labels)}; name the right column with --label-column."
        )
    notes = []
    if len(strangers):
        frequent = sorted(unknown, key=lambda label: -unknown[label])
        shown = some(frequent, lambda label: f"{quote(label)} {unknown[label]:,}")
        notes.append(
            f"{counted(len(strangers), 'row')} of {rows_in:,} left out of all figures because the model does not know "
            f"the label ({shown}; first: {found.place(int(strangers[0]))}){resemblance(unknown, labels)}."
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
        notes.append(f"{counted(len(absent), 'class')} of the model without a row in {names}: {list_labels(absent)}.")
    notes += [note for note in (note_strange_texts(kept), note_contradictions(kept)) if note]
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
                f"No row of {whole.names} can be held out, for every class has one text only: "
                "give more rows, or name held-out rows with --held-out."
            )
        wanted = config.held_out_share * len(whole)
        more = []
        if wanted >= 2 and len(held_rows) < wanted / 2:
            more = [
                f"{counted(len(held_rows), 'row')} held out where {wanted:,.0f} were meant: classes of one text are "
                "not held out, and equal texts stay together."
            ]
        notes = [*whole.notes, *more]
        train, held_out = whole.take(train_rows), whole.take(held_rows)
    for note in more:
        say(note)
    return LabelledParts(config, whole, train, held_out, notes)


def recall_columns(
    config: LabelledConfig, recipes: Mapping[str, Mapping[str, Any]], need_label: bool = True
) -> tuple[LabelledConfig, list[str]]:
    """`config` with the columns that runs (name → recipe) were trained with, and a sentence if there are any.

    Only where the user names none, the runs agree, and every file has a column of that name: numbers are no names. All
    else is guessed when the files are read, and so is what can be read only once, such as standard input.
    """
    text, text_run = _named_alike("text_column", recipes)
    label, label_run = _named_alike("label_column", recipes)
    if config.text_column is not None or text == config.label_column:
        text = None
    if config.label_column is not None or label == config.text_column or not need_label:
        label = None
    if not all(map(_stays, config.files)):
        return config, []
    for some_text, some_label in dict.fromkeys(((text, label), (text, None), (None, label))):
        if some_text is None and some_label is None:
            continue
        recalled = replace(
            config, text_column=some_text or config.text_column, label_column=some_label or config.label_column
        )
        try:
            open_labelled(recalled, need_label)
        except InklingError:  # no such column; any other reason comes up again when the file is read
            continue
        taken = [("text", some_text, text_run), ("label", some_label, label_run)]
        told = " and ".join(f"the {role} is column '{printable(name)}'" for role, name, _ in taken if name is not None)
        runs = " and ".join(dict.fromkeys(run for _, name, run in taken if name is not None))
        return recalled, [f"{', '.join(map(printable, config.files))}: {told}, as in the training of {runs}."]
    return config, []


def _named_alike(role: str, recipes: Mapping[str, Mapping[str, Any]]) -> tuple[str | None, str]:
    """The column that recipes name, unless they name several or call it by its number, and the first run of it."""
    runs: dict[str, str] = {}
    for run, recipe in recipes.items():
        if recipe.get(role):
            runs.setdefault(recipe[role], run)
    if len(runs) != 1 or next(iter(runs)).isdecimal():
        return None, ""
    return next(iter(runs.items()))


def _stays(name: str) -> bool:
    """Whether a file or folder can be opened again and again; standard input and pipes cannot."""
    try:
        path = Path(resolve(name))
        return name != "-" and (path.is_file() or path.is_dir())
    except OSError:  # a name that is too long, a folder that may not be entered
        return False


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


def open_labelled(config: LabelledConfig, need_label: bool = True) -> Corpus:
    how = TextConfig(
        text_column=config.text_column,
        encoding=config.encoding,
        header=config.header,
        format=config.format,
        bad_rows=config.bad_rows,
    )
    return open_corpus(config.files, how, label_column=config.label_column, need_label=need_label)


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
    if are_numbers(found):
        found.sort(key=Decimal)
    return tuple(found)


def _add_notes(found: LabelledText, notes: Sequence[str], say: Say) -> LabelledText:
    for note in notes:
        say(note)
    return replace(found, notes=[*found.notes, *notes])


# ------------------------------------------------------------------------------------------- refusing


def _refuse_header(found: LabelledText) -> None:
    """A first row whose label stands nowhere else, where every other label stands again, is a header in disguise."""
    firsts = np.flatnonzero(found.number == 1)
    others = np.delete(found.counts, found.truth[firsts]) if len(firsts) else found.counts
    alone = [row for row in firsts.tolist() if found.counts[found.truth[row]] == 1]
    if alone and len(found.labels) > 2 and len(others) and others.min() >= LEAST_REPEATED:
        label = quote(found.labels[found.truth[alone[0]]])
        raise InklingError(
            f"{found.place(alone[0])} looks like a header, for its label {label} stands nowhere else and every other "
            f"label {LEAST_REPEATED} times or more: say --header, or --no-header if it is a row like the others."
        )


def _refuse_useless(found: LabelledText, config: LabelledConfig) -> None:
    rows, classes = len(found), len(found.labels)
    names = found.names
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
            f"All {rows:,} rows of {names} have the label {quote(found.labels[0])}{why}: a classifier needs at least "
            "two classes, so add rows of another one or name the right column with --label-column."
        )
    if classes > 2 and 2 * classes > rows:
        what = "measured numbers or an id" if are_numbers(found.labels) else "an id or free text"
        column = f"'{printable(config.label_column)}'" if config.label_column is not None else "that was taken"
        raise InklingError(
            f"{names} has {classes:,} different labels in {rows:,} rows, such as {quote(found.labels[0])} and "
            f"{quote(found.labels[-1])}: the label column {column} looks like {what} rather than a class, so name "
            "another with --label-column or give at least two rows a class."
        )


def _no_rows(found: LabelledText, config: LabelledConfig) -> InklingError:
    origin = found.origin
    names = found.names
    if not origin.rows_in:
        return InklingError(f"{names} has no rows: give a file with texts and labels.")
    if origin.rows_without_label == origin.rows_in:
        column = f" '{printable(config.label_column)}'" if config.label_column is not None else ""
        return InklingError(
            f"No row of {names} has a label ({counted(origin.rows_in, 'row')} read): the label column{column} is "
            "empty, so name another with --label-column."
        )
    return InklingError(
        f"{names} has no row that can be used (of {counted(origin.rows_in, 'row')} read, {origin.rows_without_label:,} "
        f"without label and {origin.rows_in - origin.rows_without_label:,} without text or not readable): name the "
        "columns with --text-column and --label-column."
    )


def _check_share(share: float) -> None:
    if not 0 < share < 1:
        raise UsageError(f"--held-out-share is {share:g}; give a share between 0 and 1.")


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


def mark_held_out(labelled: LabelledText, share: float, seed: int) -> NDArray[np.bool_]:
    """`split` as a flag for each row: whether it is held out."""
    is_held = np.zeros(len(labelled), np.bool_)
    is_held[split(labelled, share, seed)[1]] = True
    return is_held


def _quotas(labelled: LabelledText, share: float) -> list[int]:
    """How many rows of each class to hold out; none of a class of one text, and one in all if there is a way."""
    pairs, _, _ = labelled.pairs()
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

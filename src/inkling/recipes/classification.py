"""`inkling evaluate` on classifiers: runs on labelled texts, which differences are real, and what they knew before.

For each run and text: accuracy, macro-F1 and classes with intervals, whether the probabilities can be believed, and
what the run's own threshold for "unsure" (chosen on held-out text) buys here. Runs with the same labels are compared
text by text.

    seen         rows of the text that stand in the run's training text too, case and white space folded; looked for
                 where that text is still at hand, byte for byte, and accuracy is given without them as well
    flattered    the text is the very one that a run was trained on, or that chose its settings

The share of a training text that was held out counts as training text: it chose settings, and scores (dimension 0)
learn from it in the end unless refit is off; networks never learn from it, so there the count is on the safe side.
Columns that are not named are those that the runs were trained with, where a text has them, and rows whose label a run
does not know are left out and reported (labelled.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inkling.configuration import from_record
from inkling.errors import InklingError, UsageError
from inkling.figures import Cell, Column, Exhibit, Page, Prose, Table
from inkling.measure.calibration import Abstention, Answered, Calibration
from inkling.measure.classification import ClassificationReport, wilson
from inkling.measure.intervals import Interval
from inkling.measure.paired import PairedDifference, compare_classifiers, difference_table
from inkling.models.dan import AveragingNetwork
from inkling.recipes.evaluation import OVERLAP_BYTES, OnProgress, distinct_names
from inkling.recipes.labelled import LabelledConfig, Say, open_labelled, read_for, read_labelled, recall_columns
from inkling.recipes.labelled_text import LabelledText
from inkling.recipes.repeats import TextOverlap, find_overlap
from inkling.recipes.verdicts import choose_threshold
from inkling.runs.loading import load_classifier
from inkling.runs.run import Run

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

TITLE = "Classifiers on labelled texts"
ALL_PAIRS = 6  # so many comparisons are all spelled out; of more, the table has them


# ------------------------------------------------------------------------------------------------ known before


@dataclass(frozen=True)
class Acquaintance:
    """What the run `run` knew of `text` before. `unknown` says why its training text was not looked into."""

    run: str
    text: str
    training: str = ""  # names of the training files
    is_training: bool = False
    is_held_out: bool = False
    overlap: TextOverlap | None = None
    unknown: str = ""

    def sentences(self, right: Bools) -> list[str]:
        """`right`: for each row of the text, whether the run's verdict is."""
        if self.is_training:
            return [f"{self.run} was trained on {self.text} itself, so the figures there flatter it."]
        said = [self.unknown] if self.unknown else []
        if self.is_held_out:
            said.append(f"{self.text} chose the settings of {self.run}, so the figures there flatter it a little.")
        if self.overlap is not None:
            said.append(self._told(self.overlap, right))
        return said

    def without(self, right: Bools) -> Interval | None:
        """Accuracy on the rows that were not trained on; None if none was or all were."""
        if self.overlap is None or not 0 < self.overlap.count < len(right):
            return None
        left = np.delete(right, self.overlap.rows)
        return wilson(int(left.sum()), len(left))

    def _told(self, overlap: TextOverlap, right: Bools) -> str:
        where = f"in the training text of {self.run} ({self.training})"
        if not overlap.count:
            return f"No row of {self.text} stands {where}."
        stand = "stands" if overlap.count == 1 else "stand"
        first, second = overlap.examples[0]
        begin = (
            f"{overlap.count:,} of {overlap.test_rows:,} rows of {self.text} {stand} {where}, {overlap.same_label:,} "
            f"with the same label (first: {first} is {second})"
        )
        left = self.without(right)
        if left is None:
            return f"{begin}: none is left to judge by."
        return f"{begin}; without them it is right on {show_percent(left)}, with them on {100 * right.mean():.2f} %."

    def to_json(self) -> dict[str, Any]:
        return {
            "is_training_text": self.is_training,
            "is_held_out_text": self.is_held_out,
            "overlap": self.overlap.to_json() if self.overlap else None,
        }


class Trainings:
    """The training texts of runs, read again where they are as they were; each once."""

    def __init__(self, overlap: bool | None = None) -> None:
        """`overlap` None: unless a training text is large; False: never."""
        self.overlap = overlap
        self._read: dict[LabelledConfig, LabelledText] = {}

    def acquaint(self, name: str, run: Run, text_name: str, text: LabelledText) -> Acquaintance:
        data = run.info["data"]
        fingerprint = text.origin.sha256
        known = Acquaintance(
            name,
            text_name,
            is_training=fingerprint == data.get("sha256"),
            is_held_out=fingerprint == data.get("held_out_sha256"),
        )
        if known.is_training or self.overlap is False:
            return known
        try:
            training = self._training(run)
        except InklingError as error:
            note = (
                f"The training text of {name} was not looked into ({str(error).rstrip('.')}): whether {text_name} "
                "occurs in it is not known."
            )
            return replace(known, unknown=note)
        names = ", ".join(Path(file).name for file in training.origin.files)
        return replace(known, training=names, overlap=find_overlap(training, text))

    def _training(self, run: Run) -> LabelledText:
        wanted = {field.name for field in fields(LabelledConfig)}
        record = {key: value for key, value in run.info["recipe"].items() if key in wanted}
        config = from_record(LabelledConfig, record, str(run.path / "run.json"))
        if config in self._read:
            return self._read[config]
        if "-" in config.files:
            raise InklingError("it came through standard input")
        corpus = open_labelled(config)
        if corpus.size_bytes > OVERLAP_BYTES and self.overlap is None:
            raise InklingError(f"it has {corpus.size_bytes:,} bytes, and --overlap looks all the same")
        if corpus.fingerprint() != run.info["data"].get("sha256"):
            raise InklingError(f"{', '.join(config.files)} has changed since")
        self._read[config] = read_labelled(config, lambda note: None)
        return self._read[config]


def show_percent(share: Interval) -> str:
    """'91.42 % (95 % 91.07 to 91.76)'."""
    return f"{100 * share.value:.2f} % ({100 * share.level:g} % {100 * share.low:.2f} to {100 * share.high:.2f})"


# ------------------------------------------------------------------------------------------------ results


@dataclass(frozen=True, eq=False)
class Judged:
    """One run on one text."""

    report: ClassificationReport
    calibration: Calibration
    abstention: Abstention
    unsure_below: float | None  # None: the run has no threshold
    known: Acquaintance
    right: Bools  # N

    @property
    def answered(self) -> Answered | None:
        return None if self.unsure_below is None else self.abstention.at(self.unsure_below)

    def sentences(self) -> list[str]:
        name = self.report.name
        said = [self.report.sentence(), *self.known.sentences(self.right), f"{name}: {self.calibration.sentence()}"]
        answered = self.answered
        if answered is None:
            said.append(f"{name} has no threshold for 'unsure': its held-out texts promise 95 % at none.")
        elif not answered.texts:
            said.append(f"{name} says 'unsure' below {answered.threshold:.4f}, and so on every text here.")
        elif answered.texts < answered.rows:
            said.append(
                f"{name} says 'unsure' below {answered.threshold:.4f} (chosen on held-out text): it answers "
                f"{100 * answered.share:.1f} % of the texts here and is right on {show_percent(answered.accuracy)} of "
                "those."
            )
        return said

    def cells(self) -> tuple[Cell, ...]:
        report, answered, left = self.report, self.answered, self.known.without(self.right)
        accuracy = report.accuracy
        unsure: tuple[Cell, Cell] = (None, None)
        if answered is not None and answered.texts:
            unsure = (100 * answered.share, 100 * answered.accuracy.value)
        overlap = self.known.overlap
        seen = len(self.right) if self.known.is_training else overlap.count if overlap is not None else None
        return (
            report.name,
            100 * accuracy.value,
            100 * accuracy.low,
            100 * accuracy.high,
            100 * report.macro_f1.value,
            report.nats_per_text,
            100 * self.calibration.error,
            *unsure,
            seen,
            None if left is None else 100 * left.value,
        )

    def exhibits(self) -> list[Exhibit]:
        """All of it."""
        of = f": {self.report.name} on {self.report.text_name}"
        classes, confusion = self.report.class_table(), self.report.confusion_table()
        calibration, abstention = self.calibration, self.abstention
        return [
            self.report.summary_table(),
            replace(classes, title=classes.title + of),
            replace(confusion, title=confusion.title + of),
            replace(calibration.chart(), title=calibration.chart().title + of),
            replace(abstention.chart(), title=abstention.chart().title + of),
            replace(abstention.table(), title=abstention.table().title + of),
        ]

    def to_json(self) -> dict[str, Any]:
        answered, left = self.answered, self.known.without(self.right)
        unsure = None
        if answered is not None:
            unsure = {**asdict(answered), "share": answered.share, "accuracy": asdict(answered.accuracy)}
        return {
            **self.report.to_json(),
            "calibration": self.calibration.to_json(),
            "abstention": self.abstention.to_json(),
            "unsure": unsure,
            **self.known.to_json(),
            "accuracy_without_overlap": None if left is None else asdict(left),
        }


@dataclass(frozen=True, eq=False)
class ClassifierMatrix:
    """Every run on every text, best first within each text. `notes` are about how the texts were read."""

    results: tuple[Judged, ...]
    comparisons: tuple[tuple[str, PairedDifference], ...] = ()  # each with its text
    notes: tuple[str, ...] = ()

    def texts(self) -> list[str]:
        return list(dict.fromkeys(one.report.text_name for one in self.results))

    def on(self, text: str) -> list[Judged]:
        return [one for one in self.results if one.report.text_name == text]

    def differences(self, text: str) -> list[PairedDifference]:
        return [pair for name, pair in self.comparisons if name == text]

    def sentences(self) -> list[str]:
        found: list[str] = []
        for text in self.texts():
            pairs = self.differences(text)
            found += [sentence for one in self.on(text) for sentence in one.sentences()]
            found += [f"On {text}: {pair.sentence()}" for pair in pairs if len(pairs) <= ALL_PAIRS]
        return found

    def tables(self) -> list[Table]:
        """Of a single run its classes too; of several, how they stand and which differences are real."""
        found: list[Table] = []
        for text in self.texts():
            results, pairs = self.on(text), self.differences(text)
            if len(results) == 1:
                found += results[0].report.tables()
                continue
            found.append(self._standing(text))
            if pairs:
                found.append(replace(difference_table(pairs), title=f"Differences of accuracy on {text}"))
        return found

    def _standing(self, text: str) -> Table:
        results = self.on(text)
        columns = (
            Column("model"),
            Column("accuracy", ".2f", "%"),
            Column("low", ".2f"),
            Column("high", ".2f"),
            Column("macro-F1", ".2f", "%"),
            Column("nats/text", ".4f"),
            Column("off by", ".1f", "points"),
            Column("answered", ".1f", "%"),
            Column("right of those", ".2f", "%"),
            Column("seen", ",d"),
            Column("unseen right", ".2f", "%"),
        )
        majority = results[0].report.majority
        baseline = (f"always '{majority.label}'", 100 * results[0].report.majority_accuracy, *[None] * 9)
        rows = {one.report.rows for one in results}
        size = f"{min(rows):,} to {max(rows):,} texts" if len(rows) > 1 else f"{rows.pop():,} texts"
        note = (
            "low and high: 95 % interval of accuracy (Wilson). off by: mean error of the probabilities. answered: not "
            "'unsure' by the run's own threshold. seen: rows that stand in the run's training text (–: not known), "
            "unseen right: accuracy without them."
        )
        return Table(f"{text} ({size}), best first", columns, (*(one.cells() for one in results), baseline), (note,))

    def summary(self) -> Page:
        """For a terminal, where the notes were said already: the tables, and below them what they mean."""
        return Page(TITLE, (*self.tables(), Prose("\n".join(self.sentences()), "What can be said")))

    def page(self) -> Page:
        """For a browser: what can be said first, then everything about each run."""
        exhibits: list[Exhibit] = [Prose("\n\n".join(self.sentences()), "What can be said")]
        if self.notes:
            exhibits.append(Prose("\n\n".join(self.notes), "How the texts were read"))
        if len(self.results) > len(self.texts()):
            exhibits += self.tables()
        for one in self.results:
            exhibits += one.exhibits()
        return Page(TITLE, tuple(exhibits))

    def to_json(self) -> dict[str, Any]:
        return {
            "rows": [one.to_json() for one in self.results],
            "comparisons": [{"text": text, **pair.to_json()} for text, pair in self.comparisons],
            "notes": list(self.notes),
            "sentences": self.sentences(),
        }


# ------------------------------------------------------------------------------------------------ measuring


def evaluate_classifiers(
    runs: Sequence[str],
    on: Sequence[str],
    config: LabelledConfig,
    say: Say = lambda note: None,
    on_progress: OnProgress = lambda done, total, what: None,
    overlap: bool | None = None,
) -> ClassifierMatrix:
    """Measures every run on every labelled file, read as `config` says. Progress is in stages."""
    on = list(dict.fromkeys(on))
    text_names = ["standard input" if name == "-" else name for name in distinct_names(on)]
    opened = {name: Run.open(run) for name, run in zip(distinct_names(runs), runs, strict=True)}
    networks = {name: load_classifier(run) for name, run in opened.items()}
    vocabularies = list(dict.fromkeys(network.labels for network in networks.values()))
    if "-" in on and len(vocabularies) > 1:
        raise UsageError(
            "Standard input can be read only once, but the runs have different labels and each reads it in its own "
            "way; save it to a file first."
        )
    trainings = Trainings(overlap)
    notes: list[str] = []

    def note(sentence: str) -> None:
        if sentence not in notes:
            notes.append(sentence)
            say(sentence)

    results: list[Judged] = []
    comparisons: list[tuple[str, PairedDifference]] = []
    done, total = 0, len(on) * (len(vocabularies) + len(networks))
    for text_name, file in zip(text_names, on, strict=True):
        judged: list[Judged] = []
        for labels in vocabularies:
            on_progress(done, total, f"reading {text_name}")
            alike_runs = {name: opened[name].info["recipe"] for name in opened if networks[name].labels == labels}
            how, recalled = recall_columns(replace(config, files=(file,)), alike_runs)
            for sentence in recalled:
                note(sentence)
            text = read_for(labels, how, note)
            done += 1
            alike: list[Judged] = []
            for name, network in networks.items():
                if network.labels != labels:
                    continue
                on_progress(done, total, f"{name} on {text_name}")
                known = trainings.acquaint(name, opened[name], text_name, text)
                threshold = choose_threshold(opened[name], None)
                alike.append(_judge(network, text, known, threshold, config.seed))
                done += 1
            if len(alike) > 1:
                pairs = compare_classifiers([one.report.name for one in alike], [one.right for one in alike])
                comparisons += [(text_name, pair) for pair in pairs]
            judged += alike
        if len(vocabularies) > 1:
            note("Runs with different labels are not compared with each other: they are judged by different rows.")
        results += sorted(judged, key=lambda one: (-one.report.accuracy.value, one.report.name))
    return ClassifierMatrix(tuple(results), tuple(comparisons), tuple(notes))


def _judge(
    network: AveragingNetwork, text: LabelledText, known: Acquaintance, threshold: float | None, seed: int
) -> Judged:
    log_probs: Floats = network.log_probs(text.texts).numpy()
    report = ClassificationReport.of(
        network.labels, text.truth, log_probs, name=known.run, text_name=known.text, seed=seed
    )
    calibration, abstention = Calibration.of(text.truth, log_probs), Abstention.of(text.truth, log_probs)
    return Judged(report, calibration, abstention, threshold, known, log_probs.argmax(axis=1) == text.truth)

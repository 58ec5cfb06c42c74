"""Does reading a corpus first help a model to answer questions about it? Paired trainings, and what they show.

For each seed two models are trained that agree in all else: one has read the corpus before (or beside) the pairs of
questions and answers, one has not. Both answer the same questions. Two things are asked of the difference:

    over seeds       dₛ = exact match with − without, of seed s;  t = d̄ / (sd / √S), Student with S − 1 degrees
                     would other trainings show it too?
    over questions   dᵢ = share of seeds right on question i with − without;  z = d̄ / (sd / √N), for one seed McNemar's
                     would other questions show it too?

The larger p-value counts. With one seed there is nothing to say about other trainings, and that is said. The interval
is Student's over seeds; a bootstrap of three seeds would promise too much (see `ablation`).

The trainings themselves are a function (seed, pretrained) → `Trained` that is passed in; here they are called in turn,
seed by seed, so that stopping early leaves whole pairs. Left out: more than one corpus, and different sizes of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inkling.errors import InklingError, UsageError
from inkling.figures import Bars, Cell, Chart, Column, Exhibit, Line, Page, Prose, Series, Table
from inkling.measure.answers import exactly
from inkling.measure.classification import wilson
from inkling.measure.intervals import Interval
from inkling.measure.paired import LEVEL, mcnemar, mcnemar_p
from inkling.studies.ablation import accuracy_over_seeds, over_seeds, seeds_p, texts_p

Bools = NDArray[np.bool_]
TITLE = "Does pretraining help?"
WITH, WITHOUT = "pretrained", "not pretrained"


@dataclass(frozen=True)
class Trained:
    """What one training led to. `curve`: exact match (0 to 1) on questions of its own after so many seconds."""

    answers: tuple[str, ...]
    seconds: float = math.nan  # all training counted
    curve: tuple[tuple[float, float], ...] = ()


Train = Callable[[int, bool], Trained]


@dataclass(frozen=True, eq=False)
class Pair:
    """Two trainings of one seed, judged."""

    seed: int
    pretrained: Trained
    other: Trained
    right: Bools  # N, of the pretrained one
    other_right: Bools

    @property
    def difference(self) -> float:
        """In points."""
        return 100 * float(self.right.mean() - self.other_right.mean())

    @property
    def p_value(self) -> float:
        """That both are right equally often, over questions (McNemar)."""
        return mcnemar(self.right, self.other_right)


@dataclass(frozen=True, eq=False)
class Pretraining:
    """What the pairs show together. `levels` are baselines that charts draw, as (name, share)."""

    pairs: tuple[Pair, ...]
    text_name: str = "the questions"
    corpus_name: str = "the corpus"
    levels: tuple[tuple[str, float], ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def questions(self) -> int:
        return len(self.pairs[0].right)

    @property
    def seeds(self) -> int:
        return len(self.pairs)

    def exact_match(self, pretrained: bool) -> Interval:
        """In points, with its interval over seeds; with one seed that over questions (Wilson)."""
        rights = [pair.right if pretrained else pair.other_right for pair in self.pairs]
        if self.seeds == 1:
            share = wilson(int(rights[0].sum()), self.questions)
            return Interval(100 * share.value, 100 * share.low, 100 * share.high, share.level)
        return accuracy_over_seeds(np.array([100 * right.mean() for right in rights]))

    @property
    def difference(self) -> Interval:
        """With less without, in points; no interval with one seed."""
        return over_seeds(np.array([pair.difference for pair in self.pairs]))

    @property
    def p_seeds(self) -> float:
        """NaN with one seed."""
        return seeds_p(np.array([pair.difference for pair in self.pairs]))

    @property
    def p_questions(self) -> float:
        right, other = (np.stack(rows) for rows in zip(*((p.right, p.other_right) for p in self.pairs), strict=True))
        per_question = right.mean(axis=0) - other.mean(axis=0)
        if np.ptp(per_question) == 0 and per_question[0] != 0:  # all say the same, without a spread: a test of signs
            return mcnemar_p(self.questions, 0)
        return texts_p(right, other)

    @property
    def p_value(self) -> float:
        return self.p_questions if self.seeds == 1 else max(self.p_seeds, self.p_questions)

    @property
    def real(self) -> bool:
        return self.p_value <= LEVEL

    def verdict(self) -> str:
        """In one sentence."""
        d = self.difference
        shares = (
            f"{self.exact_match(True).value:.1f} % of {self.questions:,} questions are answered exactly with it and "
            f"{self.exact_match(False).value:.1f} % without"
        )
        if self.seeds == 1:
            judged = f"{d.value:+.1f} points, p = {self.p_value:.2g} over questions; one seed says nothing of others"
        else:
            judged = (
                f"{d.value:+.1f} points, {100 * d.level:g} % {d.low:.1f} to {d.high:.1f} over {self.seeds} seeds, "
                f"p = {self.p_value:.2g}"
            )
        judged = judged.replace("-", "−")
        if not self.real:
            return f"No effect of pretraining on {self.corpus_name} is shown: {shares} ({judged})."
        what = "helps" if d.value > 0 else "harms"
        return f"Pretraining on {self.corpus_name} {what}: {shares} ({judged})."

    # --------------------------------------------------------------------------------------- shown

    def table(self) -> Table:
        columns = (
            Column("seed", "d"),
            Column(WITH, ".1f", "%"),
            Column(WITHOUT, ".1f", "%"),
            Column("difference", "+.1f", "points"),
            Column("only pretrained right", ",d"),
            Column("only other right", ",d"),
            Column("p", ".2g", note="McNemar's test over the questions, of this seed alone"),
            Column("seconds with", ",.0f"),
            Column("seconds without", ",.0f"),
        )
        rows: list[tuple[Cell, ...]] = []
        for pair in self.pairs:
            shares = (100 * float(pair.right.mean()), 100 * float(pair.other_right.mean()))
            only = (int((pair.right & ~pair.other_right).sum()), int((pair.other_right & ~pair.right).sum()))
            seconds = (_known(pair.pretrained.seconds), _known(pair.other.seconds))
            rows.append((pair.seed, *shares, pair.difference, *only, pair.p_value, *seconds))
        note = (
            "Seconds: all training counted. An answer is right if it equals the true one, white space around left out."
        )
        return Table(f"Exact match on {self.text_name}, seed by seed", columns, tuple(rows), (note,))

    def bars(self) -> Bars:
        names = tuple(f"seed {pair.seed}" for pair in self.pairs)
        series = []
        for name, rights in ((WITH, [p.right for p in self.pairs]), (WITHOUT, [p.other_right for p in self.pairs])):
            shares = [wilson(int(right.sum()), len(right)) for right in rights]
            ends = [[100 * getattr(share, end) for share in shares] for end in ("value", "low", "high")]
            series.append(Series(name, *ends))
        levels = tuple((name, 100 * share) for name, share in self.levels)
        return Bars(
            "Exact match by seed", "", "right (%)", names, tuple(series), "Bars: 95 % interval over questions.", levels
        )

    def curves(self) -> Chart | None:
        """Exact match over the time of training, where it was measured on the way."""
        lines = []
        for pair in self.pairs:
            for name, one in ((WITH, pair.pretrained), (WITHOUT, pair.other)):
                if one.curve:
                    x, y = zip(*one.curve, strict=True)
                    lines.append(Line(f"{name}, seed {pair.seed}", x, [100 * share for share in y]))
        if not lines:
            return None
        levels = tuple((name, 100 * share) for name, share in self.levels)
        reading = "Measured on the way, on questions that the verdict need not share."
        return Chart("Exact match while training", "seconds", "right (%)", tuple(lines), reading, levels=levels)

    def summary(self) -> Page:
        """For a terminal."""
        return Page(TITLE, (self.table(), Prose("\n".join([self.verdict(), *self.notes]))))

    def page(self) -> Page:
        curves = self.curves()
        exhibits: list[Exhibit] = [Prose("\n\n".join([self.verdict(), *self.notes])), self.bars()]
        return Page(TITLE, (*exhibits, *([curves] if curves else []), self.table()))

    def _repr_html_(self) -> str:
        return self.page()._repr_html_()

    def to_json(self) -> dict[str, Any]:
        return {
            "pretrained": asdict(self.exact_match(True)),
            "not_pretrained": asdict(self.exact_match(False)),
            "difference": asdict(self.difference),
            "p_seeds": self.p_seeds,
            "p_questions": self.p_questions,
            "p": self.p_value,
            "real": self.real,
            "seeds": [
                {
                    "seed": pair.seed,
                    "pretrained": float(pair.right.mean()),
                    "not_pretrained": float(pair.other_right.mean()),
                    "p": pair.p_value,
                    "seconds": [pair.pretrained.seconds, pair.other.seconds],
                    "curves": [list(map(list, one.curve)) for one in (pair.pretrained, pair.other)],
                }
                for pair in self.pairs
            ],
            "questions": self.questions,
            "baselines": dict(self.levels),
            "notes": list(self.notes),
            "verdict": self.verdict(),
        }


def study_pretraining(train: Train, truth: Sequence[str], seeds: int | Sequence[int] = 3) -> Iterator[Pair]:
    """Trains pair after pair and judges each; the caller collects them in a `Pretraining`, shows them, or stops."""
    chosen = list(range(seeds)) if isinstance(seeds, int) else list(seeds)
    if not chosen or len(set(chosen)) != len(chosen):
        raise UsageError(f"The seeds are {chosen}; give at least one, and none twice.")
    for seed in chosen:
        pretrained, other = train(seed, True), train(seed, False)
        for one in (pretrained, other):
            if len(one.answers) != len(truth):
                raise InklingError(
                    f"The training of seed {seed} gave {len(one.answers)} answers to {len(truth)} questions; give one "
                    "for each."
                )
        yield Pair(seed, pretrained, other, exactly(pretrained.answers, truth), exactly(other.answers, truth))


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None

"""All that is known of some models on some texts: figures, which differences are real, and what to beware of.

A table for each text and each way of reading it (every byte, or what a lossy normalisation left), best first. A place
such as 1–2 means that the first two cannot be told apart. Compressors stand where their figure puts them, without a
place. One more table has the other units.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from inkling.figures import Cell, Chart, Column, Exhibit, Line, Page, Prose, Table
from inkling.measure.comparison import EVERY_BYTE, Comparison, compare, place, ranks, reading
from inkling.measure.compression import Compression
from inkling.measure.evaluation import BLOCK_BYTES, Evaluation
from inkling.measure.intervals import LEAST_BLOCKS
from inkling.measure.overlap import Overlap
from inkling.text.normalise import Losses

TITLE = "Language models on one ruler"
FLOOR = ("uniform bytes", "character unigram")  # beaten by anything; a sentence about that would be noise
SHORT_BLOCKS = 200  # below, false verdicts are too many if blocks are correlated (intervals.py has the figures)
DOUBTFUL = 0.005  # a p-value that could be luck on such a text
ALL_PAIRS = 6  # of runs: so many comparisons are all spelled out


@dataclass(frozen=True)
class Matrix:
    """`losses` are of each lossy normalisation of each text, `notes` what could not be done and why."""

    rows: tuple[Evaluation, ...]
    compressions: tuple[Compression, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    losses: tuple[tuple[str, Losses], ...] = ()
    overlaps: tuple[Overlap, ...] = ()
    notes: tuple[str, ...] = ()
    neural: tuple[str, ...] = ()  # names of the runs that should beat the baselines

    @classmethod
    def of(cls, rows: Sequence[Evaluation], *, seed: int = 0, **rest: Any) -> Matrix:
        """Compares all pairs on each text, and puts the rows in order: best first within each text."""
        texts = dict.fromkeys(row.text for row in rows)
        found = [c for text in texts for c in compare([row for row in rows if row.text == text], seed)]
        order = {text: number for number, text in enumerate(texts)}
        ordered = sorted(
            rows, key=lambda row: (order[row.text], row.lossy, reading(row), row.bits_per_byte.value, row.label)
        )
        return cls(tuple(ordered), comparisons=tuple(found), **rest)

    # ------------------------------------------------------------------------------------------- who is best

    def standings(self) -> list[tuple[str, str]]:
        """The texts and the ways of reading them, in order."""
        return list(dict.fromkeys((row.text, reading(row)) for row in self.rows))

    def _models(self, text: str, read: str) -> list[Evaluation]:
        return [row for row in self.rows if (row.text, reading(row)) == (text, read)]

    def _compressors(self, text: str, read: str) -> list[Compression]:
        named = [(row.normalisation if row.lossy else EVERY_BYTE, row) for row in self.compressions]
        return [row for what, row in named if (row.text, what) == (text, read)]

    def _pairs(self, text: str, read: str) -> list[Comparison]:
        return [c for c in self.comparisons if (c.text, c.reading) == (text, read)]

    def places(self, text: str, read: str) -> dict[str, tuple[int, int]]:
        return ranks(self._models(text, read), self._pairs(text, read))

    # ------------------------------------------------------------------------------------------- sentences

    def sentences(self) -> list[str]:
        found = []
        for text, read in self.standings():
            found += self._verdicts(text, read)
        for text, losses in self.losses:
            found.append(f"{text}: {losses.describe()} Figures behind it are of an easier text, not of a better model.")
        found += [overlap.sentence() for overlap in self.overlaps]
        return found + list(self.notes)

    def _verdicts(self, text: str, read: str) -> list[str]:
        models, pairs = self._models(text, read), self._pairs(text, read)
        if pairs and pairs[0].too_short:
            count = pairs[0].blocks
            short = (
                f"{text} is too short to tell models apart: {count} block{'s' * (count != 1)} of about "
                f"{BLOCK_BYTES:,} bytes, and {LEAST_BLOCKS} are needed."
            )
            return [short, *self._losers(text, read)]
        contenders = [row.label for row in models if not row.model.startswith(FLOOR)]
        runs = [row.label for row in models if row.kind == "run"]
        wanted = set(pairwise(contenders))
        if len(runs) * (len(runs) - 1) // 2 <= ALL_PAIRS:
            wanted |= {(a, b) for i, a in enumerate(runs) for b in runs[i + 1 :]}
        shown = [c for c in pairs if (c.better, c.worse) in wanted]
        said = [c.sentence() for c in shown]
        if any(c.real and c.corrected_p > DOUBTFUL and c.blocks < SHORT_BLOCKS for c in shown):
            said.append(
                f"{text} is short: where neighbouring passages resemble each other, a narrow verdict on it may be luck "
                f"more often than 5 % of the time; {SHORT_BLOCKS * BLOCK_BYTES // 1000:,} kB of text are safer."
            )
        return said + self._losers(text, read)

    def _losers(self, text: str, read: str) -> list[str]:
        """Networks that something simple beats."""
        said = []
        models = self._models(text, read)
        for row in (row for row in models if row.model in self.neural):
            bits = row.bits_per_byte.value
            simple = [(b.label, b.bits_per_byte.value) for b in models if b.kind == "baseline"]
            simple += [(c.label, c.bits_per_byte) for c in self._compressors(text, read)]
            ahead = sorted(((name, value) for name, value in simple if value <= bits), key=lambda pair: pair[1])
            if ahead:
                beaten = ", ".join(f"{name} ({value:.3f})" for name, value in ahead)
                said.append(
                    f"{row.label} does not beat {beaten} on {place(text, read)}: it needs {bits:.3f} bits per byte."
                )
        return said

    # ------------------------------------------------------------------------------------------- showing

    def tables(self) -> list[Table]:
        return [*(self._standing(text, read) for text, read in self.standings()), self._units()]

    def _standing(self, text: str, read: str) -> Table:
        models, places = self._models(text, read), self.places(text, read)
        cells: list[tuple[float, tuple[Cell, ...]]] = []
        for row in models:
            best, worst = places[row.label]
            t, bits = row.tally, row.bits_per_byte
            low, high = (None, None) if math.isnan(bits.low) else (bits.low, bits.high)
            rank = str(best) if best == worst else f"{best}–{worst}"
            units = (t.perplexity("word"), t.perplexity("char"), t.unknown_share, t.tokens)
            cells.append((bits.value, (rank, row.label, bits.value, low, high, *units)))
        for squeezed in self._compressors(text, read):
            value = squeezed.bits_per_byte
            cells.append((value, (None, f"{squeezed.label} (compressor)", value, *[None] * 6)))
        cells.sort(key=lambda pair: pair[0])
        columns = (
            Column("place"),
            Column("model"),
            Column("bits per byte", ".4f"),
            Column("low", ".4f"),
            Column("high", ".4f"),
            Column("ppl/word", ".4g"),
            Column("ppl/char", ".4g"),
            Column("unknown", ".1%"),
            Column("tokens", ",d"),
        )
        size = f"{models[0].tally.bytes:,} bytes"
        lossy = "" if read == EVERY_BYTE else ": LOSSY, an easier text, so ranked apart"
        title = f"{place(text, read)} ({size}), best first{lossy}"
        return Table(title, columns, tuple(row for _, row in cells))

    def _units(self) -> Table:
        columns = (
            Column("text"),
            Column("model"),
            Column("unknown charged", ".4g"),
            Column("unknown forgiven: NOT COMPARABLE", ".4g"),
        )
        sees = "; ".join(dict.fromkeys(f"{row.model} {row.context}" for row in self.rows))
        cells = tuple(
            (place(row.text, reading(row)), row.label, row.perplexity_per_token_charged, row.tally.perplexity("token"))
            for row in self.rows
        )
        notes = (
            "Bits per byte charges every byte of the original text, unknown words letter by letter: it alone compares "
            "any two models. low and high: 95 % interval from resampled blocks of text; place 1–2: two that cannot be "
            "told apart. ppl: perplexity, unknown words charged.",
            "Perplexity per token depends on the tokens, and with unknown words forgiven a small vocabulary looks "
            "clever: never compare it between vocabularies.",
            f"What a model sees of the text before a token: {sees}.",
        )
        return Table("Perplexity per token", columns, cells, notes)

    def summary(self) -> Page:
        """For a terminal: the tables, and below them what they mean."""
        said = Prose("\n".join(self.sentences()), "What can be said")
        return Page(TITLE, (*self.tables(), said))

    def page(self) -> Page:
        """For a browser: what can be said first, then the tables, with a chart for each text."""
        exhibits: list[Exhibit] = [Prose("\n\n".join(self.sentences()), "What can be said")]
        for text, read in self.standings():
            exhibits += [self._standing(text, read), self._chart(text, read)]
        return Page(TITLE, (*exhibits, self._units()))

    def _chart(self, text: str, read: str) -> Chart:
        models = [row for row in self._models(text, read) if not row.model.startswith(FLOOR)]
        lines = []
        for number, row in enumerate(models, 1):
            bits = row.bits_per_byte
            band = ((), ()) if math.isnan(bits.low) else ((bits.low,), (bits.high,))
            lines.append(Line(row.label, (number,), (bits.value,), *band))
        levels = tuple((row.label, row.bits_per_byte) for row in self._compressors(text, read))
        return Chart(
            f"Bits per byte on {place(text, read)}",
            "place",
            "bits per byte",
            tuple(lines),
            "Lower is better. Bars: 95 % interval of each figure; that two bars overlap does not mean that the two "
            "cannot be told apart, because they are compared block by block. Dotted: compressors.",
            levels=levels,
        )

    def to_json(self) -> dict[str, Any]:
        rows: list[dict[str, Any]] = []
        for text, read in self.standings():
            places = self.places(text, read)
            for number, row in enumerate(self._models(text, read), 1):
                best, worst = places[row.label]
                rows.append({**row.to_json(), "rank": number, "rank_best": best, "rank_worst": worst})
        rows += [row.to_json() for row in self.compressions]
        return {
            "rows": rows,
            "comparisons": [comparison.to_json() for comparison in self.comparisons],
            "losses": [{"text": text, **asdict(losses)} for text, losses in self.losses],
            "overlap": [overlap.to_json() for overlap in self.overlaps],
            "sentences": self.sentences(),
        }

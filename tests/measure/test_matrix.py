"""The matrix: best first, places that differ only where models do, and plain sentences."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from inkling.measure.comparison import EVERY_BYTE, Comparison
from inkling.measure.compression import Compression
from inkling.measure.evaluation import Blocks, Evaluation, Kind
from inkling.measure.intervals import Interval, ratio_interval
from inkling.measure.matrix import Matrix
from inkling.measure.overlap import Overlap
from inkling.measure.tally import LN2, Tally
from inkling.report.page import render
from inkling.text.normalise import Chain

TEXT = np.random.default_rng(0).normal(2.5, 0.4, 40)


def row(model: str, more: float, text: str = "x.txt", chain: str = "none", kind: Kind = "run") -> Evaluation:
    """A model that needs `more` bits per byte than the text is hard, give or take a little in each block."""
    spread = np.random.default_rng(len(model) + ord(model[0])).normal(0, 0.01, 40)
    bits = TEXT + more + spread - spread.mean()
    blocks = Blocks(bits * 2000 * LN2, np.full(40, 2000.0))
    tally = Tally(float(blocks.nats.sum()), 10.0, 20_000, 400, 15_000, 80_000, 80_000)
    interval = ratio_interval(bits * 2000, blocks.bytes)
    return Evaluation(model, text, chain, tally, interval, Chain.parse(chain).lossy, kind, "3 tokens", blocks)


ROWS = [
    row("net", 0.30),
    row("words", 0.10),
    row("letters", 0.10),
    row("character 6-gram", 0.20, kind="baseline"),
    row("uniform bytes", 5.0, kind="baseline"),
    row("words", -0.1, chain="lower"),
    row("net", -0.2, chain="lower"),
]
MATRIX = Matrix.of(
    ROWS,
    compressions=(Compression("xz -9e", "x.txt", "none", False, 21_000, 80_000),),
    losses=(("x.txt", Chain.parse("lower").losses("A cow\n")),),
    overlaps=(Overlap("x.txt", "t.txt", 0.5, 0.6, 80_000, True, False, ("a cow",)),),
    notes=("A note.",),
    neural=("net",),
)


def test_best_comes_first_and_those_that_cannot_be_told_apart_share_a_place() -> None:
    table = MATRIX.tables()[0]
    assert table.title == "x.txt (80,000 bytes), best first"
    places = [(cells[1], cells[0]) for cells in table.rows]
    assert places[0] == ("xz -9e (compressor)", None)
    assert sorted(places[1:3]) == [("letters", "1–2"), ("words", "1–2")]
    assert places[3:] == [("character 6-gram", "3"), ("net", "4"), ("uniform bytes", "5")]
    assert [column.heading for column in table.columns][:3] == ["place", "model", "bits per byte"]


def test_lossy_rows_are_ranked_apart_and_said_to_be_of_an_easier_text() -> None:
    table = MATRIX.tables()[1]
    assert table.title == "x.txt after lower (80,000 bytes), best first: LOSSY, an easier text, so ranked apart"
    assert [cells[1] for cells in table.rows] == ["net", "words"]
    assert not any("lower" in pair.reading and "6-gram" in pair.worse for pair in MATRIX.comparisons)
    said = next(s for s in MATRIX.sentences() if "Normalisation (lower)" in s)
    assert "changed 1 and removed 0 of 6 characters" in said
    assert said.endswith("Figures behind it are of an easier text, not of a better model.")


def test_sentences_say_who_is_better_who_is_not_and_who_should_be_ashamed() -> None:
    said = MATRIX.sentences()
    assert any(s.startswith(("words and letters cannot be told", "letters and words cannot be told")) for s in said)
    assert any(s.startswith("character 6-gram is better than net on x.txt by 0.1") for s in said)
    assert any(s.startswith("net is better than words on x.txt after lower by 0.1") for s in said)
    shame = next(s for s in said if "does not beat" in s)
    assert shame.startswith("net does not beat ")
    assert "xz -9e (2.100)" in shame
    assert "character 6-gram (" in shame
    assert not any("uniform" in s for s in said)
    assert any(s.startswith("Warning: 50.0% of x.txt stands word for word in the training text t.txt") for s in said)
    assert said[-1] == "A note."


def test_forgiven_perplexity_is_marked() -> None:
    units = MATRIX.tables()[-1]
    assert any("NOT COMPARABLE" in column.title for column in units.columns)
    charged, forgiven = (float(units.rows[0][i] or 0) for i in (2, 3))
    assert charged == pytest.approx(forgiven * math.exp(10 / 20_000))
    assert any("net 3 tokens" in note for note in units.notes)


def test_the_tables_are_narrow_enough_for_a_terminal() -> None:
    for table in MATRIX.tables():
        widths = [
            max(len(column.heading), *(len(column.show(cells[i])) for cells in table.rows))
            for i, column in enumerate(table.columns)
        ]
        assert sum(widths) + 3 * (len(widths) - 1) <= 110


def test_the_order_of_the_rows_changes_nothing_within_a_text() -> None:
    again = Matrix.of(ROWS[::-1])
    assert again.comparisons == MATRIX.comparisons
    assert [r.label for r in again.rows] == [r.label for r in MATRIX.rows]


def test_json_is_one_document_with_places() -> None:
    found = MATRIX.to_json()
    assert json.loads(json.dumps(found)) == found
    assert set(found) == {"rows", "comparisons", "losses", "overlap", "sentences"}
    by_name = {(r["model"], r["normalisation"]): r for r in found["rows"]}
    assert by_name["net", "none"]["rank"] == 4
    assert (by_name["words", "none"]["rank_best"], by_name["words", "none"]["rank_worst"]) == (1, 2)
    assert by_name["net", "lower"]["rank"] == 1
    assert by_name["xz -9e", "none"]["kind"] == "compressor"
    pair = next(c for c in found["comparisons"] if {c["better"], c["worse"]} == {"character 6-gram", "net"})
    assert pair["real"] is True
    assert pair["low"] <= pair["difference"] <= pair["high"]


def test_a_short_text_is_said_to_be_too_short_once() -> None:
    short = [
        Evaluation(
            r.model, r.text, "none", r.tally, r.bits_per_byte, False, blocks=Blocks(r.blocks.nats[:3], np.ones(3))
        )
        for r in ROWS[:3]
    ]
    said = Matrix.of(short).sentences()
    assert said == ["x.txt is too short to tell models apart: 3 blocks of about 2,000 bytes, and 8 are needed."]


def test_the_page_has_a_chart_for_each_standing() -> None:
    page = render(MATRIX.page())
    assert page.count("<svg") == 2
    assert "cannot be told apart" in page


def test_a_narrow_verdict_on_a_short_text_carries_a_warning() -> None:
    def judged(p: float, blocks: int) -> Matrix:
        pair = Comparison("x.txt", EVERY_BYTE, "words", "net", Interval(0.2, 0.1, 0.3), p, p, blocks)
        return Matrix((ROWS[1], ROWS[0]), comparisons=(pair,))

    def warns(matrix: Matrix) -> bool:
        return any("may be luck more often than 5 %" in sentence for sentence in matrix.sentences())

    assert warns(judged(0.03, 40))
    assert not warns(judged(1e-5, 40))  # far from luck
    assert not warns(judged(0.03, 300))  # long enough
    assert not warns(judged(0.2, 40))  # no verdict

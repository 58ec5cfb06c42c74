"""The page of mistakes shows the texts, safely, and tells verdict from label with and without colour."""

from __future__ import annotations

import base64
import hashlib
import io
import re
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inkling.errors import InklingError
from inkling.explain.errors import ErrorReport, Group, GroupWord
from inkling.explain.faithfulness import Deletion, Faithfulness
from inkling.explain.reasons import MIXTURE, STRONG_WORDS, Case, Mistake
from inkling.explain.weighing import Weighed
from inkling.measure.classification import ClassificationReport
from inkling.measure.intervals import Interval
from inkling.report.errors import EXCERPT_CHARS, excerpt, level, render, scale, write, write_terminal
from inkling.report.terminal import safe

VOID = {"meta", "rect"}
LEVELS = (0.1, 0.2, 0.5, 1.0)


def mistake(
    pieces: list[tuple[str, float]],
    row: int = 7,
    sentences: list[tuple[int, int]] | None = None,
    between: str = " ",
    kind: str = MIXTURE,
    known: list[bool] | None = None,
) -> Mistake:
    """Words with their shares, which are their effects too."""
    words, shares = [word for word, _ in pieces], np.array([share for _, share in pieces], np.float64)
    lengths = np.array([len(word) for word in words], np.int64)
    starts = np.cumsum(np.append(0, lengths + len(between)))[: len(words)].astype(np.int64)
    spans = np.array([(0, len(words))] if sentences is None else sentences, np.int64).reshape(-1, 2)
    sums = np.array([shares[first:last].sum() for first, last in spans.tolist()])
    margin = float(shares.sum())
    case = Case(row, 0, 1, 0.875, margin, kind, f"Reason of {row}.", tuple(pieces[:1]))
    seen = np.array(known if known is not None else [True] * len(words), np.bool_)
    text = between.join(words)
    weighed = Weighed(text, 0.875, margin, starts, starts + lengths, seen, shares, shares, spans, sums, sums)
    return Mistake(case, weighed)


@cache
def of_classes(labels: tuple[str, ...], name: str) -> ClassificationReport:
    log_probs = np.log(np.full((4, 2), 0.5))
    return ClassificationReport.of(labels, [0, 0, 1, 1], log_probs, name=name, text_name="test.csv")


def report(*mistakes: Mistake, labels: tuple[str, ...] = ("neg", "pos"), name: str = "dan") -> ErrorReport:
    groups = (Group(0, 1, tuple(m.case.row for m in mistakes), (GroupWord("great", 3.0, 2),), mistakes[0]),)
    return ErrorReport(
        name, "test.csv", labels, 4, tuple(m.case for m in mistakes), mistakes, groups, of_classes(labels, name)
    )


class Reader(HTMLParser):
    """Tags must nest; `shown` is the text of each card, `shades` its words with titles, `lines` marked sentences."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[tuple[str, str]] = []
        self.shown: list[str] = []
        self.shades: list[tuple[str, str, str]] = []
        self.lines: dict[str, str] = {}
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        named = {name: value or "" for name, value in attrs}
        if tag not in VOID:
            self.open.append((tag, named.get("class", "")))
        if named.get("class") == "text":
            self.shown.append("")
        if "title" in named:
            self.shades.append((named["class"], "", named["title"]))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        if not any(kind == "text" for _, kind in self.open):
            return
        self.shown[-1] += data
        tag, kind = self.open[-1]
        if tag == "span" and kind != "cut":
            self.shades[-1] = (kind, self.shades[-1][1] + data, self.shades[-1][2])
        for name, marked in self.open:
            if name == "u":
                self.lines[marked] = self.lines.get(marked, "") + data


def read(found: ErrorReport) -> Reader:
    reader = Reader()
    reader.feed(render(found))
    reader.close()
    assert reader.open == []
    return reader


# ------------------------------------------------------------------------------------------------ safety


def test_markup_and_unseen_characters_of_texts_labels_and_names_are_shown_not_obeyed() -> None:
    evil = '<script>alert("x")</script>'
    bad = mistake([(evil, 2.0), ("\x1b[31m\u202e", -1.0), ("'\"&", 0.0)])
    found = report(bad, labels=(evil, '"><img src=x>'), name="<b>dan</b>")
    page = render(found)
    for raw in ("<script", "<img", "<b>dan", "\x1b", "\u202e"):
        assert raw not in page
    assert read(found).tags.isdisjoint({"script", "img", "link", "iframe"})
    assert "&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;" in page


def test_nothing_is_loaded_and_only_the_own_style_is_allowed() -> None:
    found = report(mistake([("great", 2.0), ("film", 0.0)]))
    page = render(found)
    [style] = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'sha256-{digest}'" in page
    assert "url(" not in style
    assert "@import" not in style
    assert "prefers-color-scheme: dark" in style
    attributes = read(found).attributes
    names = {name for name, _ in attributes}
    assert names.isdisjoint({"style", "src", "onclick", "srcset"})
    assert all(value.startswith("#row-") for name, value in attributes if name == "href")
    assert "http://" not in page
    assert "https://" not in page


@settings(deadline=None, max_examples=50)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8), min_size=1, max_size=8))
def test_a_short_text_is_shown_whole_and_as_it_is(words: list[str]) -> None:
    found = mistake([(word, 0.3 * i - 1) for i, word in enumerate(words)])
    assert read(report(found)).shown == [safe(found.weighed.text)]


# ------------------------------------------------------------------------------------------------ what is drawn


def test_words_are_shaded_by_side_and_size_on_the_scale_of_the_page() -> None:
    found = mistake([("superb", 1.2), ("fine", 0.25), ("the", 0.01), ("awful", -0.6), ("qwx", 0.0)])
    found = mistake(
        [*zip(found.weighed.text.split(), found.weighed.shares.tolist(), strict=True)], known=[True] * 4 + [False]
    )
    assert scale((found.weighed,)) == pytest.approx(LEVELS)
    assert read(report(found)).shades == [
        ("v4", "superb", "1.20 nats for pos (left out alone: +1.20)"),
        ("v2", "fine", "0.25 nats for pos (left out alone: +0.25)"),
        ("g3", "awful", "0.60 nats for neg (left out alone: +0.60)"),
        ("x", "qwx", "unknown"),
    ]


@pytest.mark.parametrize(("share", "expected"), [(0.0, 0), (0.09, 0), (0.1, 1), (-0.2, -2), (0.99, 3), (-7.0, -4)])
def test_a_level_is_reached_from_either_side(share: float, expected: int) -> None:
    assert level(share, LEVELS) == expected


def test_the_scale_is_of_round_numbers_and_exists_without_mistakes() -> None:
    assert scale(()) == pytest.approx((0.1, 0.2, 0.5, 1.0))
    assert scale((mistake([("a", 0.07)]).weighed,)) == pytest.approx((0.005, 0.01, 0.025, 0.05))
    assert scale((mistake([("a", 35.0)]).weighed, mistake([("a", -35.0)]).weighed)) == pytest.approx(
        (2.0, 4.0, 10.0, 20.0)
    )


def test_the_two_sentences_are_marked_and_told_apart_without_colour() -> None:
    found = mistake(
        [("Great", 1.0), ("fun.", 0.1), ("So", 0.0), ("dull.", -0.5), ("Yes.", 0.2)], sentences=[(0, 2), (2, 4), (4, 5)]
    )
    reader = read(report(found))
    assert reader.lines == {"decided": "Great fun.", "against": "So dull."}
    style = re.findall(r"<style>(.*?)</style>", render(report(found)), re.DOTALL)[0]
    assert "u.against { text-decoration-style: dotted" in style
    assert re.search(r"\.v3 {[^}]*font-weight: 700", style)
    assert re.search(r"\.g3 {[^}]*font-style: italic", style)


def test_line_breaks_of_the_web_are_line_ends() -> None:
    found = mistake([("good", 1.0), ("bad", -0.5)], between="<br /><br />")
    assert read(report(found)).shown == ["good\n\nbad"]


def test_a_card_says_row_pair_probability_and_reason() -> None:
    page = render(report(mistake([("great", 1.0)], row=12, kind=STRONG_WORDS)))
    assert '<article class="card" id="row-12">' in page
    assert '<span class="given">neg</span> → <span class="taken">pos</span>' in page
    for part in ("row 12", "87.5 %", STRONG_WORDS, "Reason of 12.", "dan on test.csv", "Confusion"):
        assert part in page
    assert '<a href="#row-12">row 12</a>' in page  # the example of a group leads to its card
    assert "great <small>2</small>" in page


def test_a_report_without_mistakes_is_a_page_too() -> None:
    page = render(ErrorReport("dan", "test.csv", ("neg", "pos"), 3, (), (), ()))
    assert "dan makes no mistake on the 3 texts of test.csv." in page


def test_what_the_figures_must_be_read_with_stands_below_the_first_paragraph(tmp_path: Path) -> None:
    notes = ("dan was trained on test.csv itself.", "2 rows left out ('<b>maybe</b>\x1b' 2).")
    found = report(mistake([("great", 1.0)]))
    page = render(found, notes=notes)
    section = page.split('<p class="lead">')[1].split("</section>")[0]
    assert '<p class="note">dan was trained on test.csv itself.</p>' in section
    assert "&lt;b&gt;maybe&lt;/b&gt;" in section
    assert "<b>maybe" not in page
    assert "\x1b" not in page
    write(found, tmp_path / "noted.html", None, notes)
    assert (tmp_path / "noted.html").read_text(encoding="utf-8") == page
    assert notes[0] not in render(found)


def test_faithfulness_is_drawn_when_it_was_measured() -> None:
    curve = Deletion("exact effect", (2.0, 1.0), Interval(1.5, 1.0, 2.0), None)
    page = render(report(mistake([("great", 1.0)])), Faithfulness((0.0, 0.5), 10, (curve,)))
    assert "Which order finds the words that matter" in page
    assert "<svg" in page


# ------------------------------------------------------------------------------------------------ long texts


def long_mistake() -> Mistake:
    """100 sentences of 3 words and 30 characters; the 40th decides, the 80th opposes."""
    pieces: list[tuple[str, float]] = []
    for i in range(100):
        share = 2.0 if i == 40 else -1.0 if i == 80 else 0.0001 * i
        pieces += [(f"sentence{i:02}", 0.0), ("is-number", share), (f"such{i:02}x.", 0.0)]
    return mistake(pieces, sentences=[(3 * i, 3 * i + 3) for i in range(100)])


def test_a_long_text_is_cut_around_the_sentences_that_weigh_most_and_unfolds() -> None:
    found = long_mistake()
    places = excerpt(found.weighed)
    assert sum(end - start for start, end in places) <= EXCERPT_CHARS
    assert all(a[1] < b[0] for a, b in pairwise(places))
    reader = read(report(found))
    short, whole = reader.shown
    assert "sentence40 is-number such40x." in short
    assert "sentence80 is-number such80x." in short
    assert " … " in short
    assert len(short) < EXCERPT_CHARS + 200
    assert whole == found.weighed.text
    assert "details" in reader.tags
    assert "The whole text, 2,999 characters" in render(report(found))


def test_neighbouring_sentences_are_shown_together_whatever_space_is_between_them() -> None:
    pieces = [("x" * 200, 0.01), ("y" * 200, 2.0), ("z" * 200, -1.0), *[("w" * 400, 0.0)] * 4]
    found = mistake(pieces, sentences=[(i, i + 1) for i in range(7)], between=" <br /><br />")
    assert excerpt(found.weighed, 500) == [(213, 626)]


def test_a_sentence_without_end_is_cut_around_its_strongest_word() -> None:
    pieces = [("word", 0.0)] * 1000
    pieces[500] = ("strong", 3.0)
    [(start, end)] = excerpt(mistake(pieces).weighed)
    shown = mistake(pieces).weighed.text[start:end]
    assert "strong" in shown
    assert 450 < len(shown) <= 500
    assert shown.startswith("word ")
    assert shown.endswith(" word")
    [(start, end)] = excerpt(mistake([("x" * 9000, 1.0)]).weighed)
    assert end - start <= EXCERPT_CHARS


def test_a_long_text_without_words_shows_its_beginning() -> None:
    blank = mistake([], sentences=[])
    blank = Mistake(blank.case, replace(blank.weighed, text="?" * 5000))
    assert excerpt(blank.weighed) == [(0, EXCERPT_CHARS)]
    assert "The whole text, 5,000 characters" in render(report(blank))


# ------------------------------------------------------------------------------------------------ writing


def test_a_page_is_written_whole_or_the_reason_is_said(tmp_path: Path) -> None:
    found = report(mistake([("great", 1.0)]))
    write(found, tmp_path / "x.html")
    assert (tmp_path / "x.html").read_text(encoding="utf-8") == render(found)
    assert [path.name for path in tmp_path.iterdir()] == ["x.html"]
    with pytest.raises(InklingError, match=r"cannot be written to .*missing.*name a file"):
        write(found, tmp_path / "missing" / "x.html")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_colours_and_a_pipe_plain_text(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    words = [("superb", 1.0), ("awful\x1b[31m", -0.5), ("film\n", 0.0)]
    found = report(mistake(words, sentences=[(0, 2), (2, 3)]))
    plain, coloured = io.StringIO(), Terminal()
    write_terminal(found, plain)
    assert "\x1b" not in plain.getvalue()
    for part in ("row 7  neg → pos  87.5 %  mixed praise and blame", "Reason of 7.", "superb awful\\x1b[31m film"):
        assert part in plain.getvalue()
    assert "decided by (+0.50 nats): “superb awful\\x1b[31m”" in plain.getvalue()
    assert capsys.readouterr().err == ""
    write_terminal(found, coloured)
    assert "\x1b[1;4;38;5;166msuperb\x1b[0m \x1b[1;38;5;32mawful\\x1b[31m\x1b[0m film" in coloured.getvalue()
    assert "Nats for the verdict:" in capsys.readouterr().err


def test_only_the_first_mistakes_go_to_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    out = io.StringIO()
    write_terminal(report(*(mistake([("great", 1.0)], row=i) for i in range(5))), out, most=2)
    assert "Reason of 1." in out.getvalue()
    assert "Reason of 2." not in out.getvalue()
    assert "3 more mistakes" in capsys.readouterr().err

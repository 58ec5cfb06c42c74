"""The HTML page: everything escaped, nothing loaded, written whole or not at all."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inkling.errors import InklingError
from inkling.figures import Bars, Chart, Cloud, Column, HeatMap, Line, Page, Panels, Prose, Series, Spots, Table
from inkling.report.page import render, write
from inkling.report.terminal import safe

VOID = {"meta"}
OURS = {
    *("html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "section", "p", "figure", "figcaption"),
    *("div", "table", "thead", "tbody", "tr", "th", "td", "span", "pre"),
    *("svg", "desc", "text", "line", "path", "polygon", "circle", "rect", "g"),
}


class Reader(HTMLParser):
    """Reads a page back: its tags must nest, and its text is what a browser would show."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.text.append(data)


def read(page: Page) -> Reader:
    reader = Reader()
    reader.feed(render(page))
    reader.close()
    assert reader.open == []
    return reader


def everywhere(text: str) -> Page:
    """A page with the same text in every place that takes text."""
    table = Table(text, (Column(text, unit=text, note=text), Column("n", ".2f")), ((text, 1.0), (None, 2.0)), (text,))
    chart = Chart(text, text, text, (Line(text, [1, 2], [3, 4]),), text, levels=((text, 3.5),))
    bars = Bars(text, text, text, (text,), (Series(text, [1]), Series(text, [2])), text, ((text, 3.5),))
    cloud = Cloud(text, text, text, (Spots(text, [1, 2], [3, 4]),), text, ((text, 1.0, 2.0),))
    heat = HeatMap(text, text, text, (text,), (text, text), [[1.0, -2.0]], text, text)
    pictures = (chart, bars, cloud, heat, Panels(text, (heat, heat), text))
    return Page(text, (table, *pictures, Prose(text, text), Prose(text, text, literal=True)))


nasty = st.sampled_from(["<script>alert(1)</script>", "</title><b>", '"><img src=x onerror=y>', "]]>", "<!--", "&amp;"])


@settings(deadline=None, max_examples=80)
@given(st.one_of(st.text(), nasty, st.tuples(st.text(), nasty, st.text()).map("".join)))
def test_any_text_gives_a_page_with_our_tags_only(text: str) -> None:
    reader = read(everywhere(text))
    assert {tag for tag, _ in reader.seen} <= OURS
    names = {name for _, attributes in reader.seen for name in attributes}
    assert not {name for name in names if name.startswith("on") or name in ("src", "href", "style", "id")}


@settings(deadline=None, max_examples=40)
@given(st.text(st.characters(exclude_characters="\r"), min_size=1))
def test_a_literal_block_shows_the_text_as_it_is(text: str) -> None:
    shown = render(Page("t", (Prose(text, literal=True),)))
    reader = Reader()
    reader.feed(re.search(r"<pre>\n.*</pre>", shown, re.DOTALL)[0])  # type: ignore[index]
    assert "".join(reader.text) == "\n" + safe(text)


def test_the_page_loads_and_runs_nothing() -> None:
    text = render(everywhere("words"))
    assert "<script" not in text
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in text
    assert "url(" not in text
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
    assert style
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert policy.startswith("default-src 'none'; ")
    assert f"style-src 'sha256-{digest}'" in policy


def test_numbers_are_aligned_and_text_is_not() -> None:
    table = Table("t", (Column("name"), Column("loss", ".2f", "nats")), (("a", 1.2345), ("b", None)))
    text = render(Page("p", (table,)))
    assert '<td>a</td><td class="number">1.23</td>' in text
    assert '<td>b</td><td class="number">–</td>' in text
    assert '<th scope="col" class="number">loss <span class="unit">(nats)</span></th>' in text


def test_exhibits_come_in_order_with_their_captions() -> None:
    page = Page(
        "The run",
        (
            Prose("One.\n\nTwo.", "Words"),
            Chart("Curve", "x", "y", (Line("a", [0, 1], [1, 2]),), "How to read it."),
            Table("Numbers", (Column("n"),), ((1,),), ("A note.",)),
        ),
    )
    text = render(page)
    wanted = ["<h1>The run</h1>", "<h2>Words</h2>", "<p>One.</p>\n<p>Two.</p>", "<h2>Curve</h2>", "<svg"]
    wanted += ["<figcaption>How to read it.</figcaption>", "<h2>Numbers</h2>", "<table>", '<p class="note">A note.</p>']
    places = [text.index(part) for part in wanted]
    assert places == sorted(places)


def test_a_table_without_rows_says_so() -> None:
    assert '<td colspan="2">no rows</td>' in render(Page("p", (Table("t", (Column("a"), Column("b")), ()),)))


def test_write_replaces_the_file_and_leaves_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    target.write_text("old")
    page = Page("Grüße", (Prose("\ud800 half a character"),))
    write(page, target)
    assert target.read_text("utf-8") == render(page)
    assert list(tmp_path.iterdir()) == [target]


def test_a_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "report.html"
    target.write_text("old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(InklingError, match="No space left on device"):
        write(Page("new"), target)
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_missing_folder_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InklingError, match="name a file in a folder that can be written"):
        write(Page("p"), tmp_path / "missing" / "report.html")

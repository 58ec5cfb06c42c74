"""Surprise drawn: coloured where a terminal is, and a page that shows the text and nothing that was not in it."""

from __future__ import annotations

import base64
import hashlib
import io
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inkling.errors import InklingError
from inkling.explain.surprise import Comparison, Surprise, compare
from inkling.report import surprise as module
from inkling.report.surprise import (
    FIRST_SHADES,
    SECOND_SHADES,
    SHADES,
    is_coloured,
    legend,
    render,
    shaded,
    shaded_token,
    write,
    write_terminal,
)
from inkling.report.terminal import safe

VOID = {"meta"}


def made(
    pieces: list[str], bits: list[float], name: str = "model", ends: list[int] | None = None, unknown: int | None = None
) -> Surprise:
    text = "".join(pieces)
    return Surprise(
        model=name,
        text_name="text.txt",
        normalisation="none",
        text=text,
        bits=np.array(bits, np.float64),
        byte_ends=np.cumsum([len(piece.encode()) for piece in pieces], dtype=np.int64),
        unknown=np.arange(len(pieces)) == unknown,
        document_ends=np.array(ends or [len(text.encode())], np.int64),
        original_bytes=len(text.encode()),
    )


class Reader(HTMLParser):
    """Tags must nest; `shown` is the text inside the box of tokens, `titles` what a pointer would show there."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[tuple[str, str]] = []
        self.shown = ""
        self.titles: list[tuple[str, str]] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        named = dict(attrs)
        if tag not in VOID:
            self.open.append((tag, named.get("class") or ""))
        if named.get("title"):
            self.titles.append((named.get("class") or "", named["title"] or ""))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        if any(kind == "tokens" for _, kind in self.open):
            self.shown += data


def read(found: Surprise | Comparison) -> Reader:
    reader = Reader()
    reader.feed(render(found))
    reader.close()
    assert reader.open == []
    return reader


# ------------------------------------------------------------------------------------------------ the page


@settings(deadline=None, max_examples=50)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6), min_size=1, max_size=8))
def test_the_page_shows_the_text_and_nothing_that_was_not_in_it(pieces: list[str]) -> None:
    found = made(pieces, [float(2**i) / 2 for i in range(len(pieces))])
    reader = read(found)
    assert reader.shown == safe(found.text) + "\n" * (not found.text.endswith("\n"))
    assert len(reader.titles) == len(pieces)


def test_markup_in_texts_and_names_is_escaped() -> None:
    found = made(['<script>alert("x")</script>', "'\"&\x1b[31m\u202e"], [3.0, 1.0], name='<img src="x">')
    page = render(found)
    assert "<script" not in page
    assert "<img" not in page
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert read(found).tags.isdisjoint({"script", "img", "link", "iframe"})


def test_nothing_is_loaded_and_only_the_own_style_is_allowed() -> None:
    page = render(made(["a", "b"], [1.0, 2.0]))
    [style] = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'sha256-{digest}'" in page
    assert "http://" not in page
    assert "https://" not in page
    assert "url(" not in style
    assert "@import" not in style
    assert "style" not in read(made(["a"], [1.0])).attributes
    assert "prefers-color-scheme: dark" in style


def test_each_token_has_its_shade_and_says_its_bits() -> None:
    found = made(["The", " ba", "ker", "\n"], [0.5, 3.0, 17.25, 1.5], unknown=2)
    assert read(found).titles == [
        ("", "0.50 bits · The"),
        ("s2", "3.00 bits ·  ba"),
        ("s5 u", "17.25 bits, unknown · ker"),
        ("s1", "1.50 bits · \\n"),
    ]
    page = render(found)
    assert "2.225 bits per byte" in re.sub(r"\s+", " ", page)  # 22.25 bits for 10 bytes: 3 + 3 + 3 + 1
    assert '<span class="s5">≥16</span><span class="u">unknown</span>' in page


def test_documents_without_line_ends_stand_on_lines_of_their_own() -> None:
    assert read(made(["ab", "cd"], [1.0, 1.0], ends=[2, 4])).shown == "ab\ncd\n"
    assert read(made(["ab\n", "cd\n"], [1.0, 1.0], ends=[3, 6])).shown == "ab\ncd\n"


def test_a_long_text_is_cut_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAGE_CHARS", 10)
    found = made(["word "] * 5, [1.0] * 5)
    assert read(found).shown == "word word "
    assert "Only the first 10 of 25 characters are shown." in render(found)
    assert "Only the first" not in render(made(["word "] * 2, [1.0] * 2))


def test_a_text_of_some_length_has_its_course_drawn() -> None:
    assert "Along the text" in render(made(["ten bytes "] * 300, [5.0] * 300))
    assert "Along the text" not in render(made(["ten bytes "] * 3, [5.0] * 3))


def test_two_models_are_shaded_by_who_saves() -> None:
    first = made(["ab", " cd", " ef", "\n"], [2.0, 6.0, 1.0, 0.0], "left")
    second = made(["ab", " cd", " ef", "\n"], [5.0, 1.5, 1.0, 0.0], "right")
    found = compare(first, second)
    reader = read(found)
    assert reader.shown == "ab cd ef\n"
    assert reader.titles[:3] == [
        ("a2", "left 2.0 bits, right 5.0 bits · ab"),
        ("b3", "left 6.0 bits, right 1.5 bits · cd"),
        ("", "left 1.0 bits, right 1.0 bits · ef"),
    ]
    page = render(found)
    for title in ("Words where left knows more", "Words where right knows more", "Lines where"):
        assert title in page


def test_a_page_is_written_whole_or_the_reason_is_said(tmp_path: Path) -> None:
    found = made(["a"], [1.0])
    write(found, tmp_path / "x.html")
    assert (tmp_path / "x.html").read_text(encoding="utf-8") == render(found)
    assert [path.name for path in tmp_path.iterdir()] == ["x.html"]
    with pytest.raises(InklingError, match=r"cannot be written to .*missing.*name a file"):
        write(found, tmp_path / "missing" / "x.html")


# ------------------------------------------------------------------------------------------------ the terminal


def test_letters_are_coloured_by_their_bits_and_made_safe() -> None:
    assert shaded_token("the", 0.5) == "the"
    assert shaded_token("the", 3.0) == f"\x1b[{SHADES[2]}mthe\x1b[0m"
    assert shaded_token("a\x1b[31m", 20.0) == f"\x1b[{SHADES[5]}ma\\x1b[31m\x1b[0m"


def test_surprising_spaces_and_line_ends_can_be_seen() -> None:
    assert shaded(" ", "31") == "\x1b[4;31m \x1b[0m"
    assert shaded("a\nb", "31") == "\x1b[31ma↵\x1b[0m\n\x1b[31mb\x1b[0m"
    assert shaded("\n", "31") == "\x1b[31m↵\x1b[0m\n"
    assert shaded("\n", "") == "\n"


def test_the_legend_names_every_shade() -> None:
    assert legend() == "Surprise in bits: <1  1–2  2–4  4–8  8–16  ≥16"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colour_is_for_terminals_that_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "")
    assert is_coloured(Terminal())
    assert not is_coloured(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not is_coloured(Terminal())


def luminance(colour: int) -> float:
    """Relative luminance (WCAG 2) of one of the 216 colours of the terminal cube."""
    levels = (0, 95, 135, 175, 215, 255)
    parts = [levels[(colour - 16) // step % 6] / 255 for step in (36, 6, 1)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("shade", [*SHADES[1:], *FIRST_SHADES[1:], *SECOND_SHADES[1:]])
def test_every_colour_can_be_read_on_black_and_on_white(shade: str) -> None:
    bright = luminance(int(shade.rsplit(";", 1)[1]))
    assert (bright + 0.05) / 0.05 >= 3
    assert 1.05 / (bright + 0.05) >= 2.9


def test_the_whole_text_goes_to_the_terminal_with_a_line_end(capsys: pytest.CaptureFixture[str]) -> None:
    out = io.StringIO()
    write_terminal(made(["ab", "cd", " e"], [0.5, 4.0, 0.1], ends=[2, 6]), out)
    assert out.getvalue() == f"ab\n\x1b[{SHADES[3]}mcd\x1b[0m e\n"
    assert capsys.readouterr().err == legend() + "\n"


def test_two_models_have_a_legend_each(capsys: pytest.CaptureFixture[str]) -> None:
    out = io.StringIO()
    first, second = made(["ab", " cd"], [2.0, 6.0], "left"), made(["ab", " cd"], [5.0, 1.5], "right")
    write_terminal(compare(first, second), out)
    assert out.getvalue() == f"\x1b[{FIRST_SHADES[2]}mab\x1b[0m\x1b[{SECOND_SHADES[3]}m cd\x1b[0m\n"
    assert [line.split(",")[0] for line in capsys.readouterr().err.splitlines()] == ["left saves", "right saves"]


def test_a_terminal_is_not_flooded(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(module, "TERMINAL_CHARS", 10)
    out = io.StringIO()
    write_terminal(made(["word "] * 5, [0.1] * 5), out)
    assert out.getvalue() == "word word \n"
    assert "first 10 of 25 characters" in capsys.readouterr().err

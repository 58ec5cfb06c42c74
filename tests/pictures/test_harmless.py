"""Harmless text: what a terminal or a page would obey is shown, and nothing is left unseen."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inkling.pictures.harmless import one_line, safe


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, naïve, 日本 🙂", "plain, naïve, 日本 🙂"),
        ("a\nb\tc", "a\nb\tc"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("\x00\x07\r\x7f", "\\x00\\x07\\r\\x7f"),
        ("\x9b31m", "\\x9b31m"),
        ("\u202eevil\u202c", "\\u202eevil\\u202c"),
        ("a\u200bb\ufeffc\u00add", "a\\u200bb\\ufeffc\\xadd"),
        ("line\u2028end", "line\\u2028end"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
        ("a\u00a0b", "a\u00a0b"),
    ],
)
def test_what_a_terminal_would_obey_is_shown(text: str, shown: str) -> None:
    assert safe(text) == shown


@settings(deadline=None)
@given(st.text())
def test_safe_text_holds_nothing_unseen(text: str) -> None:
    shown = safe(text)
    assert not [c for c in shown if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") and c not in "\n\t"]
    assert safe(shown) == shown
    assert len(one_line(text).splitlines()) <= 1

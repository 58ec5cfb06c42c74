"""Text from outside, made harmless before it is shown: what a terminal or a page would obey is written out instead.

Control characters, bidirectional overrides and zero-width characters become their Python escapes, which every font can
draw. What is left may still hold `<` and `&`: who writes HTML escapes after this.
"""

from __future__ import annotations


def safe(text: str) -> str:
    """`text` with every character that a terminal would obey, or a reader would not see, shown instead.

    They become their Python escapes (\\x1b, \\r, \\u202e), which every font can draw. Newline and tab stay.
    """
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else _shown(character) for character in text)


def _shown(character: str) -> str:
    code = ord(character)
    if character in "\n\t":
        return character
    import unicodedata

    category = unicodedata.category(character)
    unseen = category in ("Cc", "Cf", "Cs", "Zl", "Zp") or code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF
    if not unseen:  # other spaces, private use, letters newer than this Python: strange, but they do nothing
        return character
    return character.encode("unicode_escape").decode("ascii")


def one_line(text: str) -> str:
    """`safe`, and newlines and tabs shown too: for a cell or a heading, where a second line would lie about rows."""
    return safe(text).replace("\n", "\\n").replace("\t", "\\t")

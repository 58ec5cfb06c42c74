"""Surprise drawn: as coloured text on a terminal, and as one HTML page that needs nothing else.

Each token is shaded by its bits on one fixed scale (below 1, then 1, 2, 4, 8, 16 and more), so that two pages can be
laid side by side. Two models together are shaded by who saves how much: blue the first, orange the second. On a
terminal the letters are coloured, in middle tones that can be read on black and on white; a surprising space is
underlined and a surprising line end shown as ↵. On the page the ground is coloured, and light or dark follows the
reader's system; the exact bits stand in the title of each stretch, which a pointer over it shows.

All text passes `safe` and is escaped; the page's policy forbids everything but its own style sheet.
Left out: scripts. A page is cut at 200,000 characters, and says so.
"""

from __future__ import annotations

import html
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import IO

from inkling.explain.surprise import LEVEL_BITS, SAVED_LEVEL_BITS, Comparison, Surprise, level, saved_level
from inkling.figures import Chart, Exhibit, Line
from inkling.report import page, terminal
from inkling.report.terminal import one_line, safe

PAGE_CHARS = 200_000
TERMINAL_CHARS = 20_000
COURSE_BYTES = 2_000  # a shorter text has no course to draw

# Colours of the 256 that terminals share, from slate through violet to red; level 0 stays as it is.
SHADES = ("", "38;5;67", "38;5;97", "38;5;133", "38;5;168", "1;38;5;203")
FIRST_SHADES = ("", "38;5;67", "38;5;32", "1;38;5;32", "1;4;38;5;32")
SECOND_SHADES = ("", "38;5;137", "38;5;166", "1;38;5;166", "1;4;38;5;166")

STYLE = """
:root {
  --s1: #fff6db; --s2: #ffe9b8; --s3: #fdd094; --s4: #f39c6c; --s5: #c93d3a; --deep: #ffffff;
  --a1: #e3eefb; --a2: #bcd7f5; --a3: #86b5ea; --a4: #2a6cb5;
  --b1: #fdebdc; --b2: #fad0ac; --b3: #f2a566; --b4: #b9540d;
}
@media (prefers-color-scheme: dark) {
  :root {
    --s1: #2c2a20; --s2: #473b1d; --s3: #6b4a1a; --s4: #94471f; --s5: #c23a36; --deep: #ffffff;
    --a1: #1c2937; --a2: #213f60; --a3: #265a91; --a4: #2a6cb5;
    --b1: #322519; --b2: #54371c; --b3: #7f4a18; --b4: #b0520f;
  }
}
main { max-width: 60rem; }
.summary { font-size: 1.05rem; }
.legend { display: flex; flex-wrap: wrap; gap: 0.35rem; align-items: center; margin: 0 0 1rem; font-size: 0.85rem; }
.legend span { padding: 0.1rem 0.6rem; border-radius: 3px; border: 1px solid var(--grid); }
.two { display: inline-grid; grid-template-columns: repeat(6, max-content); }
.legend em { font-style: normal; color: var(--muted); margin-right: 0.4rem; }
.tokens {
  margin: 0; padding: 1.1rem 1.3rem; border: 1px solid var(--grid); border-radius: 4px; overflow-wrap: anywhere;
  font: 0.92rem/1.75 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; white-space: pre-wrap; tab-size: 4;
}
.tokens span { border-radius: 2px; padding: 0.12em 0; }
.tokens span:hover { outline: 1.5px solid var(--ink); outline-offset: 0; }
.tokens b::before { content: "↵"; font-weight: 400; opacity: 0.6; }
.s1 { background: var(--s1); } .s2 { background: var(--s2); } .s3 { background: var(--s3); }
.s4 { background: var(--s4); } .s5 { background: var(--s5); color: var(--deep); }
.a1 { background: var(--a1); } .a2 { background: var(--a2); } .a3 { background: var(--a3); }
.a4 { background: var(--a4); color: var(--deep); }
.b1 { background: var(--b1); } .b2 { background: var(--b2); } .b3 { background: var(--b3); }
.b4 { background: var(--b4); color: var(--deep); }
.u { text-decoration: underline dotted; text-underline-offset: 0.2em; }
@media print { .tokens span, .legend span { print-color-adjust: exact; } section { break-inside: auto; } }
"""


# ------------------------------------------------------------------------------------------------ the terminal


def is_coloured(file: IO[str] | None = None) -> bool:
    """Whether `file` (stdout) is a terminal that wants colours."""
    return terminal.is_colourful(file or sys.stdout)


def put(text: str, file: IO[str] | None = None) -> None:
    """Text that is safe already, to `file` (stdout) at once; what its encoding cannot say as escapes."""
    terminal.write_safely(text, file or sys.stdout)


def shaded(text: str, shade: str) -> str:
    """`text`, made safe, in the colour of `shade`; colours end before each line end."""
    if not shade:
        return safe(text)
    *lines, last = safe(text).split("\n")
    drawn = [_coloured(f"{line}↵", shade) + "\n" for line in lines]
    return "".join(drawn) + _coloured(last, shade)


def shaded_token(text: str, bits: float) -> str:
    return shaded(text, SHADES[level(bits)])


def legend() -> str:
    """One line that explains the colours of a surprise; coloured where stderr is."""
    return _legend("Surprise in bits:", zip(_ranges(LEVEL_BITS), SHADES, strict=True))


def write_terminal(found: Surprise | Comparison, file: IO[str] | None = None) -> None:
    """The coloured text, as far as `TERMINAL_CHARS`, on stdout; the legend on stderr."""
    if isinstance(found, Surprise):
        pieces = ((mark.text, SHADES[level(mark.bits)], mark.ends_document) for mark in found.marks())
        put(legend() + "\n", sys.stderr)
    else:
        pieces = ((mark.text, _saved_shade(mark.bits), mark.ends_document) for mark in found.marks())
        names = found.first.model, found.second.model
        for name, shades in zip(names, (FIRST_SHADES, SECOND_SHADES), strict=True):
            parts = zip(_ranges(SAVED_LEVEL_BITS), shades, strict=True)
            put(_legend(f"{one_line(name)} saves, in bits:", parts) + "\n", sys.stderr)
    shown = 0
    ended = True
    for text, shade, ends_document in pieces:
        if shown >= TERMINAL_CHARS:
            break
        shown += len(text)
        ended = text.endswith("\n")
        missing = "\n" if ends_document and not ended else ""
        put(shaded(text, shade) + missing, file)
        ended = ended or bool(missing)
    if not ended:
        put("\n", file)
    if shown < len(found.text):
        terminal.notice(_cut(shown, len(found.text)) + " --html shows more, --json everything.")


def _coloured(text: str, shade: str) -> str:
    if not text:
        return ""
    underline = "4;" if text.isspace() else ""  # else nobody would see it
    return f"\x1b[{underline}{shade}m{text}\x1b[0m"


def _saved_shade(bits: float) -> str:
    shade = saved_level(bits)
    return FIRST_SHADES[shade] if shade >= 0 else SECOND_SHADES[-shade]


def _legend(title: str, parts: Iterator[tuple[str, str]]) -> str:
    colourful = is_coloured(sys.stderr)
    return f"{title} " + "  ".join(_coloured(name, shade) if colourful and shade else name for name, shade in parts)


def _ranges(levels: tuple[float, ...]) -> list[str]:
    """'<1', '1–2', … '≥16'."""
    between = [f"{low:g}–{high:g}" for low, high in pairwise(levels)]
    return [f"<{levels[0]:g}", *between, f"≥{levels[-1]:g}"]


def _cut(shown: int, whole: int) -> str:
    return f"Only the first {shown:,} of {whole:,} characters are shown."


# ------------------------------------------------------------------------------------------------ the page


def render(found: Surprise | Comparison) -> str:
    """The whole HTML document."""
    shown, cut = _text(found)
    notes = "".join(f'\n<p class="note">{html.escape(safe(note))}</p>' for note in _notes(found, cut))
    text = f'{_html_legend(found)}\n<div class="tokens">{shown}</div>{notes}'
    sections = [f'<p class="summary">{html.escape(safe(found.summary()))}</p>', text]
    sections += [page.draw(exhibit) for exhibit in _exhibits(found)]
    return page.document(_title(found), sections, STYLE)


def write(found: Surprise | Comparison, path: Path) -> None:
    """Write the page so that `path` holds either the old or the whole new file, whatever happens in between."""
    page.save(render(found), path)


def _title(found: Surprise | Comparison) -> str:
    if isinstance(found, Surprise):
        return f"What surprises {found.model} in {found.text_name}"
    return f"{found.first.model} and {found.second.model} on {found.first.text_name}"


def _text(found: Surprise | Comparison) -> tuple[str, int]:
    """The shaded text, and where it was cut (0: nowhere), in characters."""
    parts: list[str] = []
    shown = 0
    for text, kind, title, ends_document in _stretches(found):
        if shown >= PAGE_CHARS:
            return "".join(parts), shown
        shown += len(text)
        body = html.escape(safe(text))
        if kind:
            body = body.replace("\n", "<b></b>\n")
        named = f' class="{kind}"' if kind else ""
        parts.append(f'<span{named} title="{html.escape(title)}">{body}</span>')
        if ends_document and not text.endswith("\n"):
            parts.append("\n")
    return "".join(parts), 0


def _stretches(found: Surprise | Comparison) -> Iterator[tuple[str, str, str, bool]]:
    """Text, class, title, and whether a document ends there."""
    if isinstance(found, Surprise):
        for mark in found.marks():
            shade = level(mark.bits)
            kind = " ".join(([f"s{shade}"] if shade else []) + (["u"] if mark.unknown else []))
            more = ", unknown" if mark.unknown else f", {mark.tokens} tokens" if mark.tokens > 1 else ""
            yield mark.text, kind, f"{mark.bits:.2f} bits{more} · {one_line(mark.text)}", mark.ends_document
        return
    first, second = one_line(found.first.model), one_line(found.second.model)
    costs = zip(found.first_bits.tolist(), found.second_bits.tolist(), strict=True)
    for mark, (own, other) in zip(found.marks(), costs, strict=True):
        shade = saved_level(mark.bits)
        kind = f"{'a' if shade > 0 else 'b'}{abs(shade)}" if shade else ""
        title = f"{first} {own:.1f} bits, {second} {other:.1f} bits"
        if found.unit == "word":
            title += f" · {one_line(mark.text.strip())}"
        yield mark.text, kind, title, mark.ends_document


def _html_legend(found: Surprise | Comparison) -> str:
    def chips(title: str, letter: str, levels: tuple[float, ...]) -> str:
        names = enumerate(_ranges(levels))
        drawn = "".join(f'<span class="{letter}{i}">{html.escape(name)}</span>' for i, name in names)
        return f"<em>{html.escape(one_line(title))}</em>{drawn}"

    if isinstance(found, Surprise):
        unknown = '<span class="u">unknown</span>' if found.unknown.any() else ""
        return f'<div class="legend">{chips("surprise, in bits", "s", LEVEL_BITS)}{unknown}</div>'
    first = chips(f"{found.first.model} saves, in bits", "a", SAVED_LEVEL_BITS)
    second = chips(f"{found.second.model} saves, in bits", "b", SAVED_LEVEL_BITS)
    return f'<div class="legend two">{first}{second}</div>'


def _notes(found: Surprise | Comparison, cut: int) -> Iterator[str]:
    if cut:
        yield _cut(cut, len(found.text)) + " All figures are of the whole text."
    if isinstance(found, Surprise):
        if found.normalisation != "none":
            yield f"The text is shown as the model saw it, normalised by {found.normalisation}."
        return
    if found.unit == "line":
        yield (
            f"{found.first.model} saw the text normalised by {found.first.normalisation}, {found.second.model} by "
            f"{found.second.normalisation}: lines are compared, and shown as {found.first.model} saw them."
        )
    else:
        yield "The bits of a token are spread evenly over its bytes; a word takes the white space before it."


def _exhibits(found: Surprise | Comparison) -> Iterator[Exhibit]:
    along = [found] if isinstance(found, Surprise) else [found.first, found.second]
    if min(len(one.raw) for one in along) >= COURSE_BYTES:
        lines = tuple(Line(one.model, *one.course()) for one in along)
        reading = f"Means of {len(lines[0].x)} equal stretches of the text; where it is low, the text is well known."
        yield Chart("Along the text", "byte", "bits per byte", lines, reading)
    if isinstance(found, Surprise):
        yield found.table()
        return
    yield from found.tables()
    if found.unit == "word":
        yield from found.by_line().tables()

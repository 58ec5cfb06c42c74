"""A page of exhibits as one HTML file that needs nothing else: no script, no font, no network.

Its Content-Security-Policy forbids everything but the one style sheet inside, which is named by its SHA-256; so even
text that slipped through escaping could load and run nothing. Light or dark follows the reader's system.
Exhibits are drawn by `pictures/markup.py`, which makes all text harmless. Left out: a table of
contents and anything interactive (the studio does that).
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path

from inkling.errors import InklingError
from inkling.figures import Exhibit, Page
from inkling.pictures.markup import escape_line, section
from inkling.runs.files import write_file

STYLE = """
:root {
  color-scheme: light dark;
  --page: #ffffff; --ink: #1c2128; --muted: #5d6672; --grid: #e3e6ea; --panel: #f6f7f9; --rule: #cfd5dc;
  --line-1: #1d5fa8; --line-2: #c2410c; --line-3: #0f7a5c; --line-4: #7a3fc4; --line-5: #8a6100; --line-6: #b8256e;
  --more: #0b3a75; --less: #7d2c06; --number: #1c2128;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14171c; --ink: #e4e7eb; --muted: #9aa4b1; --grid: #2a3038; --panel: #1c2027; --rule: #3b434d;
    --line-1: #79b4f5; --line-2: #f6975f; --line-3: #52c9a4; --line-4: #bfa0f7; --line-5: #dfb74e; --line-6: #f28cbb;
    --more: #8fc0f5; --less: #f5a67d; --number: #ffffff;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { margin: 0; background: var(--page); color: var(--ink); font: 16.5px/1.6 system-ui, sans-serif; }
main { max-width: 49rem; margin: 0 auto; padding: clamp(1.5rem, 5vw, 4rem) clamp(1rem, 4vw, 1.5rem) 5rem; }
h1 { font-size: clamp(1.6rem, 5vw, 2.15rem); line-height: 1.2; font-weight: 680; letter-spacing: -0.015em; }
h1 { margin: 0 0 1.4rem; }
h2 { font-size: 1.15rem; line-height: 1.35; font-weight: 640; margin: 0 0 0.7rem; }
h1, h2, p, figcaption { overflow-wrap: anywhere; text-wrap: pretty; }
section { margin: 0 0 2.9rem; }
p { margin: 0 0 0.9rem; max-width: 66ch; white-space: pre-line; }
figure { margin: 0; }
figure svg { display: block; width: 100%; height: auto; }
figcaption, .note { color: var(--muted); font-size: 0.88rem; line-height: 1.5; max-width: 72ch; margin: 0.6rem 0 0; }
.note + .note { margin-top: 0.15rem; }
.scroll { overflow-x: auto; }
.scroll:focus-visible { outline: 2px solid var(--line-1); outline-offset: 3px; }
table { border-collapse: collapse; width: 100%; font-size: 0.91rem; line-height: 1.4; }
table { font-variant-numeric: tabular-nums lining-nums; }
th, td { text-align: left; padding: 0.48rem 0 0.48rem 1.25rem; vertical-align: top; overflow-wrap: break-word; }
th:first-child, td:first-child { padding-left: 0; }
th { font-weight: 600; vertical-align: bottom; border-bottom: 1.5px solid var(--rule); }
.unit { color: var(--muted); font-weight: 400; white-space: nowrap; }
td { border-bottom: 1px solid var(--grid); }
.number { text-align: right; white-space: nowrap; }
th.number { white-space: normal; }
pre {
  margin: 0; padding: 1rem 1.2rem; background: var(--panel); border-left: 3px solid var(--rule); border-radius: 3px;
  font: 0.87rem/1.6 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace;
  white-space: pre-wrap; overflow-wrap: anywhere; tab-size: 4;
}
@media (max-width: 36rem) {
  body { font-size: 16px; }
  .chart { overflow-x: auto; }
  figure svg { min-width: 34rem; }
  td { min-width: 5.5rem; }
}
@media print { section { break-inside: avoid; } main { max-width: none; padding: 0; } }
"""


def render(page: Page) -> str:
    """The whole HTML document."""
    return document(page.title, [draw(exhibit) for exhibit in page.exhibits])


def draw(exhibit: Exhibit) -> str:
    """One exhibit as HTML, with its title above."""
    return section(exhibit)


def document(title: str, sections: Sequence[str], style: str = "") -> str:
    """A page of sections that are HTML already, with `style` after our own; the one policy for every page."""
    style = STYLE + style
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    body = "\n".join(f"<section>\n{section}\n</section>" for section in sections)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{escape_line(title)}</title>\n<style>{style}</style>\n</head>\n"
        f"<body>\n<main>\n<h1>{escape_line(title)}</h1>\n{body}\n</main>\n</body>\n</html>\n"
    )


def write(page: Page, path: Path) -> None:
    save(render(page), path)


def save(content: str, path: Path) -> None:
    """Write a page so that `path` holds either the old or the whole new file, whatever happens in between."""
    try:
        write_file(path, content)
    except OSError as failure:
        raise InklingError(
            f"The page cannot be written to {path} ({failure.strerror}); name a file in a folder that can be written."
        ) from failure

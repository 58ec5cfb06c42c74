"""Exhibits as HTML, the same in a page and in a notebook: headings, tables, paragraphs, and pictures with captions.

No scripts, no `style`, no ids; classes (`number`, `unit`, `scroll`, `chart`, `note`) for a page that has a style sheet.
All text passes `harmless` and is escaped.
"""

from __future__ import annotations

import html

from inkling.figures import Exhibit, Prose, Table
from inkling.pictures.drawing import draw
from inkling.pictures.harmless import one_line, safe


def section(exhibit: Exhibit) -> str:
    """An exhibit with its title above and its reading below."""
    heading = f"<h2>{escape_line(exhibit.title)}</h2>\n" if exhibit.title else ""
    if isinstance(exhibit, Table):
        return heading + table(exhibit)
    if isinstance(exhibit, Prose):
        return heading + prose(exhibit)
    caption = f"\n<figcaption>{escape(exhibit.reading)}</figcaption>" if exhibit.reading else ""
    return f'{heading}<figure><div class="chart">{draw(exhibit)}</div>{caption}</figure>'


def prose(words: Prose) -> str:
    if words.literal:
        return f"<pre>\n{escape(words.text)}</pre>"  # HTML drops the first newline after <pre>
    return "\n".join(f"<p>{escape(part.strip())}</p>" for part in words.text.split("\n\n") if part.strip())


def table(shown: Table) -> str:
    """A table without its title, followed by its notes."""
    classes = [' class="number"' if shown.is_numeric(index) else "" for index in range(len(shown.columns))]
    head = "".join(
        f'<th scope="col"{kind}>{escape_line(column.title)}{_unit(column.unit)}</th>'
        for kind, column in zip(classes, shown.columns, strict=True)
    )
    rows = []
    for row in shown.rows:
        cells = zip(classes, shown.columns, row, strict=True)
        rows.append(
            "<tr>" + "".join(f"<td{kind}>{escape(column.show(cell))}</td>" for kind, column, cell in cells) + "</tr>"
        )
    if not rows:
        rows.append(f'<tr><td colspan="{max(1, len(shown.columns))}">no rows</td></tr>')
    notes = "".join(f'\n<p class="note">{escape(note)}</p>' for note in shown.all_notes)
    body = "\n".join(rows)
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape_line(shown.title or "table")}">\n'
        f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>\n</div>{notes}"
    )


def _unit(unit: str) -> str:
    return f' <span class="unit">({escape_line(unit)})</span>' if unit else ""


def escape(text: str) -> str:
    return html.escape(safe(text))


def escape_line(text: str) -> str:
    return html.escape(one_line(text))

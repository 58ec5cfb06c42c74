"""What can be shown, described without saying how: a table, a chart with lines, a page of both.

Every room that has results turns them into these; `report/` alone knows how to draw them (terminal, SVG, HTML), and a
notebook draws a `Table` through `_repr_html_`.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, field

Cell = str | int | float | bool | None


@dataclass(frozen=True)
class Column:
    """`format` is a format spec for numbers ('.2f', ',d'); `unit` stands in the heading, in brackets."""

    title: str
    format: str = ""
    unit: str = ""
    note: str = ""

    @property
    def heading(self) -> str:
        return f"{self.title} ({self.unit})" if self.unit else self.title

    def show(self, cell: Cell) -> str:
        if cell is None:
            return "–"
        if isinstance(cell, bool):
            return "yes" if cell else "no"
        if isinstance(cell, int | float) and self.format:
            return format(cell, self.format)
        return str(cell)


@dataclass(frozen=True)
class Table:
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(column.heading)}</th>" for column in self.columns)
        body = "".join(
            "<tr>"
            + "".join(f"<td>{html.escape(c.show(cell))}</td>" for c, cell in zip(self.columns, row, strict=True))
            + "</tr>"
            for row in self.rows
        )
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self.notes)
        caption = f"<caption>{html.escape(self.title)}</caption>"
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"


@dataclass(frozen=True)
class Line:
    """One curve of a chart. `low` and `high`, when given, are a band around `y`."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()


@dataclass(frozen=True)
class Chart:
    """Lines over common axes, with units and one sentence that says how to read it."""

    title: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    reading: str = ""
    log_x: bool = False
    log_y: bool = False
    levels: tuple[tuple[str, float], ...] = ()  # named horizontal lines, such as a baseline


@dataclass(frozen=True)
class Prose:
    """A paragraph, or with `literal` a block kept as it is (a sample)."""

    text: str
    title: str = ""
    literal: bool = False


Exhibit = Table | Chart | Prose


@dataclass(frozen=True)
class Page:
    title: str
    exhibits: tuple[Exhibit, ...] = field(default=())

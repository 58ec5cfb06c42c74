"""What can be shown, described without saying how: tables, lines, bars, clouds of points, heat maps, a page of them.

Every room that has results turns them into these. `pictures/` draws them as SVG and as HTML, so that a notebook, a page
and the studio show the same thing; `report/` puts them on a terminal and into files.
"""

from __future__ import annotations

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

    def is_numeric(self, index: int) -> bool:
        """Whether column `index` holds numbers and nothing else, so that its digits should stand under each other."""
        cells = [row[index] for row in self.rows if row[index] is not None]
        return bool(cells) and all(isinstance(cell, int | float) and not isinstance(cell, bool) for cell in cells)

    @property
    def all_notes(self) -> tuple[str, ...]:
        """What stands below: the notes of the columns first, each with the heading it explains."""
        return (*(f"{column.heading}: {column.note}" for column in self.columns if column.note), *self.notes)

    def _repr_html_(self) -> str:
        return _piece(self)


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

    def _repr_html_(self) -> str:
        return _piece(self)


@dataclass(frozen=True)
class Prose:
    """A paragraph, or with `literal` a block kept as it is (a sample)."""

    text: str
    title: str = ""
    literal: bool = False


@dataclass(frozen=True)
class Series:
    """One height for each bar position. `low` and `high`, when given, are the ends of its error bars."""

    name: str
    heights: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()


@dataclass(frozen=True)
class Bars:
    """Named positions (keys, heads) with a bar for each series, side by side."""

    title: str
    x_label: str
    y_label: str
    names: tuple[str, ...]
    series: tuple[Series, ...]
    reading: str = ""
    levels: tuple[tuple[str, float], ...] = ()

    def _repr_html_(self) -> str:
        return _piece(self)


@dataclass(frozen=True)
class Spots:
    name: str
    x: Sequence[float]
    y: Sequence[float]


@dataclass(frozen=True)
class Cloud:
    """Points of several groups in one plane, and places in it that have a name (v_a, the midpoint)."""

    title: str
    x_label: str
    y_label: str
    groups: tuple[Spots, ...]
    reading: str = ""
    marks: tuple[tuple[str, float, float], ...] = ()

    def _repr_html_(self) -> str:
        return _piece(self)


@dataclass(frozen=True)
class HeatMap:
    """A matrix with names for rows and columns. A value that is None or NaN is an empty cell (a masked position).

    The scale goes from `low` to `high`, by default from 0, or from −most to +most where a value is negative.
    """

    title: str
    row_label: str
    column_label: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: Sequence[Sequence[float | None]]
    unit: str = ""
    reading: str = ""
    low: float | None = None
    high: float | None = None

    def _repr_html_(self) -> str:
        return _piece(self)


@dataclass(frozen=True)
class Panels:
    """Small heat maps side by side on one scale: the heads of a model, the matrices of a construction."""

    title: str
    maps: tuple[HeatMap, ...]
    reading: str = ""
    across: int = 4

    def _repr_html_(self) -> str:
        return _piece(self)


Picture = Chart | Bars | Cloud | HeatMap | Panels
Exhibit = Table | Prose | Picture


@dataclass(frozen=True)
class Page:
    title: str
    exhibits: tuple[Exhibit, ...] = field(default=())

    def _repr_html_(self) -> str:
        from inkling.pictures.notebook import notebook

        return notebook(self)


def _piece(exhibit: Exhibit) -> str:
    """An exhibit as HTML; drawing is imported only when somebody looks."""
    from inkling.pictures.notebook import piece

    return piece(exhibit)

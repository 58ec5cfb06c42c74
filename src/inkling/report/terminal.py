"""Tables, pages and progress on a terminal.

Results go to stdout, everything else to stderr. Text from outside is never sent raw: `safe` shows control characters,
bidirectional overrides and zero-width characters instead of letting the terminal obey them. Without a terminal (a pipe,
a file) the output is plain, and a table takes all the width it needs: no column and no digit is lost.
`NO_COLOR` and `TERM=dumb` give plain text on a terminal too.
Left out: paging, and drawing curves with characters: a chart becomes one sparkline a line, with its figures.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

from inkling.figures import Cell, Chart, Column, Line, Page, Prose, Table

if TYPE_CHECKING:  # rich takes a tenth of a second to import, and most commands fail or finish before they need it
    from rich.console import Console, RenderableType
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

UNBOUNDED = 100_000  # columns, where there is no terminal to be narrow
BARS = "▁▂▃▄▅▆▇█"
SPARKLINE_COLUMNS = 48
QUIET_SECONDS = 1.0  # work shorter than this needs no bar


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


def is_numeric(table: Table, index: int) -> bool:
    """Whether column `index` holds numbers and nothing else, so that its digits should stand under each other."""
    cells = [row[index] for row in table.rows if row[index] is not None]
    return bool(cells) and all(isinstance(cell, int | float) and not isinstance(cell, bool) for cell in cells)


def column_notes(table: Table) -> tuple[str, ...]:
    """The notes below a table: those of its columns first, each with the heading it explains."""
    return (*(f"{column.heading}: {column.note}" for column in table.columns if column.note), *table.notes)


def print_table(table: Table, *, file: IO[str] | None = None) -> None:
    """Print a table with its title and notes; numbers right-aligned."""
    console, out = _console(file)
    _send(_table_parts(table, console), console, out)


def print_page(page: Page, *, file: IO[str] | None = None) -> None:
    """Print all exhibits of a page, one under the other."""
    from rich.text import Text

    console, out = _console(file)
    parts: list[RenderableType] = [Text(one_line(page.title), style="bold underline")]
    for exhibit in page.exhibits:
        parts.append(Text())
        if isinstance(exhibit, Table):
            parts += _table_parts(exhibit, console)
        elif isinstance(exhibit, Chart):
            parts += _chart_parts(exhibit, console)
        else:
            parts += _prose_parts(exhibit)
    _send(parts, console, out)


def sparkline(values: Sequence[float], columns: int = SPARKLINE_COLUMNS) -> str:
    """The course of `values` in at most `columns` characters; each shows the mean of its share, a gap is a space."""
    shares = min(columns, len(values))
    means: list[float] = []
    for share in range(shares):
        part = [
            v for v in values[share * len(values) // shares : (share + 1) * len(values) // shares] if math.isfinite(v)
        ]
        means.append(math.fsum(v / len(part) for v in part) if part else math.nan)
    finite = [mean for mean in means if math.isfinite(mean)]
    if not finite:
        return ""
    low, high = min(finite), max(finite)
    span = high / 2 - low / 2  # halves, as the difference of two large numbers may overflow
    heights = ((mean / 2 - low / 2) / span if span > 0 else 0.5 if mean == mean else mean for mean in means)
    return "".join(BARS[min(7, int(8 * height))] if math.isfinite(height) else " " for height in heights)


def notice(sentence: str) -> None:
    """One line for the person at the terminal, on stderr."""
    write_safely(" ".join(safe(sentence).split()) + "\n", sys.stderr)


def warn(sentence: str) -> None:
    """One line that should not be overlooked, on stderr."""
    mark = "\x1b[33mWarning:\x1b[0m" if is_colourful(sys.stderr) else "Warning:"
    write_safely(f"{mark} {' '.join(safe(sentence).split())}\n", sys.stderr)


class Progress:
    """A bar on stderr with rate and time left. It appears only on a terminal and only when work takes its time."""

    def __init__(self, total: int | None, description: str, unit: str) -> None:
        self.total, self.description, self.unit = total, one_line(description), one_line(unit)
        self._bar: RichProgress | None = None
        self._task: TaskID | None = None
        self._shown = _is_terminal(sys.stderr)
        self._started = self._drawn = time.monotonic()
        self._first: int | None = None  # work that was done before we began (a resumed run) must not count as speed

    def __enter__(self) -> Progress:
        return self

    def update(self, done: int, **info: Cell) -> None:
        """Say how much is `done`; `info` is shown beside the bar (loss=3.21). Cheap enough for every step."""
        if not self._shown:
            return
        now = time.monotonic()
        if self._first is None:
            self._first, self._started = done, now
        if now - self._started < QUIET_SECONDS or (now - self._drawn < 0.05 and done != self.total):
            return
        self._drawn = now
        if self._bar is None:
            self._bar = self._begin()
            self._task = self._bar.add_task(self.description, total=self.total, completed=self._first, rate="", info="")
        assert self._task is not None
        rate = (done - self._first) / (now - self._started)
        shown = " · ".join(
            f"{one_line(key)} {value:.4g}" if isinstance(value, float) else f"{one_line(key)} {one_line(str(value))}"
            for key, value in info.items()
        )
        self._bar.update(self._task, completed=done, rate=f"{_short(rate)} {self.unit}/s", info=shown)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _begin(self) -> RichProgress:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.table import Column
        from rich.text import Text

        class Plain(TextColumn):  # a description may hold square brackets, which are not markup
            def render(self, task: Any) -> Text:
                return Text(self.text_format.format(task=task), no_wrap=True, overflow="ellipsis")

        fixed = Column(no_wrap=True, min_width=7)  # on a narrow terminal, the bar gives way and not the time
        clock = TimeRemainingColumn if self.total is not None else TimeElapsedColumn
        left = clock(table_column=fixed)
        bar = Progress(
            Plain("{task.description}"),
            BarColumn(bar_width=24),
            *([Plain("{task.percentage:.0f} %")] if self.total is not None else []),
            Plain("{task.fields[rate]}"),
            left,
            Plain("{task.fields[info]}"),
            console=Console(
                stderr=True, emoji=False, markup=False, highlight=False, no_color=not is_colourful(sys.stderr)
            ),
            transient=True,
        )
        bar.start()
        return bar


def progress(total: int | None, description: str, unit: str) -> Progress:
    """`with progress(steps, "Training", "steps") as bar: bar.update(done, loss=loss)`; `total` None when unknown."""
    return Progress(total, description, unit)


def _short(rate: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if rate >= size:
            return f"{rate / (1e3 if letter == 'k' else size):.3g}{letter}"
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}"


def _is_terminal(file: IO[str]) -> bool:
    try:
        return file.isatty()
    except (AttributeError, ValueError):  # a closed or missing stream, as under pythonw
        return False


def is_colourful(file: IO[str]) -> bool:
    return _is_terminal(file) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _console(file: IO[str] | None) -> tuple[Console, IO[str]]:
    """A console that renders into memory, with the width and the styles that suit where the text will go."""
    import io

    from rich.console import Console

    out = file if file is not None else sys.stdout
    terminal = _is_terminal(out)
    width = UNBOUNDED
    if terminal:
        import shutil

        width = shutil.get_terminal_size((80, 24)).columns
    colourful = is_colourful(out)
    console = Console(
        file=io.StringIO(),
        width=width,
        force_terminal=colourful,
        color_system="auto" if colourful else None,
        legacy_windows=False,
        emoji=False,
        markup=False,
        highlight=False,
    )
    return console, out


def _send(parts: Sequence[RenderableType], console: Console, out: IO[str]) -> None:
    for part in parts:
        console.print(part, crop=False)
    rendered = console.file
    lines = rendered.getvalue().splitlines() if hasattr(rendered, "getvalue") else []
    write_safely("".join(line.rstrip() + "\n" for line in lines), out)


def write_safely(text: str, out: IO[str]) -> None:
    """Write what the stream's encoding can say; the rest as escapes rather than as an error."""
    encoding = getattr(out, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.replace("─", "-").replace("–", "-").encode(encoding, "backslashreplace").decode(encoding)
    out.write(text)
    out.flush()


def _table_parts(table: Table, console: Console) -> list[RenderableType]:
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    drawn = RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for index, column in enumerate(table.columns):
        numeric = is_numeric(table, index)
        words = one_line(column.heading).split()
        whole = words + [one_line(column.show(row[index])) for row in table.rows] if numeric else words
        drawn.add_column(
            Text(one_line(column.heading)),
            justify="right" if numeric else "left",
            overflow="fold",
            min_width=max(map(len, whole), default=None),  # a folded number is a wrong number
        )
    for row in table.rows:
        drawn.add_row(*(_drawn_cell(column, cell) for column, cell in zip(table.columns, row, strict=True)))
    parts: list[RenderableType] = [Text(one_line(table.title), style="bold")] if table.title else []
    parts.append(drawn if table.rows else Text("(no rows)", style="dim"))
    return parts + [Text(safe(note), style="dim") for note in column_notes(table)]


def _drawn_cell(column: Column, cell: Cell) -> RenderableType:
    from rich.text import Text

    return Text(one_line(column.show(cell)), overflow="fold")


def _chart_parts(chart: Chart, console: Console) -> list[RenderableType]:
    from rich.text import Text

    parts: list[RenderableType] = [
        Text.assemble((one_line(chart.title), "bold"), (one_line(f"  {chart.y_label} over {chart.x_label}"), "dim"))
    ]
    names = [one_line(line.name) for line in chart.lines] + [one_line(name) for name, _ in chart.levels]
    width = max(map(len, names), default=0)
    columns = max(8, min(SPARKLINE_COLUMNS, console.width - width - 48))
    parts += [Text(f"  {one_line(line.name):{width}}  {_course(line, columns)}") for line in chart.lines]
    parts += [Text(f"  {one_line(name):{width}}  {_figure(value)}") for name, value in chart.levels]
    if not names:
        parts.append(Text("  (nothing to show)", style="dim"))
    if chart.reading:
        parts.append(Text(safe(chart.reading), style="dim"))
    return parts


def _figure(value: float) -> str:
    return f"{value:,.0f}" if abs(value) < 1e9 and value == int(value) else f"{value:.4g}"


def _course(line: Line, columns: int) -> str:
    points = [(x, y) for x, y in zip(line.x, line.y, strict=False) if math.isfinite(x) and math.isfinite(y)]
    if not points:
        return "(no numbers)"
    ys = [y for _, y in points]
    lowest = min(points, key=lambda point: point[1])
    if len(ys) == 1:
        return f"{_figure(ys[0])} at {_figure(points[0][0])}"
    figures = f"{_figure(ys[0])} → {_figure(ys[-1])}"
    if len(ys) > 2:
        figures += f"  lowest {_figure(lowest[1])} at {_figure(lowest[0])}"
    return f"{sparkline(line.y, columns)}  {figures}"


def _prose_parts(prose: Prose) -> list[RenderableType]:
    from rich.padding import Padding
    from rich.text import Text

    parts: list[RenderableType] = [Text(one_line(prose.title), style="bold")] if prose.title else []
    if prose.literal:
        lines = safe(prose.text).expandtabs(4).splitlines()
        return parts + [Padding(Text(line, overflow="fold"), (0, 0, 0, 4), expand=False) for line in lines]
    return [*parts, Text(safe(prose.text))]

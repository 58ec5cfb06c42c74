"""Tables, pages and progress on a terminal.

Results go to stdout, everything else to stderr. Text from outside is never sent raw: it passes `pictures/harmless.py`,
whose `safe` and `one_line` can be had from here. Without a terminal (a pipe, a file) the output is plain, and a table
takes all the width it needs: no column and no digit is lost. `NO_COLOR` and `TERM=dumb` give plain text on a terminal
too. Pictures are drawn with letters (`pictures/letters.py`). Left out: paging.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

from inkling.figures import Cell, Column, Page, Picture, Prose, Table
from inkling.pictures import letters
from inkling.pictures.harmless import one_line as one_line
from inkling.pictures.harmless import safe as safe
from inkling.pictures.letters import sparkline as sparkline

if TYPE_CHECKING:  # rich takes a tenth of a second to import, and most commands fail or finish before they need it
    from rich.console import Console, RenderableType
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

UNBOUNDED = 100_000  # columns, where there is no terminal to be narrow
QUIET_SECONDS = 1.0  # work shorter than this needs no bar


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
        elif isinstance(exhibit, Prose):
            parts += _prose_parts(exhibit)
        else:
            parts += _picture_parts(exhibit, console)
    _send(parts, console, out)


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
        self._bar.update(self._task, completed=done, total=self.total, rate=f"{_short(rate)} {self.unit}/s", info=shown)

    def show(self, done: int, total: int, now: str) -> None:
        """The same of work whose extent is learned on the way, and which says what it is at."""
        self.total = total
        self.update(done, now=now)

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
        numeric = table.is_numeric(index)
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
    return parts + [Text(safe(note), style="dim") for note in table.all_notes]


def _drawn_cell(column: Column, cell: Cell) -> RenderableType:
    from rich.text import Text

    return Text(one_line(column.show(cell)), overflow="fold")


def _picture_parts(picture: Picture, console: Console) -> list[RenderableType]:
    from rich.text import Text

    parts: list[RenderableType] = [
        Text.assemble((one_line(picture.title), "bold"), (f"  {letters.subtitle(picture)}", "dim"))
    ]
    lines = letters.lettered(picture, console.width)
    parts += [Text(f"  {line}", no_wrap=True, overflow="ignore") for line in lines]
    if not lines:
        parts.append(Text("  (nothing to show)", style="dim"))
    if picture.reading:
        parts.append(Text(safe(picture.reading), style="dim"))
    return parts


def _prose_parts(prose: Prose) -> list[RenderableType]:
    from rich.padding import Padding
    from rich.text import Text

    parts: list[RenderableType] = [Text(one_line(prose.title), style="bold")] if prose.title else []
    if prose.literal:
        lines = safe(prose.text).expandtabs(4).splitlines()
        return parts + [Padding(Text(line, overflow="fold"), (0, 0, 0, 4), expand=False) for line in lines]
    return [*parts, Text(safe(prose.text))]

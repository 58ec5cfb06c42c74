"""The terminal: nothing from outside is obeyed, nothing is lost in a pipe, and bars appear only where someone looks."""

from __future__ import annotations

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inkling.figures import Bars, Chart, Cloud, Column, HeatMap, Line, Page, Panels, Prose, Series, Spots, Table
from inkling.report.terminal import notice, print_page, print_table, progress, sparkline, warn


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A colour terminal of 60 columns."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "60")
    return Terminal()


TABLE = Table(
    "Models",
    (Column("model"), Column("parameters", ",d"), Column("loss", ".3f", "nats", "lower is better")),
    (("small", 1_234_567, 2.5), ("large [bold]", 89, None)),
    ("Every byte counts.",),
)


def printed(table: Table, file: io.StringIO | None = None) -> str:
    out = file or io.StringIO()
    print_table(table, file=out)
    return out.getvalue()


def test_a_table_in_a_pipe_by_hand() -> None:
    assert printed(TABLE) == (
        "Models\n"
        "model          parameters   loss (nats)\n"
        "───────────────────────────────────────\n"
        "small           1,234,567         2.500\n"
        "large [bold]           89             –\n"
        "loss (nats): lower is better\n"
        "Every byte counts.\n"
    )


def test_a_wide_table_in_a_pipe_loses_nothing() -> None:
    columns = tuple(Column(f"column number {k}", ".6f") for k in range(60))
    table = Table("wide", columns, (tuple(k + 0.123456 for k in range(60)), ("x" * 500, *(None,) * 59)))
    text = printed(table)
    assert all(f"column number {k}" in text.splitlines()[1] for k in range(60))
    assert all(f"{k}.123456" in text for k in range(60))
    assert "x" * 500 in text
    assert "…" not in text


def test_a_narrow_terminal_folds_words_but_never_numbers(screen: Terminal) -> None:
    row = ("a rather long name of a model that must be folded", 123_456_789, 3.14159)
    columns = (Column("model"), Column("parameters", ",d"), Column("perplexity", ".5f"))
    text = printed(Table("t", columns, (row,)), screen)
    assert "123,456,789" in text
    assert "3.14159" in text
    assert "…" not in text
    assert "perplexity" in text


def test_colour_only_where_it_is_wanted(screen: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b[1m" in printed(TABLE, screen)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in printed(TABLE, Terminal())
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b" not in printed(TABLE, Terminal())


def test_cells_from_outside_are_shown_on_one_line(screen: Terminal) -> None:
    table = Table("t\x1b", (Column("c\u202e"),), (("a\nb\x1b]0;evil\x07",),), ("n\x1b",))
    plain = printed(table)
    assert "a\\nb\\x1b]0;evil\\x07" in plain
    assert "\x1b" not in plain
    assert "\u202e" not in plain
    assert "\x1b]" not in printed(table, screen)


def test_a_stream_that_cannot_say_it_gets_escapes() -> None:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii")
    print_table(Table("naïve", TABLE.columns, TABLE.rows), file=out)
    assert raw.getvalue().splitlines()[0] == b"na\\xefve"
    assert raw.getvalue().splitlines()[2] == b"-" * 39
    out.close()


def test_a_table_without_rows_says_so() -> None:
    assert printed(Table("t", (Column("a"),), ())) == "t\n(no rows)\n"


def test_a_page_prints_all_its_exhibits() -> None:
    line = Line("validation", [0, 10, 20, 30], [8.0, 4.0, 2.0, 3.0])
    chart = Chart("Loss", "steps", "nats", (line,), "Lower is better.", levels=(("trigram", 2.5),))
    page = Page("A run", (Prose("Some words."), chart, TABLE, Prose("  a sample\x1b\nof text", "Sample", literal=True)))
    out = io.StringIO()
    print_page(page, file=out)
    text = out.getvalue()
    assert text.startswith("A run\n\nSome words.\n\nLoss  nats over steps\n")
    assert "  validation  █▃▁▂  8 → 3  lowest 2 at 20\n  trigram     2.5\n" in text
    assert "Lower is better.\n\nModels\n" in text
    assert text.endswith("Sample\n      a sample\\x1b\n    of text\n")


def test_a_page_prints_its_pictures_with_their_readings() -> None:
    bars = Bars("Weights", "key", "weight", ("a\x1b",), (Series("", [2]),), "Longer is more.")
    cloud = Cloud("Outputs", "x", "y", (Spots("heads", [0, 2], [1, 1]),), "Near is alike.")
    heat = HeatMap("Map", "query", "key", ("q",), ("k",), [[0.5]], "", "Each row sums to one.")
    out = io.StringIO()
    print_page(
        Page("A run", (bars, cloud, heat, Panels("Heads", (heat,)), HeatMap("No", "a", "b", (), (), []))), file=out
    )
    assert out.getvalue() == (
        "A run\n\nWeights  weight over key\n  a\\x1b  " + "█" * 32 + " 2\nLonger is more.\n\n"
        "Outputs  y over x\n  heads  2 points, mean (1, 1), spread 1\nNear is alike.\n\n"
        "Map  query × key\n         k\n  q  0.500\nEach row sums to one.\n\n"
        "Heads  1 map\n  Map\n           k\n    q  0.500\n\n"
        "No  a × b\n  (nothing to show)\n"
    )


def test_sparklines() -> None:
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7]) == "▁▂▃▄▅▆▇█"
    assert sparkline([1, float("nan"), 2]) == "▁ █"
    assert sparkline([5, 5]) == "▅▅"
    assert sparkline([]) == ""
    assert sparkline(range(1000), 4) == "▁▃▆█"


@settings(deadline=None)
@given(st.lists(st.floats(), max_size=100))
def test_sparklines_take_any_numbers(values: list[float]) -> None:
    assert len(sparkline(values)) <= 48


def test_notices_are_one_safe_line_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    notice("Saved to\nrun\x1b[2J.")
    warn("Careful.")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "Saved to run\\x1b[2J.\nWarning: Careful.\n"


def work(clock: list[float], seconds_a_step: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    with progress(100, "Training [x]", "steps") as bar:
        for done in range(1, 101):
            clock[0] += seconds_a_step
            bar.update(done, loss=2.0, note="\x1b[2J")


def test_no_bar_without_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    work([0.0], 1.0, monkeypatch)
    assert capsys.readouterr() == ("", "")


def test_no_bar_for_quick_work(screen: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", screen)
    work([0.0], 0.005, monkeypatch)
    assert screen.getvalue() == ""


def test_a_bar_with_rate_for_long_work_on_a_terminal(screen: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr("sys.stderr", screen)
    work([0.0], 0.1, monkeypatch)
    shown = screen.getvalue()
    assert "Training [x]" in shown
    assert "10 steps/s" in shown
    assert "loss 2" in shown
    assert "note \\x1b[2J" in shown
    assert "100 %" in shown


def test_an_unknown_total_shows_rate_and_time(screen: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", screen)
    clock = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    with progress(None, "Reading", "bytes") as bar:
        for done in range(0, 30_000_000, 3_000_000):
            clock[0] += 1.0
            bar.update(done)
    assert "3M bytes/s" in screen.getvalue()

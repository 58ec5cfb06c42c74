"""Pictures of letters: figures stand beside the drawing, what does not fit is counted, names are harmless."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inkling.figures import Bars, Cloud, HeatMap, Panels, Series, Spots
from inkling.pictures.letters import cell_text, figure, lettered, subtitle

any_number = st.floats(allow_nan=True, allow_infinity=True)


def test_bars_by_hand() -> None:
    bars = Bars(
        "t", "key", "weight", ("a", "bb"), (Series("", [2.0, 0.5], [1.5, 0.25], [2.5, 0.75]),), levels=(("even", 1),)
    )
    assert lettered(bars) == [
        "a   " + "█" * 32 + " 2 (1.5 to 2.5)",
        "bb  " + "█" * 8 + " " * 24 + " 0.5 (0.25 to 0.75)",
        "even  1",
    ]
    assert subtitle(bars) == "weight over key"


def test_bars_below_zero_go_to_the_left() -> None:
    assert lettered(Bars("t", "x", "y", ("a", "b", "c"), (Series("", [1, -1, math.nan]),))) == [
        "a  " + " " * 16 + "█" * 16 + " 1",
        "b  " + "█" * 16 + " " * 16 + " -1",
        "c  " + " " * 32 + " –",
    ]


def test_series_follow_each_other_below_their_name() -> None:
    lines = lettered(Bars("t", "x", "y", ("a", "b"), (Series("one", [1, 2]), Series("two", [2, 1]))))
    assert [line[:8] for line in lines] == ["a  one  ", "   two  ", "b  one  ", "   two  "]


def test_of_many_bars_the_rest_is_counted() -> None:
    names = tuple(map(str, range(100)))
    lines = lettered(Bars("t", "x", "y", names, (Series("one", range(100)), Series("two", range(100)))))
    assert len(lines) == 25
    assert lines[-1] == "… and 176 more"


def test_a_cloud_by_hand() -> None:
    square = Spots("square", [1, 1, -1, -1, math.nan], [1, -1, 1, -1, 0])
    cloud = Cloud("t", "x", "y", (square, Spots("none", [], [])), marks=(("v_a", 0.5, 2),))
    assert lettered(cloud) == [
        "square  4 points, mean (0, 0), spread 1.41",
        "none    (no points)",
        "v_a     at (0.5, 2)",
    ]


def heat(values: list[list[float | None]], names: tuple[str, ...] = ()) -> HeatMap:
    return HeatMap("map", "query", "key", names, names, values, "nats")


def test_a_small_matrix_is_its_numbers() -> None:
    assert lettered(heat([[0.25, None], [-0.5, 1.0]], ("a", "\n"))) == [
        "        a    \\n",
        "a    0.25     ·",
        "\\n  −0.50  1.00",
    ]
    assert subtitle(heat([])) == "query × key, nats"


def test_a_large_matrix_is_its_size_and_range() -> None:
    values: list[list[float | None]] = [[float(i * j) for j in range(20)] for i in range(13)]
    values[0][0] = None
    assert lettered(heat(values)) == ["13 × 20, from 0 to 228, 1 of 260 cells empty"]


def test_a_small_matrix_on_a_narrow_terminal_is_said_and_not_broken() -> None:
    assert lettered(heat([[1.5] * 12]), columns=40) == ["1 × 12, from 1.5 to 1.5"]


def test_panels_are_their_maps() -> None:
    panels = Panels("t", (heat([[1.0, 0.0]]), heat([])))
    assert subtitle(panels) == "2 maps"
    assert lettered(panels) == ["map", "        ", "    1  0", "map", "  (nothing to show)"]


@pytest.mark.parametrize(
    ("value", "most", "text"),
    [(0.5, 1.0, "0.50"), (-3.14159, 9.9, "−3.14"), (12.345, 99, "12.3"), (1234, 2000, "1234"), (-1e-9, 1, "0")],
)
def test_numbers_in_cells(value: float, most: float, text: str) -> None:
    assert cell_text(value, most) == text


def test_figures() -> None:
    assert [figure(v) for v in (1234567.0, 0.123456, math.nan)] == ["1,234,567", "0.1235", "–"]


@settings(deadline=None, max_examples=60)
@given(st.lists(any_number, min_size=1, max_size=6), st.text(max_size=40))
def test_any_numbers_and_text_give_harmless_lines(values: list[float], name: str) -> None:
    names = (name,) * len(values)
    bars = Bars(name, name, name, names, (Series(name, values, values, values), Series(name, values)))
    cloud = Cloud(name, name, name, (Spots(name, values, values),), marks=((name, values[0], 0.0),))
    for picture in (bars, cloud, heat([list(values)], names)):
        for line in lettered(picture):
            assert len(line.splitlines()) <= 1
            assert not [c for c in line if ord(c) < 32]

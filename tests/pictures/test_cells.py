"""Cells: one scale, a sign that needs no colour, letters that can be read, large matrices in few characters."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from inkling.figures import HeatMap
from inkling.pictures.cells import DEEP, INKS, SHADES, Scale, cells, coarse, matrix, runs, scale_of
from inkling.report.page import STYLE


def of(values: object, low: float | None = None, high: float | None = None) -> HeatMap:
    return HeatMap("t", "row", "column", (), (), values, low=low, high=high)  # type: ignore[arg-type]


def scale(values: object, **ends: float | None) -> Scale | None:
    shown = of(values, **ends)
    return scale_of([shown], [matrix(shown)])


def test_the_scale_starts_at_zero_or_has_two_equal_sides() -> None:
    assert scale([[1.0, 4.0]]) == Scale(0, 4)
    assert scale([[-1.0, 4.0]]) == Scale(-4, 4)
    assert scale([[-5.0, 4.0]]) == Scale(-5, 5)
    assert scale([[0.0, 0.0]]) == Scale(0, 1)
    assert scale([[None, math.nan, math.inf]]) is None
    assert scale([]) is None


def test_the_ends_that_are_asked_for_are_taken() -> None:
    assert scale([[2.0, 4.0]], low=1, high=8) == Scale(1, 8)
    assert scale([[2.0, 4.0]], high=8) == Scale(0, 8)
    assert scale([[2.0, -4.0]], high=8) == Scale(-8, 8)


def test_shades_follow_the_values_and_end_at_the_ends() -> None:
    assert Scale(0, 2).shades(np.array([[0, 1, 2, 9, -9, math.nan]])).tolist() == [[0, 5, 10, 10, 0, 0]]
    assert Scale(-2, 2).shades(np.array([[-2, -1, 0, 1, 2, -9]])).tolist() == [[-10, -5, 0, 5, 10, -10]]
    assert Scale(1, 3).shades(np.array([[1, 2, 3]])).tolist() == [[0, 5, 10]]


def test_more_ink_is_more() -> None:
    assert list(INKS) == sorted(set(INKS))
    assert len(INKS) == SHADES + 1


def channels(colour: str) -> list[float]:
    return [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]


def contrast(one: list[float], other: list[float]) -> float:
    """The ratio of WCAG 2: (L₁ + 0.05) / (L₂ + 0.05), L the relative luminance."""

    def luminance(colour: list[float]) -> float:
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [0, 1])
@pytest.mark.parametrize("hue", ["more", "less"])
def test_numbers_can_be_read_on_every_shade_of_a_light_and_a_dark_page(theme: int, hue: str) -> None:
    variables = {
        name: values[theme] for name in ("page", "number", hue) if (values := re.findall(f"--{name}: (#.{{6}})", STYLE))
    }
    page, number, full = (channels(variables[name]) for name in ("page", "number", hue))
    for shade, ink in enumerate(INKS):
        ground = [p + ink * (f - p) for p, f in zip(page, full, strict=True)]
        assert contrast(ground, page if shade >= DEEP else number) >= 4.5


def test_every_negative_cell_has_a_minus_and_no_other() -> None:
    values = np.array([[-1.0, -1.0, 1.0, -0.3], [0.0, -0.001, math.nan, 1.0]])
    drawn = "".join(cells(values, Scale(-1, 1), 0, 0, 10, 10))
    dashes = re.findall(r'<path d="([^"]+)" fill="none" [^>]*stroke-dasharray="5.00 5.00"', drawn)
    strokes = [
        (float(x), float(y), float(n)) for d in dashes for x, y, n in re.findall(r"M([\d.]+) ([\d.]+)h([\d.]+)", d)
    ]
    assert sorted(strokes) == [(2.5, 5, 20), (32.5, 5, 10)]  # −0.001 has the shade of zero


def test_numbers_are_written_where_they_fit_and_then_say_the_sign() -> None:
    values = np.array([[-1.25, 0.5], [math.nan, 0.0]])
    drawn = "".join(cells(values, Scale(-1.25, 1.25), 0, 0, 50, 30))
    assert re.findall(r">([^<>]+)</text>", drawn) == ["−1.25", "0.50", "0"]
    assert "dasharray" not in drawn
    assert "</text>" not in "".join(cells(values, Scale(-1.25, 1.25), 0, 0, 20, 20))


@settings(deadline=None, max_examples=40)
@given(arrays.arrays(bool, st.tuples(st.integers(1, 6), st.integers(1, 9))))
def test_runs_cover_exactly_what_is_true(mask: np.ndarray) -> None:
    for whole in (True, False):
        seen = np.zeros_like(mask)
        for row, start, stop in runs(mask, whole):
            assert not seen[row, start:stop].any()
            seen[row, start:stop] = True
        assert (seen == mask).all()


def test_small_cells_of_equal_shade_are_one_stretch() -> None:
    drawn = "".join(cells(np.ones((5, 100)), Scale(0, 1), 0, 0, 4, 4))
    assert drawn.count("M") == 5


def test_blocks_are_means_of_what_is_known() -> None:
    values = np.array([[1.0, 3.0, 5.0], [5.0, 7.0, math.nan], [9.0, 11.0, math.nan]])
    found, down, across = coarse(values, 2)
    assert (down, across) == (2, 2)
    assert found.tolist()[0] == [4.0, 5.0]
    assert found[1, 0] == 10.0
    assert math.isnan(found[1, 1])
    assert coarse(values, 3)[0] is values


def test_rows_of_unequal_length_are_filled_up() -> None:
    found = matrix(of([[1.0], [None, 2.0], []]))
    assert np.array_equal(found, [[1, math.nan], [math.nan, 2], [math.nan, math.nan]], equal_nan=True)

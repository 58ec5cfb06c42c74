"""Heat maps and panels: names, numbers and scale are there, large ones stay small, nothing from outside is obeyed."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inkling.figures import HeatMap, Panels
from inkling.pictures import panels
from inkling.pictures.heatmaps import svg

SVG = "{http://www.w3.org/2000/svg}"
any_value = st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True))
NUMBERS = tuple(map(str, range(64)))


def heat(values: object, rows: tuple[str, ...] = (), columns: tuple[str, ...] = (), **options: object) -> HeatMap:
    return HeatMap("a title", "query", "key", rows, columns, values, **options)  # type: ignore[arg-type]


def texts(drawn: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(drawn).iter(f"{SVG}text")]


def attention(size: int, seed: int = 0) -> np.ndarray:
    logits = np.random.default_rng(seed).normal(size=(size, size)) * 2
    weights = np.exp(logits) * np.tri(size)
    return np.where(np.tri(size) > 0, weights / weights.sum(axis=1, keepdims=True), math.nan)


def test_a_small_matrix_by_hand() -> None:
    drawn = svg(heat([[0.25, None], [0.5, 1.0]], ("a", "b"), ("c", "d"), unit="weight", reading="Rows sum to one."))
    assert texts(drawn) == [
        *("query ↓", "0.25", "0.50", "1.00", "a", "b", "c", "d", "key →"),
        *("weight", "0", "0.5", "1", "no value"),
    ]
    assert ET.fromstring(drawn).findtext(f"{SVG}desc") == (
        "query by key. 2 × 2 cells, 1 of them empty, from 0.25 to 1 weight, the highest at query b · key d. "
        "Rows sum to one."
    )


def test_whole_numbers_have_no_decimals() -> None:
    assert {"1", "0"} <= set(texts(svg(heat(np.eye(3)))))
    assert "1.00" not in texts(svg(heat(np.eye(3))))


def test_an_attention_map_of_64_positions_is_compact_and_thinly_named() -> None:
    drawn = svg(heat(attention(64), NUMBERS, NUMBERS))
    assert len(drawn) < 60_000
    named = [text for text in texts(drawn) if text in NUMBERS[1:]]
    assert {"5", "10", "60"} <= set(named)
    assert len(named) < 40
    assert "mean of" not in drawn


def test_a_larger_matrix_is_drawn_in_blocks_and_says_so() -> None:
    drawn = svg(heat(np.random.default_rng(0).normal(size=(1000, 450))))
    assert "Each cell drawn is the mean of 5 × 3 values." in texts(drawn)
    assert "Each cell drawn is the mean of 5 × 3 values." in (ET.fromstring(drawn).findtext(f"{SVG}desc") or "")
    assert len(drawn) < 500_000


def test_all_cells_lie_inside_the_picture() -> None:
    for shape in ((1, 1), (1, 200), (200, 1), (3, 40), (64, 64), (12, 12)):
        drawn = svg(heat(np.ones(shape)))
        root = ET.fromstring(drawn)
        ((left, top, wide, high),) = re.findall(r"translate\(([\d.]+) ([\d.]+)\) scale\(([\d.]+) ([\d.]+)\)", drawn)
        assert 0 < float(left) < float(left) + float(wide) * shape[1] <= float(root.attrib["width"])
        assert 0 < float(top) < float(top) + float(high) * shape[0] <= float(root.attrib["height"])


@pytest.mark.parametrize("values", [[], [[]], [[None, math.nan]], [[math.inf]]])
def test_nothing_says_so(values: list[list[float | None]]) -> None:
    assert texts(svg(heat(values))) == ["nothing to show"]
    assert texts(panels.svg(Panels("t", (heat(values),)))) == ["nothing to show"]


def test_no_maps_are_nothing_to_show() -> None:
    assert texts(panels.svg(Panels("t", ()))) == ["nothing to show"]


def test_tokens_from_outside_are_harmless() -> None:
    names = ("<script>", "\n", "\u202eevil")
    for drawn in (svg(heat(np.eye(3), names, names)), panels.svg(Panels("t", (heat(np.eye(3), names, names),)))):
        assert "<script" not in drawn
        assert "\u202e" not in drawn
        assert {"<script>", "\\n"} <= set(texts(drawn))


def test_panels_share_one_scale_and_one_legend() -> None:
    maps = tuple(heat(np.full((20, 20), top), unit="weight") for top in (1.0, 4.0))
    drawn = panels.svg(Panels("heads", maps))
    assert texts(drawn).count("weight") == 1
    assert [text for text in texts(drawn) if text in ("0", "1", "2", "4")] == ["0", "2", "4"]
    fills = [g.find(f"{SVG}path") for g in ET.fromstring(drawn).iter(f"{SVG}g")]
    assert [path.attrib["fill-opacity"] for path in fills if path is not None] == ["0.23", "1"]  # shades 2 and 10


def test_panels_with_equal_names_write_them_once_a_line() -> None:
    rows, columns = ("q 1", "q 2"), ("k 1", "k 2")
    same = Panels("heads", tuple(heat(np.eye(2), rows, columns) for _ in range(4)), across=2)
    assert texts(panels.svg(same)).count("q 1") == 2  # two lines of maps
    assert texts(panels.svg(same)).count("k 1") == 2  # two columns of maps
    other = Panels("heads", (heat(np.eye(2), rows, columns), heat(np.eye(2), columns, rows)))
    assert texts(panels.svg(other)).count("q 1") == 2
    assert "rows ↓: query · columns →: key" in texts(panels.svg(same))


def test_panels_of_eight_heads_stay_small_and_whole() -> None:
    drawn = panels.svg(Panels("heads", tuple(heat(attention(64, k), NUMBERS, NUMBERS) for k in range(8))))
    assert len(drawn) < 300_000
    assert "mean of" not in drawn
    assert "8 maps on one scale." in (ET.fromstring(drawn).findtext(f"{SVG}desc") or "")


@settings(deadline=None, max_examples=50)
@given(
    values=st.lists(st.lists(any_value, max_size=6), max_size=6),
    names=st.lists(st.text(max_size=12), max_size=8).map(tuple),
    title=st.text(max_size=20),
    ends=st.tuples(st.none() | st.floats(-9, 9), st.none() | st.floats(-9, 9)),
)
def test_any_values_and_any_text_give_well_formed_xml(
    values: list[list[float | None]], names: tuple[str, ...], title: str, ends: tuple[float | None, float | None]
) -> None:
    shown = HeatMap(title, title, title, names, names, values, title, title, *ends)
    for drawn in (svg(shown), panels.svg(Panels(title, (shown, shown, heat([[1.0]])), title, across=2))):
        root = ET.fromstring(drawn)
        assert all("nan" not in v and "inf" not in v for e in root.iter() for k, v in e.attrib.items() if k in "dxy")

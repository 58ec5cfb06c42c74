"""Bars: they stand on zero, differ without colour, say their errors, and stay readable when there are many."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inkling.figures import Bars, Series
from inkling.pictures.bars import hatch, svg

SVG = "{http://www.w3.org/2000/svg}"
any_number = st.floats(allow_nan=True, allow_infinity=True)


def bars(*series: Series, names: tuple[str, ...] = ("a", "b", "c"), **options: object) -> Bars:
    return Bars("a title", "key", "weight (nats)", names, series, **options)  # type: ignore[arg-type]


def parse(shown: Bars) -> ET.Element:
    return ET.fromstring(svg(shown))


def texts(root: ET.Element) -> list[str]:
    return [element.text or "" for element in root.iter(f"{SVG}text")]


def boxes(root: ET.Element) -> list[tuple[float, float, float, float]]:
    """Left, top, width and bottom of each bar; bars are the filled paths with a tooltip."""
    found = []
    for element in root.iter(f"{SVG}path"):
        if element.find(f"{SVG}title") is not None:
            numbers = re.fullmatch(r"M([-\d.]+) ([-\d.]+)h([\d.]+)V([-\d.]+)H[-\d.]+z", element.attrib["d"])
            assert numbers
            found.append(tuple(map(float, numbers.groups())))
    return found  # type: ignore[return-value]


def test_lengths_are_in_proportion_and_negative_bars_hang() -> None:
    (_, top_1, _, zero), (_, top_2, _, zero_2), (_, zero_3, _, bottom) = boxes(parse(bars(Series("", [1, 2, -1]))))
    assert zero == zero_2 == zero_3
    assert zero - top_2 == pytest.approx(2 * (zero - top_1), abs=0.2)
    assert bottom - zero == pytest.approx(zero - top_1, abs=0.2)


def test_bars_stand_on_zero_even_if_all_are_large() -> None:
    (_, first, _, floor), (_, second, _, _), _ = boxes(parse(bars(Series("", [100, 101, 102]))))
    assert (floor - second) / (floor - first) == pytest.approx(1.01, abs=0.001)
    assert "0" in texts(parse(bars(Series("", [100, 101, 102]))))


def test_series_stand_side_by_side_and_differ_without_colour() -> None:
    root = parse(bars(*(Series(f"series {k}", [1, 2, 3]) for k in range(6))))
    found = sorted(boxes(root))
    assert len(found) == 18
    assert all(a[0] + a[2] <= b[0] + 0.15 for a, b in pairwise(found))
    hatches = [e.attrib["d"] for e in root.iter(f"{SVG}path") if e.get("pointer-events")]
    directions = {frozenset(re.findall(r"[hvl]", d)) | {"x" * (d.count("l") > 99)} for d in hatches}
    assert len(hatches) == 5  # the first is plain
    assert len(directions) >= 3
    assert {f"series {k}" for k in range(6)} <= set(texts(root))


@pytest.mark.parametrize("kind", ["/", "\\", "x", "-", "|"])
def test_a_hatch_stays_within_its_box(kind: str) -> None:
    lines = list(hatch(kind, 10, 20, 14, 40))
    assert lines
    for line in lines:
        found = re.fullmatch(r"M([-\d.]+) ([-\d.]+)(?:l([-\d.]+) ([-\d.]+)|h([-\d.]+)|v([-\d.]+))", line)
        assert found
        x, y, dx, dy, h, v = (float(part or 0) for part in found.groups())
        for px, py in ((x, y), (x + dx + h, y + dy + v)):
            assert 10 - 0.11 <= px <= 24.11
            assert 20 - 0.11 <= py <= 60.11


def test_an_error_bar_goes_from_low_to_high() -> None:
    root = parse(bars(Series("", [2, 4, 1], [1, 3, 1], [3, 4, 1])))
    (_, top_2, _, _), (_, top_4, _, _), (_, top_1, _, _) = boxes(root)
    (_, ink) = [e.attrib["d"] for e in root.iter(f"{SVG}path") if "pointer-events" in e.attrib]
    low, high = re.findall(r"M[\d.]+ ([\d.]+)V([\d.]+)", ink)[0]
    assert float(low) == pytest.approx(top_1, abs=0.2)  # the error bar of the first ends where the bar of height 1 does
    assert float(high) == pytest.approx((top_2 + top_4) / 2, abs=0.2)


def test_of_a_hundred_numbered_keys_every_fifth_is_named() -> None:
    keys = tuple(map(str, range(1, 101)))
    heights = [k / 100 for k in range(100)]
    drawn = svg(bars(Series("one", heights), Series("two", heights), names=keys))
    named = [text for text in texts(ET.fromstring(drawn)) if text.isdecimal() and int(text) > 1]
    assert named == [str(k) for k in range(5, 101, 5)]
    assert len(drawn) < 80_000


def test_thousands_of_bars_are_one_path() -> None:
    drawn = svg(bars(Series("", [1.0] * 3000), names=tuple(map(str, range(3000)))))
    assert len(drawn) < 100_000
    assert boxes(ET.fromstring(drawn)) == []


def test_those_who_hear_it_are_told_the_ends() -> None:
    root = parse(bars(Series("exact", [1, 3, 2]), levels=(("uniform", 0.5),), reading="Higher is more."))
    assert root.findtext(f"{SVG}title") == "a title"
    assert root.findtext(f"{SVG}desc") == (
        "weight (nats) over key, 3 positions. exact: lowest 1 at a, highest 3 at b. uniform: 0.5. Higher is more."
    )
    assert {"key", "weight (nats)", "uniform", "exact", "a", "b", "c"} <= set(texts(root))


@pytest.mark.parametrize("empty", [bars(), bars(Series("", [])), bars(Series("", [math.nan] * 3)), bars(names=())])
def test_nothing_says_so(empty: Bars) -> None:
    assert texts(parse(empty)) == ["nothing to show"]


def test_names_from_outside_are_harmless() -> None:
    drawn = svg(bars(Series("<b>\u202e", [1, 2]), Series("x", [1, 2]), names=("<script>", "\n")))
    assert "<script" not in drawn
    assert "<b>" not in drawn
    assert "\u202e" not in drawn
    assert {"\\n", "<b>\\u202e"} <= set(texts(ET.fromstring(drawn)))


@settings(deadline=None, max_examples=50)
@given(
    heights=st.lists(any_number, max_size=9),
    errors=st.lists(any_number, max_size=9),
    names=st.lists(st.text(max_size=20), max_size=9),
    title=st.text(max_size=20),
    level=any_number,
)
def test_any_numbers_and_any_text_give_well_formed_xml(
    heights: list[float], errors: list[float], names: list[str], title: str, level: float
) -> None:
    series = tuple(Series(name, heights, errors, heights) for name in names[:3])
    root = ET.fromstring(svg(Bars(title, title, title, tuple(names), series, title, ((title, level),))))
    assert all("nan" not in v and "inf" not in v for e in root.iter() for k, v in e.attrib.items() if k in "dxy")

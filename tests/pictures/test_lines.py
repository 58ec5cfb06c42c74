"""Charts: well-formed whatever the numbers, gaps stay gaps, nothing that can be seen is lost."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inkling.figures import Chart, Line
from inkling.pictures.lines import svg

SVG = "{http://www.w3.org/2000/svg}"
any_number = st.floats(allow_nan=True, allow_infinity=True)
ordinary = st.floats(-1e6, 1e6)


def parse(chart: Chart) -> ET.Element:
    return ET.fromstring(svg(chart))


def chart(*lines: Line, **options: object) -> Chart:
    return Chart("a title", "steps", "nats", lines, **options)  # type: ignore[arg-type]


def texts(root: ET.Element) -> list[str]:
    return ["".join(element.itertext()) for element in root.iter(f"{SVG}text")]


def paths(root: ET.Element) -> list[list[tuple[float, float]]]:
    """The curves, as pixels; leader lines are thinner than any curve."""
    curves = [e.attrib["d"] for e in root.iter(f"{SVG}path") if float(e.attrib["stroke-width"]) > 1]
    return [[(float(x), float(y)) for x, y in re.findall(r"([-\d.]+) ([-\d.]+)", d)] for d in curves]


@settings(deadline=None, max_examples=60)
@given(
    names=st.lists(st.text(max_size=30), max_size=8),
    points=st.lists(st.tuples(any_number, any_number), max_size=12),
    band=st.booleans(),
    logs=st.tuples(st.booleans(), st.booleans()),
    title=st.text(max_size=30),
    level=any_number,
)
def test_any_numbers_and_any_text_give_well_formed_xml(
    names: list[str], points: list[tuple[float, float]], band: bool, logs: tuple[bool, bool], title: str, level: float
) -> None:
    x, y = [p[0] for p in points], [p[1] for p in points]
    lines = tuple(Line(name, x, y, y if band else (), x if band else ()) for name in names)
    drawn = svg(Chart(title, title, title, lines, title, *logs, ((title, level),)))
    root = ET.fromstring(drawn)
    assert root.attrib["role"] == "img"
    assert "nan" not in " ".join(
        v for e in root.iter() for k, v in e.attrib.items() if k in ("d", "points", "x1", "y1")
    )


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(ordinary, ordinary), min_size=1, max_size=30))
def test_every_point_lies_inside_the_picture(points: list[tuple[float, float]]) -> None:
    root = parse(chart(Line("a", [p[0] for p in points], [p[1] for p in points])))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for x, y in (spot for path in paths(root) for spot in path):
        assert 0 <= x <= width
        assert 0 <= y <= height


def test_title_and_description_are_there_for_those_who_hear_it() -> None:
    root = parse(
        chart(Line("validation", [1, 2, 3], [4, 2, 3]), levels=(("baseline", 2.5),), reading="Lower is better.")
    )
    assert root.findtext(f"{SVG}title") == "a title"
    assert root.findtext(f"{SVG}desc") == (
        "nats over steps. validation: from 4 to 3, lowest 2, highest 4. baseline: 2.5. Lower is better."
    )


def test_lines_and_levels_are_named_and_axes_labelled() -> None:
    words = texts(
        parse(chart(Line("first", [0, 10], [1, 2]), Line("second", [0, 10], [2, 1]), levels=(("base", 1.5),)))
    )
    assert {"steps", "nats", "first", "second", "base", "0", "10"} <= set(words)


def test_lines_differ_without_colour() -> None:
    root = parse(chart(*(Line(f"line {k}", [0, 1], [k, k + 1]) for k in range(6))))
    dashes = [e.get("stroke-dasharray") for e in root.iter(f"{SVG}path") if e.get("stroke-width") == "2"]
    assert len(set(dashes)) == 6


@pytest.mark.parametrize(
    "empty",
    [
        chart(),
        chart(Line("none", [], [])),
        chart(Line("nan", [1.0], [math.nan])),
        chart(Line("negative", [1.0, 2.0], [-1.0, 0.0]), log_y=True),
    ],
)
def test_an_empty_chart_says_so(empty: Chart) -> None:
    assert texts(parse(empty)) == ["nothing to show"]


def test_a_single_point_is_a_marker_in_the_middle() -> None:
    root = parse(chart(Line("alone", [3], [0.25])))
    assert paths(root) == []
    circles = list(root.iter(f"{SVG}circle"))
    assert len(circles) == 2  # the point, and the sample beside its name
    assert "3" in texts(root)
    assert "0.25" in texts(root)


def test_a_constant_line_is_level() -> None:
    ((first, second),) = paths(parse(chart(Line("same", [1, 2], [5, 5]))))
    assert first[1] == second[1]
    assert first[0] < second[0]


def test_gaps_stay_gaps() -> None:
    gap = Line("a", [0, 1, 2, 3, 4, 5], [1.0, 2.0, math.nan, 2.0, math.inf, 1.0])
    root = parse(chart(gap))
    assert [len(path) for path in paths(root)] == [2]  # 0–1; the points at 3 and 5 stand alone
    assert len(list(root.iter(f"{SVG}circle"))) == 4 + 1


def test_a_logarithmic_axis_puts_equal_ratios_at_equal_distances() -> None:
    (path,) = paths(parse(chart(Line("a", [1, 10, 100], [1, 10, 100]), log_x=True, log_y=True)))
    (x0, y0), (x1, y1), (x2, y2) = path
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.2)
    assert y0 - y1 == pytest.approx(y1 - y2, abs=0.2)
    assert y0 > y1 > y2  # larger is higher


def test_a_band_surrounds_its_line() -> None:
    root = parse(chart(Line("a", [0, 1], [5, 6], [4, 5], [6, 8])))
    band = next(e for e in root.iter(f"{SVG}polygon") if e.get("fill-opacity"))
    corners = [tuple(map(float, pair.split(","))) for pair in band.attrib["points"].split()]
    (path,) = paths(root)
    assert corners[0][1] < path[0][1] < corners[3][1]
    assert corners[1][1] < path[1][1] < corners[2][1]


def test_many_points_are_thinned_without_losing_extremes() -> None:
    n = 50_000
    y = [math.sin(i / 3000) for i in range(n)]
    y[31_234], y[41_234] = 9.0, -7.0
    drawn = svg(chart(Line("loss", range(n), y)))
    assert len(drawn) < 60_000
    (path,) = paths(ET.fromstring(drawn))
    full = paths(parse(chart(Line("peaks", [0, 31_234, 41_234, n - 1], [0.0, 9.0, -7.0, y[-1]]))))[0]
    assert min(p[1] for p in path) == full[1][1]
    assert max(p[1] for p in path) == full[2][1]
    assert path[-1][1] == full[3][1]


def test_names_at_line_ends_do_not_overlap() -> None:
    root = parse(chart(*(Line(f"model {k}", [0, 1], [1, 1 + k / 1000]) for k in range(12))))
    heights = sorted(float(e.attrib["y"]) for e in root.iter(f"{SVG}text") if (e.text or "").startswith("model"))
    assert len(heights) == 12
    assert min(b - a for a, b in pairwise(heights)) >= 15


def test_a_line_drawn_backwards_is_named_at_its_right_end() -> None:
    root = parse(chart(Line("back", [10, 0], [1, 2]), Line("on", [0, 10], [1, 2])))
    heights = {e.text: float(e.attrib["y"]) for e in root.iter(f"{SVG}text")}
    assert heights["back"] > heights["on"]


def test_a_long_name_is_cut_but_kept_as_a_tooltip() -> None:
    name = "a model with a name that is far too long to stand beside a curve"
    root = parse(chart(Line(name, [0, 1], [0, 1])))
    label = next(e for e in root.iter(f"{SVG}text") if e.find(f"{SVG}title") is not None)
    assert label.findtext(f"{SVG}title") == name
    assert "".join(label.itertext()).endswith("…")


def test_text_is_escaped_and_controls_are_shown() -> None:
    drawn = svg(chart(Line("<script>\x1b\u202e&", [0, 1], [0, 1])))
    assert "<script" not in drawn
    assert "&lt;script&gt;\\x1b\\u202e&amp;" in drawn

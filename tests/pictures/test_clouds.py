"""Clouds: a circle is a circle, thousands of points stay small, groups differ without colour, names do not collide."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inkling.figures import Cloud, Spots
from inkling.pictures.clouds import MOST_POINTS, svg, thin

SVG = "{http://www.w3.org/2000/svg}"
any_number = st.floats(allow_nan=True, allow_infinity=True)


def cloud(*groups: Spots, **options: object) -> Cloud:
    return Cloud("a title", "first", "second (nats)", groups, **options)  # type: ignore[arg-type]


def texts(root: ET.Element) -> list[str]:
    return [element.text or "" for element in root.iter(f"{SVG}text")]


def dots(root: ET.Element) -> list[tuple[float, float]]:
    """The points of the first group, without the sample beside its name."""
    path = next(e for e in root.iter(f"{SVG}path") if "h0" in e.attrib["d"])
    return [(float(x), float(y)) for x, y in re.findall(r"M([-\d.]+) ([-\d.]+)h0", path.attrib["d"])]


def test_similar_ranges_have_one_scale() -> None:
    east, north, west, south = dots(ET.fromstring(svg(cloud(Spots("", [1, 0, -1, 0], [0, 1, 0, -1])))))
    assert east[0] - west[0] == pytest.approx(south[1] - north[1], abs=0.2)
    assert north[1] < south[1]


def test_different_ranges_fill_the_plot_each() -> None:
    low, high = dots(ET.fromstring(svg(cloud(Spots("", [0, 1], [0, 1000])))))
    assert high[0] - low[0] > 500
    assert low[1] - high[1] > 300


def test_twenty_thousand_points_stay_small_and_are_counted() -> None:
    generator = np.random.default_rng(1)
    groups = (
        Spots(f"group {k}", (generator.normal(size=4000) + k).tolist(), generator.normal(size=4000).tolist())
        for k in range(5)
    )
    drawn = svg(cloud(*groups))
    assert len(drawn) < 300_000
    assert re.search(r"Of 20,000 points [\d,]+ are drawn: one of each group in a square of \d+ pixels", drawn)


def test_thinning_loses_no_lone_point_and_invents_none() -> None:
    generator = np.random.default_rng(2)
    crowd = generator.uniform(0, 100, size=(20_000, 2))
    lone = np.array([[400.0, 300.0]])
    (kept, other), said = thin([crowd, lone])
    assert len(kept) + len(other) <= MOST_POINTS
    assert other.tolist() == lone.tolist()
    everything = set(map(tuple, crowd.tolist()))
    assert all(tuple(point) in everything for point in kept.tolist())
    assert said.startswith("Of 20,001 points ")


def test_few_points_are_all_drawn() -> None:
    assert len(dots(ET.fromstring(svg(cloud(Spots("", range(500), range(500))))))) == 500


def test_groups_differ_without_colour() -> None:
    root = ET.fromstring(svg(cloud(*(Spots(f"g{k}", [k, k + 1], [k, 0]) for k in range(6)))))
    groups = [e for e in root.iter(f"{SVG}path") if "opacity" in "".join(e.attrib)][:6]
    shapes = {re.sub(r"M[-\d.]+ [-\d.]+", "", e.attrib["d"])[:30] for e in groups}
    assert len(shapes) == 6
    assert [e.attrib["fill"] == "none" for e in groups] == [True, True, False, True, False, True]  # a dot is a stroke
    assert {f"g{k}" for k in range(6)} <= set(texts(root))


def test_marks_have_names_that_do_not_lie_on_each_other() -> None:
    marks = tuple((f"place {k}", 0.5 + k / 500, 0.5) for k in range(3))
    root = ET.fromstring(svg(cloud(Spots("", [0, 1], [0, 1]), marks=marks)))
    names = [e for e in root.iter(f"{SVG}text") if (e.text or "").startswith("place")]
    places = {(e.attrib["text-anchor"], e.attrib["y"]) for e in names}
    assert len(names) == len(places) == 3


def test_a_mark_alone_is_a_picture() -> None:
    root = ET.fromstring(svg(cloud(marks=(("v_a", 1.0, 2.0),))))
    assert "v_a" in texts(root)
    assert len(list(root.iter(f"{SVG}circle"))) == 2


def test_those_who_hear_it_are_told_where_the_groups_lie() -> None:
    points = Spots("heads", [0, 2, math.nan], [1, 3, 5])
    root = ET.fromstring(svg(cloud(points, marks=(("v_a", 1, 2),), reading="Near is alike.")))
    assert root.findtext(f"{SVG}desc") == (
        "second (nats) over first. heads: 2 points around (1, 2). heads: 1 points without a place are left out. "
        "v_a at (1, 2). Near is alike."
    )
    assert {"first", "second (nats)"} <= set(texts(root))


@pytest.mark.parametrize("empty", [cloud(), cloud(Spots("a", [], [])), cloud(Spots("a", [math.nan], [1.0]))])
def test_nothing_says_so(empty: Cloud) -> None:
    assert texts(ET.fromstring(svg(empty))) == ["nothing to show"]


@settings(deadline=None, max_examples=50)
@given(
    points=st.lists(st.tuples(any_number, any_number), max_size=9),
    names=st.lists(st.text(max_size=20), max_size=8),
    mark=st.tuples(st.text(max_size=20), any_number, any_number),
)
def test_any_numbers_and_any_text_give_well_formed_xml(
    points: list[tuple[float, float]], names: list[str], mark: tuple[str, float, float]
) -> None:
    groups = tuple(Spots(name, [p[0] for p in points], [p[1] for p in points]) for name in names)
    root = ET.fromstring(svg(cloud(*groups, marks=(mark,), reading=mark[0])))
    assert all("nan" not in v and "inf" not in v for e in root.iter() for k, v in e.attrib.items() if k in "dxy")

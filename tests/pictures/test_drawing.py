"""Every picture can be drawn, several make one file that needs no page, and a notebook shows what a page shows."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

from inkling.figures import (
    Bars,
    Chart,
    Cloud,
    Column,
    HeatMap,
    Line,
    Page,
    Panels,
    Picture,
    Prose,
    Series,
    Spots,
    Table,
)
from inkling.pictures.drawing import draw, stacked
from inkling.pictures.markup import section
from inkling.pictures.notebook import notebook

SVG = "{http://www.w3.org/2000/svg}"
HEAT = HeatMap("heat", "row", "column", ("1", "2"), ("1", "2"), [[1.0, -2.0], [None, 0.0]], "nats", "Darker is more.")
PICTURES: tuple[Picture, ...] = (
    Chart("curve", "x", "y", (Line("a", [0, 1], [1, 2]),), "Lower is better."),
    Bars("bars", "x", "y", ("k",), (Series("one", [1], [0], [2]), Series("two", [2])), "Taller is more."),
    Cloud("cloud", "x", "y", (Spots("a", [0, 1], [1, 2]), Spots("b", [0], [0])), "Near is alike.", (("here", 0, 0),)),
    HEAT,
    Panels("panels", (HEAT, HEAT), "One scale."),
)


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.title)
def test_a_picture_obeys_the_policy_of_any_page(picture: Picture) -> None:
    """No style, no id, nothing that loads: it may stand in a page twice, and where all but one sheet is forbidden."""
    root = ET.fromstring(draw(picture))
    assert root.findtext(f"{SVG}title") == picture.title
    assert picture.reading in (root.findtext(f"{SVG}desc") or "")
    names = {name for element in root.iter() for name in element.attrib}
    assert not names & {"style", "id", "class", "href", "src"}
    assert not [name for name in names if name.startswith("on")]
    assert "url(" not in draw(picture)
    assert not {element.tag.removeprefix(SVG) for element in root.iter()} & {
        "script",
        "style",
        "image",
        "foreignObject",
    }


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.title)
def test_colours_can_be_changed_by_the_page_and_have_a_default(picture: Picture) -> None:
    for value in re.findall(r'(?:fill|stroke)="([^"]*)"', draw(picture)):
        assert value == "none" or re.fullmatch(r"var\(--[a-z0-9-]+, #[0-9a-f]{6}\)", value)


def test_stacked_pictures_stand_under_each_other_with_title_and_reading() -> None:
    root = ET.fromstring(stacked("All of them", PICTURES))
    inner = root.findall(f"{SVG}svg")
    assert len(inner) == len(PICTURES)
    bottom = 0.0
    for element in inner:
        assert float(element.attrib["y"]) > bottom
        bottom = float(element.attrib["y"]) + float(element.attrib["height"])
    assert bottom < float(root.attrib["height"])
    words = [element.text for element in root.findall(f"{SVG}text")]
    assert words == ["All of them", *(part for picture in PICTURES for part in (picture.title, picture.reading))]


def test_a_file_has_plain_colours_on_white_and_text_stays_as_it_was() -> None:
    text = 'var(--ink, #000000) and ="var(--ink, #000000)"'
    document = stacked(text, [Chart(text, "x", "y", (Line("a", [0, 1], [1, 2]),))])
    root = ET.fromstring(document)
    assert root.findtext(f"{SVG}title") == text
    ground = root.find(f"{SVG}rect")
    assert ground is not None
    assert ground.attrib["fill"] == "#ffffff"
    assert not [v for e in root.iter() for v in e.attrib.values() if "var(" in v]


def test_a_long_reading_is_wrapped_to_the_width() -> None:
    reading = "word " * 100
    root = ET.fromstring(stacked("t", [Chart("c", "x", "y", (Line("a", [0, 1], [1, 2]),), reading)]))
    lines = [e.text or "" for e in root.findall(f"{SVG}text") if (e.text or "").startswith("word")]
    assert len(lines) > 3
    assert " ".join(lines).split() == reading.split()
    assert max(map(len, lines)) * 6.7 <= 720


def test_no_pictures_are_a_document_too() -> None:
    assert ET.fromstring(stacked("nothing", [])).findtext(f"{SVG}desc") == "no pictures"


def test_a_notebook_shows_every_exhibit_as_the_page_does() -> None:
    table = Table("numbers", (Column("n\u202e<b>"),), ((1,),), ("A note.",))
    page = Page("Results <1>", (*PICTURES, table, Prose("Words.")))
    shown = notebook(page)
    assert page._repr_html_() == shown
    assert shown.startswith("<h1>Results &lt;1&gt;</h1>")
    assert all(section(exhibit) in shown for exhibit in page.exhibits)
    assert "<script" not in shown
    assert "style" not in shown
    assert "n\\u202e&lt;b&gt;" in shown


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.title)
def test_a_picture_alone_shows_itself_with_title_and_reading(picture: Picture) -> None:
    shown = picture._repr_html_()
    assert draw(picture) in shown
    assert f"<h2>{picture.title}</h2>" in shown
    assert f"<figcaption>{picture.reading}</figcaption>" in shown


def test_describing_and_printing_do_not_import_what_drawing_needs() -> None:
    code = "import sys, inkling.figures, inkling.report.terminal; print('numpy' in sys.modules, 'rich' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"

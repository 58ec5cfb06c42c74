"""What all pages have around them: the list of pages, a title with one sentence, light or dark.

    with frame(studio, entry):
        …                       the page itself

A wide screen has the list at the left, a narrow one above. Looks are in `studio.css`: a page uses its classes (`panel`,
`row`, `quiet`, `figure`, …) and Quasar's elements, and brings no colours of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from nicegui import ui

from inkling.figures import Exhibit
from inkling.studio.state import Look, Studio

LOOKS: tuple[Look, ...] = ("auto", "light", "dark")
LOOK_ICONS = {"auto": "brightness_auto", "light": "light_mode", "dark": "dark_mode"}


@dataclass(frozen=True)
class Entry:
    """A page: its path, name and icon, the module that builds it, and one sentence of what it is for."""

    path: str
    title: str
    icon: str
    module: str
    lead: str


ENTRIES = (
    Entry("/", "Runs", "timeline", "runs", "Train models, watch them learn, and lay their curves side by side."),
    Entry(
        "/compare", "Compare", "straighten", "compare", "One ruler for all models, and a text as two of them see it."
    ),
    Entry("/write", "Write", "edit_note", "write", "Let a model write, see what else it could have said, and branch."),
    Entry("/classify", "Classify", "sell", "classify", "A label, how sure it is, and the words that moved it."),
    Entry("/attention", "Attention", "hub", "attention", "Attention exactly, simulated, constructed, and found."),
    Entry("/knowledge", "Knowledge", "quiz", "knowledge", "Ask a model, and see whether it knows that it knows."),
    Entry("/claims", "Claims", "fact_check", "claims", "Every statement, what was published, and what comes out here."),
)


@contextmanager
def frame(studio: Studio, entry: Entry) -> Iterator[None]:
    ui.add_head_html('<link rel="stylesheet" href="/studio.css">')
    ui.colors(primary="#1d5fa8", negative="#b3261e", positive="#0f7a5c", warning="#8a6100")
    dark = ui.dark_mode(_dark(studio.look))
    with ui.element("div").classes("shell"):
        with ui.element("nav").classes("side").props('aria-label="Pages"'):
            ui.link("Inkling", "/").classes("brand")
            for other in ENTRIES:
                with ui.link(target=other.path).classes("entry") as link:
                    ui.icon(other.icon).props("aria-hidden=true")
                    ui.label(other.title)
                if other is entry:
                    link.classes("here").props('aria-current="page"')
            look = ui.button(icon=LOOK_ICONS[studio.look]).props('flat round dense aria-label="Light or dark"')
            look.classes("look").tooltip("Light, dark, or as the system says")

            def turn() -> None:
                studio.look = LOOKS[(LOOKS.index(studio.look) + 1) % len(LOOKS)]
                dark.value = _dark(studio.look)
                look.props(f"icon={LOOK_ICONS[studio.look]}")

            look.on_click(turn)
        with ui.element("main").classes("stage").props("id=main"):
            ui.html(entry.title, tag="h1")
            ui.label(entry.lead).classes("lead")
            yield


def _dark(look: Look) -> bool | None:
    return {"auto": None, "light": False, "dark": True}[look]


def show(exhibit: Exhibit) -> ui.html:
    """An exhibit as in reports and notebooks: a table, a paragraph or a picture, with its title and how to read it."""
    from inkling.pictures.markup import section

    return ui.html(section(exhibit), tag="section").classes("exhibit")


def heading(text: str) -> ui.label:
    """A second-level heading; the text is text."""
    return ui.label(text).classes("heading").props("role=heading aria-level=2")


def empty(sentence: str, command: str = "") -> ui.element:
    """What stands where there is nothing yet: what to do about it, and the command that does it."""
    with ui.element("div").classes("empty") as box:
        ui.label(sentence)
        if command:
            ui.label(command).classes("command")
    return box

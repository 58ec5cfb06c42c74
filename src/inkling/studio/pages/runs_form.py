"""The form that starts a training: which data, which kind, how long."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nicegui import ui

from inkling.errors import InklingError, UsageError
from inkling.studio.intake import Received, upload
from inkling.studio.state import Studio
from inkling.studio.trainings import KINDS, MOST_MINUTES, TOKENS, Kind, Wish, make_data
from inkling.studio.work import aside, told

GENERATED = {
    "made:text": "Generated sentences (built in)",
    "made:reviews": "Generated reviews with labels (built in)",
    "made:biographies": "Generated lives, with questions (built in)",
}
TITLES = {"made:text": "world", "made:reviews": "reviews", "made:biographies": "lives"}
LABELLED = ("made:reviews",)


@dataclass
class Choice:
    """What the form holds until it is sent."""

    source: str = "made:text"
    received: Received | None = None


def form(studio: Studio, on_start: Callable[[str], Any]) -> None:
    """Draws the form; `on_start` is told the name of the run to be."""
    chosen = Choice()
    with ui.element("div").classes("panel"), ui.element("div").classes("line top"):
        with ui.element("div").classes("grow"):
            source = ui.select(dict(GENERATED), value=chosen.source, label="Text to learn from")
            source.props("outlined dense").classes("full").props("data-testid=source")
            fetch = ui.button("Fetch it from the package index").props("flat dense no-caps icon=download")
            fetch.visible = False

            async def receive(received: Received) -> None:
                chosen.received = received
                key = f"file:{received.path.name}"
                source.set_options({**source.options, key: received.name}, value=key)  # type: ignore[dict-item]

            upload(studio, "or a file of yours: drop it here", receive)
        with ui.element("div").classes("grow"):
            kind = ui.select(dict(KINDS), value="gpt", label="Kind of model").props("outlined dense").classes("full")
            tokens = ui.select(list(TOKENS), value="character", label="Tokens").props("outlined dense").classes("full")
        with ui.element("div").classes("grow"):
            minutes = ui.number("Minutes", value=1, min=0.05, max=MOST_MINUTES, step=0.5).props("outlined dense")
            minutes.classes("full").tooltip("Sizes the model and its schedule by the speed of this computer")
            seed = ui.number("Seed", value=0, min=0, max=2**32 - 1, step=1, precision=0).props("outlined dense")
            seed.classes("full")
            start = ui.button("Start training").props("unelevated no-caps icon=play_arrow")
        hint = ui.label().classes("quiet full")

    sets: dict[str, bool] = {}  # data:NAME, and whether it is here

    async def offer_sets() -> None:
        """What the catalogue has, beside what is built in."""
        from inkling.text.catalogue import list_data

        options = dict(GENERATED)
        for status in await aside(list_data):
            name, from_index = status.data_set.name, status.data_set.kind != "folder"
            if status.present or from_index:
                sets[f"data:{name}"] = status.present
                options[f"data:{name}"] = f"{status.data_set.title}{'' if status.present else ' (not here yet)'}"
        if chosen.received is not None:
            options[f"file:{chosen.received.path.name}"] = chosen.received.name
        source.set_options(options, value=source.value)
        explain()

    def explain() -> None:
        labelled, here = kind.value == "dan", sets.get(str(source.value), True)
        fetch.visible = not here
        start.set_enabled(here)
        minutes.set_enabled(kind.value in ("gpt", "gru", "bigram"))
        tokens.set_enabled(kind.value in ("gpt", "gru") and source.value != "made:biographies")
        if not here:
            hint.set_text("This set is not on this computer yet; nothing is downloaded unless you press the button.")
        elif labelled and source.value in ("made:text", "made:biographies"):
            hint.set_text("A classifier needs a table with a text and a label in each row, such as the reviews.")
        elif source.value == "made:biographies" and kind.value == "gpt":
            hint.set_text("Learns the lives and the questions, so that it can be asked on the page Knowledge.")
        else:
            hint.set_text("A tenth is held out by itself. The training goes on when this page is closed.")

    def follow_source() -> None:
        if source.value in LABELLED and kind.value != "dan":
            kind.set_value("dan")
        elif source.value in GENERATED and source.value not in LABELLED and kind.value == "dan":
            kind.set_value("gpt")
        explain()

    source.on_value_change(follow_source)
    kind.on_value_change(explain)

    @told
    async def get_set() -> None:
        name = str(source.value).removeprefix("data:")
        fetch.props("loading")
        try:
            await aside(_fetch, name)
        finally:
            fetch.props(remove="loading")
        ui.notify(f"{name} is here now.", type="positive")
        await offer_sets()

    @told
    async def begin() -> None:
        if minutes.value is None or seed.value is None:
            raise UsageError("Minutes or seed are empty; give a number.")
        start.props("loading")
        try:
            wish = await aside(_wish, studio, chosen, str(source.value), str(kind.value), str(tokens.value))
            wish = Wish(
                wish.kind, wish.file, wish.title, float(minutes.value), wish.tokens, int(seed.value), wish.pairs
            )
            name = await aside(studio.trainings.start, wish)
        finally:
            start.props(remove="loading")
        on_start(name)

    fetch.on_click(get_set)
    start.on_click(begin)
    ui.timer(0.05, offer_sets, once=True)
    explain()


def _wish(studio: Studio, chosen: Choice, source: str, kind: str, tokens: str) -> Wish:
    """From what was chosen to files: generated now, of the catalogue, or handed in."""
    wanted: Kind = next(known for known in KINDS if known == kind)
    if source in GENERATED:
        path = make_data(source.removeprefix("made:"), studio.hidden / "made")
        pairs = None
        if source == "made:biographies" and wanted == "gpt":
            pairs = str(path.with_suffix(".questions.tsv"))
        return Wish(wanted, str(path), TITLES[source], tokens=tokens, pairs=pairs)
    if source.startswith("data:"):
        return Wish(wanted, source, source.removeprefix("data:"), tokens=tokens)
    if chosen.received is None or source != f"file:{chosen.received.path.name}":
        raise InklingError("That file is not here any more; hand it in again.")
    return Wish(wanted, str(chosen.received.path), chosen.received.name, tokens=tokens)


def _fetch(name: str) -> None:
    """`inkling data get NAME`, with its last words if it fails."""
    import subprocess

    found = subprocess.run(
        [sys.executable, "-m", "inkling", "data", "get", name], capture_output=True, text=True, check=False
    )
    if found.returncode:
        words = found.stderr.strip().splitlines() or ["It could not be fetched."]
        raise InklingError(words[-1].removeprefix("inkling: "))

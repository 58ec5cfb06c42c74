"""Runs: all of them, the curves of those that are chosen, live while they train; starting, stopping, going on.

The list is looked at once a second; the figures of a chosen run that is in training are shown five times, and its
curves drawn when they have grown by what can be seen. What is sent is a few hundred points of the curves that have
grown.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from nicegui import background_tasks, ui

from inkling.errors import InklingError
from inkling.runs.run import Run
from inkling.studio.components.live import Curve, LivePlot
from inkling.studio.frame import empty
from inkling.studio.pages.runs_form import form
from inkling.studio.pages.runs_one import LIVE_SECONDS, TOGETHER, OneRun
from inkling.studio.state import Studio
from inkling.studio.views_runs import Follower, Rows
from inkling.studio.work import aside, say_error

LIST_SECONDS = 1.0
CURVE_SECONDS, CURVE_GROWTH = (1.0, 5.0), 0.01  # painting takes long: when a curve is a hundredth longer
MOST_CHOSEN = 8
COLUMNS: list[dict[str, Any]] = [
    {"name": "name", "label": "Run", "field": "name", "align": "left", "sortable": True},
    {"name": "state", "label": "State", "field": "state", "align": "left", "sortable": True},
    {"name": "spark", "label": "Loss", "field": "spark", "align": "left"},
    {"name": "figure", "label": "Held out", "field": "figure", "align": "left", "sortable": True},
    {"name": "parameters", "label": "Parameters", "field": "parameters", "sortable": True},
    {"name": "text", "label": "Text", "field": "text", "align": "left"},
    {"name": "started", "label": "Started", "field": "started", "align": "left"},
]
SPARK = """<q-td :props="props"><svg v-if="props.row.spark" class="spark" viewBox="0 0 96 22" aria-hidden="true">
<polyline :points="props.row.spark" fill="none" stroke="currentColor" stroke-width="1.5"/></svg></q-td>"""
STATE = (
    """<q-td :props="props"><span class="state" :class="'is-' + props.row.state">{{ props.row.state }}</span></q-td>"""
)
NUMBER = """<q-td :props="props">{{ props.row.parameters ? props.row.parameters.toLocaleString('en') : '' }}</q-td>"""


def build(studio: Studio) -> None:
    RunsPage(studio).draw()


class RunsPage:
    """What one open page shows: the list, and the runs that are chosen in it."""

    def __init__(self, studio: Studio) -> None:
        self.studio = studio
        self.rows = Rows()
        self.followers: dict[str, Follower] = {}
        self.runs: dict[str, Run] = {}
        self.chosen: list[str] = []
        self.awaited: str | None = None  # a run that was started and is to be shown when it appears
        self.awaiting: list[tuple[str, str | None]] = []
        self.over = "steps"
        self.busy = self.told = self.grown = False
        self.asked = self.drawn = 0  # how often something else was chosen, and which of these is drawn
        self.painted = 0.0  # when the curves were, by the clock

    def draw(self) -> None:
        with ui.element("div").classes("line actions"):
            new = ui.button("New training", icon="add").props("unelevated no-caps")
        with ui.element("div").classes("form-box") as box:
            form(self.studio, self.started)
        box.visible = False
        new.on_click(lambda: box.set_visibility(not box.visible))
        self.pending = ui.element("div")
        self.watched = ui.element("div").classes("panel")
        with self.watched:
            with ui.element("div").classes("line"):
                self.title = ui.label().classes("heading grow").props("role=heading aria-level=2")
                over = ui.toggle({"steps": "over steps", "seconds": "over time"}, value="steps")
                over.props("dense unelevated no-caps").on_value_change(lambda event: self.turn(str(event.value)))
            self.plot = LivePlot("The loss over the training")
            self.units = ui.label().classes("quiet")
            self.one = OneRun(self.studio)
        self.watched.visible = False
        self.nothing = empty("There are no runs in this folder yet. Start one here, or with", "inkling train gpt FILE")
        self.nothing.visible = False
        self.table = ui.table(columns=COLUMNS, rows=[], row_key="name", selection="multiple", pagination=0)
        self.table.props('flat virtual-scroll :virtual-scroll-item-size="44" hide-selected-banner hide-bottom')
        self.table.props('aria-label="Runs"').classes("runs-table")
        self.table.add_slot("body-cell-spark", SPARK)
        self.table.add_slot("body-cell-state", STATE)
        self.table.add_slot("body-cell-parameters", NUMBER)
        self.table.on_select(lambda _: self.choose([row["name"] for row in self.table.selected]))
        self.table.on("rowClick", lambda event: self.choose([event.args[1]["name"]]), [[], ["name"], None])
        ui.timer(0.01, self.look, once=True)
        ui.timer(LIST_SECONDS, self.look)
        ui.timer(LIVE_SECONDS * TOGETHER, self.follow)

    # ------------------------------------------------------------------------------------------- the list

    async def look(self) -> None:
        runs = await aside(self.studio.runs)
        rows = await aside(self.rows.of, runs)
        self.runs = {run.path.name: run for run in runs}
        if rows != self.table.rows:
            self.table.rows = rows
        self.table.visible = bool(rows)
        self.draw_pending()
        if self.awaited in self.runs:
            self.choose([str(self.awaited)])
            self.awaited = None
        kept = [name for name in self.chosen if name in self.runs]
        if kept != self.chosen:
            self.choose(kept)
        self.told = False  # so that states are looked at once a second, also where nothing grows

    def started(self, name: str) -> None:
        self.awaited = name
        ui.notify(f"{name} is getting ready; it appears here when its first step is near.", type="info")

    def draw_pending(self) -> None:
        """Trainings of this studio that have no run yet."""
        found = [
            (one.name, None if one.process.poll() is None else one.last_words())
            for one in self.studio.trainings.pending()
        ]
        self.nothing.visible = not self.runs and not found
        if found == self.awaiting:
            return
        self.awaiting = found
        self.pending.clear()
        with self.pending:
            for name, words in found:
                with ui.element("div").classes("panel line"):
                    if words is None:
                        ui.spinner(size="1.2rem")
                        ui.label(f"{name} is getting ready: reading the text, trying this computer.").classes("grow")
                    else:
                        ui.icon("error_outline", color="negative").classes("text-h6")
                        ui.label(f"{name} could not begin. {words}").classes("grow")
                    ui.button("Dismiss", on_click=self.dismisser(name)).props("flat dense no-caps")

    def dismisser(self, name: str) -> Callable[[], None]:
        return lambda: self.studio.trainings.forget(name)

    # ------------------------------------------------------------------------------------------- the chosen

    def choose(self, names: list[str]) -> None:
        if len(names) > MOST_CHOSEN:
            say_error(f"{len(names)} runs are chosen; {MOST_CHOSEN} curves on one plot are the most that can be read.")
            names = names[:MOST_CHOSEN]
        self.chosen = [name for name in names if name in self.runs]
        self.table.selected = [row for row in self.table.rows if row["name"] in self.chosen]
        self.followers = {name: self.followers.get(name) or Follower.of(self.runs[name]) for name in self.chosen}
        self.watched.visible = bool(self.chosen)
        self.title.set_text(self.chosen[0] if len(self.chosen) == 1 else f"{len(self.chosen)} runs")
        self.one.choose(self.chosen[0] if len(self.chosen) == 1 else None)
        self.redraw()

    def turn(self, over: str) -> None:
        self.over = over
        self.redraw()

    def redraw(self) -> None:
        """At once, and not when the next figures are due."""
        self.asked += 1
        background_tasks.create(self.follow())

    async def follow(self) -> None:
        """Takes in what was written since, and draws what has grown, or was chosen just now."""
        if self.busy:
            return
        self.busy = True
        try:
            asked = -1
            while asked != self.asked:  # again, if another was chosen meanwhile
                asked = self.asked
                await self.follow_once(asked)
        finally:
            self.busy = False

    async def follow_once(self, asked: int) -> None:
        new = self.drawn != asked
        try:
            if self.chosen:
                grown = await aside(self.fetch) if len(self.chosen) > 1 or new else self.fetch()
                self.grown = self.grown or grown
            if len(self.chosen) == 1 and (new or not self.told):
                self.told = True
                await self.one.look(self.chosen[0])
            if asked == self.asked and self.chosen:
                self.show(new)
                self.drawn = asked
        except (InklingError, KeyError):
            pass  # a run that was removed meanwhile; the list says so

    def show(self, new: bool) -> None:
        if len(self.chosen) == 1:
            self.one.say(self.followers[self.chosen[0]])
        for follower in self.followers.values():
            follower.take()
        now = time.monotonic()
        if new or (self.grown and now - self.painted >= self.rest()):
            self.draw_curves()
            self.painted, self.grown = now, False

    def fetch(self) -> bool:
        grown = [follower.fetch() for follower in list(self.followers.values())]  # all of them, not up to the first
        return any(grown)

    def rest(self) -> float:
        """Seconds between two paintings of the curves."""
        trained = max((one.trained[-1].seconds for one in self.followers.values() if one.trained), default=0.0)
        least, most = CURVE_SECONDS
        return min(most, max(least, CURVE_GROWTH * trained))

    def draw_curves(self) -> None:
        units = list(dict.fromkeys(follower.unit.name for follower in self.followers.values()))
        alone = len(self.followers) == 1
        curves: list[Curve] = []
        for number, (name, follower) in enumerate(self.followers.items()):
            if follower.unit.name != units[0]:
                continue
            trained, judged = follower.curves(self.over)
            if trained:
                curves.append(Curve("training text" if alone else f"{name}, training", number, trained, faint=True))
            if judged:
                curves.append(Curve("held-out text" if alone else name, number, judged))
        self.plot.show("seconds of training" if self.over == "seconds" else "step", units[0], curves)
        said = f"{units[0].capitalize()}, lower is better; faint: the text it learns from, strong: held-out text."
        if len(units) > 1:
            said += f" Runs measured in {', '.join(units[1:])} are left out, because they cannot share an axis."
        self.units.set_text(said)

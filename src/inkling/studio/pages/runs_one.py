"""One run on the page of runs: its figures as they stand, stop and resume, what it writes, what it said."""

from __future__ import annotations

import math
import time
from typing import Any

from nicegui import background_tasks, ui

from inkling.errors import InklingError
from inkling.pictures.harmless import safe
from inkling.runs.presence import newest_sample, state_of
from inkling.runs.run import Run
from inkling.studio.components.live import Figures, LiveFigures
from inkling.studio.state import Studio
from inkling.studio.views_runs import Follower, Progress, duration, figure_of
from inkling.studio.work import aside, told

SAMPLE_TOKENS = {"character": 160, "byte": 160}
LIVE_SECONDS = 0.185  # from one showing of the figures of a training to the next
TOGETHER = 3  # showings for which is read and sent once
FIGURES = {
    "state": "state",
    "loss": "training text",
    "held-out": "held-out text",
    "step": "step",
    "speed": "tokens a second",
    "time": "trained for",
    "left": "time left",
}


class OneRun:
    def __init__(self, studio: Studio) -> None:
        self.studio = studio
        self.name: str | None = None
        self.run: Run | None = None
        self.state = ""
        self.sampled = ""  # the run that wrote the sample on the page
        with ui.element("div") as self.box:
            self.figures = LiveFigures(list(FIGURES), LIVE_SECONDS)
            with ui.element("div").classes("line"):
                self.stop = ui.button("Stop and keep", icon="stop").props("outline no-caps dense")
                self.resume = ui.button("Resume", icon="play_arrow").props("unelevated no-caps dense")
                self.links = ui.element("div").classes("line")
            self.sample = ui.label().classes("sample").props("data-testid=sample")
            with ui.expansion("Everything about this run").props("dense").classes("about") as self.about:
                self.table = ui.element("div")
        self.stop.on_click(told(self._stop))
        self.resume.on_click(told(self._resume))
        self.about.on_value_change(lambda event: event.value and self._tell())
        self.box.visible = False

    def choose(self, name: str | None) -> None:
        if name == self.name:
            return
        self.name, self.sampled, self.run = name, "", None
        self.box.visible = name is not None
        self.sample.set_text("")
        self.about.set_value(False)
        self.figures.say({})

    async def look(self, name: str) -> None:
        """What changes seldom: whether it is trained now, and what it writes."""
        run = await aside(self.studio.run, name)
        state = await aside(state_of, run)
        if name != self.name:
            return
        self.run, self.state = run, state
        self.stop.visible = state == "running"
        self.resume.visible = state in ("interrupted", "failed") and run.kind != "ngram"
        background_tasks.create(self._write(run, state))  # the curves need not wait for it

    def say(self, follower: Follower) -> None:
        """What changes with every step; of a training that goes on, what was fetched is shown as it came."""
        if self.run is None:
            return
        if self.state != "running":
            follower.take()
            self.figures.say(self._figures(self.run, follower, None))
            return
        now = time.time()
        said = []
        for ago in reversed(range(TOGETHER)):
            clock = follower.clock(now - ago * LIVE_SECONDS)
            follower.take(clock if ago else math.inf)
            said.append(self._figures(self.run, follower, clock))
        self.figures.say(*said)

    def _figures(self, run: Run, follower: Follower, clock: float | None) -> Figures:
        """Between two steps of a training that goes on, its clock does too."""
        said, names, unit = {"state": self.state}, FIGURES, follower.unit
        progress = Progress.of(run, follower)
        if progress is not None:
            names = FIGURES | {key: f"{unit.name}, {FIGURES[key]}" for key in ("loss", "held-out")}
            since = 0.0 if clock is None else max(0.0, clock - progress.seconds)
            last = follower.trained[-1]
            said["loss"] = f"{unit.show(last.nats / last.tokens):.3f}"
            said["step"] = f"{progress.step:,}" + (f" of {progress.steps:,}" if progress.steps else "")
            said["speed"] = f"{progress.tokens_per_second:,.0f}"
            said["time"] = duration(progress.seconds + since, tenths=clock is not None)
            said["left"] = "–" if clock is None else duration(max(0.0, progress.seconds_left - since))
            if follower.judged:
                said["held-out"] = f"{unit.show(follower.judged[-1][2]):.3f}"
        elif self.state == "finished":
            said["held-out"] = figure_of(run) or "–"
        return {key: (words, names[key]) for key, words in said.items()}

    async def _write(self, run: Run, state: str) -> None:
        """What the model writes: in training, what it laid down itself; after that, what it is asked for here."""
        if state != "finished":
            text = newest_sample(run)
            if text is not None:
                self.sample.set_text(safe(text).strip())
            return
        name = run.path.name
        if run.kind == "dan" or self.sampled == name:
            return
        self.sampled = name
        try:
            text = await aside(_sample, self.studio, name)
        except InklingError as error:
            text = str(error)
        if self.name == name:
            self.sample.set_text(text)

    @property
    def _run(self) -> Run:
        if self.name is None:
            raise InklingError("No run is chosen; click one in the list.")
        return self.studio.run(self.name)

    async def _stop(self) -> None:
        await aside(lambda: self.studio.trainings.stop(self._run))
        ui.notify("It was asked to stop; what it has learned is kept.", type="info")

    async def _resume(self) -> None:
        await aside(lambda: self.studio.trainings.resume(self._run))
        ui.notify("It goes on from its last checkpoint.", type="info")

    async def _tell(self) -> None:
        """Recipe, data and figures, as `inkling runs show` has them, and what the training said."""
        run = await aside(lambda: self._run)
        words = self.studio.trainings.words(run.path.name)
        self.table.clear()
        with self.table:
            for title, values in _sections(run):
                ui.label(title).classes("heading")
                with ui.element("dl").classes("facts"):
                    for key, value in values.items():
                        if value not in (None, "", [], {}):
                            with ui.element("dt"):
                                ui.label(key.replace("_", " "))
                            with ui.element("dd"):
                                ui.label(safe(str(value)))
            if words:
                ui.label("What it said").classes("heading")
                ui.label(safe(words)).classes("mono text-block")


def _sections(run: Run) -> list[tuple[str, dict[str, Any]]]:
    about = {key: run.info.get(key) for key in ("kind", "started", "ended", "normalise", "seed", "threads")}
    return [
        ("About", about),
        ("Figures", run.info.get("summary", {})),
        ("Trained on", run.info["data"]),
        ("Recipe", run.info["recipe"]),
    ]


def _sample(studio: Studio, name: str) -> str:
    import numpy as np

    from inkling.models.sampling import SamplingConfig, sample

    model = studio.shelf.language_model(name)
    config = SamplingConfig(temperature=0.8, tokens=SAMPLE_TOKENS.get(model.tokeniser.kind, 40))
    drawn = sample(model, config, np.random.default_rng(0))
    return safe(b"".join(token.text for token in drawn).decode("utf-8", "replace")).strip()

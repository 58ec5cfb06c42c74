"""What the page of runs shows: a row for each run, and curves that grow while a training goes on.

A curve is read as it is written: only what is new in `metrics.jsonl`. Neighbouring steps are taken together (sums,
divided once) so that a curve never has more than `MOST_POINTS` points, however long the training.
"""

from __future__ import annotations

import json
import math
from collections import deque
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from inkling.runs.presence import state_of
from inkling.runs.run import Run

MOST_POINTS = 400
SPARK_POINTS, SPARK_WIDTH, SPARK_HEIGHT = 32, 96.0, 22.0
LN2 = math.log(2)
GROWN = math.log(1.5)
BITS_PER_BYTE, BITS_PER_TOKEN, NATS_PER_TEXT = "bits per byte", "bits per token", "nats per text"


@dataclass(frozen=True)
class Unit:
    """From nats a token to what is shown."""

    name: str
    tokens_per: float = 1.0  # bytes of a token, on average
    beside: float = 0.0  # nats a token for the spelling of unknown ones

    @classmethod
    def of(cls, run: Run) -> Unit:
        if run.kind == "dan":
            return cls(NATS_PER_TEXT)
        units = run.info.get("units")
        if units is None:  # a token is not always the same, so those of one kind only share an axis
            tokens = "word" if run.kind in ("bigram", "ngram") else run.info["recipe"].get("tokens", "token")
            return cls(f"bits per {'piece' if tokens == 'bpe' else tokens}")
        return cls(BITS_PER_BYTE, float(units["bytes_per_token"]), float(units["spelling_nats_per_token"]))

    def show(self, nats_per_token: float) -> float:
        if self.name == NATS_PER_TEXT:
            return nats_per_token
        return (nats_per_token + self.beside) / LN2 / self.tokens_per


@dataclass
class Point:
    """Several steps taken together; where they end."""

    step: int
    seconds: float
    nats: float
    tokens: float


@dataclass
class Follower:
    """Reads the metrics of a run as they are written."""

    path: Path
    unit: Unit
    trained: list[Point] = field(default_factory=list)
    judged: list[tuple[int, float, float]] = field(default_factory=list)  # step, seconds, nats a token
    written: float = 0.0  # when it last grew, in seconds of the clock
    newest: float = 0.0  # seconds of training then
    _rows: deque[dict[str, Any]] = field(default_factory=deque)  # fetched, and not taken in yet
    _offset: int = 0
    _together: int = 1  # steps in a point
    _open: int = 0  # steps in the last point so far

    @classmethod
    def of(cls, run: Run) -> Follower:
        return cls(run.path / "metrics.jsonl", Unit.of(run))

    def fetch(self) -> bool:
        """Reads what was written since, to be taken in; whether that was anything."""
        try:
            found = self.path.stat()
        except OSError:
            return False
        size = found.st_size
        if size < self._offset:  # a training that went on again wrote it anew from an earlier step
            self.__init__(self.path, self.unit)  # type: ignore[misc]
        self.written = found.st_mtime
        if size == self._offset:
            return False
        with self.path.open("rb") as file:
            file.seek(self._offset)
            new = file.read(size - self._offset)
        whole = new.rfind(b"\n") + 1  # a line that is being written is read next time
        self._offset += whole
        for line in new[:whole].splitlines():
            try:
                row = json.loads(line)
                self.newest = float(row["seconds"])
            except (ValueError, KeyError, TypeError):
                continue
            self._rows.append(row)
        return whole > 0

    def take(self, until: float = math.inf) -> None:
        """Takes in what was fetched, up to this second of the training."""
        while self._rows and self._rows[0]["seconds"] <= until:
            try:
                self._take(self._rows.popleft())
            except (KeyError, TypeError):
                continue

    def clock(self, moment: float) -> float:
        """Seconds of training at a moment of the clock, while it goes on."""
        return self.newest + moment - self.written

    def _take(self, row: dict[str, Any]) -> None:
        if row.get("held_out_nats_per_token") is not None:
            self.judged.append((row["step"], row["seconds"], row["held_out_nats_per_token"]))
        step, seconds, nats, tokens = row["step"], row["seconds"], row["nats"], row["tokens"]
        if self._open and self._open < self._together:
            last = self.trained[-1]
            last.step, last.seconds, last.nats, last.tokens = step, seconds, last.nats + nats, last.tokens + tokens
            self._open += 1
            return
        self.trained.append(Point(step, seconds, nats, tokens))
        self._open = 1
        if len(self.trained) > MOST_POINTS:
            self._halve()

    def _halve(self) -> None:
        pairs = [self.trained[i : i + 2] for i in range(0, len(self.trained), 2)]
        self._open = self._together * (len(pairs[-1]) - 1) + self._open
        self._together *= 2
        self.trained = [
            Point(some[-1].step, some[-1].seconds, sum(p.nats for p in some), sum(p.tokens for p in some))
            for some in pairs
        ]

    def curves(self, over: str) -> tuple[list[list[float]], list[list[float]]]:
        """[x, y] of the training text, and of held-out text; x is "steps" or "seconds"."""
        trained = [
            [point.seconds if over == "seconds" else point.step, self.unit.show(point.nats / point.tokens)]
            for point in self.trained
            if point.tokens
        ]
        judged = [[seconds if over == "seconds" else step, self.unit.show(n)] for step, seconds, n in self.judged]
        return trained, judged


@dataclass(frozen=True)
class Progress:
    """How far a training is."""

    step: int
    steps: int
    seconds: float
    tokens_per_second: float
    seconds_left: float

    @classmethod
    def of(cls, run: Run, follower: Follower) -> Progress | None:
        if not follower.trained:
            return None
        last = follower.trained[-1]
        recipe = run.info["recipe"]
        steps = int(recipe.get("steps") or 0)
        minutes = float(recipe.get("minutes") or 0)
        by_steps = (steps - last.step) * last.seconds / last.step if steps and last.step else math.inf
        by_clock = minutes * 60 - last.seconds if minutes else math.inf
        recent = follower.trained[max(0, len(follower.trained) - 1 - max(1, 20 // follower._together)) :]
        span = recent[-1].seconds - recent[0].seconds
        rate = sum(point.tokens for point in recent[1:]) / span if span > 0 else 0.0
        return cls(last.step, steps, last.seconds, rate, max(0.0, min(by_steps, by_clock)))


def duration(seconds: float, tenths: bool = False) -> str:
    if not math.isfinite(seconds):
        return "–"
    if tenths and seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def figure_of(run: Run) -> str:
    """The one figure that a finished run is known by, with its unit."""
    summary = run.info.get("summary", {})
    if "held_out_accuracy" in summary:
        return f"{summary['held_out_accuracy']:.1%} right"
    if "held_out_bits_per_byte" in summary:
        return f"{summary['held_out_bits_per_byte']:.4f} {BITS_PER_BYTE}"
    nats, unit = summary.get("held_out_nats_per_token"), Unit.of(run)
    if nats is None:
        return ""
    return f"{unit.show(nats):.4f} {unit.name}"


class Rows:
    """A row for each run, made anew only when the run has changed."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {}

    def of(self, runs: list[Run]) -> list[dict[str, Any]]:
        rows = []
        for run in runs:
            state = state_of(run)
            metrics = run.path / "metrics.jsonl"
            size = metrics.stat().st_size if metrics.exists() else 0
            grown = round(math.log(size + 1) / GROWN)  # a small curve need not follow every step
            key = (state, grown, run.info.get("ended"), run.info["started"])
            known = self._made.get(run.path.name)
            if known is None or known[0] != key:
                known = (key, _row(run, state))
                self._made[run.path.name] = known
            rows.append(known[1])
        return rows


def _row(run: Run, state: str) -> dict[str, Any]:
    summary = run.info.get("summary", {})
    return {
        "name": run.path.name,
        "kind": run.kind,
        "state": state,
        "figure": figure_of(run),
        "parameters": summary.get("parameters"),
        "started": _day(str(run.info["started"])),
        "spark": sparkline(run),
        "text": ", ".join(Path(str(file)).name for file in run.info["data"]["files"]),
    }


def _day(moment: str) -> str:
    try:
        return datetime.fromisoformat(moment).astimezone().strftime("%d %b %H:%M")
    except ValueError:
        return moment


def sparkline(run: Run) -> str:
    """The points of a small curve of the training loss, for an SVG of 96 × 22; of a few of the lines only."""
    try:
        lines = (run.path / "metrics.jsonl").read_bytes().splitlines()
    except OSError:
        return ""
    values = []
    for line in lines[:: max(1, len(lines) // SPARK_POINTS)]:
        try:
            row = json.loads(line)
            values.append(row["nats"] / row["tokens"])
        except (ValueError, KeyError, TypeError, ZeroDivisionError):
            continue
    if len(values) < 2:
        return ""
    low, high = min(values), max(values)
    height = (high - low) or 1.0
    return " ".join(
        f"{SPARK_WIDTH * i / (len(values) - 1):.1f},{1 + (SPARK_HEIGHT - 2) * (high - value) / height:.1f}"
        for i, value in enumerate(values)
    )

"""What commands that train have in common: a recipe from what was given, a place for the run, and a training that is
followed on the terminal from its first step to its figures."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from inkling.cli.options import check_bad_rows, print_json, runs_folder

if TYPE_CHECKING:
    from inkling.models.gpt_model import Transformer
    from inkling.models.gru import GRU
    from inkling.runs.run import Run
    from inkling.training.loop import Step


def fill_recipe(kind: type[Any], given: dict[str, Any]) -> Any:
    """The recipe, from what a command was given (its `locals()`), a file and the environment.

    The recipe itself refuses values out of range. Zero, or where zero is a value like others a number below it, is how
    a recipe says "not told": nobody may tell it so.
    """
    from dataclasses import fields

    from inkling.configuration import fill
    from inkling.errors import UsageError

    flags = {field.name: given.get(field.name) for field in fields(kind)}
    for field in fields(kind):
        value = flags[field.name]
        if isinstance(value, list):
            flags[field.name] = tuple(value)
        # Where zero is a number like others it may be told.
        untold = field.default == 0 and field.name not in ("patience", "seed", "weight_decay")
        if untold and not isinstance(value, bool) and value == 0:
            raise UsageError(f"--{field.name.replace('_', '-')} is 0; give a number above 0, or leave it out.")
        if field.default == -1 and value is not None and value < 0:
            raise UsageError(f"--{field.name.replace('_', '-')} is {value:g}; give 0 or more.")
    if flags["bad_rows"] is not None:
        check_bad_rows(flags["bad_rows"])
    return fill(kind, flags, Path(given["config"]) if given["config"] else None)


def run_path(out: str | None, kind: str, files: tuple[str, ...]) -> Path:
    from inkling.recipes.data import run_name
    from inkling.runs.run import unused_path

    return Path(out) if out else unused_path(runs_folder(), run_name(kind, files))


def follow(
    begin: Callable[[Callable[[str], None]], Iterator[tuple[Run, Step]]], path: Path, json: bool, shared: bool = False
) -> None:
    """Draws a training as it goes, and its figures when it ends. `shared`: it may have several processes."""
    from inkling.errors import UsageError
    from inkling.report.terminal import notice, progress
    from inkling.runs.run import Run
    from inkling.training.processes import Processes

    processes = Processes.of_environment(os.environ)
    if processes.count > 1 and not shared:
        if not processes.leads:
            raise typer.Exit(UsageError.exit_code)
        raise UsageError(f"This model is trained in one process, but there are {processes.count}; leave out torchrun.")
    if not processes.leads:
        _accompany(begin(lambda _: None))
    asked: list[bool] | None = None
    try:
        info: dict[str, Any] = {}  # the last held-out figure stays in view until the next
        with progress(None, f"Training {path.name}", "steps") as bar:
            for run, step in begin(notice):
                if asked is None:
                    asked = _asked_to_stop() if processes.count > 1 else []
                if asked:
                    raise KeyboardInterrupt
                name, shown = _figure(run)
                info[name] = shown(step.nats / step.tokens)
                if step.held_out_nats is not None:
                    info["held out"] = shown(step.held_out_nats)
                bar.total = step.steps
                bar.update(step.step, **info)
    except KeyboardInterrupt:
        if path.exists():
            notice(f"Stopped; what was learned is kept. Go on with: inkling resume {path}")
        raise
    announce(Run.open(path), json)


def _asked_to_stop() -> list[bool]:
    """Filled by Ctrl-C, which torchrun passes on to processes that have had it already: one of several processes stops
    between two steps, because within one it mostly waits for the others, and then cannot be saved."""
    import signal

    asked: list[bool] = []
    signal.signal(signal.SIGINT, lambda *_: asked.append(True))
    return asked


def _accompany(training: Iterator[tuple[Run, Step]]) -> NoReturn:
    """What another process than the first does: the same in silence. It ends when the first one does, by Ctrl-C too."""
    import signal

    from inkling.errors import InklingError

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        for _ in training:
            pass
    except InklingError as error:  # the first one says it
        raise typer.Exit(error.exit_code) from error
    raise typer.Exit()


def _figure(run: Run) -> tuple[str, Callable[[float], float]]:
    """What a loss of so many nats a token is called and shown as: bits for characters, perplexity for words."""
    if run.kind == "dan":
        return "nats/text", lambda nats: round(nats, 4)
    if run.kind in ("gru", "gpt"):
        per = {"character": "bits/char", "byte": "bits/byte"}.get(run.info["recipe"]["tokens"], "bits/token")
        return per, lambda nats: round(nats / math.log(2), 3)
    return "perplexity", lambda nats: round(math.exp(min(nats, 700.0)), 2)


def write_lines(path: Path) -> Callable[[GRU | Transformer], None]:
    """Has a model in training write a few words now and then: on a terminal, and beside the run for who looks on."""

    def write(model: GRU | Transformer) -> None:
        import numpy as np

        from inkling.models.sampling import SamplingConfig, sample
        from inkling.report.terminal import notice, one_line
        from inkling.runs.presence import keep_sample

        tokens = 70 if model.tokeniser.kind in ("character", "byte") else 20
        drawn = sample(model, SamplingConfig(temperature=0.8, tokens=tokens), np.random.default_rng(0))
        text = b"".join(token.text for token in drawn).decode("utf-8", "replace")
        keep_sample(path, text)
        if sys.stderr.isatty():
            notice("writes: " + one_line(text))

    return write


def announce(run: Run, json: bool, notes: tuple[str, ...] = ()) -> None:
    """The figures of a finished run, and below them `notes`, or else what can be done next."""
    from inkling.figures import Column, Table
    from inkling.report.terminal import print_table

    summary = run.info["summary"]
    if json:
        print_json({"run": str(run.path), "kind": run.kind, **summary})
        return
    rows = tuple((name.replace("_", " "), value) for name, value in summary.items())
    columns = (Column("figure"), Column("value", ",.10g"))
    print_table(Table(f"{run.path}", columns, rows, notes or _what_next(run)))


def _what_next(run: Run) -> tuple[str, str]:
    if run.info["data"]["held_out"] == "nothing":
        return (
            "Nothing was held out; `inkling evaluate` measures on questions of your own.",
            f"Next: inkling evaluate {run.path} --pairs FILE, or inkling answer {run.path} QUESTIONS",
        )
    return (
        "Held-out text chose what to keep; `inkling evaluate` measures on other text.",
        f"Next: inkling errors {run.path} --on TEST" if run.kind == "dan" else f"Next: inkling sample {run.path}",
    )

"""What takes long on the page of attention, in a child: an experiment with many keys that differ, the census of heads
(of a run on a text, or of a small model that is trained first), and a head for many wishes."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import Any

TRAINING = 0.8  # of the way, where a small model is trained first


def experiment(arguments: dict[str, Any], say: Callable[[float | None, str], None]) -> dict[str, Any]:
    """The fields of a `Setting`, and `samples` → the whole answer, as the page draws it."""
    from inkling.attention.exhibits import integrals
    from inkling.attention.laboratory import Setting
    from inkling.studio.views_attention import settled

    samples = int(arguments.pop("samples"))
    setting = Setting(**arguments)
    done, of = count(1), integrals(setting)

    def on_integral() -> None:
        so_far = next(done)
        say(so_far / of, f"Exact figures: {so_far} of {of} integrals")

    say(None, "Exact figures, each from an integral …")
    return asdict(settled(setting, samples, on_integral))


def census(arguments: dict[str, Any], say: Callable[[float | None, str], None]) -> dict[str, Any]:
    """`run` (a folder, or null for the small model) on `files` or on `text` → what `inkling attention inspect` finds.

    Gives back its JSON, its sections drawn, its maps for the canvas, and the role of each head.
    """
    from inkling.pictures.markup import section
    from inkling.recipes.inspection import inspect_run, inspect_small
    from inkling.studio.views_attention import maps_of_panels

    texts, seed, noise = int(arguments["texts"]), int(arguments["seed"]), float(arguments["key_noise"])
    if arguments["run"] is None:
        steps = int(arguments["steps"])
        say(0.0, "Training a small model …")
        found = inspect_small(
            seed,
            texts,
            steps,
            noise,
            lambda step: say(TRAINING * step.step / steps, f"Training a small model: step {step.step} of {steps}"),
            lambda done, of: say(TRAINING + (1 - TRAINING) * done / of, f"Touching heads: {done} of {of}"),
        )
    else:
        say(0.0, "Reading …")
        with tempfile.TemporaryDirectory() as folder:
            files = arguments.get("files") or [str(_written(Path(folder), arguments["text"]))]
            found = inspect_run(
                arguments["run"],
                files,
                texts,
                int(arguments["length"]),
                noise,
                seed,
                lambda done, of: say(done / of, f"Touching heads: {done:,} of {of:,}"),
            )
    return {
        "json": found.to_json(),
        "sections": {each.title: section(each) for each in found.page().exhibits if each is not found.maps},
        "maps": asdict(maps_of_panels(found.maps)),
        "roles": [head.role for head in found.heads],
    }


def order(arguments: dict[str, Any], say: Callable[[float | None, str], None]) -> dict[str, Any]:
    """The fields of `Wishes` → the head that was found, drawn."""
    from inkling.studio.views_attention import Wishes, drawn

    say(None, "Searching …")
    return asdict(drawn(Wishes(**arguments)))


def _written(folder: Path, text: str) -> Path:
    path = folder / "text.txt"
    path.write_text(text, encoding="utf-8", newline="")
    return path

"""What each ingredient of the small transformer's training gives: one is changed at a time, several seeds each.

    python bench/ingredients.py --text FILE [--seeds 2] [--steps 110]

The first nine tenths of the text are learned from (2 layers, width 128, 32 texts of 64 tokens a step), all of the rest
is judged. Differences from the whole recipe are paired by seed. Seconds are of training alone, as shares of the
recipe's own in the same run.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import inkling  # noqa: F401  # first: it looks at the processor before torch does
from inkling.models.gpt import initial_parameters
from inkling.models.gpt_model import Transformer
from inkling.recipes.gpt import GPTRecipe, make_objective, next_tokens, prepare, start_parameters
from inkling.recipes.streamed import Prepared, Source
from inkling.training.loop import Group, TrainingConfig, TrainingState, train
from inkling.training.processes import ALONE

Change = Callable[[GPTRecipe], GPTRecipe]


def told(**changes: Any) -> Change:
    return lambda recipe: replace(recipe, **changes)


VARIANTS: dict[str, Change] = {
    "the recipe": told(),
    "squared ReLU for the gate": told(activation="squared_relu"),
    "one table of hashed pairs": told(grams=1),
    "tables of pairs and triples": told(grams=2),
    "tables of pairs to fours": told(grams=3),
    "output tied to the embedding": told(tied=True),
    "2 heads": told(heads=2),
    "8 heads": told(heads=8),
    "one key for two heads": told(key_value_heads=2),
    "rotary base 10,000": told(rotary_base=10_000.0),
    "momentum 0.95": told(momentum=0.95),
    "half the rate": told(rate=0.05, embedding_rate=0.1, output_rate=0.0075),
}
WITHOUT_NORM, PLAIN_START, ADAM = "no norm of queries and keys", "layers write from the start", "Adam for everything"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=110)
    options = parser.parse_args()
    text = options.text.read_text("utf-8")
    cut = len(text) * 9 // 10
    found: dict[str, list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as name:
        for part, content in (("train", text[:cut]), ("held", text[cut:])):
            (Path(name) / f"{part}.txt").write_text(content, "utf-8", newline="")
        for seed in range(options.seeds):
            told_once = GPTRecipe(
                files=(f"{name}/train.txt",),
                held_out=(f"{name}/held.txt",),
                steps=options.steps,
                layers=2,
                context=64,
                batch=32,
                rotary_base=200.0,
                momentum=0.9,
                rate=0.1,
                embedding_rate=0.2,
                output_rate=0.015,
                seed=seed,
            )
            prepared = prepare(told_once)
            for label in (*VARIANTS, WITHOUT_NORM, PLAIN_START, ADAM):
                found.setdefault(label, []).append(run(label, prepared))
                print(f"seed {seed}  {label:32s} {found[label][-1][0]:.4f} nats", flush=True)
    show(found)


def run(label: str, prepared: Prepared) -> tuple[float, float]:
    """Held-out nats per token and seconds of training."""
    assert isinstance(prepared.material, Source)
    recipe: GPTRecipe = VARIANTS.get(label, told())(prepared.recipe)
    recipe = replace(recipe, gram_rows=1 << 15 if recipe.grams else 0)
    sizes = replace(recipe.sizes(prepared.material.tokeniser.size), query_key_norm=label != WITHOUT_NORM)
    start = start_parameters(recipe, sizes)
    if label == PLAIN_START:
        start = start | {
            name: value
            for name, value in initial_parameters(sizes, np.random.default_rng(recipe.seed)).items()
            if name.rpartition(".")[2] in ("o", "down", "output")
        }
    objective = make_objective(recipe, sizes, ALONE, start)
    training = recipe.training()
    if label == ADAM:
        training = TrainingConfig(
            steps=recipe.steps, rate=0.01, schedule="linear", warm_up=10, groups=(Group("*", betas=(0.9, 0.95)),)
        )
    state = TrainingState(objective.parameters)
    started = time.perf_counter()
    for _ in train(objective, next_tokens(recipe, prepared.material, ALONE), training, state):
        pass
    seconds = time.perf_counter() - started
    model = Transformer(sizes, state.parameters, prepared.material.tokeniser, speller=prepared.material.speller)
    return float(model.score_ids(*prepared.material.held_out.part(1 << 30)).mean()), seconds


def show(found: dict[str, list[tuple[float, float]]]) -> None:
    base = np.array(found["the recipe"])
    print(f"\n{'':32s} {'nats':>7s} {'more by':>8s} {'from … to':>18s} {'time':>6s}")
    for label, rows in found.items():
        values = np.array(rows)
        more = values[:, 0] - base[:, 0]
        print(
            f"{label:32s} {values[:, 0].mean():7.4f} {more.mean():+8.4f} {more.min():+8.4f} {more.max():+8.4f} "
            f"{values[:, 1].sum() / base[:, 1].sum():7.2f}"
        )


if __name__ == "__main__":
    main()

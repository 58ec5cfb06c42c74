"""`inkling train gru`: the recurrent language model from a file of text, within a number of minutes.

One dial, `minutes`. What is not told otherwise follows from it: a few steps are timed; from the speed follows how many
tokens can be read; from that the size of the model (more units learn more from a token but read fewer), the dropout
(more, the more often each token is read) and the number of steps over which the rate falls to zero.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Generator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import torch

from inkling.errors import UsageError
from inkling.models.gru import GRU, GRUConfig, random_parameters
from inkling.models.gru_loss import Batch, GRULoss
from inkling.recipes.data import TextConfig
from inkling.recipes.stream import TokenStream
from inkling.recipes.streamed import Prepared, Say, begin, go_on, read_source
from inkling.runs.run import Run
from inkling.text.tokenise import Pieces
from inkling.text.tokens import Tokeniser
from inkling.training.loop import Parameters, Step, TrainingConfig
from inkling.training.processes import ALONE, Processes

Watch = Callable[[GRU], None]
MINUTES = 5.0  # when nothing is said
HIDDEN = (64, 96, 128, 192, 256, 384, 512, 640, 768)
MOST_MINUTES, MOST_STEPS = 100_000, 1_000_000_000
EVALUATIONS = 10  # during a training
JUDGED_SHARE = 0.06  # of the time, at most
JUDGED_TOKENS = 1 << 17  # of the held-out text, at most, to choose the best weights while training
TEXTS_PER_WORKER = 64
TOKENS_PER_UNIT = 12_000  # that must be read for a unit to be worth its time
TOKENS_PER_SQUARE = 5  # of text, for each of the H² weights of a gate: more units would learn it by heart
RATE_OF_UNITS = 2.0  # the rate times the units: 0.008 for 256, 0.004 for 512


@dataclass(frozen=True)
class GRURecipe(TextConfig):
    """All that `inkling train gru` can be told. Zero means: what suits the text, the budget and the computer."""

    tokens: Literal["character", "byte", "bpe", "word"] = "character"
    vocabulary: int = 0  # zero: all characters; 4096 words or pieces
    pieces: Pieces = "words"
    exclude: tuple[str, ...] = ()
    minutes: float = 0.0
    hidden: int = 0
    dimension: int = 0
    layers: int = 1
    tied: bool = False
    norm: bool = False
    dropout: float = -1.0  # below zero: by the number of times that the text is read
    chunk: int = 0  # tokens that gradients go back through
    batch: int = 0  # readers side by side
    steps: int = 0
    rate: float = 0.0
    patience: int = 0
    judged: int = 0  # held-out tokens, to choose the best weights while training
    seed: int = 0

    def __post_init__(self) -> None:
        kinds = ("character", "byte", "bpe", "word")
        limits = (
            ("tokens", self.tokens in kinds, f"one of {', '.join(kinds)}"),
            ("vocabulary", self.vocabulary == 0 or self.vocabulary >= 2, "at least 2"),
            ("pieces", self.pieces in get_args(Pieces), f"one of {', '.join(get_args(Pieces))}"),
            ("minutes", 0 <= self.minutes <= MOST_MINUTES, f"a number above 0, {MOST_MINUTES:,} at most"),
            ("hidden", 0 <= self.hidden <= 1 << 14, "a whole number from 1 to 16384"),
            ("dimension", 0 <= self.dimension <= 1 << 14, "a whole number from 1 to 16384"),
            ("layers", 1 <= self.layers <= 3, "1, 2 or 3"),
            ("dropout", self.dropout < 1, "a share from 0 to below 1"),
            ("chunk", self.chunk >= 0, "at least 1"),
            ("batch", self.batch >= 0, "at least 1"),
            ("steps", 0 <= self.steps <= MOST_STEPS, f"a whole number from 1 to {MOST_STEPS:,}"),
            ("rate", 0 <= self.rate < math.inf, "a number above 0"),
            ("patience", self.patience >= 0, "0 (never stop early) or more"),
            ("judged", self.judged >= 0, "at least 1"),
            ("seed", 0 <= self.seed < 1 << 32, "a whole number from 0 to 4294967295"),
        )
        for name, fits, wanted in limits:
            if not fits:
                raise UsageError(f"--{name} is {getattr(self, name)}; give {wanted}.")

    def sizes(self) -> GRUConfig:
        return GRUConfig(self.dimension, self.hidden, self.layers, self.tied, self.norm)

    def training(self) -> TrainingConfig:
        return TrainingConfig(
            steps=self.steps,
            rate=self.rate,
            schedule="linear",
            warm_up=min(30, 1 + self.steps // 10),
            evaluate_every=max(1, int(self.steps / max(EVALUATIONS, self.minutes))),  # each minute at least
            patience=self.patience,
            max_seconds=self.minutes * 60 if self.minutes else math.inf,
            clip=1.0,
        )


def train_gru(
    recipe: GRURecipe, out: Path, say: Say = lambda _: None, watch: Watch | None = None
) -> Generator[tuple[Run, Step], None, None]:
    """Makes the run `out` and trains it; yields after every step, so that the caller can show it or stop.

    `watch` gets the model as it is, now and then.
    """
    yield from begin(out, recipe, prepare, say, watch)


def resume_gru(
    run: Run, say: Say = lambda _: None, watch: Watch | None = None
) -> Generator[tuple[Run, Step], None, None]:
    """Goes on where the newest checkpoint of an unfinished run stands."""
    yield from go_on(run, GRURecipe, prepare, say, watch)


# ----------------------------------------------------------------------------------------------- preparing


def prepare(
    recipe: GRURecipe,
    tokeniser: Tokeniser | None = None,
    say: Say = lambda _: None,
    processes: Processes = ALONE,
    folder: Path | None = None,
) -> Prepared:
    """Reads the text, makes the tokeniser, and settles what the recipe leaves open."""
    source = read_source(recipe, tokeniser, recipe.tokens, recipe.vocabulary, recipe.pieces, recipe.exclude, say)
    tokeniser, stream = source.tokeniser, source.stream
    recipe = settle(recipe, stream, tokeniser, say)
    refuse_giants(recipe, tokeniser.size)
    sizes = recipe.sizes()
    parameters = random_parameters(sizes, tokeniser.size, np.random.default_rng(recipe.seed), stream.counts)
    objective = _objective(recipe, sizes, parameters)

    def batch(step: int) -> Batch:
        return stream.chunk(step, recipe.chunk, recipe.batch, recipe.seed)

    def model(parameters: Parameters) -> GRU:
        return GRU(sizes, parameters, tokeniser, source.text.chain, source.speller)

    return Prepared(
        kind="gru",
        recipe=recipe,
        sizes=asdict(sizes),
        material=source,
        objective=objective,
        training=recipe.training(),
        batch=batch,
        model=model,
        judged=recipe.judged,
        tokens_a_step=recipe.chunk * recipe.batch,
        figures={"hidden": recipe.hidden},
        memory=objective.memory,
    )


def _objective(recipe: GRURecipe, sizes: GRUConfig, parameters: Parameters) -> GRULoss:
    dropout = max(0.0, recipe.dropout)
    # A share of the texts for each core pays when the shares are large enough for products on one core.
    workers = min(torch.get_num_threads(), max(1, recipe.batch // TEXTS_PER_WORKER))
    return GRULoss(sizes, parameters, recipe.chunk, recipe.batch, dropout, seed=recipe.seed, workers=workers)


def settle(recipe: GRURecipe, stream: TokenStream, tokeniser: Tokeniser, say: Say = lambda _: None) -> GRURecipe:
    """Everything that is zero, from the budget, the text and the speed of this computer."""
    if not recipe.steps and not recipe.minutes:
        recipe = replace(recipe, minutes=MINUTES)
    chunk = recipe.chunk or 32
    batch = recipe.batch or 64
    batch = max(1, min(batch, len(stream) // (2 * chunk)))  # a short text has room for fewer readers
    chunk = min(chunk, len(stream))
    for name, told, used in (("chunk", recipe.chunk, chunk), ("batch", recipe.batch, batch)):
        if told and told != used:
            say(f"--{name} {told:,} is more than this text of {len(stream):,} tokens has room for: {used:,} is used.")
    recipe = replace(recipe, chunk=chunk, batch=batch)
    seconds = 0.9 * 60 * recipe.minutes  # the rest is for judging and writing

    if not recipe.hidden and not recipe.minutes:
        recipe = replace(recipe, hidden=256)
    elif not recipe.hidden:
        probe = _finish(replace(recipe, hidden=256), tokeniser)
        # The time of a token is that of its products, which grow with the square of the units, and some more.
        unit = time_of_token(probe, stream, tokeniser) / work_of_token(256, recipe.layers, tokeniser.size)
        fitting = [
            hidden
            for hidden in HIDDEN
            if seconds / (unit * work_of_token(hidden, recipe.layers, tokeniser.size)) >= TOKENS_PER_UNIT * hidden
            and TOKENS_PER_SQUARE * hidden * hidden <= len(stream)
        ]
        recipe = replace(recipe, hidden=max(fitting, default=HIDDEN[0]))
    recipe = _finish(recipe, tokeniser)
    judged = JUDGED_TOKENS
    if not recipe.steps:
        per_token = time_of_token(recipe, stream, tokeniser)
        recipe = replace(recipe, steps=max(20, int(seconds / per_token / (recipe.chunk * recipe.batch))))
        # Scoring a token is a third of the work of learning from it.
        judged = min(judged, max(4096, int(JUDGED_SHARE * seconds / EVALUATIONS / (per_token / 3))))
    recipe = replace(recipe, judged=recipe.judged or judged)
    if recipe.dropout < 0:
        epochs = recipe.steps * recipe.chunk * recipe.batch / len(stream)
        recipe = replace(recipe, dropout=dropout_for(epochs))
    return recipe


def refuse_giants(recipe: GRURecipe, vocabulary: int) -> None:
    """Says no before memory runs out: parameters, gradients, two moments and the best ones, and the buffers."""
    D, H, L = recipe.dimension, recipe.hidden, recipe.layers
    parameters = vocabulary * (D + H) + 3 * H * (D + H) + (L - 1) * 6 * H * H
    needed = 4 * (6 * parameters + 8 * L * recipe.chunk * recipe.batch * H)
    present = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else math.inf
    if needed > present:
        raise UsageError(
            f"A model of {L} × {H:,} units in chunks of {recipe.chunk:,} × {recipe.batch:,} tokens needs "
            f"{needed / 1e9:,.0f} GB, more than the {present / 1e9:,.0f} GB of this computer; give a smaller --hidden, "
            "--chunk or --batch."
        )


def dropout_for(epochs: float) -> float:
    """More, the more often each token is read."""
    return round(min(0.5, 0.08 * math.log2(max(1.0, epochs))), 2)


def _finish(recipe: GRURecipe, tokeniser: Tokeniser) -> GRURecipe:
    dimension = recipe.hidden if recipe.tied else min(64 if tokeniser.size < 1000 else 256, recipe.hidden)
    rate = recipe.rate or min(0.02, RATE_OF_UNITS / recipe.hidden)
    return replace(recipe, dimension=recipe.dimension or dimension, rate=rate)


def work_of_token(hidden: int, layers: int, vocabulary: int) -> float:
    """Multiplications for one token, forwards and backwards, about; elementwise work counts as some of them."""
    return 9 * hidden * hidden * (2 * layers - 1) + 3 * hidden * vocabulary + 1000 * hidden


def time_of_token(recipe: GRURecipe, stream: TokenStream, tokeniser: Tokeniser) -> float:
    """Seconds for one token of training: the median of a few steps on this computer, now."""
    generator = np.random.default_rng(0)
    sizes = recipe.sizes()
    objective = _objective(recipe, sizes, random_parameters(sizes, tokeniser.size, generator))
    spent = []
    for step in range(7):
        batch = stream.chunk(step, recipe.chunk, recipe.batch, 0)
        started = time.perf_counter()
        objective.gradient(batch, step)
        spent.append(time.perf_counter() - started)
    return float(np.median(spent[2:])) / (recipe.chunk * recipe.batch)

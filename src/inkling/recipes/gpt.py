"""`inkling train gpt`: the small transformer from a file of text, within a number of minutes.

One dial, `minutes`. What is not told otherwise follows from it: under a minute two layers read short texts; from a
minute on four layers do, whose texts become twice as long towards the end; with more time and more text there are more
and wider layers. A few steps are timed, and from the speed follows how many there will be. Whatever is settled stands
in run.json, so that a run which is resumed settles nothing anew.

Matrices inside the layers are trained with Muon, everything else with Adam, each at a rate of its own; all rates fall
in a line to zero. A step reads `batch` texts of `context` tokens; the first of them, as many as `short_share` says,
twice as many texts of half the length. What a step reads is decided by the seed and its number alone. Documents and
questions instead of running text are in knowledge.py.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Generator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Literal, TypeVar, get_args

import numpy as np
import torch

from inkling import hardware
from inkling.errors import UsageError
from inkling.models.gpt import Activation, GPTConfig, initial_parameters
from inkling.models.gpt_loss import Batch, GPTLoss
from inkling.models.gpt_model import Transformer
from inkling.models.gpt_training import zero_start
from inkling.models.grams import MOST_GRAMS
from inkling.recipes.data import TextConfig
from inkling.recipes.streamed import Prepared, Say, Source, begin, go_on, read_source
from inkling.runs.run import Run
from inkling.text.tokenise import Pieces
from inkling.text.tokens import Tokeniser
from inkling.training.loop import Group, Parameters, Step, TrainingConfig, TrainingState, train
from inkling.training.processes import ALONE, Processes

Watch = Callable[[Transformer], None]
AnyRecipe = TypeVar("AnyRecipe", bound="GPTRecipe")
BatchMaker = Callable[[int], Batch]

MINUTES = 5.0  # when nothing is said
BRIEF_MINUTES = 1.0  # below this, fewer layers and shorter texts learn more
BRIEF_STEPS = 300  # below this, momentum looks back less far
MOST_MINUTES, MOST_STEPS, MOST_RATE = 100_000, 1_000_000_000, 1_000_000
TRAINED_SHARE = 0.9  # of the time; the rest is for judging and writing
EVALUATIONS = 10  # during a training
JUDGED_SHARE = 0.06  # of the work, at most
JUDGED_TOKENS = 1 << 17  # of the held-out text, at most, to choose the best weights while training
SCORING_WORK = 2 / 3  # of the work of learning from a token: a third, and half-overlapping windows read it twice
TIMED_STEPS = 6  # after one that is not counted

RATE, BRIEF_RATE = 0.06, 0.1  # Muon's
EMBEDDING_RATE = 0.2  # Adam's; in proportion to Muon's, where that is told
OUTPUT_RATE = 0.015  # likewise; of an embedding that is the output too
GRAM_FACTOR = 2.0  # Adam's rate for tables of runs of tokens, over Muon's
GAIN_FACTOR = 0.3  # Adam's rate for the gains of norms, over Muon's
BETAS = (0.8, 0.95)  # of Adam
MOMENTUM, BRIEF_MOMENTUM = 0.95, 0.9
QUERY_GAIN = 1.5  # where the gain of the queries starts: sharper attention from the first step on
ROTARY_BASE, SHORT_ROTARY_BASE = 1000.0, 200.0  # the second for contexts up to `SHORT_CONTEXT`
SHORT_CONTEXT = 64
REPEATED = 3.0  # epochs, above which decay and dropout hold against learning by heart
DECAY = 0.1  # of the matrices, then
DROPOUT, MOST_DROPOUT = 0.04, 0.3  # then, for each time that the epochs double
GRAM_ROWS = 1 << 15


@dataclass(frozen=True)
class Size:
    """Of a model, and what a step reads of a text in the end."""

    layers: int
    width: int
    heads: int
    mlp: int
    context: int
    batch: int
    short_share: float  # of the steps, which read half the context

    @property
    def weights(self) -> int:
        """Inside the layers."""
        return self.layers * self.width * (4 * self.width + 3 * self.mlp)

    def work_of_token(self, vocabulary: int) -> float:
        """Multiplications for one token, forwards and backwards, about; elementwise work counts as some of them."""
        inside = 6 * self.weights + self.layers * self.width * (10_000 + 6 * self.context)
        return inside + 6 * vocabulary * self.width


BRIEF = Size(2, 128, 4, 384, context=64, batch=32, short_share=0.0)
SIZES = (
    Size(4, 128, 4, 384, context=256, batch=16, short_share=0.7),
    Size(6, 192, 6, 576, context=256, batch=16, short_share=0.7),
    Size(6, 256, 8, 768, context=256, batch=16, short_share=0.7),
    Size(8, 384, 12, 1152, context=512, batch=16, short_share=0.7),
)
READ_PER_WEIGHT = 8.0  # tokens that must be read for a weight to be worth its time
TEXT_PER_WEIGHT = 1.0  # tokens of text for each weight: more weights would learn it by heart


@dataclass(frozen=True)
class GPTRecipe(TextConfig):
    """All that `inkling train gpt` can be told. Zero means: what suits the text, the budget and the computer; where
    zero is a value like others, so does a number below it."""

    tokens: Literal["character", "byte", "bpe", "word"] = "character"
    vocabulary: int = 0  # zero: all characters; 4096 words or pieces
    pieces: Pieces = "words"
    exclude: tuple[str, ...] = ()
    minutes: float = 0.0
    layers: int = 0
    width: int = 0
    heads: int = 0
    key_value_heads: int = 0  # zero: one a head
    mlp: int = 0
    context: int = 0
    batch: int = 0  # texts of a step, when they have their full length
    short_share: float = -1.0  # of the steps, which read twice as many texts of half the length
    activation: Activation = "gated"
    grams: int = 0  # tables of hashed runs of 2, of 2 and 3, … tokens
    gram_rows: int = 0
    tied: bool = False
    rotary_base: float = 0.0
    steps: int = 0
    rate: float = 0.0  # Muon's, of the matrices inside the layers
    embedding_rate: float = 0.0
    output_rate: float = 0.0
    momentum: float = -1.0
    decay: float = -1.0  # of the matrices; below zero: by the number of times that the text is read
    dropout: float = -1.0  # likewise
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    workers: int = 0  # threads that each take a share of the texts
    patience: int = 0
    judged: int = 0  # held-out tokens, to choose the best weights while training
    seed: int = 0

    def __post_init__(self) -> None:
        kinds, formats = ("character", "byte", "bpe", "word"), ("auto", "float32", "bfloat16")
        size, number = "a whole number from 1 to 65536", f"a number above 0, {MOST_RATE:,} at most"
        limits = (
            ("tokens", self.tokens in kinds, f"one of {', '.join(kinds)}"),
            ("vocabulary", self.vocabulary == 0 or self.vocabulary >= 2, "at least 2"),
            ("pieces", self.pieces in get_args(Pieces), f"one of {', '.join(get_args(Pieces))}"),
            ("minutes", 0 <= self.minutes <= MOST_MINUTES, f"a number above 0, {MOST_MINUTES:,} at most"),
            ("layers", 0 <= self.layers <= 1 << 10, "a whole number from 1 to 1024"),
            ("width", 0 <= self.width <= 1 << 16, size),
            ("heads", 0 <= self.heads <= 1 << 16, size),
            ("key_value_heads", 0 <= self.key_value_heads <= 1 << 16, size),
            ("mlp", 0 <= self.mlp <= 1 << 18, "a whole number from 1 to 262144"),
            ("context", self.context == 0 or 2 <= self.context <= 1 << 16, "a whole number from 2 to 65536"),
            ("batch", 0 <= self.batch <= 1 << 20, "a whole number from 1 to 1048576"),
            ("short_share", self.short_share < 1, "a share from 0 to below 1"),
            ("activation", self.activation in get_args(Activation), f"one of {', '.join(get_args(Activation))}"),
            ("grams", 0 <= self.grams <= MOST_GRAMS, f"a whole number from 1 to {MOST_GRAMS}"),
            ("gram_rows", 0 <= self.gram_rows < 1 << 31, "a whole number above 0"),
            ("rotary_base", self.rotary_base == 0 or 1 < self.rotary_base < math.inf, "a number above 1"),
            ("steps", 0 <= self.steps <= MOST_STEPS, f"a whole number from 1 to {MOST_STEPS:,}"),
            ("rate", 0 <= self.rate <= MOST_RATE, number),
            ("embedding_rate", 0 <= self.embedding_rate <= MOST_RATE, number),
            ("output_rate", 0 <= self.output_rate <= MOST_RATE, number),
            ("momentum", self.momentum < 1, "a share from 0 to below 1"),
            ("decay", self.decay < math.inf, "0 or a number above"),
            ("dropout", self.dropout < 1, "a share from 0 to below 1"),
            ("precision", self.precision in formats, f"one of {', '.join(formats)}"),
            ("workers", 0 <= self.workers <= 1 << 10, "a whole number from 1 to 1024"),
            ("patience", self.patience >= 0, "0 (never stop early) or more"),
            ("judged", self.judged >= 0, "at least 1"),
            ("seed", 0 <= self.seed < 1 << 32, "a whole number from 0 to 4294967295"),
        )
        for name, fits, wanted in limits:
            if not fits:
                raise UsageError(f"--{name.replace('_', '-')} is {getattr(self, name)}; give {wanted}.")

    def sizes(self, vocabulary: int) -> GPTConfig:
        return GPTConfig(
            vocabulary,
            self.width,
            self.layers,
            self.heads,
            self.mlp,
            self.context,
            tied=self.tied,
            rotary_base=self.rotary_base,
            key_value_heads=self.key_value_heads,
            activation=self.activation,
            grams=self.grams,
            gram_rows=self.gram_rows,
        )

    def training(self) -> TrainingConfig:
        """A factor is a rate over that of the training, which is Muon's."""

        def adam(names: str, factor: float) -> Group:
            return Group(names, factor=factor, betas=BETAS)

        groups = [
            Group("layers.*", "muon", decay=self.decay, momentum=self.momentum),
            adam("embedding", (self.output_rate if self.tied else self.embedding_rate) / self.rate),
        ]
        if not self.tied:
            groups.append(adam("output", self.output_rate / self.rate))
        if self.grams:
            groups.append(adam("grams.*", GRAM_FACTOR))
        return TrainingConfig(
            steps=self.steps,
            rate=self.rate,
            schedule="linear",
            evaluate_every=max(1, int(self.steps / max(EVALUATIONS, self.minutes))),  # each minute at least
            patience=self.patience,
            max_seconds=self.minutes * 60 if self.minutes else math.inf,
            groups=(*groups, adam("*", GAIN_FACTOR)),
            spikes="stop",
        )

    @property
    def tokens_a_step(self) -> int:
        return self.batch * self.context

    def shape_at(self, step: int) -> tuple[int, int, int]:
        """The texts of a step, their tokens, and the first step that has them so: by its share of all steps alone."""
        turn = math.ceil(self.short_share * self.steps)
        return (2 * self.batch, self.context // 2, 0) if step < turn else (self.batch, self.context, turn)


def train_gpt(
    recipe: GPTRecipe, out: Path, say: Say = lambda _: None, watch: Watch | None = None
) -> Generator[tuple[Run, Step], None, None]:
    """Makes the run `out` and trains it; yields after every step, so that the caller can show it or stop.

    `watch` gets the model as it is, now and then.
    """
    yield from begin(out, recipe, prepare, say, watch)


def resume_gpt(
    run: Run, say: Say = lambda _: None, watch: Watch | None = None
) -> Generator[tuple[Run, Step], None, None]:
    """Goes on where the newest checkpoint of an unfinished run stands."""
    yield from go_on(run, GPTRecipe, prepare, say, watch)


# ----------------------------------------------------------------------------------------------- what is read


def next_tokens(recipe: GPTRecipe, source: Source, processes: Processes) -> BatchMaker:
    """Stretches of the text, each token to be predicted from those before it; every one of them once in an epoch."""

    def batch(step: int) -> Batch:
        texts, times, first = recipe.shape_at(step)
        numbers = (step - first) * texts + np.arange(texts)[processes.rows(texts)]
        return Batch(*source.stream.windows(numbers, times, recipe.seed))

    return batch


# ----------------------------------------------------------------------------------------------- preparing


def prepare(
    recipe: GPTRecipe,
    tokeniser: Tokeniser | None = None,
    say: Say = lambda _: None,
    processes: Processes = ALONE,
    folder: Path | None = None,
) -> Prepared:
    """Reads the text, makes the tokeniser, and settles what the recipe leaves open."""
    source = read_source(recipe, tokeniser, recipe.tokens, recipe.vocabulary, recipe.pieces, recipe.exclude, say)
    tokeniser = source.tokeniser
    recipe = settle(recipe, source, say, processes)
    sizes = recipe.sizes(tokeniser.size)
    objective = make_objective(recipe, sizes, processes, start_parameters(recipe, sizes))
    if not objective.kernels.compiled:
        say(objective.kernels.sentence)

    def model(parameters: Parameters) -> Transformer:
        return Transformer(sizes, parameters, tokeniser, source.text.chain, source.speller)

    def reader(parameters: Parameters, step: int) -> Transformer:
        """It reads no more at once than it has been trained to."""
        _, context, _ = recipe.shape_at(step - 1)
        short = replace(sizes, context=context)
        return Transformer(short, parameters, tokeniser, source.text.chain, source.speller)

    return Prepared(
        kind="gpt",
        recipe=recipe,
        sizes=asdict(sizes),
        material=source,
        objective=objective,
        training=recipe.training(),
        batch=next_tokens(recipe, source, processes),
        model=model,
        judged=recipe.judged,
        tokens_a_step=recipe.tokens_a_step,
        figures={name: getattr(recipe, name) for name in ("layers", "width", "context")},
        reader=reader,
    )


def start_parameters(recipe: GPTRecipe, sizes: GPTConfig) -> Parameters:
    """Drawn by the seed; nothing is written into the residual stream yet, and queries look sharply."""
    found = zero_start(initial_parameters(sizes, np.random.default_rng(recipe.seed)))
    return {name: QUERY_GAIN * value if name.endswith(".q_norm") else value for name, value in found.items()}


def make_objective(recipe: GPTRecipe, sizes: GPTConfig, processes: Processes, parameters: Parameters) -> GPTLoss:
    # What is left out differs from process to process, as the texts do.
    seed = recipe.seed + (processes.rank << 32)
    return GPTLoss(
        sizes,
        parameters,
        dropout=recipe.dropout,
        seed=seed,
        workers=recipe.workers,
        precision="bfloat16" if recipe.precision == "bfloat16" else "float32",
    )


def settle(recipe: GPTRecipe, source: Source, say: Say = lambda _: None, processes: Processes = ALONE) -> GPTRecipe:
    """Everything that is not told, from the budget, the text and the speed of this computer."""
    if not recipe.steps and not recipe.minutes:
        recipe = replace(recipe, minutes=MINUTES)
    precision = hardware.precision(recipe.precision, progress=say)
    recipe = replace(recipe, precision=precision, workers=recipe.workers or torch.get_num_threads())
    brief = 0 < recipe.minutes < BRIEF_MINUTES
    size = BRIEF if brief else SIZES[0]
    seconds = TRAINED_SHARE * 60 * recipe.minutes
    readable = [size for size in SIZES[1:] if TEXT_PER_WEIGHT * size.weights <= len(source.stream)]
    if recipe.minutes and not brief and readable and not any((recipe.layers, recipe.width, recipe.mlp)):
        probe = finish(recipe, size, len(source.stream), lambda _: None)
        vocabulary = source.tokeniser.size
        unit = time_of_token(probe, source, processes) / size.work_of_token(vocabulary)
        fitting = [
            larger
            for larger in readable
            if seconds / (unit * larger.work_of_token(vocabulary)) >= READ_PER_WEIGHT * larger.weights
        ]
        size = max(fitting, default=size, key=lambda larger: larger.weights)
    recipe = finish(recipe, size, len(source.stream), say)
    processes.rows(recipe.batch)  # refuses a batch that cannot be shared
    refuse_giants(recipe, source.tokeniser.size)
    if not recipe.steps:
        per_token = time_of_token(recipe, source, processes)
        recipe = replace(recipe, steps=max(20, int(seconds / per_token / recipe.tokens_a_step)))
    read = recipe.steps * recipe.tokens_a_step
    judged = min(JUDGED_TOKENS, max(4096, int(JUDGED_SHARE * read / EVALUATIONS / SCORING_WORK)))
    epochs = read / len(source.stream)
    momentum = BRIEF_MOMENTUM if recipe.steps < BRIEF_STEPS else MOMENTUM
    return replace(
        recipe,
        judged=recipe.judged or judged,
        momentum=recipe.momentum if recipe.momentum >= 0 else momentum,
        decay=recipe.decay if recipe.decay >= 0 else DECAY * (epochs > REPEATED),
        dropout=recipe.dropout if recipe.dropout >= 0 else dropout_for(epochs),
    )


def dropout_for(epochs: float) -> float:
    """More, the more often each token is read; none where that is seldom."""
    return round(min(MOST_DROPOUT, DROPOUT * math.log2(epochs)), 3) if epochs > REPEATED else 0.0


def finish(recipe: AnyRecipe, size: Size, length: int, say: Say) -> AnyRecipe:
    """The recipe with sizes, as far as a text of `length` tokens has room for them, and rates."""
    context = min(recipe.context or size.context, max(2, length))
    batch = max(1, min(recipe.batch or size.batch, length // context))
    for name, told, used in (("context", recipe.context, context), ("batch", recipe.batch, batch)):
        if told and told != used:
            say(f"--{name} {told:,} is more than this text of {length:,} tokens has room for: {used:,} is used.")
    short_share = recipe.short_share
    if short_share < 0:
        short_share = 0.0 if recipe.context else size.short_share  # a length that was told is read from the start
    width = recipe.width or size.width
    heads = recipe.heads or (size.heads if width == size.width else heads_for(width))
    usual = BRIEF_RATE if size is BRIEF else RATE
    rate = recipe.rate or usual
    return replace(
        recipe,
        layers=recipe.layers or size.layers,
        width=width,
        heads=heads,
        mlp=recipe.mlp or round(width * size.mlp / size.width),
        context=context,
        batch=batch,
        short_share=short_share if context % 2 == 0 and context >= 4 else 0.0,
        gram_rows=recipe.gram_rows or (GRAM_ROWS if recipe.grams else 0),
        rotary_base=recipe.rotary_base or (SHORT_ROTARY_BASE if context <= SHORT_CONTEXT else ROTARY_BASE),
        rate=rate,
        embedding_rate=recipe.embedding_rate or EMBEDDING_RATE * rate / usual,
        output_rate=recipe.output_rate or OUTPUT_RATE * rate / usual,
    )


def heads_for(width: int) -> int:
    """As many as leave about 32 coordinates to each, in pairs."""
    return max((heads for heads in range(1, width // 32 + 1) if width % (2 * heads) == 0), default=1)


def refuse_giants(recipe: GPTRecipe, vocabulary: int) -> None:
    """Says no before memory runs out: parameters, gradients, moments and the best ones, and what layers remember."""
    D, M, L = recipe.width, recipe.mlp, recipe.layers
    parameters = L * D * (4 * D + 3 * M) + 2 * vocabulary * D + recipe.grams * recipe.gram_rows * D
    remembered = recipe.tokens_a_step * (L * (16 * D + 5 * M) + 3 * vocabulary)
    needed = 4 * (6 * parameters + remembered)
    present = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else math.inf
    if needed > present:
        raise UsageError(
            f"A model of {L} layers, {D:,} wide, on {recipe.batch:,} texts of {recipe.context:,} tokens needs "
            f"{needed / 1e9:,.0f} GB, more than the {present / 1e9:,.0f} GB of this computer; give a smaller --width, "
            "--layers, --context or --batch."
        )


def time_of_token(recipe: GPTRecipe, source: Source, processes: Processes = ALONE) -> float:
    """Seconds for one token of training: the medians of a few steps on this computer, now, with texts of both lengths.

    Of several processes the first one times its share of the texts, which all work on at once.
    """
    steps = recipe.steps or 1000
    trial = replace(recipe, steps=steps, decay=0.0, dropout=MOST_DROPOUT, momentum=MOMENTUM, minutes=0.0)
    batches = next_tokens(trial, source, processes)
    sizes = trial.sizes(source.tokeniser.size)
    objective = make_objective(trial, sizes, processes, start_parameters(trial, sizes))
    ends = (0, steps - 1) if trial.short_share else (steps - 1,)
    shown = [ends[number % len(ends)] for number in range(len(ends) + TIMED_STEPS)]
    plan = replace(trial.training(), steps=len(shown))
    ended = [0.0]
    state = TrainingState(objective.parameters)
    ended += [step.seconds for step in train(objective, lambda number: batches(shown[number]), plan, state)]
    spent = list(zip(shown, np.diff(ended).tolist(), strict=True))[len(ends) :]  # the first ones also wake the threads
    short, long = (median(seconds for step, seconds in spent if step == end) for end in (ends[0], ends[-1]))
    return (trial.short_share * short + (1 - trial.short_share) * long) / trial.tokens_a_step

"""`inkling train bigram`: the neural word bigram model from a file of text.

Two methods. `exact` (the default) fits the pair counts of the whole corpus at once (models/bigram.py); `sgd` samples
pairs, as published: batches of 50, rate 0.3 halved after half of 40,000 steps, vectors fixed.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from inkling.configuration import from_record
from inkling.errors import InklingError, UsageError
from inkling.models.bigram import Bigram, BigramConfig, ExactLoss, PlainLoss, random_parameters, spectral_vectors
from inkling.models.pairs import PairCounts, contexts_of, count_pairs
from inkling.models.spelling import Speller
from inkling.recipes.card import write_card
from inkling.recipes.data import LanguageText, TextConfig, learn_tokeniser, open_text, resolve, same_text, units
from inkling.runs import files
from inkling.runs.loading import constant_files
from inkling.runs.presence import present
from inkling.runs.recording import Recorder, checkpoint, dump, restore
from inkling.runs.run import Run
from inkling.text.tokenise import Pieces, load_tokeniser
from inkling.text.tokens import Encodings, Tokeniser
from inkling.text.vectors import load_vectors
from inkling.training.loop import Parameters, Step, TrainingConfig, TrainingState, train

Say = Callable[[str], None]
ALL_AT_ONCE = 3000  # words; beyond, rare contexts take turns
TURNS = 8


@dataclass(frozen=True)
class BigramRecipe(TextConfig):
    """All that `inkling train bigram` can be told. Zero steps or rate means: what the method is best with."""

    vocabulary: int = 4096
    pieces: Pieces = "words"
    exclude: tuple[str, ...] = ()
    vectors: str | None = None  # a file of word vectors, or data:glove-50d; none: found from the pair counts
    learn_vectors: bool = True
    dimension: int = 50  # of the vectors, where no file says otherwise
    hidden: int = 100
    method: Literal["exact", "sgd"] = "exact"
    discount: float = 0.4  # taken off each distinct pair and spread (models/pairs.py)
    dropout: float = 0.3  # for rare contexts; less for common ones (models/bigram.py)
    steps: int = 0
    rate: float = 0.0
    batch: int = 50  # pairs a step, for sgd
    patience: int = 0  # evaluations without improvement before stopping; 0: all steps, and the best are kept
    minutes: float = 0.0  # at most; zero: no limit
    seed: int = 0

    def __post_init__(self) -> None:
        limits = (
            ("vocabulary", self.vocabulary >= 2, "at least 2"),
            ("pieces", self.pieces in get_args(Pieces), f"one of {', '.join(get_args(Pieces))}"),
            ("dimension", self.dimension >= 1, "at least 1"),
            ("hidden", self.hidden >= 1, "at least 1"),
            ("method", self.method in ("exact", "sgd"), "exact or sgd"),
            ("discount", 0 <= self.discount <= 1, "a number from 0 to 1"),
            ("dropout", 0 <= self.dropout < 1, "a share from 0 to below 1"),
            ("steps", self.steps >= 0, "a whole number above 0"),
            ("rate", 0 <= self.rate < math.inf, "a number above 0"),
            ("batch", self.batch >= 1, "at least 1"),
            ("patience", self.patience >= 0, "0 (never stop early) or more"),
            ("minutes", 0 <= self.minutes < math.inf, "a number above 0"),
            ("seed", 0 <= self.seed < 1 << 32, "a whole number from 0 to 4294967295"),
        )
        for name, fits, wanted in limits:
            if not fits:
                raise UsageError(f"--{name} is {getattr(self, name)}; give {wanted}.")

    def training(self) -> TrainingConfig:
        seconds = self.minutes * 60 if self.minutes else math.inf
        if self.method == "sgd":
            return TrainingConfig(
                self.steps or 40_000, "sgd", self.rate or 0.3, "halved", evaluate_every=1000, max_seconds=seconds
            )
        return TrainingConfig(
            self.steps or 300,
            "adam",
            self.rate or 0.02,
            "late",
            warm_up=0 if self.vectors else 20,  # vectors found from the counts start close to the goal
            patience=self.patience,
            max_seconds=seconds,
        )


@dataclass(frozen=True)
class Prepared:
    """Text turned into everything that training needs; the same for the same bytes and recipe."""

    recipe: BigramRecipe
    text: LanguageText
    tokeniser: Tokeniser
    speller: Speller | None
    counts: PairCounts
    held_out: PairCounts
    held_out_spellings: Mapping[str, int]
    objective: ExactLoss | PlainLoss
    batches: Callable[[int], Any]

    @property
    def sizes(self) -> BigramConfig:
        W1 = self.objective.parameters["W1"]
        return BigramConfig(dimension=W1.shape[0], hidden=W1.shape[1])

    def units(self) -> dict[str, float]:
        return units(self.tokeniser, self.held_out.column_totals, self.held_out_spellings, self.speller)

    def validate(self, parameters: Parameters) -> tuple[float, float]:
        if isinstance(self.objective, ExactLoss):
            return self.objective.nats(parameters, self.held_out), self.held_out.tokens
        model = Bigram(self.sizes, self.objective.plain(parameters), self.tokeniser)
        contexts, ids = np.divmod(self.held_out.keys, self.held_out.size)
        return float(model.pair_nats(contexts, ids) @ self.held_out.values), self.held_out.tokens


def train_bigram(recipe: BigramRecipe, out: Path, say: Say = lambda _: None) -> Iterator[tuple[Run, Step]]:
    """Makes the run `out` and trains it; yields after every step, so that the caller can show it or stop."""
    if out.exists():
        raise UsageError(f"{out} exists already; name another with --out, or remove it with `inkling runs rm`.")
    prepared = prepare(recipe, say=say)
    recipe = within_budget(recipe, prepared)
    prepared = replace(prepared, recipe=recipe)
    state = TrainingState(prepared.objective.parameters)
    run = Run.create(
        out,
        info={
            "kind": "bigram",
            "recipe": asdict(recipe),
            "normalise": str(prepared.text.chain),
            "seed": recipe.seed,
            "threads": torch.get_num_threads(),
            "data": prepared.text.describe(),
            "units": prepared.units(),
        },
        constant=constant_files("bigram", asdict(prepared.sizes), prepared.tokeniser, prepared.speller),
        checkpoint=checkpoint(state, prepared.objective.plain),
    )
    with present(run):
        yield from _go_on(run, prepared, state)


def within_budget(recipe: BigramRecipe, prepared: Prepared) -> BigramRecipe:
    """With `minutes` and no steps given: as many steps as measured speed allows, so that the schedule ends in time.

    The number is written into the recipe, so that a resumed run keeps to it.
    """
    if not recipe.minutes or recipe.steps:
        return recipe
    spent = []
    for step in range(3):
        started = time.perf_counter()
        prepared.objective.gradient(prepared.batches(step), step)
        spent.append(time.perf_counter() - started)
    affordable = int(0.8 * recipe.minutes * 60 / min(spent))
    return replace(recipe, steps=max(10, min(recipe.training().steps, affordable)))


def resume_bigram(run: Run, say: Say = lambda _: None) -> Iterator[tuple[Run, Step]]:
    """Goes on where the newest checkpoint of an unfinished run stands."""
    recipe = from_record(BigramRecipe, run.info["recipe"], str(run.path / "run.json"))
    tokeniser = load_tokeniser((run.path / "tokenizer.json").read_text(encoding="utf-8"))
    torch.set_num_threads(int(run.info["threads"]))
    prepared = prepare(recipe, tokeniser, say)
    same_text(run, recipe, prepared.text.describe())
    files.sweep(run.path)
    files.sweep(run.path / "checkpoints")
    state = TrainingState(prepared.objective.parameters)
    with present(run):
        restore(run, state, prepared.objective.plain)
        yield from _go_on(run, prepared, state)


def _go_on(run: Run, prepared: Prepared, state: TrainingState) -> Iterator[tuple[Run, Step]]:
    config = prepared.recipe.training()
    log_every = 100 if prepared.recipe.method == "sgd" else 1
    recorder = Recorder(run, state, prepared.objective.plain, log_every)
    steps = train(prepared.objective, prepared.batches, config, state, prepared.validate)
    for step in recorder.record(steps):
        yield run, step
    held_out_nats = state.best_nats
    summary = {
        "steps": state.step,
        "seconds": round(state.seconds, 3),
        "train_tokens": int(prepared.counts.tokens),
        "held_out_tokens": int(prepared.held_out.tokens),
        "held_out_nats_per_token": held_out_nats,
        "held_out_perplexity": math.exp(held_out_nats),
        "parameters": sum(value.numel() for value in state.parameters.values()),
        "vocabulary": prepared.tokeniser.size,
    }
    run.finish(model=dump(prepared.objective.plain(state.chosen())), card=write_card(run, summary), summary=summary)


def prepare(recipe: BigramRecipe, tokeniser: Tokeniser | None = None, say: Say = lambda _: None) -> Prepared:
    """Reads the text, and makes tokeniser, counts, speller and the start point from it."""
    text = open_text(recipe, say)
    if tokeniser is None:
        tokeniser = learn_tokeniser(text, "word", recipe.vocabulary, recipe.pieces, recipe.exclude)
    spellings: Counter[str] = Counter()
    sampled: list[Encodings] = []

    def encoded() -> Iterator[Encodings]:
        for block in text.train_blocks():
            encodings = tokeniser.encode(block)
            spellings.update(encodings.spellings)
            if recipe.method == "sgd":
                sampled.append(encodings)
            yield encodings

    counts = count_pairs(encoded(), tokeniser.size, tokeniser.begin)
    judged: Counter[str] = Counter()  # spellings of the held-out text

    def judged_encodings() -> Iterator[Encodings]:
        for block in text.held_out_blocks():
            encodings = tokeniser.encode(block)
            judged.update(encodings.spellings)
            yield encodings

    held_out = count_pairs(judged_encodings(), tokeniser.size, tokeniser.begin)
    if not counts.tokens or not held_out.tokens:
        raise InklingError(f"{', '.join(recipe.files)} has no text to learn from; give a file with text in it.")
    speller = Speller.fit(spellings, tokeniser)
    objective, batches = _objective(recipe, tokeniser, counts, sampled, say)
    return Prepared(recipe, text, tokeniser, speller, counts, held_out, judged, objective, batches)


def _objective(
    recipe: BigramRecipe, tokeniser: Tokeniser, counts: PairCounts, sampled: list[Encodings], say: Say
) -> tuple[ExactLoss | PlainLoss, Callable[[int], Any]]:
    generator = np.random.default_rng(recipe.seed)
    vectors = _vectors(recipe, tokeniser, counts, say)
    sizes = BigramConfig(dimension=vectors.shape[1], hidden=recipe.hidden)
    start: dict[str, Tensor] = random_parameters(sizes, tokeniser.size, generator, vectors)
    if recipe.method == "exact":
        softened = counts.discounted(recipe.discount)
        exact = ExactLoss(counts, start, learn_vectors=recipe.learn_vectors, dropout=recipe.dropout, seed=recipe.seed)
        turns = softened.turns(TURNS) if tokeniser.size > ALL_AT_ONCE else [softened]
        return exact, lambda step: turns[step % len(turns)]
    contexts = np.concatenate([contexts_of(encodings, tokeniser.begin) for encodings in sampled])
    following = np.concatenate([encodings.ids for encodings in sampled]).astype(np.int64)

    def draw(step: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        chosen = np.random.default_rng((recipe.seed, step)).integers(0, len(following), recipe.batch)
        return contexts[chosen], following[chosen]

    return PlainLoss(start), draw


def _vectors(recipe: BigramRecipe, tokeniser: Tokeniser, counts: PairCounts, say: Say) -> NDArray[np.float32]:
    """From the file that was named, by word without the space before it; else from the pair counts themselves."""
    if recipe.vectors is None:
        if not recipe.learn_vectors:
            raise UsageError("--fixed-vectors needs vectors that are worth keeping; name a file with --vectors.")
        return spectral_vectors(counts, recipe.dimension, recipe.seed)
    table = load_vectors(Path(resolve(recipe.vectors)))
    words = [tokeniser.piece(token).decode("utf-8", "replace").strip() for token in range(tokeniser.size)]
    rows, found = table.lookup(words)
    if not found.any():
        raise InklingError(
            f"None of the {len(words):,} words of the text has a vector in {recipe.vectors}; give vectors of its "
            "language, spelled as the text is (perhaps with --normalise lower)."
        )
    say(f"{int(found.sum()):,} of {len(words):,} words have a vector in {recipe.vectors}; the rest start at zero.")
    return rows

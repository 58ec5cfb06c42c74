"""`inkling train dan`: a classifier from a table of texts and labels.

    best        runs of one to three words, each with a score for every class: accurate, fast, exact to explain
    published   frozen word vectors, averaged, two hidden layers of ReLU, 20 epochs of Adam: claim D1, but that the rate
                falls in the second half and the epoch that was best on held-out text is kept

Every option of a preset can be overruled. A tenth of each class is held out to choose settings, weights and the
temperature; test text is for `inkling evaluate`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from inkling.configuration import from_record
from inkling.errors import InklingError, UsageError
from inkling.measure.calibration import Abstention, Calibration
from inkling.measure.classification import ClassificationReport
from inkling.models.dan import ACTIVATIONS, AveragingNetwork, DANConfig
from inkling.recipes.averaging import (
    Fitted,
    NetworkSettings,
    OnProgress,
    Prepared,
    ScoreSettings,
    choose_bits,
    fit_scores,
    prepare_network,
)
from inkling.recipes.card import write_card
from inkling.recipes.data import resolve
from inkling.recipes.labelled import LabelledConfig, LabelledParts, read_parts
from inkling.recipes.labelled_text import LabelledText
from inkling.runs import files
from inkling.runs.loading import dan_files, dump_arrays
from inkling.runs.presence import present
from inkling.runs.recording import Recorder, checkpoint, restore
from inkling.runs.run import Checkpoint, Run
from inkling.text.vectors import WordVectors, load_vectors
from inkling.text.words import Places
from inkling.training.loop import Parameters, Step, TrainingState, train

Say = Callable[[str], None]
OnJudged = Callable[[AveragingNetwork, LabelledText, NDArray[np.float64]], None]
SURE = 0.95  # the accuracy that the threshold in the summary buys, on held-out texts


@dataclass(frozen=True)
class DANRecipe(LabelledConfig):
    """All that `inkling train dan` can be told. None or an empty text: what the preset says."""

    preset: Literal["best", "published"] = "best"
    words: int | None = None  # longest run of words
    characters: str = ""  # "3-5": runs of characters inside words too
    vectors: str | None = None  # a file of word vectors, or data:glove-50d
    learn_vectors: bool | None = None
    dimension: int | None = None  # 0: a vector is a score for each class
    depth: int | None = None
    width: int | None = None
    activation: str | None = None
    word_dropout: float | None = None
    weight_decay: float = 0.0
    class_weights: Literal["none", "balanced"] = "none"
    min_count: int = 0  # texts that a feature must occur in; 0: by the size of the data
    strength: float = 0.0  # of the pull towards naive Bayes; 0: chosen on held-out texts
    trust: float | None = None  # in naive Bayes; none: chosen on held-out texts
    refit: bool = True  # learn from the held-out share too, once it has chosen
    epochs: int = 20
    batch: int | None = None  # 250; published: 100
    rate: float | None = None  # 0.002; published: 0.001
    patience: int = 0  # epochs without a better one before stopping; 0: all
    minutes: float = 0.0  # at most, for networks; 0: no limit

    def __post_init__(self) -> None:
        limits = (
            ("preset", self.preset in ("best", "published"), "best or published"),
            ("words", self.words is None or 1 <= self.words <= 8, "a whole number from 1 to 8"),
            ("dimension", self.dimension is None or 0 <= self.dimension <= 4096, "a whole number from 0 to 4096"),
            ("depth", self.depth is None or 0 <= self.depth <= 64, "a whole number from 0 to 64"),
            ("width", self.width is None or 1 <= self.width <= 65536, "a whole number from 1 to 65536"),
            ("word_dropout", self.word_dropout is None or 0 <= self.word_dropout < 1, "a share from 0 to below 1"),
            ("weight_decay", 0 <= self.weight_decay < math.inf, "a number from 0"),
            ("class_weights", self.class_weights in ("none", "balanced"), "none or balanced"),
            ("min_count", self.min_count >= 0, "a whole number above 0"),
            ("strength", 0 <= self.strength < math.inf, "a number above 0"),
            ("trust", self.trust is None or 0 <= self.trust < math.inf, "a number from 0"),
            ("epochs", self.epochs >= 1, "at least 1"),
            ("batch", self.batch is None or self.batch >= 1, "at least 1"),
            ("rate", self.rate is None or 0 < self.rate < math.inf, "a number above 0"),
            ("patience", self.patience >= 0, "0 (never stop early) or more"),
            ("minutes", 0 <= self.minutes < math.inf, "a number above 0"),
            ("seed", 0 <= self.seed < 1 << 32, "a whole number from 0 to 4294967295"),
        )
        for name, fits, wanted in limits:
            if not fits:
                raise UsageError(f"--{name.replace('_', '-')} is {getattr(self, name)}; give {wanted}.")
        if self.activation:
            for name in self.activation.split(","):
                if name.strip().replace("-", "_") not in ACTIVATIONS:
                    raise UsageError(f"--activation is {self.activation}; give one of {', '.join(ACTIVATIONS)}.")
        parse_characters(self.characters)
        if self.vectors and ((self.words or 1) > 1 or self.characters):
            raise UsageError(
                "A file of vectors knows single words only; leave out --words and --characters, or --vectors."
            )

    def refuse_idle_options(self, sizes: DANConfig) -> None:
        """Options that the chosen kind of model has no use for are refused rather than passed over."""
        network = {
            "word-dropout": self.word_dropout,
            "weight-decay": self.weight_decay,
            "activation": self.activation,
            "width": self.width,
            "patience": self.patience,
            "minutes": self.minutes,
            "fixed-vectors": self.learn_vectors is False,
        }
        scores = {"strength": self.strength, "trust": self.trust is not None, "no-refit": not self.refit}
        idle = [name for name, told in (scores if sizes.dimension else network).items() if told]
        if idle and sizes.dimension:
            raise UsageError(
                f"--{idle[0]} is for scores; leave it out for a network (--depth, --dimension, --vectors)."
            )
        if idle:
            raise UsageError(f"--{idle[0]} is for networks; add --depth 1 or --vectors FILE, or leave it out.")
        if self.vectors and self.min_count:
            raise UsageError("--min-count is for features that are learned; leave it out with --vectors.")
        if self.learn_vectors is False and not self.vectors:
            raise UsageError("--fixed-vectors needs vectors to keep; give --vectors FILE.")

    @property
    def is_published(self) -> bool:
        return self.preset == "published"

    def sizes(self, bits: int = 24, dimension: int | None = None) -> DANConfig:
        """The network that the preset and the options make; `dimension` is that of the vectors in a file."""
        low, high = parse_characters(self.characters)
        wanted = dimension if dimension is not None else self.dimension
        depth = self.depth if self.depth is not None else 2 if self.is_published else 0
        if wanted is None:
            wanted = 100 if depth or self.vectors else 0
        return DANConfig(
            words=self.words or (1 if self.is_published or self.vectors else 3),
            low=low,
            high=high,
            bits=bits,
            distinct=not (self.is_published or self.vectors),
            dimension=wanted,
            depth=depth,
            width=self.width or 100,
            activation=self.activation or "relu",
        )

    def score_settings(self) -> ScoreSettings:
        trust = -1.0 if self.trust is None else self.trust
        return ScoreSettings(self.strength, trust, self.min_count, self.class_weights == "balanced", self.refit)

    def network_settings(self) -> NetworkSettings:
        learns = self.learn_vectors if self.learn_vectors is not None else not self.is_published
        return NetworkSettings(
            self.word_dropout or 0.0,
            self.weight_decay,
            self.min_count,
            self.class_weights == "balanced",
            learns,
            self.epochs,
            self.batch or (100 if self.is_published else 250),
            self.rate or (0.001 if self.is_published else 0.002),
            self.patience,
            self.minutes * 60 or math.inf,
            self.seed,
        )


def parse_characters(given: str) -> tuple[int, int]:
    """(3, 5) for "3-5", (4, 4) for "4", (0, 0) for nothing."""
    if not given:
        return 0, 0
    low, _, high = given.partition("-")
    if not (low.isdecimal() and (high or low).isdecimal() and 1 <= int(low) <= int(high or low) <= 12):
        raise UsageError(f"--characters is {given}; give lengths of runs from 1 to 12, such as 3-5.")
    return int(low), int(high or low)


@dataclass(frozen=True)
class Material:
    """The texts to learn from and those that choose, one after the other."""

    parts: LabelledParts
    texts: list[str]
    truth: Places
    held: np.ndarray[Any, np.dtype[np.bool_]]

    @classmethod
    def read(cls, recipe: DANRecipe, say: Say) -> Material:
        parts = read_parts(recipe, say)
        held = np.zeros(len(parts.train) + len(parts.held_out), np.bool_)
        held[len(parts.train) :] = True
        truth = np.concatenate([parts.train.truth, parts.held_out.truth])
        return cls(parts, parts.train.texts + parts.held_out.texts, truth, held)


def train_dan(
    recipe: DANRecipe,
    out: Path,
    say: Say = lambda _: None,
    on_progress: OnProgress = lambda done, total, what: None,
    on_judged: OnJudged = lambda network, held_out, log_probs: None,
) -> Iterator[tuple[Run, Step]]:
    """Makes the run `out`. Scores are fitted in one go, with `on_progress`; a network yields after every step.

    `on_judged` gets what held-out texts were judged by, before any of them was learned from, and how.
    """
    if out.exists():
        raise UsageError(f"{out} exists already; name another with --out, or remove it with `inkling runs rm`.")
    if recipe.is_published and not recipe.vectors:
        raise UsageError(
            "The published network averages word vectors from a file; give --vectors FILE, or "
            "--vectors data:glove-50d after `inkling data get glove-50d`."
        )
    vectors = load_vectors(resolve(recipe.vectors)) if recipe.vectors else None
    if vectors is not None and recipe.dimension not in (None, vectors.dimension):
        raise UsageError(f"--dimension is {recipe.dimension}, but the vectors have {vectors.dimension}; leave it out.")
    sizes = recipe.sizes(dimension=None if vectors is None else vectors.dimension)
    recipe.refuse_idle_options(sizes)
    material = Material.read(recipe, say)
    sizes = replace(sizes, bits=choose_bits(material.texts, sizes, from_file=vectors is not None))
    if sizes.dimension:
        fitted = yield from _train_network(recipe, out, material, sizes, vectors)
    else:
        fitted = _train_scores(recipe, out, material, sizes, on_progress)
    for note in fitted.notes:
        say(note)
    on_judged(fitted.judged or fitted.network, material.parts.held_out, fitted.held_out)


def _train_scores(
    recipe: DANRecipe, out: Path, material: Material, sizes: DANConfig, on_progress: OnProgress
) -> Fitted:
    started = time.perf_counter()
    settings = recipe.score_settings()
    if recipe.held_out:
        settings = replace(settings, refit=False)  # named held-out texts are for judging alone
    labels = material.parts.whole.labels
    fitted = fit_scores(material.texts, material.truth, labels, material.held, sizes, settings, on_progress)
    seconds = time.perf_counter() - started
    weights = dump_arrays(fitted.network.arrays())
    run = _create(recipe, out, material, sizes, Checkpoint(0, weights, dump_arrays({}), {"step": 0}))
    chosen = min(fitted.choices, key=lambda choice: choice.nats)
    more = {"strength": chosen.strength, "trust": chosen.trust, "steps": fitted.steps}
    for i, choice in enumerate(fitted.choices):
        run.log({"step": i, **asdict(choice)})
    _finish(run, fitted, material, seconds, more)
    return fitted


def _create(recipe: DANRecipe, out: Path, material: Material, sizes: DANConfig, first: Checkpoint) -> Run:
    return Run.create(
        out,
        info={
            "kind": "dan",
            "refitted": not sizes.dimension and recipe.refit and not recipe.held_out,
            "recipe": asdict(recipe),
            "normalise": "none",
            "seed": recipe.seed,
            "threads": torch.get_num_threads(),
            "data": material.parts.describe(),
        },
        constant=dan_files(sizes, material.parts.whole.labels),
        checkpoint=first,
    )


def _finish(run: Run, fitted: Fitted, material: Material, seconds: float, more: dict[str, Any]) -> None:
    network, held = fitted.network, material.parts.held_out
    report = ClassificationReport.of(
        network.labels, held.truth, fitted.held_out, name=run.path.name, text_name="held out"
    )
    threshold = Abstention.of(held.truth, fitted.held_out).threshold_for(SURE)
    summary = {
        "seconds": round(seconds, 3),
        "classes": len(network.labels),
        "train_texts": len(material.parts.train),
        "held_out_texts": len(held),
        "held_out_accuracy": report.accuracy.value,
        "held_out_accuracy_low": report.accuracy.low,
        "held_out_accuracy_high": report.accuracy.high,
        "held_out_macro_f1": report.macro_f1.value,
        "held_out_majority_accuracy": report.majority_accuracy,
        "held_out_nats_per_text": report.nats_per_text,
        "calibration_error": Calibration.of(held.truth, fitted.held_out).error,
        "temperature": network.temperature,
        "unsure_below": threshold,
        "features": len(network.keys),
        "parameters": sum(value.numel() for value in network.parameters().values()),
        **more,
    }
    run.finish(model=dump_arrays(network.arrays()), card=write_card(run, summary), summary=summary)


# ------------------------------------------------------------------------------------------------ networks


def _train_network(
    recipe: DANRecipe, out: Path, material: Material, sizes: DANConfig, vectors: WordVectors | None
) -> Generator[tuple[Run, Step], None, Fitted]:
    prepared = _prepare(recipe, material, sizes, vectors)
    state = TrainingState(prepared.objective.parameters)
    run = _create(recipe, out, material, sizes, checkpoint(state, _plain(prepared)))
    with present(run):
        return (yield from _go_on(run, prepared, material, state))


def _prepare(recipe: DANRecipe, material: Material, sizes: DANConfig, vectors: WordVectors | None) -> Prepared:
    settings = recipe.network_settings()
    labels = material.parts.whole.labels
    return prepare_network(material.texts, material.truth, labels, material.held, sizes, settings, vectors)


def _plain(prepared: Prepared) -> Callable[[Parameters], dict[str, torch.Tensor]]:
    def plain(parameters: Parameters) -> dict[str, torch.Tensor]:
        arrays = prepared.network(parameters).arrays()
        return {name: torch.from_numpy(np.array(value)) for name, value in arrays.items()}

    return plain


def resume_dan(run: Run, say: Say = lambda _: None) -> Iterator[tuple[Run, Step]]:
    """Goes on where the newest checkpoint of an unfinished network stands."""
    recipe = from_record(DANRecipe, run.info["recipe"], str(run.path / "run.json"))
    torch.set_num_threads(int(run.info["threads"]))
    material = Material.read(recipe, say)
    described = material.parts.describe()
    for key in ("sha256", "held_out_sha256"):
        if described[key] != run.info["data"][key]:
            raise InklingError(
                f"{', '.join(recipe.files)} is not what {run.path} was trained on (its SHA-256 differs): "
                "put the old file back, or train anew."
            )
    vectors = load_vectors(resolve(recipe.vectors)) if recipe.vectors else None
    sizes = recipe.sizes(dimension=None if vectors is None else vectors.dimension)
    if not sizes.dimension:
        raise InklingError(f"{run.path} was stopped while it was written, and is fitted in one go; train it anew.")
    bits = choose_bits(material.texts, sizes, from_file=vectors is not None)
    prepared = _prepare(recipe, material, replace(sizes, bits=bits), vectors)
    files.sweep(run.path)
    files.sweep(run.path / "checkpoints")
    state = TrainingState(prepared.objective.parameters)
    with present(run):
        restore(run, state, _plain(prepared))
        yield from _go_on(run, prepared, material, state)


def _go_on(
    run: Run, prepared: Prepared, material: Material, state: TrainingState
) -> Generator[tuple[Run, Step], None, Fitted]:
    recorder = Recorder(run, state, _plain(prepared), prepared.per_epoch)
    steps = train(prepared.objective, prepared.batches, prepared.training, state, prepared.validate)
    for step in recorder.record(steps):
        yield run, step
    fitted = prepared.finish(state.chosen(), state.step)
    _finish(run, fitted, material, state.seconds, {"steps": state.step})
    return fitted

"""From texts and labels in memory to a deep averaging network: what `inkling train dan` and the estimator both do.

Scores (dimension 0): a convex fit, done for a few pairs of strength and trust (models/dan_loss.py), of which held-out
texts choose one; their temperature is fitted, and the chosen pair is fitted again with the held-out texts included.
Networks (any other): Adam over batches by the one training loop, the best weights on held-out texts kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from inkling.errors import InklingError, UsageError
from inkling.measure.calibration import fit_temperature
from inkling.models.bags import Bags, Table, collect, count_texts
from inkling.models.dan import AveragingNetwork, DANConfig, average, random_layers, read_average
from inkling.models.dan_loss import NetworkLoss, Product, ScoreLoss, balanced_weights
from inkling.text.grams import GramConfig, key_of
from inkling.text.vectors import WordVectors, hash_spellings
from inkling.training.loop import Parameters, Step, TrainingConfig, TrainingState, train
from inkling.training.quasi_newton import minimise

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
OnProgress = Callable[[int, int, str], None]

MOST_BITS, LEAST_BITS = 24, 16
MOST_SCORES = 8_000_000  # features × columns; the descent remembers sixteen times as many
MOST_WORDS = 100_000  # of a file of vectors, beside those of the training text
MANY_PAIRS, MORE_PAIRS = 1_000_000, 5_000_000  # (text, feature) pairs; beyond, features of 1 and of 2 texts go
MOST_STEPS = 60
TOLERANCE = 5e-3  # of the loss; beyond, verdicts no longer change
LEAST_NATS = 2e-4  # a text; the same where the loss itself goes to nothing

# Tried in this order: trust in naive Bayes at the weakest strength, then more strength at the best trust.
TRUSTS = (1.0, 0.0, 3.0)
STRENGTHS = (0.003, 0.03)


@dataclass(frozen=True)
class ScoreSettings:
    """How scores are fitted. `strength` 0 and `trust` below 0: chosen on held-out texts."""

    strength: float = 0.0
    trust: float = -1.0
    min_count: int = 0  # texts that a feature must occur in; 0: by the size of the data
    balanced: bool = False
    refit: bool = True


@dataclass(frozen=True)
class NetworkSettings:
    """How a network is trained."""

    word_dropout: float = 0.0
    weight_decay: float = 0.0
    min_count: int = 0
    balanced: bool = False
    learn_vectors: bool = True
    epochs: int = 20
    batch: int = 250
    rate: float = 0.002
    patience: int = 0
    seconds: float = math.inf
    seed: int = 0


@dataclass(frozen=True)
class Choice:
    """A pair of settings that was tried, and what it gave on held-out texts."""

    strength: float
    trust: float
    nats: float  # per text, at the best temperature
    accuracy: float
    steps: int


@dataclass(frozen=True)
class Fitted:
    """`held_out` are the log-probabilities (H×C) that held-out texts got before they were learned from."""

    network: AveragingNetwork
    held_out: NDArray[np.float64]
    choices: tuple[Choice, ...] = ()
    steps: int = 0
    judged: AveragingNetwork | None = None  # the network that gave them; None: `network` itself
    notes: tuple[str, ...] = ()


# ------------------------------------------------------------------------------------------------ features


def choose_bits(texts: Sequence[str], config: DANConfig, from_file: bool = False) -> int:
    """A few keys for each feature that the texts may hold, within bounds; the most if vectors come from a file, for its
    words are many however small the texts are."""
    if from_file:
        return MOST_BITS
    chars = sum(map(len, texts))
    features = chars / 5 * config.words + chars * max(0, config.high - config.low + 1) * bool(config.high)
    return int(min(MOST_BITS, max(LEAST_BITS, math.ceil(math.log2(max(1.0, features))) + 2)))


def learn_table(found: Bags, grams: GramConfig, min_count: int, most: int, among: Flags | None = None) -> Table:
    """The features that occur in enough texts (of those in `among`), and of those the `most` frequent."""
    least = min_count or (3 if len(found.rows) > MORE_PAIRS else 2 if len(found.rows) > MANY_PAIRS else 1)
    counts = count_texts(found, grams, among)
    keys = np.flatnonzero(counts >= least)
    if not len(keys):
        raise InklingError(
            f"No feature occurs in {least} training texts; give more texts, or a smaller --min-count."
            if len(found.rows) and least > 1
            else "The training texts hold no words; give texts with letters in them."
        )
    if len(keys) > most:
        keys = np.sort(keys[np.argsort(-counts[keys], kind="stable")[:most]])
    return Table(grams, keys.astype(np.int32))


def file_table(vectors: WordVectors, grams: GramConfig, found: Bags) -> tuple[Table, NDArray[np.float32]]:
    """The words of a file of vectors: its first `MOST_WORDS`, and all that occur in `found`."""
    rows, hashes = hash_spellings(vectors)
    keys = key_of(hashes, 1, grams.bits)
    occurs = np.zeros(1 << grams.bits, np.bool_)
    occurs[found.rows] = True
    kept = (rows < MOST_WORDS) | occurs[keys]
    # np.unique keeps the first of equal keys, and files begin with the commonest words.
    different, first = np.unique(keys[kept], return_index=True)
    return Table(grams, different.astype(np.int32)), np.array(vectors.matrix[rows[kept][first]])


# ------------------------------------------------------------------------------------------------ scores


def fit_scores(
    texts: Sequence[str],
    truth: Ints,
    labels: Sequence[str],
    held: Flags,
    config: DANConfig,
    settings: ScoreSettings,
    on_progress: OnProgress = lambda done, total, what: None,
) -> Fitted:
    """`held` marks the texts that choose; they are learned from in the end if `settings.refit`."""
    trials = [] if settings.strength and settings.trust >= 0 else _first_trials(settings)
    stages = max(1, len(trials) + (len(STRENGTHS) - 1 if not settings.strength else 0)) + 2
    on_progress(0, stages, "counting")
    columns = 1 if len(labels) == 2 else len(labels)
    found = collect(texts, config.grams)
    table = learn_table(found, config.grams, settings.min_count, max(1, MOST_SCORES // columns), ~held)
    product = Product(table.keep(found, config.distinct), len(table.keys))
    del found
    each = balanced_weights(truth[~held], len(labels))[truth] if settings.balanced else np.ones(len(truth), np.float32)

    def fit(weights: NDArray[np.float32], strength: float, trust: float) -> tuple[ScoreLoss, Tensor, int]:
        loss = ScoreLoss(product, truth, len(labels), weights, strength, trust)
        point, steps = loss.start(), 0
        for descent in minimise(loss, point, MOST_STEPS, TOLERANCE, LEAST_NATS * float(weights.sum())):
            point, steps = descent.point, descent.step
        return loss, point, steps

    before = np.where(held, np.float32(0), each)
    choices: list[Choice] = []
    best: tuple[ScoreLoss, Tensor] | None = None
    best_logits = np.zeros((0, len(labels)))

    def attempt(strength: float, trust: float) -> None:
        nonlocal best, best_logits
        on_progress(1 + len(choices), stages, f"trying strength {strength:g}, trust {trust:g}")
        loss, point, steps = fit(before, strength, trust)
        logits = loss.both(loss.scores(point))[torch.from_numpy(held)].double().numpy()
        choice = Choice(strength, trust, *_judge(logits, truth[held]), steps)
        if not choices or choice.nats < min(other.nats for other in choices):
            best, best_logits = (loss, point), logits
        choices.append(choice)

    if held.any():
        for strength, trust in trials or [(settings.strength, settings.trust)]:
            attempt(strength, trust)
        if not settings.strength:
            for strength in STRENGTHS[1:]:
                attempt(strength, min(choices, key=lambda choice: choice.nats).trust)
        chosen = min(choices, key=lambda choice: choice.nats)
        temperature = fit_temperature(best_logits, truth[held])
    else:
        trust = settings.trust if settings.trust >= 0 else TRUSTS[0]
        chosen = Choice(settings.strength or STRENGTHS[0], trust, math.nan, math.nan, 0)
        temperature = 1.0
    steps, judged = chosen.steps, None
    if best is not None and settings.refit:
        judged = AveragingNetwork(config, labels, table.keys, best[0].parameters(best[1]), temperature)
    if best is None or settings.refit:
        on_progress(stages - 1, stages, "fitting all texts")
        loss, point, steps = fit(each, chosen.strength, chosen.trust)
        best = (loss, point)
    network = AveragingNetwork(config, labels, table.keys, best[0].parameters(best[1]), temperature)
    on_progress(stages, stages, "done")
    notes: tuple[str, ...] = ()
    if len(table.keys) == max(1, MOST_SCORES // columns):
        notes = (f"Only the {len(table.keys):,} commonest features are kept, for there are {len(labels):,} classes.",)
    return Fitted(network, _log_softmax(best_logits / temperature), tuple(choices), steps, judged, notes)


def _first_trials(settings: ScoreSettings) -> list[tuple[float, float]]:
    trusts = TRUSTS if settings.trust < 0 else (settings.trust,)
    return [(settings.strength or STRENGTHS[0], trust) for trust in trusts]


def _judge(logits: NDArray[np.float64], truth: Ints) -> tuple[float, float]:
    logs = _log_softmax(logits / fit_temperature(logits, truth))
    right = logs.argmax(axis=1) == truth
    return float(-logs[np.arange(len(truth)), truth].sum() / len(truth)), float(right.sum() / len(truth))


def _log_softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    return torch.log_softmax(torch.from_numpy(logits), dim=1).numpy()


# ------------------------------------------------------------------------------------------------ networks


@dataclass(frozen=True)
class Prepared:
    """Texts turned into everything that training a network needs; the same for the same texts and settings."""

    config: DANConfig
    labels: tuple[str, ...]
    table: Table
    objective: NetworkLoss
    training: TrainingConfig
    held_bags: Bags
    held_truth: Ints
    rows: int

    def batches(self, step: int) -> Ints:
        """Each epoch goes through all texts in an order of its own."""
        size = min(self.objective_batch, self.rows)
        epoch, place = divmod(step, self.per_epoch)
        order = np.random.default_rng((self.objective.seed, 1, epoch)).permutation(self.rows)
        return order[place * size : (place + 1) * size]

    @property
    def objective_batch(self) -> int:
        return math.ceil(self.rows / self.per_epoch)

    @property
    def per_epoch(self) -> int:
        return self.training.evaluate_every

    def logits(self, parameters: Parameters, bags: Bags) -> Tensor:
        vectors = parameters.get("vectors", self.objective.vectors)
        return read_average(average(bags, vectors), parameters, self.config)

    def validate(self, parameters: Parameters) -> tuple[float, float]:
        logs = torch.log_softmax(self.logits(parameters, self.held_bags).double(), dim=1)
        target = torch.from_numpy(self.held_truth)
        return float(-logs.gather(1, target[:, None]).sum()), float(len(target))

    def network(self, parameters: Parameters, temperature: float = 1.0) -> AveragingNetwork:
        # Detached, for Ctrl-C in the middle of a gradient leaves them attached, and what there is is saved then.
        whole = {name: value.detach() for name, value in {"vectors": self.objective.vectors, **parameters}.items()}
        return AveragingNetwork(self.config, self.labels, self.table.keys, whole, temperature)

    def finish(self, parameters: Parameters, steps: int) -> Fitted:
        """The network with its temperature, from the parameters that were chosen."""
        with torch.no_grad():
            logits = self.logits(parameters, self.held_bags).double().numpy()
        temperature = fit_temperature(logits, self.held_truth)
        return Fitted(self.network(parameters, temperature), _log_softmax(logits / temperature), (), steps)


def prepare_network(
    texts: Sequence[str],
    truth: Ints,
    labels: Sequence[str],
    held: Flags,
    config: DANConfig,
    settings: NetworkSettings,
    vectors: WordVectors | None = None,
) -> Prepared:
    if not held.any():
        raise UsageError("A network needs held-out texts to know when to stop; give more texts of each class.")
    generator = np.random.default_rng(settings.seed)
    found = collect(texts, config.grams)
    learned = np.flatnonzero(~held)
    if vectors is not None:
        table, matrix = file_table(vectors, config.grams, found.take(learned))
        start = torch.from_numpy(matrix)
    else:
        table = learn_table(found, config.grams, settings.min_count, MOST_SCORES // config.dimension, ~held)
        drawn = generator.standard_normal((len(table.keys), config.dimension), dtype=np.float32)
        start = torch.from_numpy(drawn / np.float32(math.sqrt(config.dimension)))
    bags = table.keep(found, config.distinct)
    parameters = random_layers(config, len(labels), generator)
    if settings.learn_vectors or vectors is None:
        parameters["vectors"] = start.clone()
    objective = NetworkLoss(
        config,
        parameters,
        start,
        bags.take(learned),
        truth[learned],
        torch.from_numpy(balanced_weights(truth[learned], len(labels))) if settings.balanced else None,
        settings.word_dropout,
        settings.weight_decay,
        settings.seed,
    )
    per_epoch = math.ceil(len(learned) / settings.batch)
    training = TrainingConfig(
        per_epoch * settings.epochs,
        "adam",
        settings.rate,
        "late",
        evaluate_every=per_epoch,
        patience=settings.patience,
        max_seconds=settings.seconds,
    )
    chosen = np.flatnonzero(held)
    return Prepared(config, tuple(labels), table, objective, training, bags.take(chosen), truth[chosen], len(learned))


def fit_network(prepared: Prepared) -> Iterator[tuple[TrainingState, Step]]:
    """The training of a network in memory; the last state holds the result."""
    state = TrainingState(prepared.objective.parameters)
    for step in train(prepared.objective, prepared.batches, prepared.training, state, prepared.validate):
        yield state, step

"""Many deep averaging networks at once, on frozen word vectors: the engine of an ablation.

    x = Σ v(w) / n        over the n words w of a text that have a vector and were not dropped

and on x a network (`stacks`). Frozen vectors make the average of a text a fixed thing, computed once. Word dropout
takes each occurrence of a word away with probability p, and the average is that of what is left; a text that would lose
all its words keeps all. Every occurrence gets one random mark in [0, 1) and is dropped at p when its mark is below p.
So what is dropped at 0.2 is dropped at 0.3 too, and the sums for all p together cost less than one pass over the text:

    sum(p₂) = sum(p₁) − Σ v(w)    over the occurrences with p₁ ≤ mark < p₂

Common random numbers: the marks and the order of the texts depend on seed and epoch alone, the first weights on seed,
layer and shape. Cells of one seed thus differ in nothing but what the grid names, and differences are taken seed by
seed. Each stack of networks is trained by one thread, so the figures are the same on any number of cores.

Inputs are not standardised unless told so: as published. Marks have 16 bits, so p is met to 1/65,536.
Iyyer, Manjunatha, Boyd-Graber and Daumé III (2015), Deep unordered composition rivals syntactic methods.
Left out: vectors that learn (the average would change with every step).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby, product
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from inkling.errors import UsageError
from inkling.studies.stacks import ACTIVATIONS, Stack
from inkling.text.vectors import WordVectors, hash_spellings
from inkling.text.words import find_words

Ids = NDArray[np.int32]
Places = NDArray[np.int64]
Marks = NDArray[np.uint16]
OnProgress = Callable[[int, int], None]  # trainings × epochs: done, of how many

STACK = 6  # networks side by side: their activations for one batch stay in the processor's cache
MARKS = 1 << 16
SATURATED_SLOPE = 0.05  # a fifth of the largest slope of the sigmoid, 1/4
WARM_UP_EPOCHS = 3  # left out of the fluctuation, for there the curve still climbs
MIXED = "+"  # relu+sigmoid: layers take turns
ORDER, DROPOUT = 1, 2  # what a generator is for, beside the 0 of `first_weights`


# ------------------------------------------------------------------------------------------------------- the texts


@dataclass(frozen=True, eq=False)
class Bags:
    """The words of texts that have a vector, as rows of the matrix of vectors, text after text; and the classes.

    Every occurrence stands for itself, in the order of the text, for each has a mark of its own; `models.bags` counts.
    """

    ids: Ids  # one for each occurrence
    offsets: Places  # texts + 1
    truth: Places  # texts

    def __len__(self) -> int:
        return len(self.truth)


@dataclass(frozen=True, eq=False)
class Material:
    """What the networks on one file of vectors learn from and are judged by."""

    vectors: NDArray[np.float32]  # V×D
    train: Bags
    held_out: Bags
    test: Bags


def bag_of_vectors(parts: Sequence[tuple[Sequence[str], Places]], vectors: WordVectors) -> list[Bags]:
    """The known words of each part, which is texts and their classes. Of two equal spellings the first row counts."""
    rows, hashes = hash_spellings(vectors)
    order = np.argsort(hashes, kind="stable")
    rows, hashes = rows[order], hashes[order]
    bags = []
    for texts, truth in parts:
        words = find_words(texts)
        places = np.minimum(np.searchsorted(hashes, words.hashes), len(hashes) - 1)
        known = hashes[places] == words.hashes
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(known)])[words.offsets]
        bags.append(Bags(rows[places[known]].astype(np.int32), offsets, truth))
    return bags


def averages(bags: Bags, vectors: Tensor) -> tuple[Tensor, Tensor]:
    """The sum of the vectors of each text (T×D) and how many they are (T)."""
    sums = _sums(bags.ids, bags.offsets[:-1], vectors)
    return sums, torch.from_numpy(np.diff(bags.offsets)).to(vectors.dtype)


def thin_averages(
    bags: Bags, vectors: Tensor, sums: Tensor, counts: Tensor, dropouts: Sequence[float], marks: Marks
) -> Tensor:
    """The averages (P×T×D) of what is left at each of the `dropouts`, which ascend; `marks` is one for each word."""
    found = torch.empty((len(dropouts), *sums.shape), dtype=sums.dtype)
    lost, lost_count = torch.zeros_like(sums), torch.zeros_like(counts)
    below = 0
    for i, dropout in enumerate(dropouts):
        limit = round(dropout * MARKS)
        if limit > below:
            dropped = np.flatnonzero((marks >= below) & (marks < limit) if below else marks < limit)
            starts = np.searchsorted(dropped, bags.offsets)
            lost += _sums(bags.ids[dropped], starts[:-1], vectors)
            lost_count += torch.from_numpy(np.diff(starts)).to(counts.dtype)
            below = limit
        left = counts - lost_count
        torch.sub(sums, lost, out=found[i])
        empty = left == 0
        found[i][empty] = sums[empty]
        found[i] /= torch.where(empty, counts, left).clamp_(min=1)[:, None]
    return found


def _sums(ids: Ids, starts: Places, vectors: Tensor) -> Tensor:
    if not len(ids):
        return torch.zeros((len(starts), vectors.shape[1]), dtype=vectors.dtype)
    return torch.nn.functional.embedding_bag(
        torch.from_numpy(ids.astype(np.int64)), vectors, torch.from_numpy(starts), mode="sum"
    )


# -------------------------------------------------------------------------------------------------------- the grid


@dataclass(frozen=True)
class Cell:
    """One training of a grid. `activation` is a name, or several joined by + that the layers take in turn."""

    depth: int
    activation: str
    word_dropout: float
    width: int
    vectors: str
    seed: int

    @property
    def layers(self) -> tuple[str, ...]:
        """The activation of each hidden layer."""
        names = self.activation.split(MIXED)
        return tuple(names[layer % len(names)] for layer in range(self.depth))

    @property
    def network(self) -> tuple[Any, ...]:
        """What is trained: equal for cells that are one and the same network, as all without a hidden layer are."""
        return self.layers, self.width if self.depth else 0, self.word_dropout, self.vectors


@dataclass(frozen=True)
class GridConfig:
    """How every cell is trained. `standardise`: each dimension of the averages to mean 0 and deviation 1 first."""

    epochs: int = 20
    batch: int = 100
    rate: float = 0.001
    standardise: bool = False


@dataclass(frozen=True, eq=False)
class CellResult:
    """Accuracies are shares, one after each epoch. `right` holds one bit for each test text, after the last epoch;
    `right_chosen` the same after the epoch that held-out text chose."""

    cell: Cell
    test_accuracy: tuple[float, ...]
    held_out_accuracy: tuple[float, ...]
    right: NDArray[np.uint8]  # packed
    right_chosen: NDArray[np.uint8]
    saturation: float | None  # of sigmoid units, over units and training texts, at the end

    @property
    def chosen_epoch(self) -> int:
        """The epoch, from 1, that is best on held-out text; the first of equals."""
        return 1 + int(np.argmax(self.held_out_accuracy))

    @property
    def chosen_accuracy(self) -> float:
        return self.test_accuracy[self.chosen_epoch - 1]

    @property
    def fluctuation(self) -> float:
        """In points of test accuracy: the standard deviation of the curve's noise around a locally straight course.

        √(mean (aₜ₊₁ − 2aₜ + aₜ₋₁)² / 6) over the epochs after the first three. A straight climb gives zero, and
        independent noise of deviation σ gives σ. NaN with fewer than six epochs.
        """
        curve = 100 * np.array(self.test_accuracy[WARM_UP_EPOCHS:])
        return float(np.sqrt(np.mean(np.diff(curve, 2) ** 2) / 6)) if len(curve) >= 3 else float("nan")


def grid(
    depths: Sequence[int],
    activations: Sequence[str],
    dropouts: Sequence[float],
    widths: Sequence[int],
    vectors: Sequence[str],
    seeds: int,
) -> tuple[Cell, ...]:
    """Every combination, each once, seed after seed."""
    for name, values in (("depths", depths), ("activations", activations), ("dropouts", dropouts), ("widths", widths)):
        if not values:
            raise UsageError(f"No {name} were given; name at least one.")
    for depth in depths:
        if not 0 <= depth <= 20:
            raise UsageError(f"A depth of {depth} was given; give a number of hidden layers from 0 to 20.")
    for activation in activations:
        for name in activation.split(MIXED):
            if name not in ACTIVATIONS:
                raise UsageError(
                    f"The activation '{name}' is unknown; give {', '.join(ACTIVATIONS)}, or several joined by +."
                )
    for dropout in dropouts:
        if not 0 <= dropout < 1:
            raise UsageError(f"A word dropout of {dropout:g} was given; give a share from 0 to below 1.")
    for width in widths:
        if not 1 <= width <= 10_000:
            raise UsageError(f"A width of {width} was given; give a number of units from 1 to 10,000.")
    if seeds < 1:
        raise UsageError(f"{seeds} seeds were asked for; give at least 1.")
    combinations = product(range(seeds), vectors, depths, widths, activations, dropouts)
    cells = (
        Cell(depth, activation, dropout, width, name, seed)
        for seed, name, depth, width, activation, dropout in combinations
    )
    return tuple(dict.fromkeys(cells))


def train_grid(
    cells: Sequence[Cell],
    materials: Mapping[str, Material],
    classes: int,
    config: GridConfig,
    on_progress: OnProgress = lambda done, total: None,
) -> Iterator[tuple[CellResult, ...]]:
    """Trains the cells and gives the results of each group of one seed and one file of vectors as it is finished."""
    threads = torch.get_num_threads()
    total = len(cells) * config.epochs
    done = 0
    groups = groupby(sorted(cells, key=_group), key=_group)
    with ThreadPoolExecutor(threads, "inkling", torch.set_num_threads, (1,)) as pool:
        try:
            for (_, name), members in groups:
                group = list(members)
                training = _Group(group, materials[name], classes, config, pool)
                for _ in range(config.epochs):
                    training.epoch()
                    done += len(group)
                    on_progress(done, total)
                yield training.results()
        finally:
            pool.shutdown(cancel_futures=True)  # after an interruption nobody waits for what had not begun
            torch.set_num_threads(threads)  # a pool's thread changes what later threads begin with


def _group(cell: Cell) -> tuple[int, str]:
    return cell.seed, cell.vectors


class _Group:
    """The cells of one seed on one file of vectors: they share the averages of every epoch."""

    def __init__(
        self, cells: Sequence[Cell], material: Material, classes: int, config: GridConfig, pool: ThreadPoolExecutor
    ) -> None:
        self.config, self.pool, self.seed = config, pool, cells[0].seed
        self.train = material.train
        self.vectors = torch.tensor(material.vectors)  # a copy: those of a file are mapped, and cannot be written to
        self.dropouts = sorted({cell.word_dropout for cell in cells})
        self.sums, self.counts = averages(self.train, self.vectors)
        plain = self.sums / self.counts.clamp(min=1)[:, None]
        self.centre, self.scale = torch.zeros(plain.shape[1]), torch.ones(plain.shape[1])
        if config.standardise:  # in double precision: a sum of floats would depend on the number of threads
            self.centre = torch.from_numpy(plain.numpy().mean(axis=0, dtype=np.float64)).float()
            self.scale = torch.from_numpy(plain.numpy().std(axis=0, dtype=np.float64)).float().clamp(min=1e-6)
        self.plain = (plain - self.centre) / self.scale
        self.truth = torch.nn.functional.one_hot(torch.from_numpy(self.train.truth), classes).t().float()
        self.judged = []
        for bags in (material.held_out, material.test):
            sums, counts = averages(bags, self.vectors)
            inputs = (sums / counts.clamp(min=1)[:, None] - self.centre) / self.scale
            self.judged.append((inputs, torch.from_numpy(bags.truth)))
        ordered = sorted(cells, key=lambda c: (-c.depth * c.width, c.depth, c.layers, c.word_dropout))
        self.stacks: list[_Training] = []
        for _, members in groupby(ordered, key=lambda c: (c.depth, c.width)):
            alike = list(members)
            for first in range(0, len(alike), STACK):
                self.stacks.append(_Training(alike[first : first + STACK], self, classes))
        self.epochs = 0
        self.next = pool.submit(self._inputs, 0)

    def epoch(self) -> None:
        """Trains every stack for one epoch and judges it, while the averages of the next are made."""
        self.epochs += 1
        inputs, truth = self.next.result()
        if self.epochs < self.config.epochs:
            self.next = self.pool.submit(self._inputs, self.epochs)
        for future in [self.pool.submit(stack.epoch, inputs, truth) for stack in self.stacks]:
            future.result()

    def _inputs(self, epoch: int) -> tuple[Tensor, Tensor]:
        """The averages (P×T×D) of an epoch and the classes (C×T), both in the order of that epoch."""
        generator = np.random.default_rng([self.seed, DROPOUT, epoch])
        marks = generator.integers(0, MARKS, len(self.train.ids), np.uint16)
        thinned = thin_averages(self.train, self.vectors, self.sums, self.counts, self.dropouts, marks)
        order = torch.from_numpy(np.random.default_rng([self.seed, ORDER, epoch]).permutation(len(self.train)))
        return thinned[:, order].sub_(self.centre).div_(self.scale), self.truth[:, order]

    def results(self) -> tuple[CellResult, ...]:
        found = [result for part in self.pool.map(_Training.results, self.stacks) for result in part]
        return tuple(sorted(found, key=lambda r: (r.cell.depth, r.cell.width, r.cell.activation, r.cell.word_dropout)))


class _Training:
    """One stack of a group, and how it does."""

    def __init__(self, cells: Sequence[Cell], group: _Group, classes: int) -> None:
        self.cells, self.group = cells, group
        inputs = [group.dropouts.index(cell.word_dropout) for cell in cells]
        # A stack with a network for each dropout takes the averages as they lie.
        self.inputs = None if inputs == list(range(len(group.dropouts))) else torch.tensor(inputs)
        dimension = group.vectors.shape[1]
        self.stack = Stack(
            [cell.layers for cell in cells],
            [cell.seed for cell in cells],
            dimension,
            cells[0].width,
            classes,
            group.config.rate,
        )
        self.curves: list[list[Tensor]] = [[], []]
        self.right = torch.empty(0)
        self.right_chosen = torch.empty(0)

    def epoch(self, inputs: Tensor, truth: Tensor) -> None:
        batch = self.group.config.batch
        with torch.inference_mode():
            for x, y in zip(torch.split(inputs, batch, 1), torch.split(truth, batch, 1), strict=True):
                self.stack.step(x if self.inputs is None else x[self.inputs], y)
            for curve, (texts, labels) in zip(self.curves, self.group.judged, strict=True):
                self.right = self.stack.predict(texts) == labels
                curve.append(self.right.double().mean(1))
        held_out = torch.stack(self.curves[0])
        is_best = held_out.argmax(0) == len(held_out) - 1  # the first of equals stays
        if len(held_out) == 1:
            self.right_chosen = self.right.clone()
        self.right_chosen[is_best] = self.right[is_best]

    def results(self) -> list[CellResult]:
        with torch.inference_mode():
            saturation = self.stack.saturation(self.group.plain, SATURATED_SLOPE)
        held_out, test = (torch.stack(curve, 1).tolist() for curve in self.curves)
        bits, chosen_bits = (np.packbits(right.numpy(), axis=1) for right in (self.right, self.right_chosen))
        return [
            CellResult(cell, tuple(test[i]), tuple(held_out[i]), bits[i], chosen_bits[i], saturation[i])
            for i, cell in enumerate(self.cells)
        ]

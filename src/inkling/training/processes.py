"""Several processes of one computer that train as one (`torchrun --nproc-per-node 2`).

    g = Σᵣ gᵣ / Σᵣ tokensᵣ

Process r of R takes the rows r, r + R, r + 2R … of every batch and works out a sum of nats, its tokens, and the
gradient of the sum. Sums are added over the processes, and divided once, by all tokens: rows may be of any lengths, and
the step is that of one process with the whole batch, up to rounding. Every process then takes the same step with the
same numbers, so parameters are never sent. The first process holds the clock, judges held-out text, writes and talks;
the others are told its seconds and its figures, and so stop when it does.

    with joined() as processes:
        rows = lambda step: batch(step)[processes.rows(BATCH)]
        for step in train(objective, rows, config, state, validate, processes):
            if processes.leads: ...

Processes meet over the loopback interface only. Left out: several computers; objectives that carry a memory from batch
to batch (each process would have its own, and a checkpoint only the first's); leaving the loop in one process only,
after which the others wait for it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor

from inkling.errors import InklingError, UsageError
from inkling.training.state import Parameters, TrainingState

LOOPBACK = "127.0.0.1"
PATIENCE = timedelta(hours=1)  # with the others, while the first one judges held-out text


@dataclass(frozen=True)
class Processes:
    """One of `count` processes, as seen from inside: that with number `rank`."""

    rank: int = 0
    count: int = 1
    group: Any = field(default=None, repr=False, compare=False)  # the line to the others: a ProcessGroupGloo

    def __post_init__(self) -> None:
        if not 0 <= self.rank < self.count:
            raise UsageError(
                f"This is process {self.rank} of {self.count}; processes count from 0 to one below their number: "
                "start them with `torchrun --nproc-per-node N`."
            )

    @classmethod
    def of_environment(cls, environment: Mapping[str, str]) -> Processes:
        """What torchrun's variables say; one process where they say nothing."""

        def read(name: str, otherwise: int) -> int:
            text = environment.get(name, str(otherwise))
            if not text.isdecimal():
                raise UsageError(f"{name} is {text!r} in the environment; give a whole number, or unset it.")
            return int(text)

        count = read("WORLD_SIZE", 1)
        here = read("LOCAL_WORLD_SIZE", count)
        if here != count:
            raise UsageError(
                f"{here} of {count} processes are on this computer; start them all here, with "
                "`torchrun --nproc-per-node N`."
            )
        return cls(read("RANK", 0), count)

    @property
    def leads(self) -> bool:
        return self.rank == 0

    def rows(self, count: int) -> slice:
        """Which of the `count` rows of a batch are this process's: every one is somebody's, and nobody has none."""
        if count < self.count:
            raise UsageError(
                f"A batch of {count} rows cannot be shared by {self.count} processes; give a larger --batch."
            )
        return slice(self.rank, count, self.count)

    def add_up(self, parameters: Parameters, nats: float, tokens: float) -> tuple[float, float]:
        """Makes `.grad` of all parameters the sum over the processes, and gives back the sums of nats and tokens."""
        if self.count == 1:
            return nats, tokens
        gradients = []
        for parameter in parameters.values():
            assert parameter.grad is not None
            gradients.append(parameter.grad.reshape(-1))
        flat = torch.cat(gradients)
        self._add(flat)
        for parameter, piece in zip(parameters.values(), torch.split(flat, list(map(len, gradients))), strict=True):
            parameter.grad = piece.view(parameter.shape).to(parameter.dtype)
        sums = torch.tensor([nats, tokens], dtype=torch.float64)
        self._add(sums)
        return float(sums[0]), float(sums[1])

    def from_first(self, *numbers: float) -> tuple[float, ...]:
        """The numbers that the first process gave; those of the others are only there for their count."""
        if self.count == 1:
            return numbers
        told = torch.tensor(numbers, dtype=torch.float64)
        self._send(told)
        return tuple(told.tolist())

    def tell(self, text: str) -> str:
        """The text that the first process gave; what the others give is not looked at."""
        if self.count == 1:
            return text
        content = torch.tensor(list(text.encode()), dtype=torch.uint8)
        (size,) = self.from_first(len(content))
        if not self.leads:
            content = torch.zeros(int(size), dtype=torch.uint8)
        if size:
            self._send(content)
        return bytes(content.tolist()).decode()

    def check_memory(self, memory: Parameters) -> None:
        """Refuses what only one process can train."""
        if self.count > 1 and memory:
            raise UsageError(
                f"This model carries a memory from batch to batch, which {self.count} processes cannot share; train it "
                "in one process."
            )

    def check(self, state: TrainingState) -> None:
        """Refuses to go on where the processes would not be one training."""
        if self.count == 1:
            return
        self.check_memory(state.memory)
        mark = _mark(state)
        marks = torch.zeros(self.count, dtype=torch.float64)
        marks[self.rank] = mark
        self._add(marks)
        if set(marks.tolist()) != {float(mark)}:
            raise InklingError(
                f"The {self.count} processes do not start from the same parameters and step; give them all the same "
                "seed, text and checkpoint."
            )

    @property
    def _line(self) -> Any:
        if self.group is None:
            raise UsageError(f"This process has not met the other {self.count - 1}; use `with joined() as processes`.")
        return self.group

    def _add(self, numbers: Tensor) -> None:
        line = self._line
        self._met(lambda: line.allreduce([numbers]))

    def _send(self, numbers: Tensor) -> None:
        line = self._line
        self._met(lambda: line.broadcast(numbers, 0))

    def _met(self, begun: Callable[[], Any]) -> None:
        """Waits for the others; a sentence where one of them is gone."""
        try:
            begun().wait()
        except RuntimeError as error:  # what gloo makes of a closed line, and of one that was silent for too long
            raise InklingError(
                f"Process {self.rank} of {self.count} has lost the others, because one of them ended; the last "
                "checkpoint is kept: see what that one said, and go on with `inkling resume`."
            ) from error


ALONE = Processes()


@contextmanager
def joined(environment: Mapping[str, str] | None = None, meeting: str = "env://") -> Iterator[Processes]:
    """Meets the other processes, if the environment tells of any, and leaves them at the end.

    `meeting` is where: what torchrun arranged, or a new file that all can write (`file:///…`). torch's own way to meet
    (`init_process_group`) keeps the group in a global and lets it listen wherever the computer's name points.
    """
    processes = Processes.of_environment(os.environ if environment is None else environment)
    if processes.count == 1:
        yield processes
        return
    from torch.distributed.rendezvous import rendezvous

    gloo: Any = torch.distributed.ProcessGroupGloo
    store, _, _ = next(rendezvous(meeting, processes.rank, processes.count))
    options = gloo._Options()
    options._devices, options._timeout = [gloo.create_device(hostname=LOOPBACK)], PATIENCE
    group = gloo(store, processes.rank, processes.count, options)
    yield replace(processes, group=group)


def _mark(state: TrainingState) -> int:
    """A number that is the same for the same state, and fits a float64."""
    found = hashlib.blake2b(f"{state.scalars()}".encode(), digest_size=6)
    for name, value in sorted(state.tensors().items()):
        found.update(name.encode())
        found.update(value.detach().reshape(-1).contiguous().view(torch.uint8).numpy().tobytes())
    return int.from_bytes(found.digest(), "big")

"""Keeping a training on disk while it happens: metrics, checkpoints, the end.

Steps are logged in groups of `log_every` (sums, not means of means), and checkpoints are taken only where a group
ends, so that a run that was interrupted and resumed logs the same lines as one that was not.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from inkling.errors import InklingError
from inkling.runs.run import Checkpoint, Run
from inkling.training.loop import Parameters, Step, TrainingState


@dataclass
class Recorder:
    """Writes what a training yields. `plain` turns the trained parameters into those of the model."""

    run: Run
    state: TrainingState
    plain: Callable[[Parameters], Mapping[str, Tensor]]
    log_every: int = 1
    save_every_seconds: float = 20.0
    _nats: float = field(default=0.0, init=False)
    _tokens: float = field(default=0.0, init=False)

    def record(self, steps: Iterator[Step]) -> Iterator[Step]:
        """Passes the steps on, writing them down. Ctrl-C, or a caller who takes no more, saves what there is."""
        saved, logged = time.monotonic(), self.state.step
        try:
            for step in steps:
                self._nats += step.nats
                self._tokens += step.tokens
                if step.step % self.log_every == 0 or self.state.finished:
                    self.run.log(self._row(step))
                    self._nats = self._tokens = 0.0
                    logged = step.step
                    if self.state.finished or time.monotonic() - saved >= self.save_every_seconds:
                        self.save()
                        saved = time.monotonic()
                yield step
        except (KeyboardInterrupt, GeneratorExit):
            # Only between steps and where a group was logged: from anywhere else, going on would log other lines.
            if self.state.settled and self.state.step == logged:
                self.save()
            self.run.update(state="interrupted")
            raise
        except Exception:
            self.run.update(state="failed")
            raise

    def save(self) -> None:
        self.run.save(checkpoint(self.state, self.plain))

    def _row(self, step: Step) -> dict[str, Any]:
        row: dict[str, Any] = {
            "step": step.step,
            "nats": self._nats,
            "tokens": self._tokens,
            "rate": step.rate,
            "seconds": round(step.seconds, 4),
        }
        if step.held_out_nats is not None:
            row |= {"held_out_nats_per_token": step.held_out_nats, "best": step.best}
        return row


def checkpoint(state: TrainingState, plain: Callable[[Parameters], Mapping[str, Tensor]]) -> Checkpoint:
    scalars = {name: None if value == math.inf else value for name, value in state.scalars().items()}
    return Checkpoint(state.step, dump(plain(state.chosen())), dump(state.tensors()), scalars)


def restore(run: Run, state: TrainingState, plain: Callable[[Parameters], Mapping[str, Tensor]]) -> None:
    """Puts `state` where the newest checkpoint left off, and the metrics with it."""
    take_up(run, state, plain)
    run.rewind(state.step)
    run.update(state="running")


def take_up(run: Run, state: TrainingState, plain: Callable[[Parameters], Mapping[str, Tensor]]) -> None:
    """Puts `state` where the newest checkpoint left off, and changes nothing on disk.

    `plain` must make the same model of it as it did then: it may rest on vectors that were read or worked out anew.
    """
    import json

    folder = run.newest()
    scalars = json.loads((folder / "state.json").read_text(encoding="utf-8"))
    scalars["best_nats"] = math.inf if scalars["best_nats"] is None else scalars["best_nats"]
    state.restore(read((folder / "state.safetensors").read_bytes()), scalars)
    model, found = read((folder / "model.safetensors").read_bytes()), plain(state.chosen())
    if not all(
        found[name].shape == value.shape and torch.allclose(found[name], value, rtol=1e-3, atol=1e-3)
        for name, value in model.items()
    ):
        raise InklingError(
            f"{run.path} cannot go on here: from the same text, other numbers come out than when it was trained "
            "(another file of vectors, or another kind of computer); put the old vectors back, or train anew."
        )


def dump(tensors: Mapping[str, Tensor]) -> bytes:
    from safetensors.torch import save

    return save({name: value.detach().contiguous().clone() for name, value in tensors.items()})


def read(content: bytes) -> dict[str, Tensor]:
    from safetensors.torch import load

    return load(content)

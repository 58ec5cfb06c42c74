"""What a training must remember to go on as if nothing had happened. Its bytes on disk are the business of `runs`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from inkling.errors import InklingError

Parameters = dict[str, Tensor]


@dataclass
class TrainingState:
    """All that a checkpoint must hold. The tensors are the live ones."""

    parameters: Parameters
    step: int = 0
    seconds: float = 0.0
    moments: dict[str, Tensor] = field(default_factory=dict)  # "parameter.mean", ".square" (Adam), ".momentum" (Muon)
    best: Parameters = field(default_factory=dict)
    memory: Parameters = field(default_factory=dict)  # of the objective; it changes them where they are
    best_nats: float = math.inf
    stale: int = 0  # evaluations since the best one
    finished: bool = False
    settled: bool = True  # False within a step, while some of the above is old and some new: not to be saved
    recent: tuple[
        float, ...
    ] = ()  # nats per token of the last steps that were no spikes; kept where spikes are watched
    above: int = 0  # spikes in a row, up to the last step

    def tensors(self) -> dict[str, Tensor]:
        groups = {"parameters": self.parameters, "moments": self.moments, "best": self.best, "memory": self.memory}
        if self.recent:
            groups["recent"] = {"nats_per_token": torch.tensor(self.recent, dtype=torch.float64)}
        return {f"{group}/{name}": value for group, values in groups.items() for name, value in values.items()}

    def scalars(self) -> dict[str, float | int | bool]:
        return {
            "step": self.step,
            "seconds": self.seconds,
            "best_nats": self.best_nats,
            "stale": self.stale,
            "finished": self.finished,
            "above": self.above,
        }

    def restore(self, tensors: Mapping[str, Tensor], scalars: Mapping[str, float]) -> None:
        """Takes the place that `tensors` and `scalars` describe; the parameters are overwritten where they are."""
        groups: dict[str, dict[str, Tensor]] = {"parameters": {}, "moments": {}, "best": {}, "memory": {}, "recent": {}}
        for name, value in tensors.items():
            group, _, rest = name.partition("/")
            groups[group][rest] = value.clone()
        for group, live in (("parameters", self.parameters), ("memory", self.memory)):
            if {n: v.shape for n, v in groups[group].items()} != {n: v.shape for n, v in live.items()}:
                raise InklingError("The checkpoint has other parameters than this configuration makes; train anew.")
            for name, value in groups[group].items():
                live[name].data.copy_(value)
        self.moments, self.best = groups["moments"], groups["best"]
        self.step, self.stale = int(scalars["step"]), int(scalars["stale"])
        self.seconds, self.best_nats = float(scalars["seconds"]), float(scalars["best_nats"])
        self.finished = bool(scalars["finished"])
        self.recent = tuple(groups["recent"].get("nats_per_token", torch.zeros(0)).tolist())
        self.above = int(scalars.get("above", 0))  # checkpoints from before spikes were counted have none

    def chosen(self) -> Parameters:
        """The best parameters by held-out text, or the current ones if none were judged."""
        return self.best or self.parameters

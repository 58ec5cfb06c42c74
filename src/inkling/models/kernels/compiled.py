"""The parts of a training step by compiled C: float32 in memory without gaps, one thread a call, others may run."""

from __future__ import annotations

import ctypes
from pathlib import Path
from threading import local
from typing import Any

import torch
from torch import Tensor

from inkling.models.kernels.contract import Heads

_LONG, _POINTER, _FLOAT, _INT, _WORD = (
    ctypes.c_long,
    ctypes.c_void_p,
    ctypes.c_float,
    ctypes.c_int,
    ctypes.c_uint32,
)
_ATTENTION = [*[_LONG] * 5, _FLOAT, *[_POINTER] * 4]
SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "norm": (None, [*[_POINTER] * 3, _LONG, _LONG, _FLOAT]),
    "norm_back": (None, [*[_POINTER] * 4, _LONG, _LONG, _INT]),
    "gate": (None, [_POINTER, _POINTER, _LONG, _LONG]),
    "gate_back": (None, [_POINTER, _POINTER, _LONG, _LONG]),
    "squared": (None, [_POINTER, _POINTER, _LONG]),
    "squared_back": (None, [_POINTER, _POINTER, _LONG]),
    "cross_entropy": (ctypes.c_double, [_POINTER, _POINTER, _LONG, _LONG]),
    "drop": (None, [*[_POINTER] * 3, _LONG, _LONG, _WORD, _WORD, _FLOAT, _INT]),
    "pick_rows": (None, [*[_POINTER] * 3, _LONG, _LONG, _INT]),
    "add_rows": (None, [*[_POINTER] * 3, _LONG, _LONG]),
    "attend_scratch": (_LONG, [_LONG, _LONG]),
    "attend": (None, [*[_POINTER] * 4, *_ATTENTION]),
    "attend_back": (None, [*[_POINTER] * 5, *_ATTENTION, _POINTER, _POINTER]),
}


class CompiledParts:
    """Contract Parts, from a library that was compiled from transformer.c."""

    def __init__(self, library: Path) -> None:
        loaded = ctypes.CDLL(str(library))
        for name, (result, arguments) in SIGNATURES.items():
            function = getattr(loaded, name)
            function.restype, function.argtypes = result, arguments
        self._library: Any = loaded
        self._own = local()  # scratch memory, for each thread its own

    def norm(self, x: Tensor, y: Tensor, r: Tensor, epsilon: float) -> None:
        self._library.norm(*_at(x, y, r), *x.shape, epsilon)

    def norm_back(self, d_y: Tensor, y: Tensor, r: Tensor, d_x: Tensor, add: bool) -> None:
        self._library.norm_back(*_at(d_y, y, r, d_x), *y.shape, add)

    def gate(self, h: Tensor, out: Tensor) -> None:
        self._library.gate(*_at(h, out), *out.shape)

    def gate_back(self, d_out: Tensor, h: Tensor) -> None:
        self._library.gate_back(*_at(d_out, h), *d_out.shape)

    def squared(self, h: Tensor, out: Tensor) -> None:
        self._library.squared(*_at(h, out), h.numel())

    def squared_back(self, d_out: Tensor, h: Tensor) -> None:
        self._library.squared_back(*_at(d_out, h), h.numel())

    def cross_entropy(self, logits: Tensor, targets: Tensor) -> float:
        return float(self._library.cross_entropy(*_at(logits, targets), *logits.shape))

    def drop(self, x: Tensor, out: Tensor, places: Tensor, key: int, share: float, add: bool) -> None:
        self._library.drop(*_at(x, out, places), *x.shape, key, int(share * 2**32), 1 / (1 - share), add)

    def pick_rows(self, table: Tensor, rows: Tensor, out: Tensor, add: bool) -> None:
        self._library.pick_rows(*_at(table, rows, out), *out.shape, add)

    def add_rows(self, x: Tensor, rows: Tensor, table: Tensor) -> None:
        self._library.add_rows(*_at(x, rows, table), *x.shape)

    def attend(self, shape: Heads, qkv: Tensor, out: Tensor, sums: Tensor) -> Any:
        self._library.attend(*_at(qkv, out, sums, self._scratch(shape)), *_shape(shape))
        return sums

    def attend_back(
        self, shape: Heads, qkv: Tensor, out: Tensor, d_out: Tensor, kept: Any, d_gains: tuple[Tensor, Tensor] | None
    ) -> None:
        memory = _at(qkv, out, d_out, kept, self._scratch(shape))
        self._library.attend_back(*memory, *_shape(shape), *(_at(*d_gains) if d_gains else (None, None)))

    def _scratch(self, shape: Heads) -> Tensor:
        needed: int = self._library.attend_scratch(shape.times, shape.width)
        scratch: Tensor | None = getattr(self._own, "scratch", None)
        if scratch is None or len(scratch) < needed:
            scratch = self._own.scratch = torch.empty(needed)
        return scratch


def _at(*tensors: Tensor) -> list[int]:
    return [tensor.data_ptr() for tensor in tensors]


def _shape(shape: Heads) -> tuple[Any, ...]:
    gains = [None if gain is None else gain.data_ptr() for gain in (shape.q_gain, shape.k_gain)]
    sizes = (shape.texts, shape.times, shape.heads, shape.key_heads, shape.width)
    return *sizes, shape.epsilon, *_at(shape.cosine, shape.sine), *gains

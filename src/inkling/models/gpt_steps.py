"""Steps of the transformer by compiled C (kernels/steps.c): one call for a token through all layers.

In numpy a step of one text is some eighty small calls, and one of many texts goes through memory more often than it
must. The compiled step takes float32 only. What it gives does not depend on the texts beside, to the bit.

`CompiledSteps` packs the weights once, as steps.c wants them, which costs their memory a second time.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from threading import local
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from inkling.models.gru import share_out
from inkling.models.kernels import library_of

if TYPE_CHECKING:
    from inkling.models.gpt_fused import Array, FusedGPT

SOURCE = Path(__file__).parent / "kernels" / "steps.c"
SHARED_ROWS = 8  # texts of one thread, at least: fewer wait for weights rather than for sums


class _Sizes(ctypes.Structure):
    """`sizes_t` of steps.c."""

    _fields_ = (
        *((name, ctypes.c_long) for name in ("layers", "dimension", "heads", "key_heads", "width", "mlp")),
        *((name, ctypes.c_long) for name in ("vocabulary", "context", "wide", "qkv_wide", "inner_wide")),
        *((name, ctypes.c_long) for name in ("output_wide", "gated")),
        ("epsilon", ctypes.c_float),
    )


def open_library(kept: bool) -> Any:
    """The compiled functions; None where there is no compiler, or, with `kept`, where none has compiled them yet."""
    place = library_of(SOURCE, kept)
    if place is None:
        return None
    library = ctypes.CDLL(str(place))
    library.panel.restype, library.panel.argtypes = ctypes.c_long, []
    library.scratch.restype, library.scratch.argtypes = ctypes.c_long, [ctypes.c_void_p]
    library.step.restype = None
    library.step.argtypes = [*[ctypes.c_void_p] * 9, ctypes.c_long, ctypes.c_long]
    return library


class CompiledSteps:
    """The weights of a model, packed, and steps with them."""

    def __init__(self, library: Any, model: FusedGPT) -> None:
        self._library, self._model, self._panel = library, model, int(library.panel())
        arrays: list[Array | None] = []
        for qkv, gain, o, inner, down in model.arrays:
            arrays += [self._packed(qkv), gain, self._packed(o), self._packed(inner), self._packed(down)]
        arrays += [self._packed(model.output.numpy()), model.turns.numpy()]
        self._arrays = arrays  # alive as long as their addresses
        addresses = [None if array is None else array.ctypes.data for array in arrays]
        self._weights, self._turns = (ctypes.c_void_p * (len(arrays) - 1))(*addresses[:-1]), addresses[-1]
        self._sizes = self._sizes_of()
        self._needed = int(library.scratch(ctypes.addressof(self._sizes)))  # floats of scratch memory for a row
        self._own = local()  # scratch memory, for each thread its own

    def read_next(self, x: Array, places: Sequence[int], lies: Sequence[tuple[int, int, int]], workers: int) -> Array:
        """Log-probabilities (B×V) from the input (B×D) of one more token of each of B texts, and where each `lies`:
        the address of its first key, the floats from its keys to its values, and those from head to head."""
        B = len(places)
        scratch: Array | None = getattr(self._own, "scratch", None)
        if scratch is None or len(scratch) < B * self._needed:
            scratch = self._own.scratch = np.empty(B * self._needed, np.float32)
        where = np.array(lies, np.int64)  # B×3
        texts, strides = np.ascontiguousarray(where[:, 0]), np.ascontiguousarray(where[:, 1:])
        at, log_probs = np.array(places, np.int64), np.empty((B, self._sizes.vocabulary), np.float32)
        memory = [a.__array_interface__["data"][0] for a in (x, at, texts, strides, scratch, log_probs)]
        step = partial(self._library.step, ctypes.addressof(self._sizes), self._weights, self._turns, *memory)
        rows = max(SHARED_ROWS, -(-B // workers))
        share_out(workers, [partial(step, first, min(rows, B - first)) for first in range(0, B, rows)])
        return log_probs

    def _sizes_of(self) -> _Sizes:
        config, inner = self._model.config, self._model.arrays[0][3]
        return _Sizes(
            layers=config.layers,
            dimension=config.dimension,
            heads=config.heads,
            key_heads=config.key_heads,
            width=config.head_dimension,
            mlp=config.mlp,
            vocabulary=config.vocabulary,
            context=config.context,
            wide=self._wide(config.dimension),
            qkv_wide=self._wide((config.heads + 2 * config.key_heads) * config.head_dimension),
            inner_wide=self._wide(0 if inner is None else inner.shape[1]),
            output_wide=self._wide(config.vocabulary),
            gated=config.activation == "gated",
            epsilon=config.norm_epsilon,
        )

    def _wide(self, columns: int) -> int:
        return -(-columns // self._panel) * self._panel

    def _packed(self, matrix: Array | None) -> Array | None:
        """Some columns after the other, with zeros behind the last."""
        if matrix is None:
            return None
        inputs, columns = matrix.shape
        filled: NDArray[np.float32] = np.zeros((inputs, self._wide(columns)), np.float32)
        filled[:, :columns] = matrix
        return np.ascontiguousarray(filled.reshape(inputs, -1, self._panel).swapaxes(0, 1))

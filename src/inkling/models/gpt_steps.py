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
        *((name, ctypes.c_long) for name in ("vocabulary", "room", "rows", "wide", "qkv_wide", "inner_wide")),
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
    library.step.argtypes = [*[ctypes.c_void_p] * 8, ctypes.c_long, ctypes.c_long]
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
        self._sizes: dict[tuple[int, int], tuple[_Sizes, int]] = {}
        self._own = local()  # scratch memory, for each thread its own

    def read_next(self, x: Array, places: Sequence[int], keys_values: Array, workers: int) -> Array:
        """Log-probabilities (B×V) from the input (B×D) of one more token of each of B texts."""
        B = len(places)
        sizes, needed = self._sizes_of(B, keys_values.shape[4])
        scratch: Array | None = getattr(self._own, "scratch", None)
        if scratch is None or len(scratch) < needed:
            scratch = self._own.scratch = np.empty(needed, np.float32)
        at, log_probs = np.array(places, np.int64), np.empty((B, sizes.vocabulary), np.float32)
        memory = [array.__array_interface__["data"][0] for array in (x, at, keys_values, scratch, log_probs)]
        step = partial(self._library.step, ctypes.addressof(sizes), self._weights, self._turns, *memory)
        rows = max(SHARED_ROWS, -(-B // workers))
        share_out(workers, [partial(step, first, min(rows, B - first)) for first in range(0, B, rows)])
        return log_probs

    def _sizes_of(self, rows: int, room: int) -> tuple[_Sizes, int]:
        """And the floats of scratch memory."""
        found = self._sizes.get((rows, room))
        if found is None:
            config, inner = self._model.config, self._model.arrays[0][3]
            sizes = _Sizes(
                layers=config.layers,
                dimension=config.dimension,
                heads=config.heads,
                key_heads=config.key_heads,
                width=config.head_dimension,
                mlp=config.mlp,
                vocabulary=config.vocabulary,
                room=room,
                rows=rows,
                wide=self._wide(config.dimension),
                qkv_wide=self._wide((config.heads + 2 * config.key_heads) * config.head_dimension),
                inner_wide=self._wide(0 if inner is None else inner.shape[1]),
                output_wide=self._wide(config.vocabulary),
                gated=config.activation == "gated",
                epsilon=config.norm_epsilon,
            )
            found = self._sizes[rows, room] = sizes, rows * int(self._library.scratch(ctypes.addressof(sizes)))
        return found

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

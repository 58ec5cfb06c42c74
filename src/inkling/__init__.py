"""Inkling trains, measures and explains small neural text models on the computer you have.

>>> import inkling
>>> model = inkling.load("runs/bigram-shakespeare")        # doctest: +SKIP
>>> model.score(["To be, or not to be"])[0].nats.sum()     # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from inkling.hardware import guard

__version__ = "0.1.0"
__all__ = ["__version__", "load"]

guard()  # before anything can import torch

if TYPE_CHECKING:
    from inkling.runs.loading import load
else:

    def load(path):
        """The model of a run directory: `.score(texts)`, `.begin()`, `.step(state, token)`."""
        from inkling.runs.loading import load as load_run

        return load_run(path)

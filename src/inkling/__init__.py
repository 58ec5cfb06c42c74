"""Inkling trains, measures and explains small neural text models on the computer you have.

>>> import inkling
>>> model = inkling.load("runs/bigram-shakespeare")        # doctest: +SKIP
>>> model.score(["To be, or not to be"])[0].nats.sum()     # doctest: +SKIP
>>> inkling.DAN().fit(texts, labels).predict(["A fine film."])     # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from inkling.hardware import guard

__version__ = "0.1.0"
__all__ = ["DAN", "__version__", "load"]

guard()  # before anything can import torch

if TYPE_CHECKING:
    from inkling.estimator import DAN
    from inkling.runs.loading import load
else:

    def load(path):
        """The model of a run directory: `.score(texts)`, `.begin()`, `.step(state, token)`, or `.predict(texts)`."""
        from inkling.runs.loading import load as load_run

        return load_run(path)

    def __getattr__(name):
        """`inkling.DAN`, the classifier in scikit-learn's manner, imported when it is first asked for."""
        if name == "DAN":
            from inkling.estimator import DAN

            return DAN
        raise AttributeError(f"module 'inkling' has no attribute {name!r}")

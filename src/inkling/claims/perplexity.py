"""Claim C1: the base of the logarithm does not matter."""

from __future__ import annotations

import numpy as np

from inkling.claims.ledger import Claim, Context, Finding
from inkling.measure.tally import Tally


def base_does_not_matter(context: Context) -> Finding:
    """2^(bits/M) against e^(nats/M), from the probabilities themselves in each base."""
    generator = np.random.default_rng(1)
    worst = 0.0
    for _ in range(200):
        probabilities = generator.uniform(1e-6, 1.0, int(generator.integers(1, 500)))
        tokens = len(probabilities)
        by_bits = 2.0 ** (-np.log2(probabilities).sum() / tokens)
        by_nats = np.exp(-np.log(probabilities).sum() / tokens)
        tally = Tally(nats=float(-np.log(probabilities).sum()), tokens=tokens)
        for value in (by_bits, tally.perplexity(base=2.0), tally.perplexity(base=10.0), tally.perplexity()):
            worst = max(worst, abs(value / by_nats - 1))
    return Finding(
        f"200 random texts: bases 2, e and 10 differ by {worst:.1e} at most, relative",
        "holds" if worst <= 1e-12 else "fails",
        {"largest_relative_difference": worst},
    )


CLAIMS = (Claim("C1", "2^(−1/M Σ log₂ p) = e^(−1/M Σ ln p).", "", base_does_not_matter),)

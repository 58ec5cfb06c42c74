"""The mistakes of a classifier: what `inkling errors`, `inkling train dan --errors` and the demo share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from inkling.explain.errors import ErrorReport, diagnose
from inkling.explain.faithfulness import FRACTIONS, Faithfulness, deletion_curve
from inkling.explain.words import Explanation, explain, gradient_times_input
from inkling.models.dan import AveragingNetwork
from inkling.recipes.labelled_text import LabelledText

FAITHFULNESS_TEXTS = 200


def find_mistakes(
    network: AveragingNetwork,
    text: LabelledText,
    log_probs: NDArray[np.float64],
    *,
    name: str,
    text_name: str,
    rows: Sequence[int] | None = None,
    most: int = 50,
    on_explained: Callable[[int], None] = lambda texts: None,
) -> ErrorReport:
    """Every mistake with its reason. `rows` are the numbers to show, those of the file by default; `on_explained` hears
    how many texts have been explained so far."""
    done = 0

    def explain_some(places: Sequence[int]) -> list[Explanation]:
        nonlocal done
        done += len(places)
        on_explained(done)
        return explain(network, [text.texts[place] for place in places])

    return diagnose(
        network.labels,
        text.truth,
        log_probs,
        explain_some,
        lambda texts: network.log_probs(texts).numpy(),
        rows=text.number.tolist() if rows is None else rows,
        most=most,
        name=name,
        text_name=text_name,
    )


def measure_faithfulness(network: AveragingNetwork, texts: Sequence[str], seed: int) -> Faithfulness:
    """Deletion curves on texts evenly spaced among those given."""
    chosen = texts[:: -(-len(texts) // FAITHFULNESS_TEXTS)]
    return deletion_curve(
        lambda some: network.log_probs(some).numpy(),
        explain(network, chosen, sentences=False),
        FRACTIONS,
        np.random.default_rng(seed),
        {"gradient × input": gradient_times_input(network, chosen)},
    )

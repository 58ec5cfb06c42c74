"""The curves of a training, from its metrics."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from inkling.figures import Chart, Line

MOST_POINTS = 400


def training_chart(metrics: Sequence[Mapping[str, Any]], title: str = "Training") -> Chart:
    """Perplexity over steps: of the training text at each step, and of held-out text where it was measured.

    Of many steps, neighbours are taken together (sums divided once), so that a line has at most `MOST_POINTS` points.
    """
    group = -(-len(metrics) // MOST_POINTS) or 1
    trained = []
    for first in range(0, len(metrics), group):
        rows = metrics[first : first + group]
        mean = sum(row["nats"] for row in rows) / sum(row["tokens"] for row in rows)
        trained.append((rows[-1]["step"], math.exp(min(mean, 700))))
    judged = [
        (row["step"], math.exp(min(row["held_out_nats_per_token"], 700)))
        for row in metrics
        if row.get("held_out_nats_per_token") is not None
    ]
    lines = [
        Line(name, [x for x, _ in points], [y for _, y in points])
        for name, points in (("training text", trained), ("held-out text", judged))
        if points
    ]
    return Chart(
        title,
        "step",
        "perplexity per token",
        tuple(lines),
        reading="Lower is better. Training may be made harder on purpose (dropout, softened counts), so that its line "
        "can lie above the other; when the held-out line rises while training falls, the model learns by heart.",
        log_y=True,
    )

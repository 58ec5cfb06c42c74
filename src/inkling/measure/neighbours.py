"""What one can answer without a model, from training pairs alone: the baselines that a model has to beat.

    commonest    always the answer that most training pairs have; of equals the one that comes first
    nearest      the answer of the training question whose subject looks most alike; of equals the first

    likeness(x, y) = 2 |T(x) ∩ T(y)| / (|T(x)| + |T(y)|)       T: the different runs of three letters of " name "

The second knows that names of one country sound alike, and nothing else about anybody. Case is folded.
Dice (1945). Left out: weights for rare runs of letters, votes of several neighbours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from inkling.errors import InklingError
from inkling.measure.answers import Baseline
from inkling.text.questions import subject_of


def baselines(training: Sequence[tuple[str, str]], questions: Sequence[str]) -> tuple[Baseline, Baseline]:
    """Both, from pairs of question and answer; what questions are about is found in those of both sides together."""
    answers = [answer for _, answer in training]
    commonest = commonest_answer(answers)
    subjects = subject_of([*(question for question, _ in training), *questions])
    nearest = nearest_answers(subjects[len(training) :], subjects[: len(training)], answers)
    return Baseline(f"always '{commonest}'", (commonest,) * len(questions)), Baseline("nearest name", tuple(nearest))


def commonest_answer(answers: Sequence[str]) -> str:
    if not answers:
        raise InklingError("There are no training answers to find the commonest of; give at least one pair.")
    return Counter(answers).most_common(1)[0][0]  # of equals the one that was met first


def nearest_answers(subjects: Sequence[str], known: Sequence[str], answers: Sequence[str]) -> list[str]:
    """For each of `subjects` the answer that belongs to the one among `known` that looks most alike."""
    if not known or len(known) != len(answers):
        raise InklingError(
            f"{len(known)} known subjects and {len(answers)} answers were given; give an answer for each, and at least "
            "one."
        )
    runs = [trigrams(name) for name in known]
    sizes = np.array([len(one) for one in runs])
    holders: dict[str, list[int]] = {}
    for place, one in enumerate(runs):
        for run in one:
            holders.setdefault(run, []).append(place)
    found = []
    for name in subjects:
        own = trigrams(name)
        shared = np.zeros(len(known))
        for run in own:
            shared[holders.get(run, [])] += 1
        found.append(answers[int((2 * shared / (sizes + len(own))).argmax())])  # of equals the first
    return found


def trigrams(name: str) -> set[str]:
    """The different runs of three characters, with a space before and behind; at least one."""
    padded = f" {' '.join(name.casefold().split())} "
    return {padded[i : i + 3] for i in range(max(1, len(padded) - 2))}

"""Small reviews with labels, for tests of the classifier's commands."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from inkling.cli.app import main

GOOD = ("superb", "lovely", "moving", "bright", "tender", "witty")
BAD = ("dull", "awful", "clumsy", "tedious", "bleak", "silly")
PLAIN = ("the", "film", "was", "a", "plot", "and", "with", "actors", "music", "story", "in", "it")

Review = tuple[str, str]


def reviews(seed: int, count: int) -> list[Review]:
    """Three loud words among plain ones, two of them on the side of the label; one in six says nothing by its words."""
    generator = np.random.default_rng(seed)
    found = []
    for i in range(count):
        good = i % 2
        loud = [*generator.choice(GOOD if good else BAD, 2), generator.choice(BAD if good else GOOD)]
        if i % 6 > 4 or i % 12 == 4:
            loud = []
        words = generator.permutation([*loud, *generator.choice(PLAIN, 7)]).tolist()
        name = "".join("abcdefghij"[int(digit)] for digit in str(1000 * seed + i))  # a word that no other text has
        found.append((f"{' '.join(words[:5])}. {' '.join(words[5:])} {name}.".capitalize(), ("neg", "pos")[good]))
    return found


def write_csv(path: Path, rows: Sequence[Sequence[str]], header: Sequence[str] = ("text", "label")) -> str:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return str(path)


def make_lab(folder: Path) -> Path:
    """train.csv, test.csv and a run `run` trained on the first, of which enough is held out for a threshold."""
    write_csv(folder / "train.csv", reviews(1, 1600))
    write_csv(folder / "test.csv", reviews(2, 300))
    assert main(["train", "dan", str(folder / "train.csv"), "--words", "1", "--out", str(folder / "run")]) == 0
    return folder

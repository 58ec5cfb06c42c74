"""Small tables of texts and labels, written and read, for the tests of labelled text."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from inkling.errors import InklingError
from inkling.recipes.labelled import LabelledConfig, read_labelled
from inkling.recipes.labelled_text import LabelledText

laws = settings(deadline=None, max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])

Example = tuple[str, str]


def silent(note: str) -> None:
    """Nobody listens."""


def written(folder: Path, examples: Sequence[Example], name: str = "train.csv") -> str:
    path = folder / name
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        writer.writerows(examples)
    return str(path)


def read(folder: Path, examples: Sequence[Example], **options: str) -> LabelledText:
    return read_labelled(LabelledConfig((written(folder, examples),), **options), silent)  # type: ignore[arg-type]


def own_notes(found: LabelledText) -> list[str]:
    """Without the note about the columns that were guessed."""
    return [note for note in found.notes if "is column" not in note]


def refusal(folder: Path, examples: Sequence[Example], **options: str) -> str:
    with pytest.raises(InklingError) as caught:
        read(folder, examples, **options)
    assert caught.value.exit_code == 1
    message = str(caught.value).replace(str(folder) + "/", "")
    assert message.endswith(".")
    assert "\n" not in message
    return message


def many(**counts: int) -> list[Example]:
    """Different texts, so many of each class."""
    return [(f"the {label} text number {i}", label) for label, count in counts.items() for i in range(count)]

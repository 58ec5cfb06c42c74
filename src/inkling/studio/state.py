"""What all pages of a studio share: the folder of runs, models that were opened, and how it looks.

A studio belongs to one person, who may have several pages open; it keeps nothing that must outlive it. What does (runs,
uploads, what was said by trainings) lies in the folder. Runs are known by name, and a name is looked up in the list of
runs: no path from outside is ever opened.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from inkling.errors import InklingError
from inkling.studio.ledger import Ledger
from inkling.studio.shelf import Shelf
from inkling.studio.trainings import Trainings

if TYPE_CHECKING:
    from inkling.runs.run import Run

Look = Literal["auto", "light", "dark"]
HIDDEN = ".studio"  # in the folder of runs: uploads, and what trainings said


@dataclass
class Studio:
    folder: Path
    data: Path | None = None  # real data sets, for claims that need them
    look: Look = "auto"
    shelf: Shelf = field(init=False)
    trainings: Trainings = field(init=False)
    ledger: Ledger = field(init=False)

    def __post_init__(self) -> None:
        self.shelf = Shelf(self.run)
        self.trainings = Trainings(self.folder, self.folder / HIDDEN / "logs")
        self.ledger = Ledger(self.data)

    @property
    def hidden(self) -> Path:
        found = self.folder / HIDDEN
        found.mkdir(parents=True, exist_ok=True)
        return found

    def runs(self) -> list[Run]:
        """Newest first."""
        from inkling.runs.run import list_runs

        return list_runs(self.folder)[::-1]

    def run(self, name: str) -> Run:
        """The run of this name; a sentence where there is none."""
        from inkling.runs.run import Run

        for path in self.folder.iterdir() if self.folder.is_dir() else ():
            if path.name == name and not name.startswith("."):
                return Run.open(path)
        raise InklingError(f"There is no run '{name}' here any more; choose another.")

    def language_models(self) -> list[str]:
        """Names of runs that write and score text, newest first."""
        return [run.path.name for run in self.runs() if run.kind != "dan"]

    def classifiers(self) -> list[str]:
        return [run.path.name for run in self.runs() if run.kind == "dan"]

    def transformers(self) -> list[str]:
        """Names of runs with attention heads."""
        return [run.path.name for run in self.runs() if run.kind == "gpt"]

    def answerers(self) -> list[str]:
        """Names of runs that learned to answer questions."""
        return [run.path.name for run in self.runs() if run.kind == "gpt" and "pairs" in run.info["recipe"]]

"""`inkling ablate dan`: a grid of deep averaging networks on labelled files, in a folder that can be gone on with.

    grid.json          what is trained on what: the recipe, how files were read, the SHA-256 of texts and vectors
    part-0000.json …   the finished trainings of one seed on one file of vectors, each written whole or not at all
    result.json        what came out

The same command on the same folder goes on where it stopped: finished trainings are not trained again. So a grid may
also grow (more seeds, more levels). A folder whose files were read otherwise, or held other texts or labels, is
refused: its figures are not those of this command. Without test files a fifth of the rows is the test part. A tenth of
the rest is held out to choose epochs and networks by; the test part only judges.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from inkling.configuration import from_record
from inkling.errors import InklingError, UsageError
from inkling.recipes.data import resolve
from inkling.recipes.evaluation import distinct_names
from inkling.recipes.labelled import LabelledConfig, read_for, read_labelled, split
from inkling.recipes.labelled_text import LabelledText
from inkling.recipes.repeats import find_overlap
from inkling.runs.files import finite, sha256_file, sweep, write_file
from inkling.studies.ablation import Ablation
from inkling.studies.averaging import Bags, Cell, CellResult, GridConfig, Material, bag_of_vectors, grid, train_grid
from inkling.text.vectors import load_vectors

FORMAT = "inkling ablation 1"
TEST_SHARE = 0.2
GRID, RESULT = "grid.json", "result.json"


@dataclass(frozen=True)
class AblationRecipe:
    """All that `inkling ablate dan` can be told. The grid is every combination of the lists; `reading` says how files
    are read, and has the share that is held out and the seed of the parts that are set aside."""

    files: tuple[str, ...] = ()
    test: tuple[str, ...] = ()
    vectors: tuple[str, ...] = ()
    depths: tuple[int, ...] = (0, 1, 2, 3)
    activations: tuple[str, ...] = ("relu", "sigmoid", "mish")
    dropouts: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
    widths: tuple[int, ...] = (100,)
    seeds: int = 5
    epochs: int = 20
    batch: int = 100
    rate: float = 0.001
    standardise: bool = False
    reading: LabelledConfig = field(default_factory=LabelledConfig)

    def __post_init__(self) -> None:
        for name, value, least in (("--epochs", self.epochs, 1), ("--batch", self.batch, 1)):
            if value < least:
                raise UsageError(f"{name} is {value}; give a whole number from {least} on.")
        if not 0 < self.rate <= 1:
            raise UsageError(f"--rate is {self.rate:g}; give a learning rate above 0 and up to 1.")
        if not self.vectors:
            raise UsageError("No word vectors were given; name a file with --vectors, or data:glove-50d.")

    @property
    def training(self) -> GridConfig:
        return GridConfig(self.epochs, self.batch, self.rate, self.standardise)


@dataclass(frozen=True)
class Parts:
    """The texts: what is trained on, what chooses, what judges."""

    train: LabelledText
    held_out: LabelledText
    test: LabelledText
    notes: tuple[str, ...]


def run_ablation(
    recipe: AblationRecipe,
    folder: Path,
    say: Callable[[str], None] = lambda _: None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Ablation:
    """Trains what is not yet trained, and gives all results. Progress is in epochs of single networks."""
    names = _vector_names(recipe.vectors)
    cells = grid(recipe.depths, recipe.activations, recipe.dropouts, recipe.widths, list(names), recipe.seeds)
    parts = read_parts(recipe, say)
    record = _record(recipe, parts, names)
    finished = _open_folder(folder, record)
    wanted = [cell for cell in cells if cell not in finished]
    if wanted and len(wanted) < len(cells):
        say(f"{len(cells) - len(wanted):,} of {len(cells):,} trainings are finished already; the others follow.")
    if wanted:
        needed = {cell.vectors for cell in wanted}
        materials = {name: material(parts, path, recipe) for name, path in names.items() if name in needed}
        before = (len(cells) - len(wanted)) * recipe.epochs

        def count(done: int, total: int) -> None:
            on_progress(before + done, before + total)

        number = len(list(folder.glob("part-*.json")))
        classes = len(parts.train.labels)
        for group in train_grid(wanted, materials, classes, recipe.training, count):
            finished |= {result.cell: result for result in group}
            content = json.dumps({"format": FORMAT, "results": [_to_record(result) for result in group]})
            write_file(folder / f"part-{number:04d}.json", content)
            number += 1
    found = Ablation(
        tuple(finished[cell] for cell in cells), len(parts.test), recipe.training, _title(recipe), parts.notes
    )
    write_file(folder / RESULT, json.dumps(finite(found.to_json()), ensure_ascii=False, indent=1))
    return found


def read_parts(recipe: AblationRecipe, say: Callable[[str], None] = lambda _: None) -> Parts:
    whole = read_labelled(replace(recipe.reading, files=recipe.files), say)
    notes = [*whole.notes]
    if recipe.test:
        rest = whole
        test = read_for(whole.labels, replace(recipe.reading, files=recipe.test), say)
        notes += test.notes
    else:
        train_rows, test_rows = split(whole, TEST_SHARE, recipe.reading.seed)
        rest, test = whole.take(train_rows), whole.take(test_rows)
        more = f"No test file was given: {len(test):,} of {len(whole):,} rows were set aside to judge by."
        notes.append(more)
        say(more)
    train_rows, held_rows = split(rest, recipe.reading.held_out_share, recipe.reading.seed)
    train, held_out = rest.take(train_rows), rest.take(held_rows)
    for part, what in ((held_out, "held out"), (test, "set aside to judge by")):
        if not len(part):
            raise InklingError(
                f"No row of {', '.join(recipe.files)} can be {what}: give more rows of each class, or name test rows "
                "with --test."
            )
    overlap = find_overlap(train, test)
    if overlap.count:
        notes.append(overlap.sentence())
        say(overlap.sentence())
    notes.append(
        f"{len(train):,} texts were trained on, {len(held_out):,} held out to choose epochs and networks by; the "
        f"{len(test):,} test texts only judge."
    )
    return Parts(train, held_out, test, tuple(dict.fromkeys(notes)))


def material(parts: Parts, path: str, recipe: AblationRecipe) -> Material:
    """The texts as bags of the words that have a vector."""
    vectors = load_vectors(path)
    given = [(part.texts, part.truth) for part in (parts.train, parts.held_out, parts.test)]
    bags: list[Bags] = bag_of_vectors(given, vectors)
    if not len(bags[0].ids):
        raise InklingError(
            f"{path} has a vector for none of the words of {', '.join(recipe.files)}; give vectors of its language."
        )
    return Material(np.asarray(vectors.matrix, np.float32), *bags)


# ------------------------------------------------------------------------------------------------- the folder


def _vector_names(given: Sequence[str]) -> dict[str, str]:
    """The path of each file of vectors, under a short name."""
    paths = [resolve(name) for name in dict.fromkeys(given)]
    names = [name.removesuffix(".npz").removesuffix(".txt") for name in distinct_names(paths)]
    return dict(zip(names if len(set(names)) == len(paths) else paths, paths, strict=True))


def _title(recipe: AblationRecipe) -> str:
    return f"Ablation of the deep averaging network on {', '.join(Path(file).name for file in recipe.files)}"


def _record(recipe: AblationRecipe, parts: Parts, names: Mapping[str, str]) -> dict[str, Any]:
    """What must be the same for two grids to share results."""
    for path in names.values():
        if not Path(path).is_file():
            raise InklingError(f"{path} is not a file; give a file of word vectors with --vectors.")
    reading = {name: value for name, value in asdict(recipe.reading).items() if name not in ("files", "seed")}
    reading["held_out"] = list(recipe.reading.held_out)  # as it comes back from JSON
    return {
        "format": FORMAT,
        "training": asdict(recipe.training),
        "texts": parts.train.origin.sha256,
        "test": parts.test.origin.sha256 if recipe.test else f"{TEST_SHARE:g} of the rows",
        "rows": [len(parts.train), len(parts.held_out), len(parts.test)],
        "reading": reading,
        "contents": _digest(parts),
        "seed": recipe.reading.seed,
        "labels": list(parts.train.labels),
        "vectors": {name: sha256_file(Path(path)) for name, path in names.items()},
    }


def _digest(parts: Parts) -> str:
    """SHA-256 of the texts and labels as they were read: the same file may be read in more than one way."""
    found = hashlib.sha256()
    for part in (parts.train, parts.held_out, parts.test):
        found.update(b"%d rows\n" % len(part))
        for text, label in zip(part.texts, part.truth.tolist(), strict=True):
            for given in (text, part.labels[label]):
                content = given.encode("utf-8", "surrogatepass")
                found.update(b"%d " % len(content) + content)  # with its length, so that no two rows run together
    return found.hexdigest()


def _open_folder(folder: Path, record: dict[str, Any]) -> dict[Cell, CellResult]:
    """The finished trainings in a folder of the same grid; makes the folder if there is none."""
    place = folder / GRID
    if not place.exists():
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UsageError(f"{folder} is no folder of an ablation; name a new one with --out.")
        folder.mkdir(parents=True, exist_ok=True)
        write_file(place, json.dumps(record, ensure_ascii=False, indent=1))
        return {}
    sweep(folder)
    earlier = _read(place)
    vectors = {**earlier.get("vectors", {}), **record["vectors"]}
    differs = [key for key in record if key != "vectors" and earlier.get(key) != record[key]]
    if any(vectors[name] != digest for name, digest in earlier.get("vectors", {}).items()):
        differs.append("vectors")
    if differs:
        raise UsageError(
            f"{folder} holds another ablation ({', '.join(differs)} differ); name another folder with --out."
        )
    write_file(place, json.dumps({**record, "vectors": vectors}, ensure_ascii=False, indent=1))
    finished: dict[Cell, CellResult] = {}
    for path in sorted(folder.glob("part-*.json")):
        content = _read(path)
        try:
            finished |= {result.cell: result for result in map(_from_record, content["results"])}
        except (KeyError, TypeError, ValueError) as error:
            raise _damaged(path, error) from error
    return finished


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if found["format"] != FORMAT:
            raise ValueError(f"format {found['format']}")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _damaged(path, error) from error
    return dict(found)


def _damaged(path: Path, error: Exception) -> InklingError:
    return InklingError(f"{path} cannot be used ({error}); remove it to train that part again.")


def _to_record(result: CellResult) -> dict[str, Any]:
    return {
        "cell": asdict(result.cell),
        "test_accuracy": list(result.test_accuracy),
        "held_out_accuracy": list(result.held_out_accuracy),
        "saturation": result.saturation,
        "right": base64.b64encode(result.right.tobytes()).decode(),
        "right_chosen": base64.b64encode(result.right_chosen.tobytes()).decode(),
    }


def _from_record(record: Mapping[str, Any]) -> CellResult:
    return CellResult(
        from_record(Cell, record["cell"], "cell"),
        tuple(record["test_accuracy"]),
        tuple(record["held_out_accuracy"]),
        np.frombuffer(base64.b64decode(record["right"]), np.uint8),
        np.frombuffer(base64.b64decode(record["right_chosen"]), np.uint8),
        record["saturation"],
    )

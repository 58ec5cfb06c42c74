"""The ablation of labelled files: parts, the folder, and going on after an interruption."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from inkling.errors import InklingError, UsageError
from inkling.recipes import ablation
from inkling.recipes.ablation import AblationRecipe, read_parts, run_ablation
from inkling.recipes.labelled import LabelledConfig
from inkling.studies.averaging import train_grid

GOOD = ("bright", "warm", "clever", "tender")
BAD = ("dull", "cold", "clumsy", "hollow")
REST = ("film", "plot", "actor", "scene", "end")


def write_reviews(path: Path, rows: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        for row in range(rows):
            label = row % 2
            own, other = (GOOD, BAD) if label else (BAD, GOOD)
            words = [
                *generator.choice(own, 3),
                *generator.choice(other, 1),
                *generator.choice(REST, 4),
                f"n{row}{seed}",
            ]
            writer.writerow([" ".join(generator.permutation(words).tolist()), ("neg", "pos")[label]])


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("reviews")
    write_reviews(folder / "train.csv", 300, 1)
    write_reviews(folder / "test.csv", 200, 2)
    generator = np.random.default_rng(3)
    lines = [f"{word} {' '.join(f'{x:.3f}' for x in generator.normal(size=6))}" for word in (*GOOD, *BAD, *REST)]
    (folder / "vectors.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "foreign.txt").write_text("ogród 1 0\nkot 0 1\n", encoding="utf-8")
    patch = pytest.MonkeyPatch()
    patch.setenv("INKLING_CACHE", str(folder / "cache"))
    yield folder
    patch.undo()


def make(files: Path, **changes: object) -> AblationRecipe:
    recipe = AblationRecipe(
        files=(str(files / "train.csv"),),
        test=(str(files / "test.csv"),),
        vectors=(str(files / "vectors.txt"),),
        depths=(0, 1),
        activations=("relu", "sigmoid"),
        dropouts=(0.0, 0.3),
        widths=(8,),
        seeds=3,
        epochs=6,
        batch=20,
        rate=0.02,
    )
    return replace(recipe, **changes)  # type: ignore[arg-type]


def test_a_grid_is_trained_and_its_result_written(files: Path, tmp_path: Path) -> None:
    said: list[str] = []
    counted: list[tuple[int, int]] = []
    found = run_ablation(make(files), tmp_path / "out", said.append, lambda done, total: counted.append((done, total)))
    assert len(found.results) == 2 * 2 * 2 * 3
    assert found.effect("depth", 1).accuracy.value > 80
    assert counted[-1] == (24 * 6, 24 * 6)
    written = json.loads((tmp_path / "out" / "result.json").read_text(encoding="utf-8"))
    assert written["trainings"] == 24
    assert sorted(path.name for path in (tmp_path / "out").glob("part-*")) == [f"part-000{i}.json" for i in range(3)]
    assert any("270 texts were trained on, 30 held out" in note for note in found.notes)


class Stop(Exception):
    pass


def test_interrupted_and_gone_on_with_is_as_uninterrupted(files: Path, tmp_path: Path) -> None:
    whole = run_ablation(make(files), tmp_path / "whole")

    def stop(done: int, total: int) -> None:
        if done > total // 2:
            raise Stop

    with pytest.raises(Stop):
        run_ablation(make(files), tmp_path / "halves", on_progress=stop)
    assert len(list((tmp_path / "halves").glob("part-*"))) == 1
    assert not (tmp_path / "halves" / "result.json").exists()
    said: list[str] = []
    counted: list[int] = []
    resumed = run_ablation(make(files), tmp_path / "halves", said.append, lambda done, total: counted.append(done))
    assert any("8 of 24 trainings are finished already" in sentence for sentence in said)
    assert counted[0] == 8 * 6 + 8
    for a, b in zip(whole.results, resumed.results, strict=True):
        assert (a.cell, a.test_accuracy, a.held_out_accuracy, a.saturation) == (
            b.cell,
            b.test_accuracy,
            b.held_out_accuracy,
            b.saturation,
        )
        assert a.right.tolist() == b.right.tolist()
    assert json.dumps(resumed.to_json()) == json.dumps(whole.to_json())


def test_a_finished_grid_is_read_and_a_larger_one_trains_only_what_is_new(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = make(files, seeds=1, dropouts=(0.0,))
    first = run_ablation(small, tmp_path)
    trained: list[int] = []

    def spy(cells, *others):  # type: ignore[no-untyped-def]
        trained.append(len(cells))
        return train_grid(cells, *others)

    monkeypatch.setattr(ablation, "train_grid", spy)
    again = run_ablation(small, tmp_path)
    assert trained == []
    assert [r.test_accuracy for r in again.results] == [r.test_accuracy for r in first.results]
    larger = run_ablation(make(files, seeds=2), tmp_path)
    assert trained == [4 + 8]
    assert len(larger.results) == 16


def test_a_folder_of_another_grid_or_of_something_else_is_refused(files: Path, tmp_path: Path) -> None:
    run_ablation(make(files, seeds=1), tmp_path / "grid")
    with pytest.raises(UsageError, match="holds another ablation \\(training differ"):
        run_ablation(make(files, seeds=1, epochs=7), tmp_path / "grid")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("dear", encoding="utf-8")
    with pytest.raises(UsageError, match="no folder of an ablation"):
        run_ablation(make(files, seeds=1), tmp_path / "other")
    assert (tmp_path / "other" / "letter.txt").exists()
    (tmp_path / "grid" / "part-0000.json").write_text('{"format": "inkling ablation 1", "results": [{}]}')
    with pytest.raises(InklingError, match=r"part-0000\.json cannot be used"):
        run_ablation(make(files, seeds=1), tmp_path / "grid")


@pytest.fixture(scope="module")
def two_columns(files: Path) -> Path:
    """A body that tells the classes apart, a title that does not, and the class under two names."""
    generator = np.random.default_rng(4)
    path = files / "titled.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["body", "title", "verdict", "reversed"])
        for row in range(120):
            label = row % 2
            body = " ".join([*generator.choice(GOOD if label else BAD, 3), f"b{row}"])
            title = " ".join([*generator.choice(REST, 3), f"t{row}"])
            writer.writerow([body, title, ("neg", "pos")[label], ("pos", "neg")[label]])
    return path


def test_the_same_file_read_otherwise_is_another_grid(files: Path, two_columns: Path, tmp_path: Path) -> None:
    small = make(files, test=(), seeds=2, dropouts=(0.0,), activations=("relu",))
    columns = LabelledConfig(text_column="body", label_column="verdict")
    body = replace(small, files=(str(two_columns),), reading=columns)
    first = run_ablation(body, tmp_path / "grid")
    for reading in (
        LabelledConfig(text_column="title", label_column="verdict"),
        LabelledConfig(text_column="body", label_column="reversed"),
    ):
        with pytest.raises(
            UsageError, match=r"holds another ablation \(reading, contents differ\); name another folder with --out\."
        ):
            run_ablation(replace(body, reading=reading), tmp_path / "grid")
    for reading in (
        replace(body.reading, encoding="utf-8"),
        replace(body.reading, header=True),
        replace(body.reading, format="csv"),
        replace(body.reading, bad_rows="skip"),
    ):
        with pytest.raises(UsageError, match=r"\(reading differ\)"):
            run_ablation(replace(body, reading=reading), tmp_path / "grid")
    title = replace(body, reading=LabelledConfig(text_column="title", label_column="verdict"))
    second = run_ablation(title, tmp_path / "other")
    assert first.effect("depth", 1).accuracy.value > 90
    assert second.effect("depth", 1).accuracy.value < 75  # the titles say nothing of the class
    again = run_ablation(body, tmp_path / "grid")
    assert [r.test_accuracy for r in again.results] == [r.test_accuracy for r in first.results]


def test_other_texts_or_labels_under_the_same_options_are_another_grid(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not the bytes of the files but what was read from them is compared."""
    recipe = make(files, seeds=1, dropouts=(0.0,), depths=(0,))
    run_ablation(recipe, tmp_path)
    parts = read_parts(recipe)
    swapped = parts.held_out.texts[:1] + parts.train.texts[1:]
    for altered in (
        replace(parts, train=replace(parts.train, texts=swapped)),
        replace(parts, held_out=replace(parts.held_out, truth=1 - parts.held_out.truth)),
        replace(parts, test=replace(parts.test, texts=parts.test.texts[::-1])),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(ablation, "read_parts", lambda recipe, say, altered=altered: altered)
            with pytest.raises(UsageError, match=r"\(contents differ\); name another folder with --out\."):
                run_ablation(recipe, tmp_path)


def test_without_test_files_a_fifth_is_set_aside_and_said(files: Path) -> None:
    said: list[str] = []
    parts = read_parts(make(files, test=()), said.append)
    assert (len(parts.train), len(parts.held_out), len(parts.test)) == (216, 24, 60)
    assert not set(parts.test.texts) & set(parts.train.texts)
    assert any("No test file was given: 60 of 300 rows" in sentence for sentence in said)


def test_test_texts_that_were_trained_on_are_reported(files: Path) -> None:
    parts = read_parts(make(files, test=(str(files / "train.csv"),)))
    assert any("were trained on" in note and "270 of the 300 texts" in note for note in parts.notes)


def test_what_cannot_be_used_is_refused_in_a_sentence(files: Path, tmp_path: Path) -> None:
    with pytest.raises(InklingError, match="a vector for none of the words"):
        run_ablation(make(files, vectors=(str(files / "foreign.txt"),)), tmp_path / "a")
    with pytest.raises(InklingError, match="not a file"):
        run_ablation(make(files, vectors=("missing.txt",)), tmp_path / "b")
    for changes, words in (
        ({"vectors": ()}, "No word vectors"),
        ({"epochs": 0}, "--epochs is 0"),
        ({"rate": 0.0}, "--rate is 0"),
        ({"batch": 0}, "--batch is 0"),
    ):
        with pytest.raises(UsageError, match=words):
            make(files, **changes)


def test_two_files_of_vectors_are_a_factor(files: Path, tmp_path: Path) -> None:
    other = tmp_path / "wide.txt"
    lines = (files / "vectors.txt").read_text(encoding="utf-8").splitlines()
    other.write_text("\n".join(f"{line} 0 0" for line in lines) + "\n", encoding="utf-8")
    recipe = make(files, vectors=(str(files / "vectors.txt"), str(other)), seeds=2, depths=(1,), dropouts=(0.0,))
    found = run_ablation(recipe, tmp_path / "out")
    assert found.levels("vectors") == ["vectors", "wide"]
    assert len(found.contrasts("vectors")) == 1

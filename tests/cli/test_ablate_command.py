"""`inkling ablate dan` as a user types it."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from driver import Cli

SMALL = ("--depths", "0,1", "--activations", "relu,sigmoid", "--dropouts", "0,0.3", "--widths", "6", "--seeds", "2")
QUICK = ("--epochs", "6", "--batch", "20", "--rate", "0.02")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    generator = np.random.default_rng(0)
    for name, rows in (("train.csv", 160), ("test.csv", 80)):
        with (tmp_path / name).open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["review", "sentiment"])
            for row in range(rows):
                words = generator.choice(["good", "fine"] if row % 2 else ["bad", "poor"], 3).tolist()
                writer.writerow([" ".join([*words, f"the {name} {row}"]), row % 2])
    (tmp_path / "v.txt").write_text("good 1 0\nfine 1 1\nbad -1 0\npoor -1 1\nthe 0 1\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("INKLING_CACHE", str(tmp_path / "cache"))
    return tmp_path


def test_a_grid_gives_tables_sentences_a_page_and_json(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = Cli(capsys, "ablate", "dan")
    arguments = ("train.csv", "--test", "test.csv", "--vectors", "v.txt", "--label-column", "sentiment", *SMALL, *QUICK)
    out = run(*arguments, "--out", "grid")
    for part in ("Test accuracy by depth", "Test accuracy by activation", "no hidden layer", "Best on held-out text"):
        assert part in out
    assert "report.html" in run.notes
    page = (here / "grid" / "report.html").read_text(encoding="utf-8")
    assert "<svg" in page
    assert "Test accuracy over epochs by activation" in page
    found = run.json(*arguments, "--out", "grid")  # read, not trained again
    assert (found["trainings"], found["seeds"], found["test_texts"]) == (16, 2, 80)
    assert found["chosen"]["test"]["value"] == pytest.approx(100)
    assert {contrast["factor"] for contrast in found["contrasts"]} == {"depth", "activation", "word dropout"}


def test_without_test_files_a_fifth_of_the_rows_judges(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = Cli(capsys, "ablate", "dan")
    found = run.json("train.csv", "--vectors", "v.txt", "--label-column", "sentiment", *SMALL, *QUICK, "--out", "g")
    assert found["test_texts"] == 32
    assert any("No test file was given" in note for note in found["notes"])


def test_the_default_folder_of_another_grid_is_refused_and_another_folder_asked_for(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Cli(capsys, "ablate", "dan", "--vectors", "v.txt", "--depths", "0,1", "--activations", "relu")
    small = ("--label-column", "sentiment", "--dropouts", "0", "--widths", "6", "--seeds", "2", *QUICK)
    rows = (here / "train.csv").read_text(encoding="utf-8").splitlines()
    for name, kept in (("old", rows), ("new", rows[:-40])):
        (here / name).mkdir()
        (here / name / "films.csv").write_text("\n".join(kept) + "\n", encoding="utf-8")
    folder = Path("runs", "ablation-films")
    assert run.json("old/films.csv", *small)["folder"] == str(folder)
    before = (folder / "result.json").read_bytes()
    for changed in (("new/films.csv",), ("old/films.csv", "--text-column", "review"), ("old/films.csv", "--seed", "1")):
        assert run(*changed, *small, code=2) == ""
        assert f"{folder} holds another ablation (" in run.notes
        assert "name another folder with --out." in run.notes
    assert (folder / "result.json").read_bytes() == before
    assert run.json("new/films.csv", *small, "--out", "new/grid")["test_texts"] == 24


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--depths", "x"), 2, "--depths is 'x'; give whole numbers joined by commas"),
        (("--activations", "relu,swish"), 2, "'swish' is unknown"),
        (("--dropouts", "1.5"), 2, "dropout of 1.5"),
        (("--seeds", "0"), 2, "--seeds is 0"),
        (("--epochs", "0"), 2, "--epochs is 0"),
        (("--vectors", "none.txt"), 1, "none.txt is not a file"),
    ],
)
def test_mistakes_are_one_sentence(
    here: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], code: int, words: str
) -> None:
    run = Cli(capsys, "ablate", "dan", "train.csv", "--label-column", "sentiment")
    given = arguments if "--vectors" in arguments else ("--vectors", "v.txt", *arguments)
    assert run(*given, "--out", "g", code=code) == ""
    assert words in run.notes
    assert "Traceback" not in run.notes


def test_help_shows_examples(capsys: pytest.CaptureFixture[str]) -> None:
    out = Cli(capsys, "ablate", "dan")("--help")
    assert "inkling ablate dan reviews.csv --vectors data:glove-50d" in out

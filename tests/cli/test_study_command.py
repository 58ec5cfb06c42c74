"""`inkling study pretraining` as a user types it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from driver import Cli

from inkling.text.world import biographies

WORLD = biographies(np.random.default_rng(5), 60)
SMALL = 'vocabulary = 400\nlayers = 1\nwidth = 32\ncontext = 96\nbatch = 4\nprecision = "float32"\n'


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    (tmp_path / "lives.txt").write_text(WORLD.text, encoding="utf-8")
    for name, pairs in (("train.tsv", WORLD.pairs_train), ("dev.tsv", WORLD.pairs_held_out)):
        (tmp_path / name).write_text("".join(f"{q}\t{a}\n" for q, a in pairs), encoding="utf-8")
    (tmp_path / "small.toml").write_text(SMALL, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return Cli(capsys, "study", "pretraining")


def test_a_study_gives_a_table_a_verdict_pages_and_json(study: Cli, tmp_path: Path) -> None:
    given = ("lives.txt", "train.tsv", "--test", "dev.tsv", "--seeds", "2", "--steps", "5", "--config", "small.toml")
    out = study(*given, "--html", "page.html")
    assert "Exact match on dev.tsv, seed by seed" in out
    assert "of 12 questions are answered exactly with it" in out
    assert "page.html" in study.notes
    for page in ("page.html", "runs/pretraining-lives/report.html"):
        written = (tmp_path / page).read_text(encoding="utf-8")
        assert "<svg" in written
        assert "Does pretraining help?" in written
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("runs/*/seed-*/*/model.safetensors")}
    assert len(before) == 6
    found = study.json(*given)  # read, not trained again
    assert before == {path: path.stat().st_mtime_ns for path in before}
    assert (found["folder"], found["questions"], len(found["seeds"])) == ("runs/pretraining-lives", 12, 2)
    assert set(found["baselines"]) == {f"always '{WORLD.commonest_place}'", "nearest name"}
    assert found["verdict"].startswith(("No effect of pretraining on lives.txt", "Pretraining on lives.txt"))


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("--seeds", "0"), 2, "--seeds is 0; give a whole number from 1"),
        (("--minutes", "0"), 2, "--minutes is 0; give a number above 0"),
        (("--html", "nowhere/page.html"), 2, "--html is 'nowhere/page.html', which cannot be written"),
        (("--test", "none.tsv"), 1, "none.tsv does not exist"),
        (("--tokens", "letter"), 2, "--tokens is letter; give one of"),
    ],
)
def test_a_mistake_is_one_sentence(study: Cli, arguments: tuple[str, ...], code: int, sentence: str) -> None:
    assert study("lives.txt", "train.tsv", *arguments, code=code) == ""
    assert sentence in study.notes.splitlines()[-1]
    assert not Path("runs").exists()


def test_help_shows_examples(study: Cli) -> None:
    assert "inkling study pretraining biographies.txt questions.tsv --minutes 1" in study("--help")

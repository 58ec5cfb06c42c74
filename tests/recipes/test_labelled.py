"""Texts with labels: every row is used or reported, what is of no use refused, and no text on both sides of a split."""

from __future__ import annotations

import gzip
import io
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st
from labelled_rows import Example, laws, many, own_notes, read, refusal, silent, written

from inkling.errors import InklingError, UsageError
from inkling.recipes.labelled import (
    LabelledConfig,
    mark_held_out,
    read_for,
    read_labelled,
    read_parts,
    recall_columns,
    sort_labels,
    split,
)
from inkling.recipes.repeats import find_overlap

# ------------------------------------------------------------------------------------------- what is read


def test_texts_labels_and_places_come_out_in_the_order_of_the_file(tmp_path: Path) -> None:
    found = read(tmp_path, [("well made", "pos"), ("dull", "neg"), ("a joy", "pos")])
    assert found.texts == ["well made", "dull", "a joy"]
    assert found.labels == ("neg", "pos")
    assert found.truth.tolist() == [1, 0, 1]
    assert found.counts.tolist() == [1, 2]
    assert found.number.tolist() == [1, 2, 3]
    assert found.place(2) == f"{tmp_path}/train.csv row 3"


def test_the_same_table_is_read_from_every_format(tmp_path: Path) -> None:
    examples = [("good, very\tgood".replace("\t", " "), "pos"), ("bad", "neg"), ("fine", "pos")]
    texts, labels = [text for text, _ in examples], [label for _, label in examples]
    plain = written(tmp_path, examples)
    packed = tmp_path / "train.csv.gz"
    packed.write_bytes(gzip.compress(Path(plain).read_bytes()))
    tsv = tmp_path / "train.tsv"
    tsv.write_text("text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in examples))
    jsonl = tmp_path / "train.jsonl"
    jsonl.write_text("".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in examples))
    parquet = tmp_path / "train.parquet"
    polars.DataFrame({"text": texts, "label": labels}).write_parquet(parquet)
    for path in (plain, packed, tsv, jsonl, parquet):
        found = read_labelled(LabelledConfig((str(path),)), silent)
        assert found.texts == texts
        assert [found.labels[i] for i in found.truth] == labels


def test_a_csv_field_may_hold_quotes_commas_and_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "train.csv"
    path.write_bytes(b'text,label\r\n"She said ""no"",\r\nthen left.",neg\r\n"yes\n\nyes",pos\r\nfine,pos\r\n')
    found = read_labelled(LabelledConfig((str(path),)), silent)
    assert found.texts == ['She said "no",\r\nthen left.', "yes\n\nyes", "fine"]
    assert found.number.tolist() == [1, 2, 3]
    assert found.origin.rows_reported == 0


def test_a_broken_row_stops_the_reading_or_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "train.csv"
    path.write_text("text,label\ngood,pos\nbad,neg,too much\nfine,pos\npoor,neg\n")
    with pytest.raises(InklingError, match="row 2"):
        read_labelled(LabelledConfig((str(path),)), silent)
    found = read_labelled(LabelledConfig((str(path),), bad_rows="skip"), silent)
    assert found.number.tolist() == [1, 3, 4]
    assert (found.origin.rows_in, found.origin.rows_reported) == (4, 1)


def test_a_name_of_the_catalogue_stands_for_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(written(tmp_path, many(a=2, b=2)))
    monkeypatch.setattr("inkling.text.catalogue.data_path", lambda name: {"set/train": path}[name])
    found = read_labelled(LabelledConfig(("data:set/train",)), silent)
    assert len(found) == 4
    assert found.describe()["files"] == ["data:set/train"]


def test_several_files_are_one_set_and_each_text_knows_its_file(tmp_path: Path) -> None:
    first = written(tmp_path, many(a=2, b=2), "first.csv")
    second = written(tmp_path, [("something else", "a")], "second.csv")
    found = read_labelled(LabelledConfig((first, second)), silent)
    assert found.source.tolist() == [0, 0, 0, 0, 1]
    assert found.place(4) == f"{second} row 1"
    assert found.describe()["rows"] == 5


def test_labels_that_are_numbers_stand_in_the_order_of_their_values() -> None:
    assert sort_labels(["10", "9", "-1", "2.5"]) == ("-1", "2.5", "9", "10")
    assert sort_labels(["1.0", "1"]) == ("1", "1.0")
    assert sort_labels(["100000000000000000001", "100000000000000000000"]) == (
        "100000000000000000000",
        "100000000000000000001",
    )
    assert sort_labels(["10", "9", "x"]) == ("10", "9", "x")
    assert sort_labels(["b", "B", "a"]) == ("B", "a", "b")


def test_white_space_around_a_label_does_not_count_and_its_form_is_kept(tmp_path: Path) -> None:
    found = read(tmp_path, [("one", " 1 "), ("two", "1"), ("three", "0"), ("four", "0")])
    assert found.labels == ("0", "1")
    assert own_notes(found) == []


def test_the_guessed_columns_are_said(tmp_path: Path) -> None:
    said: list[str] = []
    read_labelled(LabelledConfig((written(tmp_path, many(a=3, b=3)),)), said.append)
    assert "the label is column 'label' (by its name)" in said[0]


def test_what_was_guessed_is_said_even_when_the_rows_are_refused(tmp_path: Path) -> None:
    said: list[str] = []
    with pytest.raises(InklingError):
        read_labelled(LabelledConfig((written(tmp_path, many(a=3)),)), said.append)
    assert "the label is column 'label'" in said[0]


def test_a_run_is_told_which_bytes_and_rows_it_was_trained_on(tmp_path: Path) -> None:
    path = written(tmp_path, [*many(ham=6, spam=4), ("", "ham"), ("no label", "")])
    parts = read_parts(LabelledConfig((path,), held_out_share=0.2), silent)
    described = parts.describe()
    assert described["files"] == [path]
    assert len(described["sha256"]) == 64
    assert described["bytes"] == Path(path).stat().st_size
    assert (described["rows"], described["rows_in"], described["rows_reported"]) == (10, 12, 2)
    assert described["labels"] == {"ham": 6, "spam": 4}
    assert described["held_out"] == "20% of each class"
    assert described["held_out_sha256"] is None
    assert described["held_out_rows"] == 2
    assert any("12 rows read: 10 used, 2 left out" in note for note in described["notes"])
    json.dumps(described)


label_cells = st.sampled_from(["a", "b", "c", "", " "])
text_cells = st.text(st.sampled_from('xY\n",. é'), max_size=6)


@given(st.lists(st.tuples(text_cells, label_cells), max_size=30), st.sets(st.sampled_from("abc"), min_size=1))
@laws
def test_every_row_is_used_or_reported(tmp_path: Path, examples: list[Example], known: set[str]) -> None:
    """Sixty safe rows make sure that there is something to learn from."""
    examples = [*many(a=30, b=30), *examples]
    config = LabelledConfig((written(tmp_path, examples),))
    usable = [(text, label) for text, label in examples if text.strip() and label.strip()]
    found = read_labelled(config, silent)
    assert len(found) == len(usable)
    assert found.texts == [text for text, _ in usable]
    assert found.origin.rows_in == len(examples) == len(found) + found.origin.rows_reported
    if known & set("ab"):
        judged = read_for(sorted(known), config, silent)
        assert judged.texts == [text for text, label in usable if label.strip() in known]
        assert judged.origin.rows_in == len(judged) + judged.origin.rows_reported


# ------------------------------------------------------------------------------------------- what is refused


def test_one_class_is_no_task(tmp_path: Path) -> None:
    assert refusal(tmp_path, many(pos=5)) == (
        "All 5 rows of train.csv have the label 'pos': a classifier needs at least two classes, so add rows of another "
        "one or name the right column with --label-column."
    )


def test_labels_that_were_not_published_are_recognised(tmp_path: Path) -> None:
    assert "(-1 often stands for a label that was not published)" in refusal(tmp_path, [("a b", "-1"), ("c d", "-1")])


def test_one_row_is_not_enough(tmp_path: Path) -> None:
    assert refusal(tmp_path, [("good", "pos")]).startswith("train.csv has one row that can be used (train.csv row 1): ")


def test_a_table_whose_labels_are_all_missing_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path, [("good", ""), ("bad", " ")]) == (
        "No row of train.csv has a label (2 rows read): the label column is empty, so name another with --label-column."
    )


def test_a_table_whose_texts_are_all_empty_is_refused(tmp_path: Path) -> None:
    message = refusal(tmp_path, [("", "a"), (" ", "b"), ("text", "")])
    assert "no row that can be used (of 3 rows read, 1 without label and 2 without text or not readable)" in message


def test_a_table_without_labels_names_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "train.csv"
    path.write_text("text,author,year\nhello there,Ann,1990\n")
    with pytest.raises(InklingError, match=r"no column that looks like a label: there are 'text', 'author', 'year'"):
        read_labelled(LabelledConfig((str(path),)), silent)


def test_plain_text_has_no_labels(tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    path.write_text("hello\n")
    with pytest.raises(InklingError, match="plain text and has no labels"):
        read_labelled(LabelledConfig((str(path),)), silent)


def test_an_id_in_place_of_a_label_is_refused(tmp_path: Path) -> None:
    examples = [(f"text {i}", f"user{i // 2:03}") for i in range(199)]
    assert refusal(tmp_path, examples, label_column="label") == (
        "train.csv has 100 different labels in 199 rows, such as 'user000' and 'user099': the label column 'label' "
        "looks like an id or free text rather than a class, so name another with --label-column or give at least two "
        "rows a class."
    )
    assert len(read(tmp_path, [*examples, ("text 199", "user099")]).labels) == 100


def test_measured_numbers_in_place_of_labels_are_refused(tmp_path: Path) -> None:
    assert "looks like measured numbers or an id" in refusal(
        tmp_path, [(f"text {i}", f"{i / 7:.3f}") for i in range(50)]
    )


def test_two_rows_of_two_classes_can_be_read_but_not_split(tmp_path: Path) -> None:
    path = written(tmp_path, [("good", "pos"), ("bad", "neg")])
    assert len(read_labelled(LabelledConfig((path,)), silent)) == 2
    with pytest.raises(InklingError, match="can be held out, for every class has one text only"):
        read_parts(LabelledConfig((path,)), silent)


def test_requests_without_sense_are_usage_errors(tmp_path: Path) -> None:
    path = written(tmp_path, many(a=2, b=2))
    with pytest.raises(UsageError, match="No texts were given"):
        read_labelled(LabelledConfig(), silent)
    with pytest.raises(UsageError, match="both name 'text'"):
        read_labelled(LabelledConfig((path,), text_column="text", label_column="text"), silent)
    for share in (0.0, 1.0, -0.5):
        with pytest.raises(UsageError, match="give a share between 0 and 1"):
            read_parts(LabelledConfig((path,), held_out_share=share), silent)


# ------------------------------------------------------------------------------------------- for a model


def test_rows_of_classes_that_the_model_lacks_are_reported_apart(tmp_path: Path) -> None:
    path = written(tmp_path, [("fine", "pos"), ("so so", "neutral"), ("bad", "neg"), ("hm", "neutral"), ("eh", "Pos")])
    judged = read_for(("neg", "other", "pos"), LabelledConfig((path,)), silent)
    assert judged.texts == ["fine", "bad"]
    assert judged.labels == ("neg", "other", "pos")
    assert judged.truth.tolist() == [2, 0]
    assert judged.origin.unknown_labels == {"Pos": 1, "neutral": 2}
    assert judged.origin.rows_reported == 3
    assert own_notes(judged) == [
        "3 rows of 5 left out of all figures because the model does not know the label ('neutral' 2, 'Pos' 1; first: "
        f"{path} row 2) (perhaps 'Pos' is the model's 'pos').",
        f"1 class of the model without a row in {path}: 'other'.",
    ]


def test_a_file_for_another_model_is_refused_with_both_sets_of_labels(tmp_path: Path) -> None:
    path = written(tmp_path, [("fine", "1.0"), ("bad", "0.0")])
    with pytest.raises(InklingError) as caught:
        read_for(("0", "1"), LabelledConfig((path,)), silent)
    assert "it has '0.0', '1.0' and the model '0', '1' (perhaps '0.0' is the model's '0')" in str(caught.value)


def test_one_row_or_one_class_can_be_judged(tmp_path: Path) -> None:
    judged = read_for(("neg", "pos"), LabelledConfig((written(tmp_path, [("fine", "pos")]),)), silent)
    assert judged.truth.tolist() == [1]


# ------------------------------------------------------------------------------------------- holding out


def test_named_held_out_rows_are_read_and_checked_against_the_training_rows(tmp_path: Path) -> None:
    said: list[str] = []
    train = written(tmp_path, many(a=5, b=5))
    held = written(tmp_path, [("the a text number 3", "a"), ("new", "b")], "held.csv")
    parts = read_parts(LabelledConfig((train,), held_out=(held,)), said.append)
    assert (len(parts.train), len(parts.held_out)) == (10, 2)
    assert said[-1].startswith("1 of the 2 texts that are judged were trained on, 1 with the same label")
    assert said == parts.notes
    described = parts.describe()
    assert described["held_out"] == [held]
    assert len(described["held_out_sha256"]) == 64


def test_each_class_gives_its_share(tmp_path: Path) -> None:
    found = read(tmp_path, many(a=100, b=50, c=30))
    train, held = split(found, 0.1, 7)
    assert Counter(found.truth[held].tolist()) == {0: 10, 1: 5, 2: 3}
    assert len(train) == 162


def test_the_rows_held_out_can_be_marked(tmp_path: Path) -> None:
    found = read(tmp_path, many(a=30, b=20))
    assert np.flatnonzero(mark_held_out(found, 0.2, 3)).tolist() == split(found, 0.2, 3)[1].tolist()


def test_the_seed_decides(tmp_path: Path) -> None:
    found = read(tmp_path, many(a=100, b=100))
    assert split(found, 0.1, 1)[1].tolist() == split(found, 0.1, 1)[1].tolist()
    assert split(found, 0.1, 1)[1].tolist() != split(found, 0.1, 2)[1].tolist()


def test_a_few_rows_still_give_one_to_hold_out(tmp_path: Path) -> None:
    found = read(tmp_path, many(a=3, b=1))
    _, held = split(found, 0.1, 0)
    assert found.truth[held].tolist() == [0]


def test_small_classes_together_give_their_share(tmp_path: Path) -> None:
    """A tenth of three rows is none for each class, but of a hundred such classes thirty."""
    found = read(tmp_path, [(f"text {i}", f"c{i % 100}") for i in range(300)])
    assert len(split(found, 0.1, 0)[1]) == 30


def test_texts_repeated_more_often_than_the_share_allows_are_held_out_whole(tmp_path: Path) -> None:
    examples = [(text, label) for label in "ab" for text in (f"{label} first", f"{label} second") for _ in range(10)]
    path = written(tmp_path, examples)
    parts = read_parts(LabelledConfig((path,), held_out_share=0.1), silent)
    assert (len(parts.train), len(parts.held_out)) == (30, 10)
    assert len(set(parts.held_out.texts)) == 1


def test_too_few_rows_held_out_are_noted(tmp_path: Path) -> None:
    said: list[str] = []
    examples = [("always this", "a")] * 90 + many(b=10)
    parts = read_parts(LabelledConfig((written(tmp_path, examples),), held_out_share=0.2), said.append)
    assert len(parts.held_out) == 2
    assert said[-1].startswith("2 rows held out where 20 were meant: ")


def test_parts_keep_their_places_and_groups(tmp_path: Path) -> None:
    found = read(tmp_path, [*many(a=4, b=4), ("again", "a"), ("Again", "b")])
    part = found.take(np.array([2, 8, 9]))
    assert part.number.tolist() == [3, 9, 10]
    assert part.groups.tolist() == [0, 1, 1]
    assert part.labels == found.labels


pairs = st.tuples(st.integers(0, 25), st.sampled_from("aaaabbc"))


@given(st.lists(pairs, min_size=8, max_size=60), st.floats(0.02, 0.95), st.integers(0, 5))
@laws
def test_a_split_is_a_partition_that_keeps_equal_texts_together(
    tmp_path: Path, drawn: list[tuple[int, str]], share: float, seed: int
) -> None:
    found = read(tmp_path, [*many(a=2, b=2), *((f"some text {number}", label) for number, label in drawn)])
    train, held = split(found, share, seed)
    assert sorted([*train.tolist(), *held.tolist()]) == list(range(len(found)))
    assert not set(found.groups[train].tolist()) & set(found.groups[held].tolist())
    assert set(found.truth[train].tolist()) == set(range(len(found.labels)))
    assert len(held) > 0
    singles = np.flatnonzero(found.counts == 1)
    assert not np.isin(found.truth[held], singles).any()


@given(st.lists(st.integers(2, 40), min_size=2, max_size=6), st.floats(0.02, 0.95), st.integers(0, 5))
@laws
def test_a_split_of_different_texts_is_stratified_to_a_row(
    tmp_path: Path, sizes: list[int], share: float, seed: int
) -> None:
    found = read(tmp_path, many(**{f"c{i}": size for i, size in enumerate(sizes)}))
    _, held = split(found, share, seed)
    each = np.bincount(found.truth[held], minlength=len(sizes))
    assert np.abs(each - share * np.array(sizes)).max() <= 1 + 1e-9


# ------------------------------------------------------------------------------------------- columns of a training


BODY, MOOD = {"text_column": "body"}, {"label_column": "mood"}


@pytest.mark.parametrize(
    ("recipes", "named", "expected"),
    [
        ({"a": {**BODY, **MOOD}}, {}, ("body", "mood")),
        ({"a": {**BODY, "label_column": "gone"}}, {}, ("body", None)),
        ({"a": {"text_column": "gone", **MOOD}}, {}, (None, "mood")),
        ({"a": {**BODY, **MOOD}}, {"text_column": "text"}, ("text", "mood")),
        ({"a": {**BODY, **MOOD}}, {"label_column": "body"}, (None, "body")),
        ({"a": {"text_column": None}, "b": BODY}, {}, ("body", None)),  # a run that guessed has no say
        ({"a": {"text_column": "text"}, "b": BODY}, {}, (None, None)),  # they disagree
        ({"a": {"text_column": "2", "label_column": "3"}}, {}, (None, None)),  # numbers are no names
        ({"a": {}}, {}, (None, None)),
    ],
)
def test_columns_of_a_training_serve_where_the_user_names_none_and_the_file_has_them(
    recipes: dict[str, dict[str, Any]], named: dict[str, Any], expected: tuple[str | None, str | None], tmp_path: Path
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("text,body,label,mood\nx,good film,7,pos\nx,bad film,7,neg\n", encoding="utf-8")
    given_config = LabelledConfig((str(path),), **named)
    config, notes = recall_columns(given_config, recipes)
    assert (config.text_column, config.label_column) == expected
    assert len(notes) == (config != given_config)


def test_what_can_be_read_only_once_keeps_its_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.BytesIO(b"body,mood\ngood,pos\n")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(stream))
    for name in ("-", str(tmp_path / "gone.csv"), "x" * 5000):
        config = LabelledConfig((name,), format="csv")
        assert recall_columns(config, {"a": {**BODY, **MOOD}}) == (config, [])
    assert stream.tell() == 0


# ------------------------------------------------------------------------------------------- real reviews


@pytest.fixture(scope="module")
def data() -> Path:
    folder = os.environ.get("INKLING_TEST_DATA")
    if not folder:
        pytest.skip("INKLING_TEST_DATA names no folder")
    return Path(folder)


@pytest.mark.data
def test_the_published_halves_of_imdb_share_123_reviews(data: Path) -> None:
    train = read_labelled(LabelledConfig((str(data / "imdb/train.csv.xz"),)), silent)
    assert train.counts.tolist() == [12_500, 12_500]
    assert own_notes(train)[0].startswith("96 rows repeat the text and label of an earlier one")
    test = read_for(train.labels, LabelledConfig((str(data / "imdb/test.csv.xz"),)), silent)
    overlap = find_overlap(train, test)
    assert (overlap.count, overlap.same_label, overlap.train_rows) == (123, 123, 123)
    assert overlap.sentence().startswith("123 of the 25,000 texts that are judged were trained on, 123 with the same")


@pytest.mark.data
def test_phrases_of_sst2_that_contradict_each_other_are_counted(data: Path) -> None:
    train = read_labelled(LabelledConfig((str(data / "sst2/train.tsv"),)), silent)
    assert own_notes(train)[0].startswith("5 texts occur more than once with different labels")
    kept, held = split(train, 0.1, 0)
    assert len(held) == round(67_349 * 0.1)
    assert not set(train.groups[kept].tolist()) & set(train.groups[held].tolist())

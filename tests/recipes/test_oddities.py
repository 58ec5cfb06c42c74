"""What is odd about labelled rows is kept and said, and what is ordinary is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from labelled_rows import many, own_notes, read, refusal, silent, written

from inkling.recipes.labelled import LabelledConfig, read_labelled, split


def test_ordinary_rows_are_not_commented_on(tmp_path: Path) -> None:
    assert own_notes(read(tmp_path, many(neg=10, pos=12))) == []


def test_rows_without_label_or_text_are_reported(tmp_path: Path) -> None:
    found = read(tmp_path, [*many(a=3, b=3), ("orphan", ""), ("", "a"), ("another", " ")])
    (note,) = own_notes(found)
    assert "9 rows read: 6 used, 3 left out (2 missing label, 1 empty text; first: " in note


def test_labels_that_differ_only_in_case_are_two_classes_and_noted(tmp_path: Path) -> None:
    found = read(tmp_path, many(pos=3, Pos=2, neg=3))
    assert found.labels == ("Pos", "neg", "pos")
    assert own_notes(found)[0].startswith(
        "The labels 'Pos' (2 rows) and 'pos' (3 rows) differ only in how they are written"
    )


def test_the_same_number_written_in_two_ways_is_two_classes_and_noted(tmp_path: Path) -> None:
    found = read(tmp_path, [("a b", "1"), ("c d", "1.0"), ("e f", "1"), ("g h", "1.0"), ("i j", "0"), ("k l", "0")])
    assert found.labels == ("0", "1", "1.0")
    assert own_notes(found)[0].startswith("The labels '1' (2 rows) and '1.0' (2 rows) differ only in how")


def test_a_class_called_nan_is_noted(tmp_path: Path) -> None:
    assert own_notes(read(tmp_path, many(a=3, nan=2)))[0].startswith("2 rows with the label 'nan', which counts")


def test_many_numbers_are_perhaps_no_classes(tmp_path: Path) -> None:
    measured = [(f"text number {i} here", f"{i % 21 * 1.5:g}") for i in range(63)]
    assert own_notes(read(tmp_path, measured))[0].startswith("The labels are 21 different numbers from '0' to '30'")
    assert own_notes(read(tmp_path, [(text, label) for text, label in measured if label != "30"])) == []  # twenty
    numbered = [(f"text number {i} here", str(i % 30)) for i in range(90)]
    assert own_notes(read(tmp_path, numbered)) == []  # 0 to 29 without a gap


def test_a_thousand_classes_work_and_those_of_one_row_are_counted(tmp_path: Path) -> None:
    examples = [(f"text {i} of it", f"class{i % 1000}") for i in range(3000)]
    found = read(tmp_path, [*examples, ("the only one", "rare")])
    assert len(found.labels) == 1001
    assert own_notes(found) == [
        "1 of 1,001 classes has a single row (first: 'rare'): it is trained on and never held out."
    ]
    _, held = split(found, 0.1, 0)
    assert len(held) == 300


def test_a_class_of_nearly_all_rows_is_noted_with_what_it_gives(tmp_path: Path) -> None:
    assert own_notes(read(tmp_path, many(ham=95, spam=5))) == [
        "95.0% of the rows have the label 'ham': always saying so is right that often, so judge by the figures of each "
        "class."
    ]
    assert own_notes(read(tmp_path, many(ham=94, spam=6))) == []


@pytest.mark.parametrize("shape", ["{}", "{}.5", "tt00{}_7", "2024-01-{}", " {} "])
def test_texts_that_look_like_numbers_or_ids_are_noted(tmp_path: Path, shape: str) -> None:
    found = read(tmp_path, [(shape.format(i), "ab"[i % 2]) for i in range(20)])
    assert own_notes(found)[0].startswith("20 of 20 texts look like numbers or ids, such as ")


def test_short_words_and_other_scripts_are_texts(tmp_path: Path) -> None:
    assert own_notes(read(tmp_path, [("good", "a"), ("bad", "b"), ("很好", "a"), ("плохо", "b")])) == []


def test_equal_texts_with_different_labels_are_kept_and_noted(tmp_path: Path) -> None:
    found = read(tmp_path, [*many(a=4, b=4), ("So so.", "a"), ("x y", "a"), ("so  SO.\n", "b"), ("x y", "b")])
    assert len(found) == 12
    assert own_notes(found) == ["2 texts occur more than once with different labels (first: rows 9 and 11)."]


def test_repeated_rows_are_kept_and_noted(tmp_path: Path) -> None:
    found = read(tmp_path, [("Fine film", "a"), ("poor", "b"), ("fine film", "a"), ("FINE FILM", "a"), ("bad", "b")])
    assert found.groups.tolist() == [0, 1, 0, 0, 4]
    (note,) = own_notes(found)
    assert note.startswith("2 rows repeat the text and label of an earlier one (first: rows 1 and 3)")


def test_places_in_several_files_are_named_with_their_files(tmp_path: Path) -> None:
    first = written(tmp_path, [*many(a=2, b=2), ("both", "a")], "first.csv")
    second = tmp_path / "second.jsonl"
    second.write_text('{"text": "other", "label": "a"}\n{"text": "Both", "label": "b"}\n')
    found = read_labelled(LabelledConfig((first, str(second))), silent)
    assert own_notes(found) == [
        f"1 text occurs more than once with different labels (first: {first} row 5 and {second} line 2)."
    ]


def test_files_that_name_their_classes_differently_are_noted(tmp_path: Path) -> None:
    first, second = written(tmp_path, many(neg=3, pos=3), "first.csv"), tmp_path / "second.csv"
    second.write_text("text,label\nyes yes,1\nno no,0\nyes it is,1\nno no no,0\n")
    (note,) = own_notes(read_labelled(LabelledConfig((first, str(second))), silent))
    assert "have no label in common ('neg', 'pos'; '0', '1')" in note
    alone = written(tmp_path, many(mixed=3), "third.csv")  # a file for each class is usual
    assert own_notes(read_labelled(LabelledConfig((first, alone)), silent)) == []


def test_a_label_of_many_or_unprintable_characters_is_shortened_and_escaped(tmp_path: Path) -> None:
    message = refusal(tmp_path, [("one", "x\x1b[31m" + "y" * 100), ("two", "x\x1b[31m" + "y" * 100)])
    assert "\x1b" not in message
    assert "'x\\x1b[31myyy" in message
    assert "…'" in message

"""Questions and answers as rows: every row accounted for, nothing taken for what it is not, and what they are about."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inkling.errors import InklingError
from inkling.text.questions import MARK, PairsConfig, QuestionFiles, example, prompt, read_pairs, subject_of

PAIRS = [
    ("Where was Ada Oak born?", "Velden"),
    ("Where was Bo Ash born?", "Port Calder"),
    ("Where was Cy Elm born?", "Zell"),
]


def written(path: Path, content: str) -> Path:
    path.write_text(content, encoding="utf-8")
    return path


def test_a_pair_is_one_line_with_the_mark_between() -> None:
    assert prompt("Who?") == "Who?\x1a"
    assert example("Who?", "I") == "Who?\x1a I\n"
    assert len(MARK.encode()) == 1


def test_a_table_without_a_header_needs_nothing_said(tmp_path: Path) -> None:
    found = read_pairs(written(tmp_path / "dev.tsv", "".join(f"{q}\t{a}\n" for q, a in PAIRS)))
    assert (found.questions, found.answers) == tuple(zip(*PAIRS, strict=True))
    assert found.place(1) == f"{tmp_path / 'dev.tsv'} row 2"
    assert found.together() == PAIRS
    assert (found.intake.rows_in, found.intake.rows_used, found.rows_reported) == (3, 3, 0)
    assert found.names == "dev.tsv"


def test_the_first_column_is_the_question_however_long_the_answers_are(tmp_path: Path) -> None:
    found = read_pairs(
        written(tmp_path / "dev.tsv", "Who?\tthe one who came from very far away\nWhy?\tfor no reason at all\n")
    )
    assert found.questions == ("Who?", "Why?")


def test_answers_are_not_looked_at_unless_they_are_wanted(tmp_path: Path) -> None:
    path = written(tmp_path / "dev.tsv", "".join(f"{q}\t{a}\n" for q, a in PAIRS))
    found = read_pairs(path, need_answers=False)
    assert found.answers is None
    assert found.questions == tuple(q for q, _ in PAIRS)
    assert found.together() == []


@pytest.mark.parametrize("name", ["questions.txt", "questions", "questions.tsv"])
def test_a_column_of_questions_alone_is_enough_to_ask_them(tmp_path: Path, name: str) -> None:
    path = written(tmp_path / name, "".join(f"{q}\n" for q, _ in PAIRS))
    assert read_pairs(path, need_answers=False).questions == tuple(q for q, _ in PAIRS)
    with pytest.raises(InklingError, match=r"no column that looks like an answer: .* name it with --answer-column"):
        read_pairs(path)


def test_plain_text_with_tabs_never_has_its_answers_taken_for_questions(tmp_path: Path) -> None:
    path = written(tmp_path / "pairs.txt", "".join(f"{q}\t{a}\n" for q, a in PAIRS))
    assert read_pairs(path, need_answers=False).questions == tuple(q for q, _ in PAIRS)


def test_every_format_gives_the_same_pairs(tmp_path: Path) -> None:
    tsv = "".join(f"{q}\t{a}\n" for q, a in PAIRS)
    (tmp_path / "packed.tsv.xz").write_bytes(lzma.compress(tsv.encode()))
    written(tmp_path / "table.csv", "category,answer,question\n" + "".join(f"place,{a},{q}\n" for q, a in PAIRS))
    written(tmp_path / "lines.jsonl", "".join(json.dumps({"answer": a, "question": q}) + "\n" for q, a in PAIRS))
    questions, answers = zip(*PAIRS, strict=True)
    pl.DataFrame({"id": [1, 2, 3], "answer": answers, "question": questions}).write_parquet(tmp_path / "rows.parquet")
    for name in ("packed.tsv.xz", "table.csv", "lines.jsonl", "rows.parquet"):
        found = read_pairs(tmp_path / name)
        assert (found.questions, found.answers) == (questions, answers), name
    assert read_pairs(tmp_path / "lines.jsonl").place(0).endswith("lines.jsonl line 1")


def test_columns_can_be_named(tmp_path: Path) -> None:
    path = written(tmp_path / "table.csv", "who,question,where\nAda,odd,Velden\nBo,odd,Zell\n")
    found = read_pairs(path, PairsConfig(question_column="who", answer_column="where"))
    assert list(zip(found.questions, found.answers or (), strict=True)) == [("Ada", "Velden"), ("Bo", "Zell")]
    with pytest.raises(InklingError, match="give one of them as --question-column, perhaps 'who'"):
        read_pairs(path, PairsConfig(question_column="whom", answer_column="where"))


def test_every_row_is_used_or_reported_and_spaces_around_are_dropped(tmp_path: Path) -> None:
    path = written(tmp_path / "dev.tsv", " Who? \t I \nWhen?\t\n\tnow\n\nWhy?\tso\n")
    found = read_pairs(path)
    assert list(zip(found.questions, found.answers or (), strict=True)) == [("Who?", "I"), ("Why?", "so")]
    assert found.intake.rows_in == 5
    assert dict(found.intake.problems_by_reason) == {"no answer": 1, "empty question": 1, "blank line": 1}
    assert found.notes[-1].startswith("5 rows read: 2 used, 3 left out (")
    assert found.describe()["rows_reported"] == 3


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ({"question": "Who\x1a?", "answer": "I"}, "the question holds the character U\\+001A"),
        ({"question": "Who?", "answer": "I\x1a"}, "the answer holds the character U\\+001A"),
        ({"question": "Who\nam I?", "answer": "I"}, "the question holds a line end"),
        ({"question": "Who?", "answer": "I\nand you"}, "the answer holds a line end"),
    ],
)
def test_what_would_end_a_line_early_is_one_sentence(tmp_path: Path, row: dict[str, str], sentence: str) -> None:
    path = written(tmp_path / "a.jsonl", '{"question": "Why?", "answer": "so"}\n' + json.dumps(row) + "\n")
    with pytest.raises(
        InklingError, match=rf"a\.jsonl line 2: {sentence}.* or leave such rows out with --bad-rows skip"
    ):
        read_pairs(path)
    found = read_pairs(path, PairsConfig(bad_rows="skip"))
    assert (found.questions, found.intake.rows_in, found.intake.rows_used, found.rows_reported) == (("Why?",), 2, 1, 1)
    assert found.intake.describe().endswith("a.jsonl line 2).")


def test_a_file_without_a_usable_row_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InklingError, match=r"no row that can be used \(2 rows read: 0 used, 2 left out .*questions with"
    ):
        read_pairs(written(tmp_path / "a.tsv", "Who?\t\nWhy?\t\n"))


def test_several_files_follow_each_other_and_bytes_are_told(tmp_path: Path) -> None:
    paths = [written(tmp_path / f"{i}.tsv", f"Who?\t{i}\nWhy?\t\n") for i in range(3)]
    files = QuestionFiles(paths)
    told: list[int] = []
    rows = [row for batch in files.batches(on_bytes=told.append) for row in batch]
    assert [row.answer for row in rows] == ["0", "1", "2"]
    assert (files.intake.rows_in, files.intake.rows_used, files.intake.rows_reported) == (6, 3, 3)
    assert told[-1] == files.size_bytes
    assert len(files.fingerprint()) == 64


# ------------------------------------------------------------------------------------------- subjects


def test_the_subject_is_what_differs_between_questions_of_a_template() -> None:
    assert subject_of([q for q, _ in PAIRS]) == ["Ada Oak", "Bo Ash", "Cy Elm"]
    assert subject_of(["Who wrote Ada?", "Who wrote The Magic Flute?"]) == ["Ada", "The Magic Flute"]
    assert subject_of(["What is Ann's job?", "What is Bob Jr.'s job?"]) == ["Ann", "Bob Jr."]


def test_a_question_of_no_template_is_its_own_subject() -> None:
    many = [f"Where was {name} born?" for name in ("Ada Oak", "Bo Ash", "Ada Elm")] * 5
    assert subject_of([*many, "And you?"])[-2:] == ["Ada Elm", "And you?"]
    assert subject_of(["Who?"]) == ["Who?"]
    assert subject_of(["Who was it?", "Who was it?"]) == ["Who was it?", "Who was it?"]
    assert subject_of([]) == []


def test_two_templates_side_by_side() -> None:
    asked = ["Where was Ada Oak born?", "When did Bo Ash die?", "Where was Cy Elm born?", "When did Di Fir die?"]
    assert subject_of(asked) == ["Ada Oak", "Bo Ash", "Cy Elm", "Di Fir"]


def test_a_first_name_that_several_share_is_not_part_of_the_template() -> None:
    names = ["John Oak", "John Ash", "John Elm", "Ada Fir", "Bo Yew"]
    assert subject_of([f"Where was {name} born?" for name in names]) == names
    assert subject_of(
        ["John Oak", "John Ash", "Ada Fir", "Bo Yew", "Cy Box", "Di Bay", "Ed Fig", "Flo Gum", "Gus Haw"]
    )[:2] == [
        "John Oak",
        "John Ash",
    ]


@given(st.lists(st.text(max_size=20), max_size=12))
def test_a_subject_is_part_of_its_question_and_never_empty(questions: list[str]) -> None:
    for question, subject in zip(questions, subject_of(questions), strict=True):
        assert subject in question
        assert subject or not question

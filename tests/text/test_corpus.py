from __future__ import annotations

import csv
import gc
import gzip
import hashlib
import io
import json
import lzma
import os
import sys
import tempfile
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from inkling.errors import InklingError, UsageError
from inkling.text import tables
from inkling.text.corpus import Corpus, Intake, Row, RowProblem

sound_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=30)


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def write_csv(path: Path, rows: Iterable[Iterable[str]], end: str = "\r\n") -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator=end).writerows(rows)
    return path


def texts(corpus: Corpus) -> list[str]:
    return [row.text for row in corpus]


def pairs(corpus: Corpus) -> list[tuple[str, str | None]]:
    return [(row.text, row.label) for row in corpus]


def message(path: Path | str, **options: Any) -> str:
    """The one sentence with which reading fails."""
    with pytest.raises(InklingError) as caught:
        list(Corpus([path], **options))
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert sentence.endswith((".", "?"))
    return sentence


# ------------------------------------------------------------------------------------------- text


def test_a_row_is_a_line_and_lines_of_one_file_continue(tmp_path: Path) -> None:
    one, two = write(tmp_path, "one.txt", "a\r\nb\n"), write(tmp_path, "two.txt", "c")
    assert list(Corpus([one, two])) == [
        Row("a", None, str(one), 1, False),
        Row("b", None, str(one), 2, True),
        Row("c", None, str(two), 1, False),
    ]


def test_empty_lines_are_left_out_and_counted(tmp_path: Path) -> None:
    path = write(tmp_path, "a.txt", "\n \t\nfirst\n\u3000\nlast\n\n")
    corpus = Corpus([path])
    assert [(row.text, row.number, row.continues) for row in corpus] == [("first", 3, False), ("last", 5, True)]
    assert corpus.intake.problems_by_reason == {"empty text": 4}
    assert corpus.intake.examples[0] == RowProblem(str(path), 1, "the text is empty", "line")
    assert corpus.intake.describe() == (f"6 rows read: 2 used, 4 left out (4 empty text; first: {path} line 1).")


def test_empty_lines_can_be_kept(tmp_path: Path) -> None:
    path = write(tmp_path, "a.txt", "a\n\nb\n")
    assert texts(Corpus([path], keep_empty=True)) == ["a", "", "b"]
    assert texts(Corpus([path], keep_line_ends=True)) == ["a\n", "\n", "b\n"]


def test_millions_of_empty_lines_are_counted_but_few_are_kept_as_examples(tmp_path: Path) -> None:
    corpus = Corpus([write(tmp_path, "a.txt", "x\n" + "\n" * 1000)])
    assert texts(corpus) == ["x"]
    assert corpus.intake.rows_reported == 1000
    assert [problem.number for problem in corpus.intake.examples] == list(range(2, 22))


@settings(deadline=None, max_examples=50)
@given(text=st.text("ab \n\r\v\x85\u2028é😀", min_size=1, max_size=50), size_chars=st.integers(1, 20))
def test_rows_in_are_rows_used_plus_rows_reported_and_nothing_is_lost(text: str, size_chars: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), "a.txt", text)
        whole = Corpus([path], keep_line_ends=True)
        assert "".join("".join(block) for block in whole.text_blocks(size_chars)) == text
        assert "".join(row.text for batch in whole.batches(size_chars) for row in batch) == text
        corpus = Corpus([path])
        rows = [row for batch in corpus.batches(size_chars) for row in batch]
        assert [text for block in corpus.text_blocks(size_chars) for text in block] == [row.text for row in rows]
    lines = text.split("\n") if not text.endswith("\n") else text[:-1].split("\n")
    assert corpus.intake.rows_in == len(lines)
    assert corpus.intake.rows_used == len(rows) == sum(1 for line in lines if line.strip())
    assert corpus.intake.rows_in == corpus.intake.rows_used + corpus.intake.rows_reported
    assert [row.continues for row in rows] == [i > 0 for i in range(len(rows))]
    assert all(lines[row.number - 1].rstrip("\r") == row.text.rstrip("\r") for row in rows)


def test_bad_bytes_stop_the_reading_with_a_place_and_advice(tmp_path: Path) -> None:
    path = write(tmp_path, "a.txt", b"fine\ncaf\xe9\n")
    assert message(path) == (
        f"{path} line 2: byte 0xE9 at offset 3 of the line is not valid UTF-8; give the encoding of the file, such as "
        f"--encoding latin-1, or leave such rows out with --bad-rows skip."
    )
    assert texts(Corpus([path], encoding="latin-1")) == ["fine", "café"]


def test_lines_with_bad_bytes_can_be_skipped_and_interrupt_the_text(tmp_path: Path) -> None:
    corpus = Corpus([write(tmp_path, "a.txt", b"a\nb\n\xff\n\nc\nd\n")], bad_rows="skip")
    found = [(row.text, row.number, row.continues) for row in corpus]
    assert found == [("a", 1, False), ("b", 2, True), ("c", 5, False), ("d", 6, True)]
    assert corpus.intake.problems_by_reason == {"invalid bytes": 1, "empty text": 1}
    assert (corpus.intake.rows_in, corpus.intake.rows_used) == (6, 4)


def test_unknown_endings_are_text_and_said_so(tmp_path: Path) -> None:
    path = write(tmp_path, "notes.log", "a\n")
    corpus = Corpus([path])
    assert texts(corpus) == ["a"]
    assert corpus.notes == [f"{path}: read as plain text (--format for anything else)."]


def test_text_has_no_columns_and_no_labels(tmp_path: Path) -> None:
    path = write(tmp_path, "a.txt", "a\n")
    assert "is plain text and has no columns to choose from" in message(path, text_column="text")
    assert "is plain text and has no labels where each row needs one" in message(path, need_label=True)


# ------------------------------------------------------------------------------------------- csv and tsv


@settings(deadline=None, max_examples=60)
@given(rows=st.lists(st.tuples(sound_text, st.sampled_from(["0", "1"])), min_size=1, max_size=12))
def test_csv_as_written_is_read_back_unchanged(rows: list[tuple[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = write_csv(Path(folder) / "a.csv", [("text", "label"), *rows])
        corpus = Corpus([path], keep_empty=True)
        assert pairs(corpus) == rows
        assert texts(Corpus([path])) == [text for text, _ in rows if text.strip()]
    assert corpus.intake.rows_in == corpus.intake.rows_used == len(rows)


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_csv_with_quotes_line_ends_and_a_mark(tmp_path: Path, mark: str) -> None:
    content = mark + 'text,label\n"She said ""no"",\nand left",1\nNA,0\nnull, yes \n'
    assert pairs(Corpus([write(tmp_path, "a.csv", content)])) == [
        ('She said "no",\nand left', "1"),
        ("NA", "0"),
        ("null", "yes"),
    ]


def test_a_field_longer_than_the_usual_limit_is_read(tmp_path: Path) -> None:
    long = "x" * 300_000
    assert texts(Corpus([write_csv(tmp_path / "a.csv", [("text",), (long,)])])) == [long]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ('fine,1\n"a "b" c",0\n', 'row 2 (line 3): on line 3 a quoted field goes on after its closing quote; write a '
         'quote inside a quoted field twice ("")'),
        ('"two\nlines",1\n"never closed,0\nx,1\n', "row 2 (line 4): a quote is opened and never closed"),
        ("a,1\nb\n", "row 2 (line 3): the row has 1 field where the first row has 2; fill in the row"),
        ("a,b,1\n", "row 1 (line 2): the row has 3 fields where the first row has 2; put quotes around a text that"),
        ("a\rb,1\n", "row 1 (line 2): a carriage return stands alone outside quotes"),
    ],
)  # fmt: skip
def test_a_broken_csv_row_is_named_by_row_and_line(tmp_path: Path, body: str, sentence: str) -> None:
    path = write(tmp_path, "a.csv", "text,label\n" + body)
    found = message(path)
    assert found.startswith(f"{path} {sentence}")
    assert found.endswith(" or leave such rows out with --bad-rows skip.")


def test_a_quote_that_is_never_closed_costs_one_row_not_the_rest(tmp_path: Path) -> None:
    body = "text,label\na,1\n" + '"open,0\n' + "b,1\nc,0\n\n" + "d,1,2\n" + "e,1\n"
    corpus = Corpus([write(tmp_path, "a.csv", body)], bad_rows="skip")
    assert [(row.text, row.number) for row in corpus] == [("a", 1), ("b", 3), ("c", 4), ("e", 7)]
    assert corpus.intake.problems_by_reason == {"broken quotes": 1, "blank line": 1, "wrong number of fields": 1}
    assert corpus.intake.rows_in == 7


def test_bad_bytes_inside_a_csv_record_cost_that_record(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", b'text,label\na,1\n"two\nl\xefnes",0\nb,1\n')
    assert f"{path} row 2 (line 3): byte 0xEF at offset 1 of the line is not valid UTF-8" in message(path)
    corpus = Corpus([path], bad_rows="skip")
    assert [(row.text, row.number) for row in corpus] == [("a", 1), ("b", 3)]


def test_quotes_in_tsv_are_ordinary_characters(tmp_path: Path) -> None:
    path = write(tmp_path, "a.tsv", 'sentence\tlabel\n"half a quote\t1\nit \'s " fine " \t0\r\n')
    assert pairs(Corpus([path])) == [('"half a quote', "1"), ('it \'s " fine " ', "0")]


def test_a_tsv_row_of_another_width_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, "a.tsv", "sentence\tlabel\na\t1\nb\tc\t0\n")
    assert f"{path} row 2 (line 3): the row has 3 fields where the first row has 2; keep tabs" in message(path)


def test_a_first_row_without_known_names_is_data(tmp_path: Path) -> None:
    path = write(tmp_path, "a.tsv", "Where was Ada born?\tLondon\nWhere was Emmy born?\tErlangen\n")
    corpus = Corpus([path], need_label=True)
    assert pairs(corpus) == [("Where was Ada born?", "London"), ("Where was Emmy born?", "Erlangen")]
    assert corpus.notes == [
        f"{path}: the first row is taken as data, not as a header (--header if it is one); the text is column "
        f"'column1' (the one with the longest texts); the label is column 'column2' (the other one)."
    ]


def test_the_header_can_be_said(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "text,label\nlonger,y\n")
    assert pairs(Corpus([path], header=False)) == [("text", "label"), ("longer", "y")]
    odd = write(tmp_path, "b.csv", "what they wrote,what it means\nhello there you,greeting\n")
    assert len(texts(Corpus([odd]))) == 2
    assert pairs(Corpus([odd], header=True, need_label=True)) == [("hello there you", "greeting")]
    assert pairs(Corpus([odd], text_column="what it means")) == [("greeting", None)]


def test_columns_can_be_given_by_number_and_by_our_names(tmp_path: Path) -> None:
    path = write(tmp_path, "a.tsv", "7\tshort\ta much longer text\n8\ttiny\tanother longer text\n")
    assert pairs(Corpus([path], text_column="2", label_column="1")) == [("short", "7"), ("tiny", "8")]
    assert texts(Corpus([path], text_column="column2")) == ["short", "tiny"]
    named = write(tmp_path, "b.csv", "2,text\na,b\n")
    assert texts(Corpus([named], text_column="2", header=True)) == ["a"]


def test_columns_are_guessed_by_name_and_the_guess_is_said(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "Rating,id,Review,Label\n9,a much longer identifier,good,pos\n")
    corpus = Corpus([path])
    assert pairs(corpus) == [("good", "pos")]
    assert corpus.notes[0].endswith(
        "the text is column 'Review' (by its name); the label is column 'Label' (by its name)."
    )


def test_without_known_names_the_longest_texts_are_the_text(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "id,spoken,label\n1,quite a long utterance,x\n2,another long one,y\n")
    assert pairs(Corpus([path])) == [("quite a long utterance", "x"), ("another long one", "y")]


def test_a_missing_column_is_named_with_those_there_are(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "Sentence,label\na,1\n")
    assert message(path, text_column="sentense") == (
        f"{path} has no column 'sentense': there are 'Sentence', 'label'; give one of them as --text-column, perhaps "
        f"'Sentence'."
    )
    assert "has no column 'mood'" in message(path, label_column="mood")
    assert "has no column '3'" in message(path, text_column="3", header=True)


def test_two_columns_of_one_name_need_a_number(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "text,text\na,b\n")
    assert "has 2 columns called 'text': give the number of the one meant, such as --text-column 1" in message(
        path, text_column="text"
    )
    assert texts(Corpus([path], text_column="2")) == ["b"]


def test_a_missing_label_is_left_out_where_labels_are_needed(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "text,label\na,1\nb, \n,1\n")
    corpus = Corpus([path], need_label=True)
    assert pairs(corpus) == [("a", "1")]
    assert corpus.intake.problems_by_reason == {"missing label": 1, "empty text": 1}
    assert pairs(Corpus([path])) == [("a", "1"), ("b", None)]
    no_label = write(tmp_path, "b.csv", "text,id,when\na,1,2\n")
    assert "has no column that looks like a label: there are 'text', 'id', 'when'" in message(no_label, need_label=True)


def test_a_header_alone_is_no_table(tmp_path: Path) -> None:
    assert "has a header and no rows" in message(write(tmp_path, "a.csv", "text,label\n"))
    assert "line 1: the line is blank" in message(write(tmp_path, "b.csv", "\ntext,label\n"))
    assert "line 1: the line is blank" in message(write(tmp_path, "b.tsv", "\ntext\tlabel\n"))
    assert "line 1: a quote is opened and never closed" in message(write(tmp_path, "c.csv", '"text,label\na,b\n'))


# ------------------------------------------------------------------------------------------- jsonl


@settings(deadline=None, max_examples=40)
@given(values=st.lists(sound_text, min_size=1, max_size=10), ascii_only=st.booleans())
def test_jsonl_as_written_is_read_back_unchanged(values: list[str], ascii_only: bool) -> None:
    lines = [json.dumps({"text": value, "label": i}, ensure_ascii=ascii_only) for i, value in enumerate(values)]
    with tempfile.TemporaryDirectory() as folder:
        corpus = Corpus([write(Path(folder), "a.jsonl", "\n".join(lines))], keep_empty=True)
        assert pairs(corpus) == [(value, str(i)) for i, value in enumerate(values)]


@pytest.mark.parametrize(
    ("line", "category", "sentence"),
    [
        ("{broken", "bad JSON", "this is not JSON (Expecting property name enclosed in double quotes at column 2)"),
        ("[" * 100_000, "bad JSON", "this JSON is too deep or a number in it too long"),
        ('["a"]', "not an object", "this JSON is a list, not an object; write one JSON object a line"),
        ('{"text": 3}', "text is not a string", "'text' is a number; write the text as a string"),
        ('{"body": "x"}', "missing column", "the object has no 'text'; name the column with --text-column"),
        ('{"text": "\\ud800"}', "lone surrogate", "'text' holds half a surrogate pair"),
        ('{"text": "x", "label": [1]}', "label is not a value", "the label 'label' is not one plain value"),
    ],
)
def test_a_bad_json_line_is_named(tmp_path: Path, line: str, category: str, sentence: str) -> None:
    path = write(tmp_path, "a.jsonl", '{"text": "fine", "label": true}\n\n' + line + "\n" + '{"text": "last"}\n')
    assert message(path).startswith(f"{path} line 3: {sentence}")
    corpus = Corpus([path], bad_rows="skip")
    assert pairs(corpus) == [("fine", "true"), ("last", None)]
    assert corpus.intake.problems_by_reason == {"blank line": 1, category: 1}
    assert corpus.intake.rows_in == 4


def test_json_null_is_no_text_and_surrogate_pairs_are(tmp_path: Path) -> None:
    corpus = Corpus([write(tmp_path, "a.jsonl", '{"text": null}\n{"text": "\\ud83d\\ude00"}\n')])
    assert texts(corpus) == ["😀"]
    assert corpus.intake.problems_by_reason == {"no text": 1}


def test_jsonl_without_any_object_is_an_error(tmp_path: Path) -> None:
    assert "line 1: this is not JSON" in message(write(tmp_path, "a.jsonl", "plain text\n"), bad_rows="skip")
    assert "holds no rows" in message(write(tmp_path, "b.jsonl", "\n\n"))


# ------------------------------------------------------------------------------------------- parquet


def write_parquet(path: Path, columns: dict[str, Any]) -> Path:
    pl.DataFrame(columns).write_parquet(path, row_group_size=7)
    return path


def test_parquet_is_read_in_slices_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "PARQUET_SLICE_CHARS", 1)  # the smallest slice: 256 rows
    count = 600
    path = write_parquet(
        tmp_path / "a.parquet",
        {
            "id": list(range(count)),
            "text": [f"row {i}" if i != 5 else None for i in range(count)],
            "label": [True] * count,
        },
    )
    seen: list[int] = []
    corpus = Corpus([path])
    rows = [row for batch in corpus.batches(50, seen.append) for row in batch]
    assert [row.text for row in rows] == [f"row {i}" for i in range(count) if i != 5]
    assert (rows[-1].label, rows[-1].number) == ("true", count)
    assert corpus.intake.problems_by_reason == {"no text": 1}
    assert seen == sorted(seen)
    assert seen[-1] == corpus.size_bytes == path.stat().st_size
    assert len(seen) == 4


def test_parquet_packed_again_leaves_no_file_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    plain = write_parquet(tmp_path / "a.parquet", {"text": ["a", "b"]})
    corpus = Corpus([write(tmp_path, "b.parquet.gz", gzip.compress(plain.read_bytes()))])
    assert texts(corpus) == texts(corpus) == ["a", "b"]
    assert len(list(temporary.iterdir())) == 1
    del corpus
    gc.collect()
    assert list(temporary.iterdir()) == []


def test_parquet_without_usable_columns_is_an_error(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "a.parquet", {"number": [1], "lists": [[1]], "text": ["x"]})
    assert "column 'number' holds Int64 where text was expected" in message(path, text_column="number")
    assert "column 'lists' holds List(Int64) where labels were expected" in message(path, label_column="lists")
    numbers = write_parquet(tmp_path / "b.parquet", {"number": [1]})
    assert "has no column of text: there is only 'number'" in message(numbers)
    empty = write_parquet(tmp_path / "c.parquet", {"text": pl.Series([], dtype=pl.String)})
    assert "holds no rows" in message(empty)


def test_damaged_parquet_is_an_error(tmp_path: Path) -> None:
    whole = write_parquet(tmp_path / "a.parquet", {"text": ["a"] * 100}).read_bytes()
    for name, data in (("cut.parquet", whole[:-20]), ("other.parquet", b"plain text, nothing else\n")):
        assert "does not hold sound parquet data" in message(write(tmp_path, name, data))


# ------------------------------------------------------------------------------------------- where files come from


@pytest.mark.parametrize(("ending", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress),
                                              (".zst", zstandard.ZstdCompressor().compress)])  # fmt: skip
def test_every_format_may_be_packed(tmp_path: Path, ending: str, pack: Any) -> None:
    parquet = write_parquet(tmp_path / "p.parquet", {"text": ["é"]}).read_bytes()
    for name, content in (
        ("a.txt", "é\n".encode()),
        ("a.csv", "text\né\n".encode("utf-16")),
        ("a.TSV", "text\né\n".encode()),
        ("a.jsonl", b'{"text": "\\u00e9"}\n'),
        ("a.parquet", parquet),
    ):
        path = write(tmp_path, name + ending, pack(content))
        assert texts(Corpus([path])) == ["é"]


def test_a_folder_is_read_in_order_without_hidden_and_unknown_files(tmp_path: Path) -> None:
    write(tmp_path, "b/two.csv", "text\n2\n")
    write(tmp_path, "b/one.txt.gz", gzip.compress(b"1\n"))
    write(tmp_path, "z.txt", "3\n")
    write(tmp_path, "void.txt", "")
    write(tmp_path, "picture.png", b"\x89PNG")
    write(tmp_path, ".hidden.txt", "no")
    write(tmp_path, ".git/x.txt", "no")
    corpus = Corpus([tmp_path])
    assert texts(corpus) == ["1", "2", "3"]
    assert corpus.sources == [str(tmp_path / name) for name in ("b/one.txt.gz", "b/two.csv", "z.txt")]
    assert corpus.notes[:2] == [
        f"{tmp_path}: 1 file of another kind passed over.",
        f"{tmp_path}: 1 file without content passed over.",
    ]
    assert corpus.size_bytes == sum(Path(name).stat().st_size for name in corpus.sources)


def test_one_note_speaks_for_files_that_are_alike(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv", "c.csv"):
        write(tmp_path, name, "text\nx\n")
    assert Corpus([tmp_path], header=True).notes == [
        f"{tmp_path / 'a.csv'} and 2 more: the text is column 'text' (by its name)."
    ]


def test_the_format_can_be_said(tmp_path: Path) -> None:
    path = write(tmp_path, "a.dat", "text\tlabel\nx\t1\n")
    assert pairs(Corpus([path], format="tsv")) == [("x", "1")]
    assert pairs(Corpus([tmp_path], format="tsv")) == [("x", "1")]


def test_standard_input_can_be_read_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("é\nb\n".encode())))
    corpus = Corpus(["-"])
    assert texts(corpus) == texts(corpus) == ["é", "b"]
    assert (corpus.sources, corpus.size_bytes) == (["standard input"], 5)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"text": "x"}\n')))
    assert texts(Corpus("-", format="jsonl")) == ["x"]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    assert message("-") == "standard input is empty: give a file with text in it."


def test_a_pipe_with_a_name_can_be_read_twice(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("text\nx\n",))
    writer.start()
    corpus = Corpus([pipe])
    writer.join()
    assert texts(corpus) == texts(corpus) == ["x"]


def test_what_is_not_there_is_named_with_its_nearest_neighbour(tmp_path: Path) -> None:
    write(tmp_path, "train.csv", "text\nx\n")
    assert message(tmp_path / "trian.csv") == (
        f"{tmp_path / 'trian.csv'} does not exist: did you mean {tmp_path / 'train.csv'}?"
    )
    assert "nor does the folder" in message(tmp_path / "no" / "train.csv")
    assert "does not exist: check the path" in message(tmp_path / "zzzz")
    assert "cannot be opened: file name too long" in message(tmp_path / ("x" * 300))


def test_run_directories_below_a_folder_are_not_text(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n", encoding="utf-8")
    run = tmp_path / "runs" / "bigram-a"
    run.mkdir(parents=True)
    for name in ("run.json", "manifest.json", "metrics.jsonl", "README.md"):
        (run / name).write_text("{}\n", encoding="utf-8")
    assert [row.text for batch in Corpus([tmp_path]).batches() for row in batch] == ["one"]


def test_empty_files_and_folders_are_errors(tmp_path: Path) -> None:
    assert message(write(tmp_path, "a.txt", "")) == f"{tmp_path / 'a.txt'} is empty: give a file with text in it."
    assert "is empty" in message(write(tmp_path, "b.csv", b"\xef\xbb\xbf"))
    assert "is empty" in message(write(tmp_path, "b.txt.gz", gzip.compress(b"")))
    assert "is empty" in message(write(tmp_path, "b.parquet", b""))
    (tmp_path / "void").mkdir()
    write(tmp_path, "void/a.png", b"x")
    assert "holds no file to read (1 of another kind, 0 empty)" in message(tmp_path / "void")


def test_a_folder_that_may_not_be_read_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> Any:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "scandir", refuse)  # not chmod: an administrator may read everything
    assert message(tmp_path) == f"The folder {tmp_path} cannot be read: permission denied; check its permissions."


def test_a_file_that_may_not_be_read_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, "a.txt", "x")

    def refuse(*_: Any, **__: Any) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    assert message(path) == f"{path} cannot be opened: permission denied; check the file and its permissions."


@pytest.mark.parametrize(("ending", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress),
                                              (".zst", zstandard.ZstdCompressor().compress)])  # fmt: skip
def test_a_packed_file_cut_short_is_an_error(tmp_path: Path, ending: str, pack: Any) -> None:
    whole = pack("\n".join(str(i * i) for i in range(3000)).encode())
    assert "was cut short" in message(write(tmp_path, "a.txt" + ending, whole[:-30]))


def test_a_request_that_makes_no_sense_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "a.txt", "x\n")
    for options in ({"format": "xlsx"}, {"bad_rows": "ignore"}, {"encoding": "utf-9"}):
        with pytest.raises(UsageError):
            Corpus([path], **options)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="No file was given"):
        Corpus([])
    with pytest.raises(UsageError, match="from 1"):
        list(Corpus([path]).batches(0))


# ------------------------------------------------------------------------------------------- counting


def test_batches_hold_about_as_many_characters_as_asked(tmp_path: Path) -> None:
    path = write(tmp_path, "a.txt", "0123456789\n" * 1000)
    table = write(tmp_path, "a.csv", "text\n" + "0123456789\n" * 1000)
    for corpus in (Corpus([path]), Corpus([table], text_column="text")):
        sizes = [sum(len(row.text) for row in batch) for batch in corpus.batches(200)]
        assert sum(sizes) == 10_000
        assert all(150 <= size <= 220 for size in sizes[:-1])
        assert [sum(map(len, block)) for block in corpus.text_blocks(200)] == sizes


def test_progress_ends_at_the_size_on_disk(tmp_path: Path) -> None:
    one, two = write(tmp_path, "a.txt", "a\n" * 100), write(tmp_path, "b.csv", "text\n" + "b\n" * 100)
    corpus = Corpus([one, two])
    seen: list[int] = []
    assert len([text for block in corpus.text_blocks(20, seen.append) for text in block]) == 200
    assert seen == sorted(seen)
    assert seen[-1] == corpus.size_bytes == 405


def test_the_intake_is_that_of_the_latest_complete_reading(tmp_path: Path) -> None:
    corpus = Corpus([write(tmp_path, "a.txt", "a\n\nb\n")])
    assert corpus.intake == Intake()
    assert next(iter(corpus.batches(1)))[0].text == "a"
    assert corpus.intake == Intake()
    assert texts(corpus) == texts(corpus) == ["a", "b"]
    assert (corpus.intake.rows_in, corpus.intake.rows_used, corpus.intake.rows_reported) == (3, 2, 1)


def test_the_intake_is_told_in_one_sentence() -> None:
    intake = Intake(rows_in=1000, rows_used=997)
    assert Intake(rows_in=1, rows_used=1).describe() == "1 row read, all used."
    intake.report("invalid bytes", RowProblem("data.csv", 17, "byte 0xFF"))
    intake.report("empty text", RowProblem("data.csv", 20, "the text is empty"))
    intake.report("empty text", RowProblem("data.csv", 21, "the text is empty"))
    assert intake.describe() == (
        "1,000 rows read: 997 used, 3 left out (2 empty text, 1 invalid bytes; first: data.csv row 17)."
    )


def test_the_fingerprint_is_that_of_the_bytes_on_disk_in_order(tmp_path: Path) -> None:
    one, two = write(tmp_path, "a.txt", "a\n"), write(tmp_path, "b.txt.gz", gzip.compress(b"b\n"))
    expected = hashlib.sha256(one.read_bytes() + two.read_bytes()).hexdigest()
    assert Corpus([one, two]).fingerprint() == expected
    assert Corpus([two, one]).fingerprint() != expected

"""What is trained on and what is held out: no row is both, none is neither."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inkling.errors import InklingError, UsageError
from inkling.recipes.data import LanguageText, TextConfig, documents, open_corpus, resolve, run_name
from inkling.text.corpus import Corpus

laws = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


def written(folder: Path, rows: int, kind: str) -> str:
    path = folder / f"text.{kind}"
    if kind == "txt":
        path.write_text("".join(f"row {i}\n" for i in range(rows)))
    elif kind == "csv":
        path.write_text("text\n" + "".join(f"row {i}\n" for i in range(rows)))
    elif kind == "csv.gz":
        path.write_bytes(gzip.compress(("text\n" + "".join(f"row {i}\n" for i in range(rows))).encode()))
    else:
        path.write_text("".join(json.dumps({"text": f"row {i}"}) + "\n" for i in range(rows)))
    return str(path)


def parts(text: LanguageText) -> tuple[list[int], list[int]]:
    """Numbers of the rows that are trained on, and of those that are held out."""
    numbers = [
        [int(line.split()[1]) for block in blocks for line in block]
        for blocks in (text.train_blocks(), text.held_out_blocks())
    ]
    return numbers[0], numbers[1]


# ------------------------------------------------------------------------------------------------ held out


@laws
@given(rows=st.integers(2, 60), share=st.floats(0.01, 0.99), kind=st.sampled_from(["txt", "csv", "csv.gz", "jsonl"]))
def test_every_row_is_trained_on_or_held_out_and_none_is_both(
    tmp_path: Path, rows: int, share: float, kind: str
) -> None:
    text = LanguageText(TextConfig(files=(written(tmp_path, rows, kind),), held_out_share=share))
    trained, held_out = parts(text)
    assert sorted(trained + held_out) == list(range(rows))
    assert trained
    assert held_out
    assert trained == sorted(trained)
    assert held_out == sorted(held_out)
    assert abs(len(held_out) - share * rows) <= 1
    assert text.rows == rows


@laws
@given(rows=st.integers(2, 60))
def test_of_running_text_the_last_tenth_is_held_out(tmp_path: Path, rows: int) -> None:
    trained, held_out = parts(LanguageText(TextConfig(files=(written(tmp_path, rows, "txt"),))))
    assert trained + held_out == list(range(rows))


@pytest.mark.parametrize("kind", ["csv", "jsonl", "csv.gz"])
def test_of_tables_every_tenth_row_is_held_out(tmp_path: Path, kind: str) -> None:
    trained, held_out = parts(LanguageText(TextConfig(files=(written(tmp_path, 57, kind),))))
    assert held_out == [9, 19, 29, 39, 49]
    assert len(trained) == 52


def test_of_a_short_table_the_last_row_is_held_out_and_not_trained_on(tmp_path: Path) -> None:
    assert parts(LanguageText(TextConfig(files=(written(tmp_path, 5, "csv"),)))) == ([0, 1, 2, 3], [4])


def test_the_share_is_the_same_however_the_rows_come_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {kind: written(tmp_path, 60, kind) for kind in ("txt", "csv")}
    whole = {kind: parts(LanguageText(TextConfig(files=(file,)))) for kind, file in files.items()}
    real = Corpus.text_blocks
    monkeypatch.setattr(Corpus, "text_blocks", lambda self, size_chars=9, on_bytes=None: real(self, 9, on_bytes))
    for kind, file in files.items():
        text = LanguageText(TextConfig(files=(file,)))
        assert len(list(text.train_blocks())) > 5
        assert parts(text) == whole[kind]


def test_the_format_that_was_asked_for_decides_and_not_the_name(tmp_path: Path) -> None:
    path = tmp_path / "rows.txt"
    path.write_text("".join(json.dumps({"text": f"row {i}"}) + "\n" for i in range(20)))
    text = LanguageText(TextConfig(files=(str(path),), format="jsonl"))
    assert parts(text)[1] == [9, 19]
    assert "spread evenly" in text.describe()["held_out"]


@pytest.mark.parametrize("name", ["a.gz-notes.csv", "UPPER.CSV", "dotted.name.tsv"])
def test_a_table_is_known_by_how_its_name_ends(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("text\n" + "".join(f"row {i}\n" for i in range(20)))
    assert LanguageText(TextConfig(files=(str(path),), text_column="text")).scattered


def test_a_table_beside_running_text_is_cut_at_its_end(tmp_path: Path) -> None:
    files = (written(tmp_path, 10, "csv"), written(tmp_path, 10, "txt"))
    text = LanguageText(TextConfig(files=files))
    assert not text.scattered
    assert sum(len(block) for block in text.held_out_blocks()) == 2


def test_named_held_out_text_leaves_all_of_the_rest_to_train_on(tmp_path: Path) -> None:
    judge = tmp_path / "judge.txt"
    judge.write_text("row 100\nrow 101\n")
    text = LanguageText(TextConfig(files=(written(tmp_path, 20, "txt"),), held_out=(str(judge),)))
    assert parts(text) == (list(range(20)), [100, 101])
    one = tmp_path / "one.txt"
    one.write_text("row 0\n")
    assert parts(LanguageText(TextConfig(files=(str(one),), held_out=(str(judge),)))) == ([0], [100, 101])


def test_both_parts_are_normalised(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text("ROW 1\n" * 20)
    text = LanguageText(TextConfig(files=(str(path),), normalise="lower"))
    assert {line for block in text.train_blocks() for line in block} == {"row 1\n"}
    assert {line for block in text.held_out_blocks() for line in block} == {"row 1\n"}


def test_line_ends_and_empty_lines_of_running_text_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_bytes(b"a\n\n  b \nc\nd")
    text = LanguageText(TextConfig(files=(str(path),)))
    lines = [line for blocks in (text.train_blocks(), text.held_out_blocks()) for block in blocks for line in block]
    assert lines == ["a\n", "\n", "  b \n", "c\n", "d"]


# ------------------------------------------------------------------------------------------------ refusals, description


@pytest.mark.parametrize("kind", ["txt", "csv", "jsonl"])
def test_too_little_to_hold_anything_out_is_said(tmp_path: Path, kind: str) -> None:
    with pytest.raises(InklingError, match=r"has 1 line\(s\) of text.*--held-out"):
        LanguageText(TextConfig(files=(written(tmp_path, 1, kind),)))


def test_no_text_and_no_sensible_share_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No text was given"):
        LanguageText(TextConfig())
    for share in (0.0, 1.0, -1.0, float("nan")):
        with pytest.raises(UsageError, match="--held-out-share"):
            LanguageText(TextConfig(files=(written(tmp_path, 5, "txt"),), held_out_share=share))


def test_a_description_pins_the_bytes(tmp_path: Path) -> None:
    file = written(tmp_path, 20, "txt")
    described = LanguageText(TextConfig(files=(file,))).describe()
    assert (described["rows"], described["bytes"]) == (20, Path(file).stat().st_size)
    assert described["held_out"] == "the last 10% of the lines"
    assert described["held_out_sha256"] is None
    assert LanguageText(TextConfig(files=(file,))).describe() == described
    Path(file).write_text(Path(file).read_text().replace("row 3", "row 4"))
    assert LanguageText(TextConfig(files=(file,))).describe()["sha256"] != described["sha256"]
    assert json.loads(json.dumps(described)) == described


def test_names_of_the_catalogue_are_resolved_and_paths_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inkling.text.catalogue.data_path", lambda name: Path("/cache") / name)
    assert resolve("data:shakespeare") == "/cache/shakespeare"
    assert resolve("texts/data:odd.txt") == "texts/data:odd.txt"
    with pytest.raises(InklingError, match="does not exist; the data set of that name is called data:shakespeare"):
        resolve("shakespeare")


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("data:shakespeare", "bigram-shakespeare"),
        ("texts/shakespeare.txt.gz", "bigram-shakespeare"),
        ("-", "bigram-stdin"),
        (".hidden", "bigram-text"),
        ("folder/", "bigram-folder"),
    ],
)
def test_a_run_is_named_after_its_text(file: str, name: str) -> None:
    assert run_name("bigram", [file]) == name


# ------------------------------------------------------------------------------------------------ documents


def opened(*paths: Path) -> Corpus:
    return open_corpus([str(path) for path in paths], TextConfig(), keep_line_ends=True, keep_empty=True)


def test_the_lines_of_each_file_are_one_document(tmp_path: Path) -> None:
    first, second = tmp_path / "1.txt", tmp_path / "2.txt"
    first.write_bytes(b"one\n\ntwo\n")
    second.write_bytes(b"three")
    assert [text for batch in documents(opened(first, second)) for text in batch] == ["one\n\ntwo\n", "three"]


def test_the_rows_of_a_table_stay_apart(tmp_path: Path) -> None:
    file = Path(written(tmp_path, 3, "csv"))
    text = tmp_path / "a.txt"
    text.write_text("x\ny\n")
    found = [document for batch in documents(opened(text, file, text)) for document in batch]
    assert found == ["x\ny\n", "row 0", "row 1", "row 2", "x\ny\n"]


@laws
@given(lines=st.lists(st.text("ab ", max_size=8), min_size=1, max_size=30), chars=st.integers(1, 40))
def test_a_long_file_is_cut_at_line_ends_and_nothing_is_lost(tmp_path: Path, lines: list[str], chars: int) -> None:
    path = tmp_path / "long.txt"
    content = "".join(f"{line}\n" for line in lines)
    path.write_text(content)
    found = [text for batch in documents(opened(path), chars) for text in batch]
    assert "".join(found) == content
    assert all(text.endswith("\n") for text in found)
    assert all(len(text) >= chars for text in found[:-1])
    assert all(len(text) < chars + 9 for text in found)

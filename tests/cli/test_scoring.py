"""`inkling score` and `inkling filter`: all rows accounted for, any format, little memory, whole or not at all."""

from __future__ import annotations

import csv
import json
import math
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

from inkling.cli.app import main
from inkling.models.contracts import LanguageModel
from inkling.recipes import scoring
from inkling.recipes.data import open_corpus
from inkling.recipes.scoring import RowScores, filter_corpus, score_rows
from inkling.runs.loading import load_language_model
from inkling.text.corpus import Corpus
from inkling.text.grammar import grammar_text

NOVEL = grammar_text(np.random.default_rng(21), 3000)
OTHER = grammar_text(np.random.default_rng(22), 2000)
FIELDS = ["row", "nats", "tokens", "unknown", "bytes", "bits_per_byte"]
LN2 = math.log(2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bigram run whose vocabulary leaves words unknown, and texts it has not seen."""
    place = tmp_path_factory.mktemp("scoring")
    (place / "novel.txt").write_text(NOVEL, encoding="utf-8")
    (place / "other.txt").write_text(OTHER, encoding="utf-8")
    arguments = ["train", "bigram", str(place / "novel.txt"), "--out", str(place / "run")]
    assert main([*arguments, "--steps", "12", "--hidden", "8", "--vocabulary", "120"]) == 0
    return place


@pytest.fixture
def run(folder: Path) -> str:
    return str(folder / "run")


@pytest.fixture
def model(folder: Path) -> LanguageModel[Any]:
    return load_language_model(folder / "run")


def read_scores(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    table = polars.read_csv(path) if path.suffix == ".csv" else polars.read_parquet(path)
    return table.to_dicts()


# ------------------------------------------------------------------------------------------ score


def test_the_three_formats_and_stdout_hold_the_same_scores(
    folder: Path, run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [tmp_path / f"scores.{ending}" for ending in ("jsonl", "csv", "parquet")]
    for file in files:
        assert main(["score", run, str(folder / "other.txt"), "--out", str(file)]) == 0
        assert capsys.readouterr() == ("", "")
    assert main(["score", run, str(folder / "other.txt")]) == 0
    assert capsys.readouterr().out == files[0].read_text(encoding="utf-8")
    tables = [read_scores(file) for file in files]
    assert [list(table[0]) for table in tables] == [FIELDS] * 3
    assert [row["row"] for row in tables[0]] == list(range(1, len(OTHER.splitlines()) + 1))
    for table in tables[1:]:
        assert table == tables[0]
    assert polars.read_parquet(files[2]).dtypes == [
        *(polars.Int64, polars.Float64, polars.Int64, polars.Int64, polars.Int64, polars.Float64)
    ]
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(file.name for file in files)


def test_the_lines_of_a_text_cost_together_what_evaluate_says_it_costs(
    folder: Path, run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["score", run, str(folder / "other.txt"), "--out", str(tmp_path / "s.csv")]) == 0
    assert main(["evaluate", run, "--on", str(folder / "other.txt"), "--json", "--no-baselines"]) == 0
    [whole] = json.loads(capsys.readouterr().out)["rows"]
    rows = read_scores(tmp_path / "s.csv")
    assert math.fsum(row["nats"] for row in rows) == pytest.approx(whole["nats"] + whole["spelling_nats"], rel=1e-9)
    for name in ("tokens", "unknown", "bytes"):
        assert sum(row[name] for row in rows) == whole[name]
    assert sum(row["unknown"] for row in rows) > 0  # so that spellings are charged here
    for row in rows:
        assert row["bits_per_byte"] == pytest.approx(row["nats"] / LN2 / row["bytes"], rel=1e-9)


def test_a_row_costs_the_same_alone_and_among_others(model: LanguageModel[Any]) -> None:
    lines = OTHER.splitlines(keepends=True)
    together = score_rows(model, lines)
    alone = np.array([score_rows(model, [line]).nats[0] for line in lines])
    np.testing.assert_array_equal(together.nats, alone)


def test_empty_lines_are_rows_too(folder: Path, run: str, tmp_path: Path) -> None:
    (tmp_path / "gaps.txt").write_text("The baker.\n\n\nThe cook.", encoding="utf-8")
    assert main(["score", run, str(tmp_path / "gaps.txt"), "--out", str(tmp_path / "s.jsonl")]) == 0
    rows = read_scores(tmp_path / "s.jsonl")
    assert [row["row"] for row in rows] == [1, 2, 3, 4]
    assert [row["bytes"] for row in rows] == [11, 1, 1, 9]


def test_rows_that_are_left_out_are_reported_and_leave_a_gap_in_the_numbers(
    run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = ['{"text": "The baker."}', "{", '{"text": "The cook."}', '{"text": null}', '{"text": "The guest."}']
    (tmp_path / "rows.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    arguments = ["score", run, str(tmp_path / "rows.jsonl"), "--bad-rows", "skip"]
    for ending in ("jsonl", "csv", "parquet"):
        assert main([*arguments, "--out", str(tmp_path / f"s.{ending}")]) == 0
        assert "5 rows read: 3 used, 2 left out (1 bad JSON, 1 no text; first:" in capsys.readouterr().err
        assert [row["row"] for row in read_scores(tmp_path / f"s.{ending}")] == [1, 3, 5]


def test_rows_of_several_files_name_their_file(run: str, tmp_path: Path) -> None:
    names = [str(tmp_path / name) for name in ('a "quoted", name.txt', "b.txt")]
    for name in names:
        Path(name).write_text("The baker.\nThe cook.\n", encoding="utf-8")
    for ending in ("jsonl", "csv", "parquet"):
        assert main(["score", run, *names, "--out", str(tmp_path / f"s.{ending}")]) == 0
        found = read_scores(tmp_path / f"s.{ending}")
        assert [(row["file"], row["row"]) for row in found] == [(name, number) for name in names for number in (1, 2)]
        assert found[0]["nats"] == found[2]["nats"]


def test_a_file_without_rows_that_can_be_used_gives_no_scores(run: str, tmp_path: Path) -> None:
    (tmp_path / "nulls.jsonl").write_text('{"text": null}\n', encoding="utf-8")
    for ending in ("jsonl", "csv", "parquet"):
        out = tmp_path / f"s.{ending}"
        assert main(["score", run, str(tmp_path / "nulls.jsonl"), "--text-column", "text", "--out", str(out)]) == 0
        assert read_scores(out) == []


def test_an_old_result_is_replaced_only_by_a_complete_one(
    folder: Path, run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "s.jsonl"
    out.write_text("precious\n", encoding="utf-8")
    with monkeypatch.context() as patch:
        fail_after_first_block(patch)
        with pytest.raises(RuntimeError, match="power cut"):
            main(["score", run, str(folder / "other.txt"), "--out", str(out)])
    assert out.read_text(encoding="utf-8") == "precious\n"
    assert list(tmp_path.iterdir()) == [out]
    assert main(["score", run, str(folder / "other.txt"), "--out", str(out)]) == 0
    assert len(read_scores(out)) == len(OTHER.splitlines())


# ------------------------------------------------------------------------------------------ interruption


def fail_after_first_block(patch: pytest.MonkeyPatch) -> None:
    """Small blocks, and a fault of ours while the second is scored."""
    patch.setattr(scoring, "BLOCK_CHARS", 1000)
    blocks: list[int] = []

    def failing(model: LanguageModel[Any], texts: Sequence[str]) -> RowScores:
        blocks.append(len(texts))
        if len(blocks) == 2:
            raise RuntimeError("power cut")
        return score_rows(model, texts)

    patch.setattr(scoring, "score_rows", failing)


@pytest.mark.parametrize("command", ["score", "filter"])
@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_an_interruption_in_the_first_pass_leaves_no_file(
    command: str, ending: str, folder: Path, run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_after_first_block(monkeypatch)
    with pytest.raises(RuntimeError, match="power cut"):
        main([command, run, str(folder / "other.txt"), "--out", str(tmp_path / f"out.{ending}")])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", ["txt", "jsonl", "csv", "parquet"])
def test_an_interruption_in_the_second_pass_of_a_filter_leaves_no_file(
    ending: str, folder: Path, run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scoring, "BLOCK_CHARS", 1000)
    batches, passes = Corpus.batches, []

    def failing(self: Corpus, *arguments: Any) -> Iterator[list[Any]]:
        passes.append(1)
        for i, batch in enumerate(batches(self, *arguments)):
            if len(passes) == 2 and i == 2:
                raise KeyboardInterrupt
            yield batch

    monkeypatch.setattr(Corpus, "batches", failing)
    assert main(["filter", run, str(folder / "other.txt"), "--out", str(tmp_path / f"out.{ending}")]) == 130
    assert list(tmp_path.iterdir()) == []


def test_an_interruption_while_parquet_is_made_leaves_no_file(
    folder: Path, run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(self: polars.LazyFrame, path: Path) -> None:
        path.write_bytes(b"PAR1")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(polars.LazyFrame, "sink_parquet", failing)
    assert main(["score", run, str(folder / "other.txt"), "--out", str(tmp_path / "s.parquet")]) == 1
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------------------------------ filter


def distinct_lines() -> list[str]:
    """Lines of different cost (in float32, as the filter keeps it), so that a share is exact."""
    return list(dict.fromkeys(OTHER.splitlines()))


@pytest.fixture
def lines(tmp_path: Path, model: LanguageModel[Any]) -> list[str]:
    found = distinct_lines()
    bits = score_rows(model, found).bits_per_byte.astype(np.float32)
    _, first = np.unique(bits, return_index=True)
    kept = [found[i] for i in sorted(first)]
    (tmp_path / "lines.txt").write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")
    return kept


@pytest.mark.parametrize("percent", [1, 33.3, 80, 100])
def test_a_share_keeps_just_that_many_rows_the_cheapest_in_their_order(
    percent: float, lines: list[str], run: str, model: LanguageModel[Any], tmp_path: Path
) -> None:
    out = tmp_path / "kept.txt"
    assert main(["filter", run, str(tmp_path / "lines.txt"), "--keep", f"{percent}%", "--out", str(out)]) == 0
    kept = out.read_text(encoding="utf-8").splitlines()
    assert len(kept) == max(1, round(percent / 100 * len(lines)))
    bits = dict(zip(lines, score_rows(model, lines).bits_per_byte, strict=True))
    limit = sorted(bits.values())[len(kept) - 1]
    assert kept == [line for line in lines if bits[line] <= limit]


def test_a_limit_keeps_the_rows_below_it(
    lines: list[str], run: str, model: LanguageModel[Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bits = score_rows(model, lines).bits_per_byte
    limit = float(np.quantile(bits, 0.4))
    out = tmp_path / "kept.txt"
    arguments = ["filter", run, str(tmp_path / "lines.txt"), "--keep", f"{limit:.9f}", "--out", str(out), "--json"]
    assert main(arguments) == 0
    found = json.loads(capsys.readouterr().out)
    expected = [line for line, cost in zip(lines, bits, strict=True) if cost <= limit]
    assert out.read_text(encoding="utf-8").splitlines() == expected
    assert found["rows"] == len(lines)
    assert found["kept"] == len(expected)
    assert found["bytes"] == sum(len(line.encode()) for line in lines)
    assert found["kept_bytes"] == sum(len(line.encode()) for line in expected)
    assert found["limit_bits_per_byte"] == pytest.approx(limit, rel=1e-6)
    assert found["quantiles"]["50%"] == pytest.approx(float(np.median(bits)), rel=1e-5)


def test_a_limit_that_nothing_meets_keeps_nothing(
    lines: list[str], run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for ending in ("txt", "jsonl", "parquet"):
        out = tmp_path / f"kept.{ending}"
        assert main(["filter", run, str(tmp_path / "lines.txt"), "--keep", "0", "--out", str(out)]) == 0
        assert "Kept 0 of" in capsys.readouterr().out
        assert len(polars.read_parquet(out)) == 0 if ending == "parquet" else out.read_bytes() == b""


def test_head_middle_and_tail_are_examples_of_the_cheapest_the_median_and_the_dearest(
    lines: list[str], run: str, model: LanguageModel[Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["filter", run, str(tmp_path / "lines.txt"), "--json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert err == ""
    bits = score_rows(model, lines).bits_per_byte
    order = np.argsort(bits)
    assert [e["text"] for e in found["head"]] == [lines[i] for i in order[:3]]
    assert [e["text"] for e in found["tail"]] == [lines[i] for i in order[-3:]]
    assert all(lines[e["row"] - 1] == e["text"] for part in ("head", "middle", "tail") for e in found[part])
    ranks = [int(np.flatnonzero(order == e["row"] - 1)[0]) for e in found["middle"]]
    assert len(ranks) == 3
    assert all(abs(rank - len(lines) / 2) <= 2 for rank in ranks)

    assert main(["filter", run, str(tmp_path / "lines.txt")]) == 0
    out, err = capsys.readouterr()
    assert out.startswith(f"Kept {round(0.8 * len(lines))} of {len(lines)} rows")
    assert "most natural" in out
    assert err == "Nothing was written; name a file with --out to keep the rows.\n"


@pytest.mark.parametrize("rows", [1, 2, 4, 7, 9, 10])
def test_no_example_is_shown_twice_however_few_rows_there_are(
    rows: int, model: LanguageModel[Any], tmp_path: Path
) -> None:
    (tmp_path / "few.txt").write_text("".join(f"{line}\n" for line in distinct_lines()[:rows]), encoding="utf-8")
    from inkling.recipes.data import TextConfig

    found = filter_corpus(model, open_corpus([str(tmp_path / "few.txt")], TextConfig()), "100%", None)
    shown = [example.row for part in (found.head, found.middle, found.tail) for example in part]
    assert len(shown) == len(set(shown)) == min(rows, 9)
    costs = [example.bits_per_byte for part in (found.head, found.middle, found.tail) for example in part]
    assert costs == sorted(costs)


def test_kept_rows_keep_their_text_and_label_in_every_format(
    run: str, model: LanguageModel[Any], tmp_path: Path
) -> None:
    texts = ['He said "no", twice.', "two\nlines", "tab\there", "  spaces  ", "ça va — 日本", "a,b", "cr\rhere"]
    labels = ["1", "0", "1", "", "0", "1", "0"]
    with (tmp_path / "table.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([("text", "label"), *zip(texts, labels, strict=True)])
    bits = score_rows(model, texts).bits_per_byte
    for ending in ("jsonl", "csv", "parquet"):
        out = tmp_path / f"kept.{ending}"
        assert main(["filter", run, str(tmp_path / "table.csv"), "--keep", "100%", "--out", str(out)]) == 0
        if ending == "csv":
            with out.open(encoding="utf-8", newline="") as file:
                rows: list[Any] = [{**row, "label": row["label"] or None} for row in csv.DictReader(file)]
        else:
            rows = read_scores(out)
        assert [row["text"] for row in rows] == texts
        assert [row.get("label") or "" for row in rows] == labels
        np.testing.assert_allclose([float(row["bits_per_byte"]) for row in rows], bits, rtol=1e-5)


def test_a_text_of_two_lines_is_not_cut_in_two_by_a_txt_file(
    run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "table.csv").write_text('text\n"two\nlines"\none line\n', encoding="utf-8")
    assert main(["filter", run, str(tmp_path / "table.csv"), "--keep", "100%", "--out", str(tmp_path / "k.txt")]) == 1
    assert "table.csv row 1 holds a line end" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]


# ------------------------------------------------------------------------------------------ memory

MEASURED = """
import re, sys
from pathlib import Path
from inkling.cli.app import main
code = main(sys.argv[1:])
print(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1], file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
@pytest.mark.parametrize("command", ["score", "filter"])
def test_memory_does_not_grow_with_the_file(command: str, folder: Path, run: str, tmp_path: Path) -> None:
    peaks_mb = []
    for size_mb in (3, 30):
        text, out = tmp_path / f"{size_mb}.txt", tmp_path / f"{size_mb}.jsonl"
        text.write_text(NOVEL * (size_mb * 1_000_000 // len(NOVEL)), encoding="utf-8")
        ended = subprocess.run(
            [sys.executable, "-c", MEASURED, command, run, str(text), "--out", str(out)],
            capture_output=True,
            text=True,
            check=True,
        )
        found = re.search(r"^(\d+)$", ended.stderr, re.MULTILINE)
        assert found is not None
        peaks_mb.append(int(found[1]) / 1000)
        rows = NOVEL.count("\n") * (size_mb * 1_000_000 // len(NOVEL))
        with out.open("rb") as file:
            written = sum(1 for _ in file)
        assert written == rows if command == "score" else written >= round(0.8 * rows)
    assert peaks_mb[1] < 500
    assert peaks_mb[1] - peaks_mb[0] < 60

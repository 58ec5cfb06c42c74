from __future__ import annotations

import bz2
import gzip
import lzma
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inkling.errors import InklingError, UsageError
from inkling.text import vector_files, vectors
from inkling.text.vectors import WordVectors, hash_spellings, load_vectors
from inkling.text.words import find_words

GLOVE = "the 0.5 -1.25\nThe 2 3e-2\ncafé 1 0\n"


def load(folder: Path, content: str | bytes, *, name: str = "v.txt", limit: int | None = None) -> WordVectors:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return load_vectors(path, limit=limit, cache_dir=folder / "cache")


def words_of(loaded: WordVectors) -> list[str]:
    return [loaded.word(row) for row in range(len(loaded))]


def test_glove_text_gives_its_words_and_numbers(tmp_path: Path) -> None:
    loaded = load(tmp_path, GLOVE)
    assert words_of(loaded) == ["the", "The", "café"]
    assert (len(loaded), loaded.dimension) == (3, 2)
    assert loaded.matrix.dtype == np.float32
    assert loaded.matrix.tolist() == [[0.5, -1.25], [2.0, float(np.float32(0.03))], [1.0, 0.0]]
    assert loaded.notes == ()


def test_word2vec_text_has_a_first_line_with_counts_and_a_space_at_each_line_end(tmp_path: Path) -> None:
    loaded = load(tmp_path, "2 3\nthe 1 2 3 \nof 4 5 6 \n")
    assert words_of(loaded) == ["the", "of"]
    assert loaded.matrix.tolist() == [[1, 2, 3], [4, 5, 6]]


def test_a_word_may_hold_spaces_and_may_be_a_number(tmp_path: Path) -> None:
    loaded = load(tmp_path, "the 1 2\n. . . 3 4\nat name@domain.com 5 6\n1999 7 8\n")
    assert words_of(loaded) == ["the", ". . .", "at name@domain.com", "1999"]
    assert loaded.matrix[:, 0].tolist() == [1, 3, 5, 7]


def test_tabs_windows_line_ends_and_blank_lines_at_the_end_are_read(tmp_path: Path) -> None:
    loaded = load(tmp_path, "\ufeffthe\t1\t2\r\nof\t3\t4\r\n\r\n\n")
    assert words_of(loaded) == ["the", "of"]
    assert loaded.matrix.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress])
def test_packed_text_is_read_whatever_its_name(tmp_path: Path, pack: object) -> None:
    assert callable(pack)
    assert words_of(load(tmp_path, pack(GLOVE.encode()), name="vectors.bin")) == ["the", "The", "café"]


def test_a_zip_with_one_text_is_read_and_one_with_several_is_refused_by_name(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "one.zip", "w") as archive:
        archive.writestr("glove.txt", GLOVE)
        archive.writestr("licence.pdf", "no vectors")
    assert len(load_vectors(tmp_path / "one.zip", cache_dir=tmp_path)) == 3
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as archive:
        archive.writestr("glove.50d.txt", GLOVE)
        archive.writestr("glove.100d.txt", GLOVE)
    with pytest.raises(InklingError, match=r"two\.zip holds glove\.50d\.txt, glove\.100d\.txt"):
        load_vectors(tmp_path / "two.zip", cache_dir=tmp_path)


def test_npz_words_may_be_bytes_or_strings(tmp_path: Path) -> None:
    numbers = np.array([[1.0, 2.0], [3.0, 4.0]])
    joined = np.frombuffer("the\ncafé".encode(), dtype=np.uint8)
    np.savez(tmp_path / "bytes.npz", words=joined, vectors=numbers.astype(np.float16))
    np.savez_compressed(tmp_path / "strings.npz", words=np.array(["the", "café"]), vectors=numbers)
    for name in ("bytes.npz", "strings.npz"):
        loaded = load_vectors(tmp_path / name, cache_dir=tmp_path)
        assert words_of(loaded) == ["the", "café"]
        assert loaded.matrix.tolist() == numbers.tolist()


def test_an_npz_that_would_need_pickle_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "v.npz", words=np.array(["the"], dtype=object), vectors=np.ones((1, 2)))
    with pytest.raises(InklingError, match="not plain numbers"):
        load_vectors(tmp_path / "v.npz", cache_dir=tmp_path)


@pytest.mark.parametrize(
    ("words", "numbers", "message"),
    [
        (["a"], np.ones((2, 2)), "1 words and 2 vectors"),
        (["a"], np.ones(2), "expected floats, words × dimensions"),
        (["a", "b"], np.array([[1.0], [np.inf]]), "row 1 of `vectors` is not finite"),
        (["a"], np.array([[1e300]]), "row 0 of `vectors` is not finite"),
    ],
)
def test_an_npz_with_wrong_arrays_is_refused(
    tmp_path: Path, words: list[str], numbers: np.ndarray, message: str
) -> None:
    np.savez(tmp_path / "v.npz", words=np.array(words), vectors=numbers)
    with pytest.raises(InklingError, match=message):
        load_vectors(tmp_path / "v.npz", cache_dir=tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "holds no word vectors"),
        ("\n\n", "holds no word vectors"),
        ("the cat sat\n", "line 1, is neither"),
        ("the 1 2\nof 3\n", "line 2, has 1 numbers after its word; expected 2"),
        ("the 1 2\nof 3 4 5\n", "line 2, has 3 numbers after its word; expected 2"),
        ("the 1 2\n\nof 3 4\n", "line 2, has 0 numbers"),
        ("the 1 2\nof 3 x\n", "line 2, has 'x' where a number was expected"),
        ("the 1 2\nof 3 1_0\n", "line 2, has '1_0' where"),
        ("the 1 2\nof 3 nan\n", "line 2, holds a number that is not finite"),
        ("the 1 2\nof -inf 3\n", "line 2, holds a number that is not finite"),
        ("the 1 2\nof 1e99 3\n", "line 2, holds a number that is not finite"),
        ("the 1 2\n 3 4\n", "line 2, begins with a space"),
        ("3 2\nthe 1 2\nof 3 4\n", "promises 3 words in its first line and holds 2"),
        ("3 0\n", "promises 0 numbers a word"),
    ],
)
def test_bad_text_is_one_sentence_with_file_and_line(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(InklingError) as caught:
        load(tmp_path, content)
    assert message in str(caught.value)
    assert "v.txt" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list((tmp_path / "cache" / "vectors").iterdir()) == []


def test_line_numbers_go_on_over_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_files, "BLOCK_BYTES", 16)
    good = "".join(f"w{i} {i} {-i}\n" for i in range(100))
    loaded = load(tmp_path, good)
    assert loaded.matrix[:, 0].tolist() == list(range(100))
    with pytest.raises(InklingError, match="line 101, has 'oops'"):
        load(tmp_path, good + "w100 1 oops\n")


def test_a_number_that_only_the_careful_reader_takes_is_still_read(tmp_path: Path) -> None:
    assert load(tmp_path, "the +1 .5\nof 5. 1E-1\n").matrix.tolist() == [[1, 0.5], [5, float(np.float32(0.1))]]


def test_a_file_that_is_cut_short_says_so(tmp_path: Path) -> None:
    with pytest.raises(InklingError, match="cannot be read to its end"):
        load(tmp_path, gzip.compress(GLOVE.encode())[:-12], name="v.gz")
    with pytest.raises(InklingError, match="is not a file"):
        load_vectors(tmp_path / "absent.txt", cache_dir=tmp_path)


def test_a_file_without_lines_is_not_read_into_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_files, "BLOCK_BYTES", 1000)
    monkeypatch.setattr(vector_files, "LONGEST_LINE_BYTES", 500)
    with pytest.raises(InklingError, match="a line of more than 500 bytes"):
        load(tmp_path, b"\0" * 5000)


def test_the_first_of_equal_words_wins_and_the_rest_are_counted(tmp_path: Path) -> None:
    loaded = load(tmp_path, "a 1\nb 2\na 3\nc 4\nb 5\na 6\nd 7\n")
    assert words_of(loaded) == ["a", "b", "c", "d"]
    assert loaded.matrix.tolist() == [[1], [2], [4], [7]]
    assert loaded.notes == ("3 repeated words passed over; the first of each is kept.",)
    assert loaded.find(["d", "c", "b", "a"]).tolist() == [3, 2, 1, 0]


def test_words_that_are_not_utf8_are_kept_and_noted(tmp_path: Path) -> None:
    loaded = load(tmp_path, b"caf\xe9 1\nthe 2\n")
    assert words_of(loaded) == ["caf\ufffd", "the"]
    assert loaded.notes == ("1 words are not UTF-8; they are kept but cannot be looked up.",)


def test_limit_takes_the_first_rows_and_does_not_look_at_the_rest(tmp_path: Path) -> None:
    assert words_of(load(tmp_path, "9 1\na 1\nb 2\nbroken\n", limit=2)) == ["a", "b"]
    with pytest.raises(UsageError, match="at least 1"):
        load(tmp_path, GLOVE, limit=0)


def test_lookup_tries_the_word_then_its_lower_case_and_gives_zeros_for_the_rest(tmp_path: Path) -> None:
    loaded = load(tmp_path, GLOVE)
    rows, found = loaded.lookup(["The", "THE", "CAFÉ", "dog"])
    assert found.tolist() == [True, True, True, False]
    assert rows[:, 0].tolist() == [2.0, 0.5, 1.0, 0.0]
    _, exact = loaded.lookup(["The", "THE", "CAFÉ", "dog"], lower=False)
    assert exact.tolist() == [True, False, False, False]
    assert loaded.lookup([])[0].shape == (0, 2)


def test_the_words_of_texts_are_known_by_the_hashes_of_spellings(tmp_path: Path) -> None:
    """Row by row: what texts are cut into can be met in them, and clitics only behind a word."""
    loaded = load(tmp_path, "it 1\n's 2\nice-cream 3\nN't 4\n!!! 5\n' 6\n’ll 7\nThe 8\ndon't 9\n")
    rows, hashes = hash_spellings(loaded)
    assert [loaded.word(row) for row in rows.tolist()] == ["it", "'s", "N't", "!!!", "'", "’ll", "The"]
    met = find_words(["it's the ' ice-cream that don't!", "she'll"])
    found = [loaded.word(row) for row, value in zip(rows.tolist(), hashes, strict=True) if value in met.hashes]
    assert found == ["it", "'s", "N't", "!!!", "'", "’ll", "The"]
    empty = hash_spellings(load(tmp_path, "ice-cream 3\n", name="none.txt"))
    assert [len(part) for part in empty] == [0, 0]


def test_a_hash_shared_by_two_words_does_not_mix_them_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "_hash", lambda words: np.array([len(word) for word in words], dtype=np.uint64))
    loaded = load(tmp_path, "ab 1\ncd 2\nef 3\nab 4\nxyz 5\n")
    assert words_of(loaded) == ["ab", "cd", "ef", "xyz"]
    assert loaded.find(["ef", "cd", "ab", "xyz", "zz", "a"]).tolist() == [2, 1, 0, 3, -1, -1]


@given(st.lists(st.text(st.characters(exclude_characters="\n\t ", exclude_categories=["Cs"]), min_size=1), min_size=1))
@settings(deadline=None, max_examples=30)
def test_every_word_of_a_file_is_found_in_its_row(tmp_path_factory: pytest.TempPathFactory, words: list[str]) -> None:
    unique = list(dict.fromkeys(words))
    folder = tmp_path_factory.mktemp("law")
    joined = np.frombuffer("\n".join(words).encode(), dtype=np.uint8)
    np.savez(folder / "v.npz", words=joined, vectors=np.arange(len(words), dtype=np.float32)[:, None])
    loaded = load_vectors(folder / "v.npz", cache_dir=folder)
    assert words_of(loaded) == unique
    assert loaded.find(unique).tolist() == list(range(len(unique)))
    assert loaded.matrix[:, 0].tolist() == [words.index(word) for word in unique]


def test_the_second_load_maps_the_cache_and_does_not_read_the_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = load(tmp_path, GLOVE)

    def refuse(*arguments: object) -> None:
        raise AssertionError("the source was read again")

    monkeypatch.setattr(vectors, "read_batches", refuse)
    second = load_vectors(tmp_path / "v.txt", cache_dir=tmp_path / "cache")
    assert isinstance(second.matrix, np.memmap)
    assert not second.matrix.flags.writeable
    assert second.matrix.tolist() == first.matrix.tolist()
    assert words_of(second) == words_of(first)


def test_a_changed_source_or_a_damaged_cache_is_read_again_in_the_same_place(tmp_path: Path) -> None:
    load(tmp_path, GLOVE)
    (cache,) = (tmp_path / "cache" / "vectors").iterdir()
    assert words_of(load(tmp_path, "new 1 2\n")) == ["new"]
    cache.write_bytes(cache.read_bytes()[:-3])
    assert words_of(load_vectors(tmp_path / "v.txt", cache_dir=tmp_path / "cache")) == ["new"]
    cache.write_bytes(b"not a cache")
    assert words_of(load_vectors(tmp_path / "v.txt", cache_dir=tmp_path / "cache")) == ["new"]
    status = (tmp_path / "v.txt").stat()
    os.utime(tmp_path / "v.txt", ns=(status.st_atime_ns, status.st_mtime_ns + 1_000_000_000))
    assert words_of(load_vectors(tmp_path / "v.txt", cache_dir=tmp_path / "cache")) == ["new"]
    assert list((tmp_path / "cache" / "vectors").iterdir()) == [cache]


def test_the_cache_is_a_safetensors_file(tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    load(tmp_path, "the 1 2 3\nof 4 5 6\nand 7 8 9\n")
    (cache,) = (tmp_path / "cache" / "vectors").iterdir()
    tensors = load_file(cache)
    assert tensors["vectors"].tolist() == [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
    assert tensors["words"].tobytes() == b"theofand"
    assert tensors["offsets"].tolist() == [0, 3, 5, 8]
    assert sorted(tensors["order"].tolist()) == [0, 1, 2]


def test_the_cache_folder_can_be_chosen_by_a_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INKLING_CACHE", str(tmp_path / "mine"))
    (tmp_path / "v.txt").write_text(GLOVE, encoding="utf-8")
    load_vectors(tmp_path / "v.txt")
    assert len(list((tmp_path / "mine" / "vectors").iterdir())) == 1


def test_a_cache_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where a folder should be")
    with pytest.raises(InklingError, match="name another one in the variable INKLING_CACHE"):
        load(tmp_path, GLOVE)

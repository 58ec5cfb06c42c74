"""Compressors: their files are the size of the real ones, and the figure is bits of file per byte of text."""

from __future__ import annotations

import gzip
import lzma

import numpy as np
import pytest
import zstandard

from inkling.measure.compression import Compression, compressed_sizes
from inkling.text.grammar import grammar_text

TEXT = grammar_text(np.random.default_rng(0), 20_000).encode()


def test_sizes_are_those_of_the_standard_tools_at_their_best() -> None:
    found = compressed_sizes([TEXT[:1000], TEXT[1000:]])
    assert found == {
        "gzip -9": len(gzip.compress(TEXT, 9, mtime=0)),
        "xz -9e": pytest.approx(len(lzma.compress(TEXT, preset=9 | lzma.PRESET_EXTREME)), abs=16),
        "zstd -22": pytest.approx(len(zstandard.ZstdCompressor(level=22).compress(TEXT)), abs=4),  # its checksum
    }


def test_even_nothing_has_a_file() -> None:
    assert all(0 < size < 100 for size in compressed_sizes([]).values())


def test_bits_per_byte_are_of_the_original_text() -> None:
    row = Compression("gzip -9", "x.txt", "lower", True, compressed_bytes=50, bytes=200)
    assert row.bits_per_byte == 2.0
    assert (row.to_json()["bits_per_byte"], row.to_json()["kind"]) == (2.0, "compressor")
    assert (row.label, Compression("gzip -9", "x", "nfc", False, 1, 1).label) == ("gzip -9", "gzip -9 [nfc]")

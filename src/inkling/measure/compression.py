"""What general compressors make of a text: bits per byte of its compressed file.

    gzip -9 · xz -9e · zstd --ultra -22

A compressor learns the text while it reads it and needs no training text, so a language model that does not beat it has
learned little that carries over. Sizes are those of whole files, headers included. xz's dictionary is cut down to
the text: that changes neither its choices nor the size, but spares 600 MB of memory.
"""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

XZ_DICTIONARY = 64 << 20  # of preset 9


@dataclass(frozen=True)
class Compression:
    """A compressor on one text; it has no tokens, and without a cost per block no interval."""

    model: str
    text: str
    normalisation: str
    lossy: bool
    compressed_bytes: int
    bytes: int

    @property
    def bits_per_byte(self) -> float:
        return 8 * self.compressed_bytes / self.bytes

    @property
    def label(self) -> str:
        return self.model if self.lossy or self.normalisation == "none" else f"{self.model} [{self.normalisation}]"

    def to_json(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "kind": "compressor",
            "text": self.text,
            "normalisation": self.normalisation,
            "lossy": self.lossy,
            "bits_per_byte": self.bits_per_byte,
            "compressed_bytes": self.compressed_bytes,
            "bytes": self.bytes,
        }


def compressed_sizes(blocks: Iterable[bytes]) -> dict[str, int]:
    """Bytes of the compressed file under each compressor; all is in memory once."""
    import zstandard

    content = b"".join(blocks)
    dictionary = min(XZ_DICTIONARY, max(4096, 1 << max(0, len(content) - 1).bit_length()))
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": dictionary}]
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)  # 31: with the header and the checksum of a gzip file
    return {
        "gzip -9": len(packer.compress(content)) + len(packer.flush()),
        "xz -9e": len(lzma.compress(content, lzma.FORMAT_XZ, filters=filters)),
        "zstd -22": len(zstandard.ZstdCompressor(level=22, write_checksum=True).compress(content)),
    }

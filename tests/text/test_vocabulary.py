"""The table in arrays answers as a dictionary does: for long pieces, zero bytes and crowded slots too."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from inkling.text import vocabulary
from inkling.text.vocabulary import Vocabulary

some = st.binary(min_size=1, max_size=20) | st.text("ab\0", min_size=1, max_size=18).map(str.encode)


def ids_of(table: Vocabulary, pieces: list[bytes]) -> list[int]:
    lengths = np.fromiter(map(len, pieces), np.int64, len(pieces))
    found: list[int] = table.ids(b"".join(pieces), np.cumsum(lengths) - lengths).tolist()
    return found


@settings(deadline=None, max_examples=300)
@given(listed=st.lists(some, unique=True, max_size=40), others=st.lists(some, max_size=40))
@example(listed=[], others=[b"a"])
@example(listed=[b"a", b"a\0", b"a\0\0", b"\0"], others=[b"\0\0", b"a\0b"])
@example(listed=[b"1234567890123456", b"12345678901234567"], others=[b"123456789012345", b"123456789012345678"])
def test_ids_are_those_of_a_dictionary(listed: list[bytes], others: list[bytes]) -> None:
    known = {piece: i for i, piece in enumerate(listed, start=1)}
    asked = listed + others + listed[::-1]
    assert ids_of(Vocabulary([b"", *listed]), asked) == [known.get(piece, 0) for piece in asked]


def test_pieces_that_share_a_slot_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary, "_C", np.uint64(0))  # one slot for all
    listed = [b"%d" % i for i in range(50)]
    table = Vocabulary([b"", *listed])
    assert np.count_nonzero(table.first) == 1
    assert ids_of(table, [*reversed(listed), b"50", b"x"]) == [*range(50, 0, -1), 0, 0]


def test_no_pieces_have_no_ids() -> None:
    assert ids_of(Vocabulary([b"", b"a"]), []) == []

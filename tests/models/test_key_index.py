"""The table of slots finds what binary search finds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from inkling.models import key_index
from inkling.models.key_index import KeyIndex, search

keys = st.lists(st.integers(0, 1 << 62) | st.integers(0, 300), unique=True, min_size=1, max_size=200).map(sorted)


@settings(deadline=None, max_examples=300)
@given(listed=keys, others=st.lists(st.integers(-(1 << 62), 1 << 62) | st.integers(-9, 300), max_size=100))
@example(listed=[0], others=[-1, 1])
def test_places_are_those_in_the_list(listed: list[int], others: list[int]) -> None:
    places = {key: place for place, key in enumerate(listed)}
    wanted = np.array(listed + others + listed, np.int64)
    expected = [places.get(key, -1) for key in wanted.tolist()]
    index = KeyIndex(np.array(listed, np.int64))
    assert search(index.keys, wanted).tolist() == expected
    assert index.find(wanted).tolist() == expected  # more searches than keys, so the table is built
    assert index._chains is not None


def test_keys_that_share_a_slot_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_index, "MULTIPLIER", np.uint64(0))  # one slot for all
    index = KeyIndex(np.arange(0, 100, 2))
    assert index.find(np.arange(100)).tolist() == [i // 2 if i % 2 == 0 else -1 for i in range(100)]


def test_the_table_waits_until_it_pays() -> None:
    index = KeyIndex(np.arange(1000))
    for _ in range(249):
        assert index.find(np.array([7])).tolist() == [7]
        assert index._chains is None
    assert index.find(np.array([7, -3, 1000])).tolist() == [7, -1, -1]
    assert index._chains is not None

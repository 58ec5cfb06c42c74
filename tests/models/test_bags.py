"""Bags of features: what a Counter over each text counts, however the work is shared out."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inkling.models import bags as module
from inkling.models.bags import Bags, Table, bag, blocks_of, collect, count_texts, on_all_cores
from inkling.text.grams import GramConfig, find_grams

WORDS = ["good", "bad", "not", "film", "a", "!", "don't", "我"]
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join), max_size=7)
CONFIGS = st.sampled_from(
    [GramConfig(1, bits=16), GramConfig(3, bits=16), GramConfig(2, 2, 3, 18), GramConfig(1, 3, 5, 12)]
)


def counters(bags: Bags) -> list[dict[int, float]]:
    """Each text as a dictionary."""
    found = []
    for low, high in zip(bags.offsets[:-1].tolist(), bags.offsets[1:].tolist(), strict=True):
        rows = bags.rows[low:high].tolist()
        assert rows == sorted(set(rows))
        found.append(dict(zip(rows, bags.counts[low:high].tolist(), strict=True)))
    return found


def count(text: str, config: GramConfig) -> dict[int, float]:
    """The keys of one text, counted one by one."""
    grams = find_grams([text], config)
    keys = [key for run in grams.runs for key in run.tolist() if key >= 0] + grams.inside.tolist()
    return {key: float(times) for key, times in Counter(keys).items()}


def same(one: Bags, other: Bags) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ("rows", "counts", "offsets"))


def in_blocks(patch: pytest.MonkeyPatch, chars: int, pairs: int) -> None:
    """Makes blocks so small that even these texts are shared out."""

    def small_blocks(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
        return blocks_of(texts, chars)

    patch.setattr(module, "blocks_of", small_blocks)
    patch.setattr(module, "BLOCK_PAIRS", pairs)


@settings(deadline=None, max_examples=50)
@given(TEXTS, CONFIGS)
def test_a_bag_counts_the_keys_of_its_text(texts: list[str], config: GramConfig) -> None:
    found = collect(texts, config)
    assert counters(found) == [count(text, config) for text in texts]
    assert len(found) == len(texts)
    assert found.lengths.tolist() == [len(count(text, config)) for text in texts]


@settings(deadline=None, max_examples=40)
@given(TEXTS, CONFIGS, st.booleans(), st.data())
def test_the_table_keeps_what_it_knows(
    texts: list[str], config: GramConfig, distinct: bool, data: st.DataObject
) -> None:
    keys = sorted({key for text in texts for key in count(text, config)})
    known = [key for key in keys if data.draw(st.booleans())]
    table = Table(config, np.array(known, np.int32))
    found = table.bags(texts, distinct)
    for text, of_text in zip(texts, counters(found), strict=True):
        times = count(text, config)
        assert of_text == {row: 1.0 if distinct else times[key] for row, key in enumerate(known) if key in times}
    assert same(table.keep(collect(texts, config), distinct), found)


@settings(deadline=None, max_examples=40)
@given(TEXTS, CONFIGS, st.sampled_from([1, 3, 20]), st.sampled_from([1, 4, 1000]))
def test_blocks_of_any_size_give_the_same_bags(texts: list[str], config: GramConfig, chars: int, pairs: int) -> None:
    whole = collect(texts, config)
    table = Table(config, np.unique(whole.rows)[::2].astype(np.int32))
    kept = table.keep(whole, distinct=False)
    with pytest.MonkeyPatch.context() as patch:
        in_blocks(patch, chars, pairs)
        assert same(collect(texts, config), whole)
        assert same(table.keep(whole, distinct=False), kept)


@pytest.mark.parametrize("cores", [1, 2, 5])
def test_the_number_of_threads_changes_nothing(cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(1)
    texts = [" ".join(generator.choice(WORDS, size=int(n))) for n in generator.integers(0, 30, size=200)]
    config = GramConfig(2, 2, 4, 16)
    whole = collect(texts, config)
    in_blocks(monkeypatch, 100, 50)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)), raising=False)
    assert same(collect(texts, config), whole)
    table = Table(config, np.unique(whole.rows)[::3].astype(np.int32))
    kept = table.keep(whole, distinct=True)
    assert counters(kept)[7] == {
        row: 1.0 for row, key in enumerate(table.keys.tolist()) if key in count(texts[7], config)
    }


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(0, 9), max_size=30), st.integers(1, 25))
def test_blocks_are_a_partition_into_neighbours(sizes: list[int], chars: int) -> None:
    texts = ["x" * size for size in sizes]
    blocks = list(blocks_of(texts, chars))
    assert [place for first, last in blocks for place in range(first, last)] == list(range(len(texts)))
    for first, last in blocks:
        assert first < last
        assert sum(sizes[first:last]) <= chars or last == first + 1  # a text longer than a block stands alone
    for (first, last), (_, after) in pairwise(blocks):
        assert sum(sizes[first : last + 1]) > chars  # no block ends before it must
        assert after > last


@settings(deadline=None, max_examples=50)
@given(TEXTS, st.lists(st.integers(0, 6), max_size=10))
def test_taking_texts_takes_their_bags_in_the_order_asked_for(texts: list[str], places: list[int]) -> None:
    bags = collect(texts, GramConfig(2))
    wanted = [place for place in places if place < len(texts)]
    taken = bags.take(np.array(wanted, np.int64))
    assert counters(taken) == [counters(bags)[place] for place in wanted]


@settings(deadline=None, max_examples=50)
@given(TEXTS, st.integers(0, 1000))
def test_sums_go_over_each_text(texts: list[str], seed: int) -> None:
    bags = collect(texts, GramConfig(2))
    values = np.random.default_rng(seed).integers(-50, 50, size=len(bags.rows)).astype(np.float32)
    expected = [float(values[low:high].sum()) for low, high in zip(bags.offsets[:-1], bags.offsets[1:], strict=True)]
    assert bags.sums(values).tolist() == expected
    assert bags.sums(bags.counts).tolist() == [sum(of_text.values()) for of_text in counters(bags)]


def test_empty_texts_have_empty_bags_wherever_they_stand() -> None:
    texts = ["", "good bad good", "", " ", "bad", ""]
    bags = collect(texts, GramConfig(1))
    assert bags.lengths.tolist() == [0, 2, 0, 0, 1, 0]
    assert sorted(counters(bags)[1].values()) == [1.0, 2.0]
    assert bags.sums(bags.counts).tolist() == [0.0, 3.0, 0.0, 0.0, 1.0, 0.0]
    assert bags.sums(np.ones(3, np.float32)).dtype == np.float32
    nothing = Table(GramConfig(1), np.zeros(0, np.int32)).keep(bags, distinct=True)
    assert nothing.lengths.tolist() == [0] * 6
    assert collect([], GramConfig(1)).offsets.tolist() == [0]
    assert Table(GramConfig(1), np.zeros(0, np.int32)).bags([], distinct=False).offsets.tolist() == [0]
    assert counters(bag(find_grams(["", ""], GramConfig(2, 3, 4)))) == [{}, {}]


def test_texts_are_counted_once_for_each_key() -> None:
    texts = ["good good film", "film", "bad film film", ""]
    config = GramConfig(1, bits=20)
    counts = count_texts(collect(texts, config), config)
    assert len(counts) == 1 << 20
    (good,), (film,) = (list(count(word, config)) for word in ("good", "film"))
    assert (counts[good], counts[film], counts.sum()) == (1, 3, 5)


def test_work_for_many_threads_comes_back_in_order() -> None:
    assert on_all_cores(lambda n: n * n, range(50)) == [n * n for n in range(50)]
    assert on_all_cores(len, ["abc"]) == [3]
    assert on_all_cores(len, []) == []
    with pytest.raises(ZeroDivisionError):
        on_all_cores(lambda n: 1 // n, [1, 0, 2])

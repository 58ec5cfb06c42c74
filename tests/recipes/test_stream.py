"""The token stream: every token is read once an epoch, after the token before it."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from inkling.recipes.stream import TokenStream, encode_stream, shuffled
from inkling.text.tokenise import train_tokeniser

LINES = ["one line\n", "another line\n", "\n", "the last line\n"] * 30


def stream_of(separate: bool) -> TokenStream:
    tokeniser = train_tokeniser("character", [LINES])
    return encode_stream([LINES[:50], LINES[50:]], tokeniser, separate)


def test_the_stream_holds_all_tokens_and_counts_characters() -> None:
    stream = stream_of(separate=False)
    tokeniser = train_tokeniser("character", [LINES])
    assert tokeniser.decode(stream.ids.tolist()) == "".join(LINES)
    assert stream.chars == sum(map(len, LINES))
    assert stream.offsets.tolist() == [0, len(stream)]
    assert stream.ids.dtype == np.uint8
    assert stream.counts.tolist() == np.bincount(stream.ids, minlength=tokeniser.size).tolist()


def test_separate_texts_begin_where_they_begin() -> None:
    stream = stream_of(separate=True)
    lengths = np.array([len(line) for line in LINES])
    assert stream.offsets.tolist() == [0, *np.cumsum(lengths).tolist()]


def test_an_epoch_reads_every_token_of_a_stretch_once_and_after_the_one_before() -> None:
    stream = stream_of(separate=False)
    times, readers = 7, 5
    count = stream.chunks_in_epoch(times, readers)
    assert count == len(stream) // readers // times
    read = [stream.chunk(n, times, readers, seed=3) for n in range(count)]
    columns = np.concatenate([batch.targets for batch in read])  # what each reader read, in order
    length = len(stream) // readers
    for reader in range(readers):
        expected = stream.ids[reader * length : reader * length + count * times]
        assert columns[:, reader].tolist() == expected.tolist()
    inputs = np.concatenate([batch.inputs for batch in read])
    assert inputs[1:].tolist() == columns[:-1].tolist()
    assert inputs[0, 0] == stream.begin


def test_states_are_emptied_at_epochs_texts_and_now_and_then() -> None:
    stream = stream_of(separate=True)
    count = stream.chunks_in_epoch(8, 4)
    assert stream.chunk(0, 8, 4, 0).fresh[0].tolist() == [0, 1, 2, 3]
    assert stream.chunk(count, 8, 4, 0).fresh[0].tolist() == [0, 1, 2, 3]
    batch = stream.chunk(1, 8, 4, 0)
    for t, readers in batch.fresh.items():
        for reader in readers:
            if t:
                assert batch.inputs[t, reader] == stream.begin
    begun = sum(len(found) for n in range(count) for found in stream.chunk(n, 8, 4, 0).fresh.values())
    assert begun >= sum(stream.starts[: 4 * count * 8]) - 4  # type: ignore[index]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 500), st.integers(1, 20), st.integers(1, 9), st.integers(0, 5))
def test_a_chunk_is_a_function_of_its_number(number: int, times: int, readers: int, seed: int) -> None:
    stream = stream_of(separate=False)
    first, second = (stream.chunk(number, times, readers, seed) for _ in range(2))
    assert first.inputs.tolist() == second.inputs.tolist()
    assert first.targets.tolist() == second.targets.tolist()
    assert first.inputs.shape == (times, readers)
    assert {t: found.tolist() for t, found in first.fresh.items()} == {
        t: found.tolist() for t, found in second.fresh.items()
    }


# ------------------------------------------------------------------------------------------ windows


@given(st.integers(1, 700), st.integers(0, 9))
def test_an_order_that_is_never_written_down_has_everything_once(size: int, seed: int) -> None:
    order = shuffled(np.arange(size), size, (seed, 1))
    assert sorted(order.tolist()) == list(range(size))
    part = np.arange(size // 3, size // 2)
    assert shuffled(part, size, (seed, 1)).tolist() == order[part].tolist()


def test_an_order_is_as_random_as_it_should_be() -> None:
    """Of a random order of n things the mean of |place − neighbour's place| is (n + 1) / 3, and one stays in place."""
    orders = [shuffled(np.arange(5000), 5000, (seed,)) for seed in range(20)]
    steps = [float(np.abs(np.diff(order)).mean()) for order in orders]
    assert abs(np.mean(steps) / (5001 / 3) - 1) < 0.01
    assert sum(int((order == np.arange(5000)).sum()) for order in orders) < 60  # 20 expected
    assert len({tuple(order[:5].tolist()) for order in orders}) == 20


def test_an_epoch_of_windows_reads_every_token_once_and_after_the_one_before() -> None:
    stream = stream_of(separate=False)
    tagged = TokenStream(np.arange(len(stream)), None, -1, 0, Counter(), stream.counts)  # each token is its own place
    times = 7
    count = len(stream) // times
    for epoch in (0, 3):
        inputs, targets = tagged.windows(epoch * count + np.arange(count), times, seed=2)
        assert inputs.shape == targets.shape == (count, times)
        assert len(set(targets.flatten().tolist())) == count * times
        assert (inputs == targets - 1).all()  # and -1, which begins a text here, before place 0
    rest = len(stream) - count * times
    assert rest > 0
    unread = [
        set(range(len(stream))) - set(tagged.windows(e * count + np.arange(count), times, 2)[1].flatten().tolist())
        for e in range(4)
    ]
    assert all(len(places) == rest for places in unread)
    assert len(set.union(*unread)) > rest  # what is left over is another part each time


def test_windows_are_cut_the_same_however_they_are_asked_for() -> None:
    stream = stream_of(separate=True)
    numbers = np.arange(200)
    whole = stream.windows(numbers, 8, 5)
    for part in (numbers[::3], numbers[50:90]):  # across the ends of epochs
        for some, all_of_them in zip(stream.windows(part, 8, 5), whole, strict=True):
            assert some.tolist() == all_of_them[part].tolist()
    starts = stream.starts
    assert starts is not None
    inputs, targets = whole
    before = np.roll(stream.ids, 1)
    pairs = {(int(a), int(b)) for a, b in zip(np.where(starts, stream.begin, before), stream.ids, strict=True)}
    assert set(zip(inputs.flatten().tolist(), targets.flatten().tolist(), strict=True)) <= pairs


def test_windows_of_a_text_far_larger_than_memory_take_no_memory() -> None:
    endless = TokenStream(np.broadcast_to(np.uint8(7), 10**15), None, 1, 0, Counter(), np.zeros(9, np.int64))
    inputs, targets = endless.windows(np.arange(10**9, 10**9 + 16), 64, 0)
    assert inputs.shape == (16, 64)
    assert set(targets.flatten().tolist()) == {7}

"""The token stream: every token is read once an epoch, after the token before it."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from inkling.recipes.stream import TokenStream, encode_stream
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

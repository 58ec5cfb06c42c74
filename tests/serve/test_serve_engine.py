"""The engine: what each text gets does not depend on the texts beside it, and neither does what goes wrong."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from torch import Tensor

from inkling.models.gpt import GPTConfig, initial_parameters
from inkling.models.gpt_model import Transformer
from inkling.models.gru import GRU, GRUConfig
from inkling.models.gru import random_parameters as gru_parameters
from inkling.models.ngram import NGram, NGramConfig
from inkling.models.sampling import SampledToken, SamplingConfig, Writer, prompt_ids, sample_many
from inkling.serve import engine as engines
from inkling.serve.engine import Pool, Task, Text, WritingEngine
from inkling.serve.limits import Busy, TooLong
from inkling.text.grammar import grammar_text
from inkling.text.tokenise import train_tokeniser

LINES = grammar_text(np.random.default_rng(3), 1500).splitlines(keepends=True)
TOKENISER = train_tokeniser("character", [LINES])


def ngram() -> Any:
    return NGram.fit([TOKENISER.encode(LINES)], TOKENISER, NGramConfig(3))


def gru() -> Any:
    sizes = GRUConfig(dimension=8, hidden=16)
    return GRU(sizes, gru_parameters(sizes, TOKENISER.size, np.random.default_rng(0)), TOKENISER)


def transformer() -> Any:
    config = GPTConfig(TOKENISER.size, dimension=16, layers=2, heads=2, mlp=24, context=32)
    return Transformer(config, initial_parameters(config, np.random.default_rng(0)), TOKENISER)


class Noted(Text):
    """A text that notes what came, and says when all has."""

    def __init__(self, writer: Writer, **options: Any) -> None:
        super().__init__(writer, **options)
        self.ended = threading.Event()
        self.deliveries: list[int] = []

    def receive(self, tokens: Sequence[SampledToken], done: bool) -> None:
        super().receive(tokens, done)
        self.deliveries.append(len(tokens))
        if done:
            self.ended.set()

    @property
    def written(self) -> str:
        return b"".join(token.text for token in self.tokens).decode()


def text_of(model: Any, prompt: str, config: SamplingConfig, seed: int, **options: Any) -> Noted:
    return Noted(Writer(prompt_ids(model, prompt), config, np.random.default_rng((seed, 0))), **options)


@pytest.fixture
def start() -> Iterator[Callable[..., WritingEngine]]:
    running: list[WritingEngine] = []

    def begin(model: Any, **options: Any) -> WritingEngine:
        running.append(WritingEngine(model, **options))
        return running[-1]

    yield begin
    for engine in running:
        engine.close()


Start = Callable[..., WritingEngine]
ENDLESS = SamplingConfig(tokens=10**9)


@pytest.mark.parametrize("make", [ngram, gru, transformer])
@pytest.mark.parametrize(("batch", "lanes"), [(1, 1), (3, 1), (32, 1), (5, 2), (32, 3)])
def test_each_text_is_the_sample_of_its_seed_whoever_joins_and_leaves(
    make: Callable[[], Any], batch: int, lanes: int, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "READ_TOKENS", 20)  # so that prompts are read in parts
    model, engine = make(), None
    kinds = [
        SamplingConfig(tokens=30, temperature=0.7),
        SamplingConfig(tokens=3),
        SamplingConfig(tokens=50, top_p=0.8, repetition_penalty=1.3),
        SamplingConfig(tokens=17, temperature=0),
        SamplingConfig(tokens=40, top_k=5, stop=("e",)),
    ]
    prompts = ["", "The", LINES[0] + LINES[1], "A boat and a net", "x"]
    asked = [(prompts[i % 5], kinds[i % 4 if i % 3 else 4], i) for i in range(20)]
    texts = [text_of(model, prompt, config, seed, streams=seed % 2 == 0) for prompt, config, seed in asked]
    engine = start(model, batch=batch, lanes=lanes)
    for text in texts:
        engine.submit([text])
    for text, (prompt, config, seed) in zip(texts, asked, strict=True):
        assert text.ended.wait(30)
        [expected] = sample_many(model, config, seed, [prompt])
        assert text.written == expected.text
        assert text.writer.stopped == expected.stopped
        assert [token.nats for token in text.tokens] == pytest.approx([t.nats for t in expected.tokens], abs=1e-4)
    assert (engine.active, engine.depth) == (0, 0)


def test_texts_are_written_together_up_to_the_batch(start: Start) -> None:
    model, sizes = ngram(), list[int]()
    held = threading.Event()

    def on_step(size: int) -> None:
        sizes.append(size)
        held.wait(10)

    engine = start(model, batch=4, on_step=on_step)
    texts = [text_of(model, "", SamplingConfig(tokens=5), seed) for seed in range(6)]
    engine.submit(texts)
    held.set()
    assert all(text.ended.wait(10) for text in texts)
    assert sizes == [4] * 5 + [2] * 5


def test_only_who_streams_hears_of_every_token(start: Start) -> None:
    model = ngram()
    engine = start(model)
    streamed, whole = (text_of(model, "", SamplingConfig(tokens=9), 1, streams=streams) for streams in (True, False))
    engine.submit([streamed, whole])
    assert streamed.ended.wait(10)
    assert whole.ended.wait(10)
    assert streamed.deliveries == [1] * 9
    assert whole.deliveries == [9]
    assert streamed.written == whole.written


def test_a_text_that_was_given_up_makes_room_for_others(start: Start) -> None:
    model = ngram()
    engine = start(model, batch=1)
    endless, waiting, short = (
        text_of(model, "", ENDLESS, 1),
        text_of(model, "", ENDLESS, 2),
        text_of(model, "", SamplingConfig(tokens=3), 3),
    )
    engine.submit([endless, waiting, short])
    engine.give_up([endless, waiting])
    assert short.ended.wait(10)
    assert not endless.done
    assert not waiting.done
    assert waiting.tokens == []


def test_a_late_text_fails_and_says_so(start: Start) -> None:
    model = ngram()
    engine = start(model, batch=1)
    late, behind = (text_of(model, "", ENDLESS, seed, deadline=time.monotonic() + 0.05) for seed in (1, 2))
    engine.submit([late, behind])
    for text in (late, behind):
        assert text.ended.wait(10)
        assert isinstance(text.writer.failure, TooLong)


def test_a_full_queue_refuses_all_of_a_request_and_takes_it_later(start: Start) -> None:
    model = ngram()
    engine = start(model, batch=1, queue=2)
    endless = text_of(model, "", ENDLESS, 1)
    engine.submit([endless])
    while not engine.active:
        pass
    three = [text_of(model, "", SamplingConfig(tokens=2), seed) for seed in range(3)]
    engine.submit(three[:1])
    with pytest.raises(Busy):
        engine.submit([*three[1:], text_of(model, "", ENDLESS, 9)])
    assert engine.depth == 1
    engine.submit(three[1:2])
    engine.give_up([endless])
    assert all(text.ended.wait(10) for text in three[:2])


class Fragile:
    """A model that cannot bear one token: a step with it fails, for all who step with it."""

    def __init__(self, model: Any, token: int) -> None:
        self._model, self._token = model, token

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def step_many(self, states: Sequence[Any], tokens: Sequence[int]) -> tuple[list[Any], Tensor]:
        if self._token in tokens:
            raise RuntimeError("not that one")
        found: tuple[list[Any], Tensor] = self._model.step_many(states, tokens)
        return found


def test_a_step_that_fails_for_one_text_fails_for_no_other(start: Start) -> None:
    plain, config = ngram(), SamplingConfig(tokens=12)
    expected = [sample_many(plain, config, seed, [""]) for seed in range(6)]
    samples = [[token.token for token in next(one).tokens] for one in expected]
    token = samples[0][3]
    spared = [seed for seed in range(6) if token not in samples[seed][:-1]]  # the last token is not read any more
    assert 0 < len(spared) < 6
    engine = start(Fragile(plain, token))
    texts = [text_of(plain, "", config, seed) for seed in range(6)]
    engine.submit(texts)
    for seed, text in enumerate(texts):
        assert text.ended.wait(10)
        if seed in spared:
            assert [one.token for one in text.tokens] == samples[seed]
        else:
            assert str(text.writer.failure) == "not that one"
    fresh = text_of(plain, "", config, spared[0])
    engine.submit([fresh])
    assert fresh.ended.wait(10)
    assert [one.token for one in fresh.tokens] == samples[spared[0]]


def test_a_long_prompt_does_not_hold_up_the_others(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "READ_TOKENS", 8)
    model = ngram()
    engine = start(model)
    long, short = (
        text_of(model, "The boat. " * 2000, SamplingConfig(tokens=1), 1),
        text_of(model, "", SamplingConfig(tokens=50), 2),
    )
    engine.submit([long, short])
    assert short.ended.wait(10)
    assert not long.done
    assert long.ended.wait(60)


# ------------------------------------------------------------------------------------------------ pools


def test_what_waits_is_worked_on_in_one_go_up_to_its_size() -> None:
    groups, held, ended = list[list[int]](), threading.Event(), threading.Event()

    def work(items: Sequence[int]) -> list[int]:
        held.wait(10)
        groups.append(list(items))
        return [item * item for item in items]

    tasks = [Task[int, int](item, lambda task: ended.set() if task.item == 6 else None, 2) for item in range(7)]
    pool = Pool(work, most=6)
    pool.submit(tasks[:1])
    while pool.depth:
        pass
    pool.submit(tasks[1:])
    held.set()
    assert ended.wait(10)
    pool.close()
    assert groups == [[0], [1, 2, 3], [4, 5, 6]]
    assert [task.result for task in tasks] == [0, 1, 4, 9, 16, 25, 36]


def test_a_task_that_fails_fails_alone_and_one_given_up_is_left_out() -> None:
    seen, ended, held = set[int](), threading.Event(), threading.Event()

    def work(items: Sequence[int]) -> list[int]:
        held.wait(10)
        seen.update(items)
        if 2 in items:
            raise ValueError("no two")
        return list(items)

    tasks = [Task[int, int](item, lambda task: ended.set() if task.item == 4 else None) for item in range(5)]
    pool = Pool(work, most=100, queue=4)
    pool.submit(tasks[:1])
    while pool.depth:
        pass
    pool.submit(tasks[1:])
    with pytest.raises(Busy):
        pool.submit([Task(9, lambda task: None)])
    tasks[3].given_up = True
    held.set()
    assert ended.wait(10)
    pool.close()
    assert [task.result for task in tasks] == [0, 1, None, None, 4]
    assert str(tasks[2].failure) == "no two"
    assert 3 not in seen

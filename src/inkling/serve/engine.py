"""The engine: threads that own a model, and do for many requests at once what they ask for one by one.

`WritingEngine` writes. Its texts are those of a `Desk` (models/sampling.py): every step of the model gives one token to
each of up to `batch` texts, whoever asked for them. New ones join between two steps and begin with their prompts, of
which at most `READ_TOKENS` are read between two steps, so that a long one does not hold up the others. What ended, or
was given up by who asked for it, leaves.

It may have several lanes, each a thread with a desk of its own. While one lane chooses tokens, which Python does for
one thread at a time, the others are inside the model; texts are shared out evenly among them.

`Pool` gathers what waits while its thread is busy, and works on it in one go: scores, verdicts.

Both have a queue with an end, beyond which they raise `Busy`. Results go out through `post`, one call for all that came
of a step, because waking another thread costs more than most tokens.

Left out: a text that is interrupted to let others write first; all go on at the same pace.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Condition, Thread
from typing import Any, Generic, TypeVar

from inkling.models.contracts import LanguageModel
from inkling.models.sampling import Desk, SampledToken, Writer
from inkling.serve.limits import Busy, TooLong

READ_TOKENS = 512  # of prompts, between two steps
Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(eq=False)
class Text:
    """One text to be written. `streams`: who asked wants each token at once, not all in the end."""

    writer: Writer
    streams: bool = False
    deadline: float = float("inf")  # by time.monotonic
    given_up: bool = False
    tokens: list[SampledToken] = field(default_factory=list)

    done: bool = False  # all that will ever come is here, or `writer.failure` says why not

    def receive(self, tokens: Sequence[SampledToken], done: bool) -> None:
        """What is new, in the thread that `post` brings it to."""
        self.tokens += tokens
        self.done = done


Delivery = list[tuple[Text, list[SampledToken], bool]]
Post = Callable[[Delivery], None]


def deliver(delivery: Delivery) -> None:
    for text, tokens, done in delivery:
        text.receive(tokens, done)


class _Lane:
    """A thread's own texts, and what was written of those that do not stream."""

    def __init__(self, model: LanguageModel[Any]) -> None:
        self.desk = Desk(model)
        self.active: dict[Writer, Text] = {}
        self.kept: dict[Writer, list[SampledToken]] = {}


class WritingEngine:
    """Writes up to `batch` texts at a time with one model, in `lanes` threads of its own."""

    def __init__(
        self,
        model: LanguageModel[Any],
        post: Post = deliver,
        *,
        batch: int = 32,
        queue: int = 256,
        lanes: int = 1,
        on_step: Callable[[int], None] = lambda size: None,
        name: str = "writing",
    ) -> None:
        self.model, self.batch, self.queue = model, batch, queue
        self._post, self._on_step = post, on_step
        self._waiting: deque[Text] = deque()
        self._lanes = [_Lane(model) for _ in range(max(1, min(lanes, batch)))]
        self._changed = Condition()
        self._closing = False
        self._threads = [
            Thread(target=self._run, args=(lane,), name=f"inkling-{name}-{number}", daemon=True)
            for number, lane in enumerate(self._lanes)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def depth(self) -> int:
        """Texts that wait."""
        return len(self._waiting)

    @property
    def active(self) -> int:
        return sum(len(lane.active) for lane in self._lanes)

    def submit(self, texts: Sequence[Text]) -> None:
        """All of them or none; more than fit into an empty queue are taken when nothing else waits."""
        with self._changed:
            waiting = len(self._waiting)
            if self._closing or (waiting and waiting + len(texts) > self.queue):
                raise Busy
            self._waiting += texts
            self._changed.notify_all()

    def give_up(self, texts: Sequence[Text]) -> None:
        """Nobody waits for these any more: they are not gone on with."""
        with self._changed:
            for text in texts:
                text.given_up = True
            self._changed.notify_all()

    def close(self, seconds: float = 2.0) -> None:
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(seconds)

    # ------------------------------------------------------------------------------------------- in the thread

    def _run(self, lane: _Lane) -> None:
        while True:
            with self._changed:
                while not (self._closing or lane.active or self._fair_share(lane)):
                    self._changed.wait()
                if self._closing:
                    return
                dropped = self._drop(lane)
                arrived = []
                for _ in range(min(self._fair_share(lane), len(self._waiting))):
                    text = self._waiting.popleft()
                    lane.active[text.writer] = text
                    arrived.append(text.writer)
            try:
                lane.desk.sit(arrived)
                drawn = [(writer, list[SampledToken]()) for writer in lane.desk.read(READ_TOKENS)]
                found = lane.desk.draw()
            except Exception as error:  # such as no memory for all of them together
                lane.desk, drawn, found = Desk(self.model), [], []
                for writer in lane.active:
                    writer.failure = error
                    drawn.append((writer, []))
            if found:
                self._on_step(len(found))
            self._send(lane, dropped, [*drawn, *found])

    def _fair_share(self, lane: _Lane) -> int:
        """How many of the texts that wait are for this lane, so that all lanes have about as many."""
        if not self._waiting:
            return 0
        each = -(-(self.active + len(self._waiting)) // len(self._lanes))
        room = self.batch - self.active
        return max(0, min(each - len(lane.active), room))

    def _drop(self, lane: _Lane) -> Delivery:
        """Those that were given up leave; those that are late fail, and are told so."""
        now, late = time.monotonic(), []
        for text in [text for text in lane.active.values() if text.given_up or text.deadline < now]:
            lane.desk.leave(text.writer)
            del lane.active[text.writer]
            lane.kept.pop(text.writer, None)
            late.append(text)
        if any(text.given_up or text.deadline < now for text in self._waiting):
            late += [text for text in self._waiting if text.given_up or text.deadline < now]
            self._waiting = deque(text for text in self._waiting if not (text.given_up or text.deadline < now))
        for text in late:
            text.writer.failure = TooLong()
        return [(text, [], True) for text in late if not text.given_up]

    def _send(self, lane: _Lane, delivery: Delivery, drawn: Sequence[tuple[Writer, list[SampledToken]]]) -> None:
        ended = False
        for writer, tokens in drawn:
            text = lane.active[writer]
            if writer.ended:
                del lane.active[writer]
                ended = True
            if not text.streams:
                kept = lane.kept.setdefault(writer, [])
                kept += tokens
                if writer.ended:
                    delivery.append((text, lane.kept.pop(writer), True))
            elif tokens or writer.ended:
                delivery.append((text, tokens, writer.ended))
        if ended and self._waiting and len(self._lanes) > 1:
            with self._changed:  # another lane may have waited for the room
                self._changed.notify_all()
        if delivery:
            self._post(delivery)


@dataclass(eq=False)
class Task(Generic[Item, Result]):
    """One piece of work for a `Pool`. Of result and failure one is there when `finish` is called."""

    item: Item
    finish: Callable[[Task[Item, Result]], None]
    size: int = 1
    given_up: bool = False
    result: Result | None = None
    failure: Exception | None = None


class Pool(Generic[Item, Result]):
    """Works on what waits, in one go, up to `most` in size; one that fails together with others is tried alone."""

    def __init__(
        self,
        work: Callable[[Sequence[Item]], Sequence[Result]],
        post: Callable[[Sequence[Task[Item, Result]]], None] | None = None,
        *,
        most: int,
        queue: int = 256,
        name: str = "pool",
    ) -> None:
        self._work, self._most, self.queue = work, most, queue
        self._post = post or finish
        self._waiting: deque[Task[Item, Result]] = deque()
        self._changed = Condition()
        self._closing = False
        self._thread = Thread(target=self._run, name=f"inkling-{name}", daemon=True)
        self._thread.start()

    @property
    def depth(self) -> int:
        return len(self._waiting)

    def submit(self, tasks: Sequence[Task[Item, Result]]) -> None:
        with self._changed:
            waiting = len(self._waiting)
            if self._closing or (waiting and waiting + len(tasks) > self.queue):
                raise Busy
            self._waiting += tasks
            self._changed.notify()

    def close(self, seconds: float = 2.0) -> None:
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(seconds)

    def _run(self) -> None:
        while True:
            with self._changed:
                while not (self._closing or self._waiting):
                    self._changed.wait()
                if self._closing:
                    return
                group, size = [self._waiting.popleft()], 0
                size = group[0].size
                while self._waiting and size + self._waiting[0].size <= self._most:
                    group.append(self._waiting.popleft())
                    size += group[-1].size
            group = [task for task in group if not task.given_up]
            self._try(group)
            if group:
                self._post(group)

    def _try(self, group: Sequence[Task[Item, Result]]) -> None:
        if not group:
            return
        try:
            results = self._work([task.item for task in group])
        except Exception as error:
            if len(group) == 1:
                group[0].failure = error
                return
            for task in group:
                self._try([task])
            return
        for task, result in zip(group, results, strict=True):
            task.result = result


def finish(tasks: Sequence[Task[Any, Any]]) -> None:
    for task in tasks:
        task.finish(task)

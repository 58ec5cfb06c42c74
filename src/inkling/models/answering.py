"""Answering questions with a language model: the likeliest lines behind a prompt, through its contract alone.

    P(answer | question) = Π p(token | question ␚ tokens before)      over the tokens of the answer and its line end

The confidence of an answer is this probability. Nothing is divided by the length, so confidences of short and long
answers mean the same, and those of all possible answers to a question sum to 1.

Beam search of width N, token by token:

    extensions    of all unfinished answers to a question by all tokens, the N likeliest
    finished      those that end the line; ways of cutting up one and the same answer are added up
    unfinished    the others, less those that are no likelier than the N-th finished answer: they cannot rise again

until none is unfinished, or has as many tokens as allowed. Width 1 is greedy: always the likeliest token. An answer
that was cut off there has confidence 0, for its line never ended. The unknown token, which has no spelling, is ruled
out. Of equals the first token is taken, and the answer that was found first.

Many questions are read and answered together, those of like length beside each other. Everything comes from the
model's parameters: no text is looked up. Left out: division by length, sampled answers (`sampling`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from inkling.errors import InklingError, UsageError
from inkling.models.contracts import LanguageModel, Reader
from inkling.text.questions import END, MARK, prompt

Floats = NDArray[np.float64]

ROWS_AT_ONCE = 128  # texts that are read together: questions, and unfinished answers
CELLS_AT_ONCE = 1 << 22  # log-probabilities held at once: texts × vocabulary
SORTED_TOGETHER = 4096  # questions, so that those of like length can be found
MOST_BEAMS = 64


@dataclass(frozen=True)
class AnsweringConfig:
    """`beam` 1: always the likeliest token. `tokens`: of an answer, at most."""

    beam: int = 1
    tokens: int = 64

    def __post_init__(self) -> None:
        if not 1 <= self.beam <= MOST_BEAMS:
            raise UsageError(f"The beam has a width of {self.beam}; give a whole number from 1 to {MOST_BEAMS}.")
        if self.tokens < 1:
            raise UsageError(f"Answers of at most {self.tokens} tokens were asked for; give at least 1.")


@dataclass(frozen=True)
class Answer:
    """What a model says, and the logarithm of the probability that it says just this. `others`: what else it might."""

    text: str
    log_prob: float
    ended: bool = True  # False: cut off
    others: tuple[tuple[str, float], ...] = ()  # runners-up, the likeliest first, with their log-probabilities

    @property
    def confidence(self) -> float:
        return min(1.0, math.exp(self.log_prob)) if self.ended else 0.0  # float32 can sum to a little more than 1


def answer_questions(
    model: LanguageModel[Any], questions: Sequence[str], config: AnsweringConfig | None = None
) -> Iterator[Answer]:
    """An answer to each question, in order."""
    for first in range(0, len(questions), SORTED_TOGETHER):
        together = [model.chain(prompt(question)) for question in questions[first : first + SORTED_TOGETHER]]
        encodings = model.tokeniser.encode(together)
        cuts = encodings.offsets.tolist()
        prompts = [encodings.ids[start:stop].tolist() for start, stop in pairwise(cuts)]
        if not first:
            _check_mark(model, prompts)
        yield from answer_prompts(model, prompts, config)


def answer_prompts(
    model: LanguageModel[Any], prompts: Sequence[Sequence[int]], config: AnsweringConfig | None = None
) -> list[Answer]:
    """What the model says behind each prompt, in order; all are sorted by length first."""
    config = config or AnsweringConfig()
    tokeniser = model.tokeniser
    ends = np.array([END.encode() in tokeniser.piece(token) for token in range(tokeniser.size)])
    rows = max(1, min(ROWS_AT_ONCE, CELLS_AT_ONCE // tokeniser.size))
    order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    found: dict[int, Answer] = {}
    at_once = max(1, rows // config.beam)
    for start in range(0, len(order), at_once):
        chosen = order[start : start + at_once]
        states, log_probs = _read(model, [prompts[i] for i in chosen])
        found |= zip(chosen, _search(model, states, log_probs, ends, config), strict=True)
    return [found[i] for i in range(len(prompts))]


def _check_mark(model: LanguageModel[Any], prompts: Sequence[Sequence[int]]) -> None:
    """Refuses a model that cannot see where a question ends: it never learned to answer."""
    if MARK not in model.chain(prompt("")):
        raise InklingError(
            f"The model reads text behind the normalisation '{model.chain}', which removes the mark between question "
            "and answer (U+001A); train one without it."
        )
    if all(ids[-1] == model.tokeniser.unknown for ids in prompts):
        raise InklingError(
            "The model has no token for the mark between question and answer (U+001A), so it never saw a question; "
            "train it on pairs of questions and answers."
        )


def _read(model: LanguageModel[Any], prompts: Sequence[Sequence[int]]) -> tuple[list[Any], Floats]:
    """States and log-probabilities (B×V) after each prompt.

    A model that cannot read them at once steps through all side by side, to the end of the longest: what comes behind
    the end of a shorter one is thrown away, because taking it out would have the others copied.
    """
    if isinstance(model, Reader):
        states, log_probs = model.read(prompts)
        return states, log_probs.detach().to(torch.float64).numpy()
    begun, _ = model.begin()
    states = [begun] * len(prompts)
    kept, found = list(states), np.zeros((len(prompts), model.tokeniser.size))
    for place in range(max(map(len, prompts))):
        tokens = [ids[place] if place < len(ids) else model.tokeniser.begin for ids in prompts]
        states, log_probs = model.step_many(states, tokens)
        for row, ids in enumerate(prompts):
            if len(ids) == place + 1:
                kept[row], found[row] = states[row], log_probs[row].detach().to(torch.float64).numpy()
    return kept, found


class _Going(NamedTuple):
    """An answer that has not ended."""

    question: int
    tokens: tuple[int, ...]
    log_prob: float
    state: Any


def _search(
    model: LanguageModel[Any],
    states: Sequence[Any],
    log_probs: Floats,
    ends: NDArray[np.bool_],
    config: AnsweringConfig,
) -> list[Answer]:
    """The answers to questions whose prompts were read."""
    width, unknown = config.beam, model.tokeniser.unknown
    finished: list[dict[str, float]] = [{} for _ in states]
    going = [_Going(question, (), 0.0, state) for question, state in enumerate(states)]
    cut_off: list[_Going] = []
    for length in range(1, config.tokens + 1):
        tokens, nexts = _likeliest(log_probs, width, unknown)
        extended: list[tuple[_Going, int, int, float]] = []  # what it goes on from, its row there, token, log p
        for question, rows in _by_question(going):
            ranked = [
                (going[row].log_prob + value, row, token)
                for row in rows
                for token, value in zip(tokens[row].tolist(), nexts[row].tolist(), strict=True)
                if value > -math.inf
            ]
            ranked.sort(key=lambda one: (-one[0], one[1]))
            kept = []
            for log_prob, row, token in ranked[:width]:
                if ends[token]:
                    _finish(finished[question], model, (*going[row].tokens, token), log_prob)
                else:
                    kept.append((going[row], row, token, log_prob))
            bar = sorted(finished[question].values(), reverse=True)[width - 1 : width]
            extended += [one for one in kept if not bar or one[3] > bar[0]]
        going = [_Going(old.question, (*old.tokens, token), value, old.state) for old, _, token, value in extended]
        if length == config.tokens:
            cut_off = going
        if not going or cut_off:
            break
        advanced, values = model.step_many([one.state for one in going], [one.tokens[-1] for one in going])
        going = [one._replace(state=state) for one, state in zip(going, advanced, strict=True)]
        log_probs = values.detach().to(torch.float64).numpy()
    return [
        _answer(model, found, [one for one in cut_off if one.question == i], width) for i, found in enumerate(finished)
    ]


def _likeliest(log_probs: Floats, width: int, unknown: int | None) -> tuple[NDArray[np.int64], Floats]:
    """The `width` likeliest tokens of each row (R×width), the first of equals first, and their log-probabilities."""
    if unknown is not None:
        log_probs = log_probs.copy()
        log_probs[:, unknown] = -np.inf
    if not np.isfinite(log_probs.max(axis=1)).all():
        raise InklingError("The model gives no probability to any token; train it on more text.")
    if width == 1:
        tokens = log_probs.argmax(axis=1)[:, None]
    elif width < log_probs.shape[1]:
        some = np.sort(np.argpartition(-log_probs, width - 1, axis=1)[:, :width], axis=1)
        order = np.argsort(-np.take_along_axis(log_probs, some, axis=1), axis=1, kind="stable")
        tokens = np.take_along_axis(some, order, axis=1)
    else:
        tokens = np.argsort(-log_probs, axis=1, kind="stable")
    return tokens, np.take_along_axis(log_probs, tokens, axis=1)


def _by_question(going: Sequence[_Going]) -> Iterator[tuple[int, range]]:
    """The rows of each question, which stand together."""
    first = 0
    for last in range(1, len(going) + 1):
        if last == len(going) or going[last].question != going[first].question:
            yield going[first].question, range(first, last)
            first = last


def _finish(finished: dict[str, float], model: LanguageModel[Any], tokens: Sequence[int], log_prob: float) -> None:
    text = _spell(model, tokens)
    finished[text] = float(np.logaddexp(finished[text], log_prob)) if text in finished else log_prob


def _spell(model: LanguageModel[Any], tokens: Sequence[int]) -> str:
    written = b"".join(model.tokeniser.piece(token) for token in tokens)
    return written.partition(END.encode())[0].decode("utf-8", "replace").strip()


def _answer(model: LanguageModel[Any], finished: dict[str, float], cut_off: Sequence[_Going], width: int) -> Answer:
    ranked = sorted(finished.items(), key=lambda pair: -pair[1])[:width]
    if ranked:
        return Answer(*ranked[0], others=tuple(ranked[1:]))
    best = max(cut_off, key=lambda one: one.log_prob)
    return Answer(_spell(model, best.tokens), best.log_prob, ended=False)

"""Sampling: seeded, cut as asked for, ended as asked for, and never the unknown token."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

from inkling.errors import InklingError, UsageError
from inkling.models import sampling
from inkling.models.bigram import Bigram, BigramConfig, random_parameters
from inkling.models.contracts import LanguageModel, Scores, log_probs_tensor
from inkling.models.ngram import NGram, NGramConfig
from inkling.models.sampling import Sample, SamplingConfig, choose, sample, sample_many
from inkling.text.grammar import grammar_text
from inkling.text.normalise import Chain
from inkling.text.tokenise import train_tokeniser
from inkling.text.tokens import Encodings

LINES = grammar_text(np.random.default_rng(3), 3000).splitlines(keepends=True)
TOKENISER = train_tokeniser("word", [LINES], 60)
MODEL = NGram.fit([TOKENISER.encode(LINES)], TOKENISER, NGramConfig(2))
CHANCES = np.array([0.5, 0.3, 0.15, 0.05])


def drawn(config: SamplingConfig, times: int = 4000, never: int | None = None) -> dict[int, float]:
    generator = np.random.default_rng(1)
    counts = Counter(choose(np.log(CHANCES), config, generator, never) for _ in range(times))
    return {token: counts[token] / times for token in counts}


def near(found: dict[int, float], expected: dict[int, float], times: int = 4000) -> bool:
    """Within four standard errors, and nothing else was drawn."""
    return set(found) == set(expected) and all(
        abs(found[token] - p) <= 4 * (p * (1 - p) / times) ** 0.5 for token, p in expected.items()
    )


def test_tokens_come_as_often_as_the_model_says() -> None:
    assert near(drawn(SamplingConfig()), dict(enumerate(CHANCES)))


def test_temperature_sharpens_and_flattens() -> None:
    # At temperature ½ chances are squared: .25, .09, .0225, .0025, sum .365.
    assert near(drawn(SamplingConfig(temperature=0.5)), dict(enumerate(CHANCES**2 / 0.365)))
    assert near(drawn(SamplingConfig(temperature=1e9)), dict(enumerate([0.25] * 4)))
    assert near(drawn(SamplingConfig(temperature=float("inf")), never=1), {0: 1 / 3, 2: 1 / 3, 3: 1 / 3})


def test_temperature_zero_is_always_the_likeliest() -> None:
    assert drawn(SamplingConfig(temperature=0), times=50) == {0: 1.0}
    assert drawn(SamplingConfig(temperature=0), times=50, never=0) == {1: 1.0}
    assert drawn(SamplingConfig(temperature=1e-300), times=50) == {0: 1.0}


def test_top_k_keeps_the_likeliest_in_their_proportions() -> None:
    assert near(drawn(SamplingConfig(top_k=2)), {0: 0.625, 1: 0.375})
    assert drawn(SamplingConfig(top_k=1), times=50) == {0: 1.0}
    assert near(drawn(SamplingConfig(top_k=100)), dict(enumerate(CHANCES)))


@pytest.mark.parametrize(
    ("top_p", "kept"), [(0.4, 1), (0.5, 1), (0.51, 2), (0.79, 2), (0.81, 3), (0.94, 3), (0.96, 4), (1.0, 4)]
)
def test_top_p_keeps_the_smallest_set_that_holds_it(top_p: float, kept: int) -> None:
    expected = dict(enumerate(CHANCES[:kept] / CHANCES[:kept].sum()))
    assert near(drawn(SamplingConfig(top_p=top_p)), expected)


def test_top_p_is_of_what_top_k_left() -> None:
    # Of the two left, .625 and .375, the first holds 60 % alone.
    assert drawn(SamplingConfig(top_k=2, top_p=0.6), times=50) == {0: 1.0}


def test_the_unknown_token_is_never_drawn_and_the_rest_share_its_chance() -> None:
    assert near(drawn(SamplingConfig(), never=0), {1: 0.6, 2: 0.3, 3: 0.1})


def test_min_p_keeps_what_is_at_least_that_share_of_the_likeliest() -> None:
    # The likeliest has .5: a share of .3 asks for .15, which the third just has; a share of .31 for more.
    assert near(drawn(SamplingConfig(min_p=0.2999)), {0: 0.5 / 0.95, 1: 0.3 / 0.95, 2: 0.15 / 0.95})
    assert near(drawn(SamplingConfig(min_p=0.31)), {0: 0.625, 1: 0.375})
    assert drawn(SamplingConfig(min_p=1), times=50) == {0: 1.0}


def test_min_p_is_of_chances_after_temperature() -> None:
    # At temperature 2 chances become their roots: .3 is √.6 = .77 of the likeliest, .15 is √.3 = .55, .05 is .32.
    roots = CHANCES[:3] ** 0.5
    assert near(drawn(SamplingConfig(temperature=2, min_p=0.5)), dict(enumerate(roots / roots.sum())))


def test_top_p_is_of_what_min_p_left() -> None:
    # .5 and .3 are left as .625 and .375, so the first alone holds 60 %.
    assert drawn(SamplingConfig(min_p=0.4, top_p=0.6), times=50) == {0: 1.0}


def penalised(recent: list[int], **options: Any) -> dict[int, float]:
    generator, config = np.random.default_rng(1), SamplingConfig(**options)
    counts = Counter(choose(np.log(CHANCES), config, generator, None, recent) for _ in range(4000))
    return {token: counts[token] / 4000 for token in counts}


def test_the_penalty_divides_the_chance_of_what_stands_among_the_last_tokens() -> None:
    # .5 / 2 = .25 once, however often it stands there; with .3, .15 and .05 that sums to .75.
    expected = {0: 0.25 / 0.75, 1: 0.3 / 0.75, 2: 0.15 / 0.75, 3: 0.05 / 0.75}
    assert near(penalised([0, 0, 0], repetition_penalty=2), expected)
    assert near(penalised([], repetition_penalty=2), dict(enumerate(CHANCES)))
    assert near(penalised([0, 1], repetition_penalty=1), dict(enumerate(CHANCES)))


def test_the_penalty_looks_back_no_further_than_its_window() -> None:
    expected = {0: 0.5 / 0.85, 1: 0.15 / 0.85, 2: 0.15 / 0.85, 3: 0.05 / 0.85}
    assert near(penalised([0, 1, 1], repetition_penalty=2, penalty_window=2), expected)


def test_the_penalty_comes_before_the_choice_of_the_likeliest() -> None:
    assert penalised([0], repetition_penalty=2, temperature=0) == {1: 1.0}
    assert penalised([0], repetition_penalty=2, top_k=1) == {1: 1.0}


class Highest(np.random.Generator):
    """Draws the largest number below one."""

    def __init__(self) -> None:
        super().__init__(np.random.PCG64(0))

    def random(self, *arguments: object, **options: object) -> float:  # type: ignore[override]
        return float(np.nextafter(1.0, 0.0))


@settings(deadline=None, max_examples=200)
@given(st.lists(st.floats(-50, 0), min_size=2, max_size=40), st.data())
def test_not_even_rounding_draws_the_unknown_token(scores: list[float], data: st.DataObject) -> None:
    never = data.draw(st.integers(0, len(scores) - 1))
    assert choose(np.array(scores), SamplingConfig(), Highest(), never) != never


def test_a_model_without_any_chance_says_so() -> None:
    with pytest.raises(InklingError, match="no probability"):
        choose(np.array([-np.inf, 0.0]), SamplingConfig(), np.random.default_rng(0), never=1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"temperature": -0.1},
        {"temperature": float("nan")},
        {"top_k": -1},
        {"top_p": 0.0},
        {"top_p": 1.1},
        {"top_p": float("nan")},
        {"tokens": 0},
        {"min_p": -0.1},
        {"min_p": 1.1},
        {"min_p": float("nan")},
        {"repetition_penalty": 0.9},
        {"repetition_penalty": float("nan")},
        {"repetition_penalty": float("inf")},
        {"penalty_window": 0},
        {"stop": ("",)},
        {"stop": ("\ud800",)},
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="Sampling cannot use"):
        SamplingConfig(**wrong)


# ------------------------------------------------------------------------------------------------ with a model


def test_the_same_seed_writes_the_same_text() -> None:
    config = SamplingConfig(tokens=40)
    first = list(sample(MODEL, config, np.random.default_rng(5)))
    assert first == list(sample(MODEL, config, np.random.default_rng(5)))
    assert first != list(sample(MODEL, config, np.random.default_rng(6)))
    assert len(first) == 40


def test_each_token_is_said_with_its_text_and_its_cost_under_the_model() -> None:
    tokens = list(sample(MODEL, SamplingConfig(tokens=30, temperature=0.7, top_k=5), np.random.default_rng(2)))
    text = b"".join(token.text for token in tokens).decode()
    scored = MODEL.score([text])[0]
    assert scored.ids.tolist() == [token.token for token in tokens]
    assert [token.nats for token in tokens] == pytest.approx(scored.nats.tolist(), rel=1e-12)


def test_a_prompt_is_continued_and_not_repeated() -> None:
    config = SamplingConfig(tokens=1, temperature=0)
    (after,) = sample(MODEL, config, np.random.default_rng(0), prompt="At dawn")
    assert after.text == b","
    (first,) = sample(MODEL, config, np.random.default_rng(0))
    assert first.text == b"The"


def test_a_prompt_of_unknown_words_is_continued_all_the_same() -> None:
    tokens = list(sample(MODEL, SamplingConfig(tokens=5), np.random.default_rng(0), prompt="Xqz Wvk"))
    assert len(tokens) == 5
    assert MODEL.tokeniser.unknown not in [token.token for token in tokens]


def test_a_token_says_how_many_the_model_preferred() -> None:
    tokens = list(sample(MODEL, SamplingConfig(tokens=30), np.random.default_rng(2)))
    state, log_probs = MODEL.begin()
    for token in tokens:
        better = [other for other in range(TOKENISER.size) if log_probs[other] > log_probs[token.token]]
        assert token.rank == len(better) + 1
        state, log_probs = MODEL.step(state, token.token)
    assert all(token.rank <= 2 for token in sample(MODEL, SamplingConfig(temperature=0), np.random.default_rng(2)))


# ------------------------------------------------------------------------------------------------ golden choices

CELLS = np.array(
    [  # a row for each token that stands before
        [0.30, 0.25, 0.20, 0.15, 0.10],
        [0.05, 0.50, 0.15, 0.20, 0.10],
        [0.22, 0.22, 0.22, 0.22, 0.12],
        [0.40, 0.02, 0.08, 0.30, 0.20],
        [0.01, 0.09, 0.60, 0.10, 0.20],
    ]
)


class Table:
    """A language model of five tokens, a to e, that remembers the last one. The first is drawn as after an e."""

    chain = Chain()
    context = "1 token"

    def __init__(self, pieces: Sequence[bytes] = (b"a", b"b", b"c", b"d", b"e"), unknown: int | None = None) -> None:
        self.tokeniser = Listed(pieces, unknown)
        self.batches: list[int] = []

    def begin(self) -> tuple[int, Tensor]:
        return self.step(0, 4)

    def step(self, state: int, token: int) -> tuple[int, Tensor]:
        return token, log_probs_tensor(np.log(CELLS[token] / CELLS[token].sum()))

    def step_many(self, states: Sequence[int], tokens: Sequence[int]) -> tuple[list[int], Tensor]:
        self.batches.append(len(tokens))
        rows = CELLS[np.array(tokens)]
        return list(tokens), log_probs_tensor(np.log(rows / rows.sum(axis=1, keepdims=True)))

    def score(self, texts: Sequence[str]) -> Scores:
        raise NotImplementedError


class Listed:
    """A tokeniser of given pieces, one character each where it has to encode."""

    kind = "word"
    begin = 0

    def __init__(self, pieces: Sequence[bytes], unknown: int | None) -> None:
        self.pieces, self.unknown, self.size = tuple(pieces), unknown, len(pieces)

    @property
    def byte_lengths(self) -> NDArray[np.int64]:
        return np.array([len(piece) for piece in self.pieces])

    def encode(self, texts: Sequence[str]) -> Encodings:
        ids = [self.pieces.index(letter.encode()) for text in texts for letter in text]
        return Encodings(np.array(ids, np.int32), np.cumsum([0, *map(len, texts)]), ())

    def decode(self, ids: Sequence[int] | NDArray[np.int32], spellings: Sequence[str] = ()) -> str:
        return b"".join(self.pieces[i] for i in ids).decode()

    def piece(self, token: int) -> bytes:
        return self.pieces[token]

    def to_json(self) -> str:
        raise NotImplementedError


def plainly_drawn(config: SamplingConfig, seed: int, number: int, prompt: str, never: int | None) -> list[int]:
    """The rules of the module's first page once more, with lists and loops."""
    generator = np.random.default_rng((seed, number))
    seen = ["abcde".index(letter) for letter in prompt]
    written: list[int] = []
    while len(written) < config.tokens:
        row = CELLS[seen[-1] if seen else 4].tolist()
        weights = {token: chance for token, chance in enumerate(row) if token != never}
        for token in set(seen[-config.penalty_window :]) & set(weights):
            weights[token] /= config.repetition_penalty
        ranking = sorted(weights, key=lambda token: (-round(weights[token], 12), token))
        if config.temperature == 0:
            chosen = ranking[0]
        else:
            powered = {token: weights[token] ** (1 / config.temperature) for token in ranking}
            if config.top_k:
                ranking = ranking[: config.top_k]
            ranking = [token for token in ranking if powered[token] >= config.min_p * powered[ranking[0]] * (1 - 1e-12)]
            total, kept = sum(powered[token] for token in ranking), []
            held = 0.0
            for token in ranking:
                kept.append(token)
                held += powered[token] / total
                if held >= config.top_p:
                    break
            mark, total = generator.random(), sum(powered[token] for token in kept)
            held = 0.0
            for token in kept:
                chosen = token
                held += powered[token] / total
                if mark < held:
                    break
        seen.append(chosen)
        written.append(chosen)
    return written


GOLDEN: dict[str, tuple[SamplingConfig, str, int | None, str]] = {
    "plain": (SamplingConfig(tokens=24), "", None, "edecbecdecbbbbddbccecaca"),
    "temperature": (SamplingConfig(temperature=0.6, tokens=24), "", None, "cddaadacdaaaabbbaccecabb"),
    "greedy": (SamplingConfig(temperature=0, tokens=24), "", None, "caaaaaaaaaaaaaaaaaaaaaaa"),
    "top-k": (SamplingConfig(top_k=2, tokens=24), "", None, "cbdaabbddaaaaaabddddaabb"),
    "top-p": (SamplingConfig(top_p=0.7, tokens=24), "", None, "cddaacacdaaaabbbddddaabb"),
    "min-p": (SamplingConfig(tokens=24, min_p=0.5), "", None, "cecbbbbbbbbbbbbbbbbbbbbb"),
    "penalty": (
        SamplingConfig(tokens=24, repetition_penalty=2.7, penalty_window=3),
        "",
        None,
        "ebcaaeccdabbdaaccaacbdec",
    ),
    "prompt": (SamplingConfig(tokens=24), "abc", None, "ceecbecdecbbbbddbccecaca"),
    "unknown token": (SamplingConfig(tokens=24), "", 2, "debbbeebddaaabbbaddbbbda"),
    "all at once": (
        SamplingConfig(temperature=1.4, top_k=4, top_p=0.9, tokens=24, min_p=0.1, repetition_penalty=1.3),
        "da",
        None,
        "cdecadacddabbdddcddcaaca",
    ),
}


@pytest.mark.parametrize("name", list(GOLDEN))
def test_the_choices_for_a_seed_never_change(name: str) -> None:
    config, prompt, never, expected = GOLDEN[name]
    drawn = sample(Table(unknown=never), config, np.random.default_rng((7, 0)), prompt)
    assert "".join("abcde"[token.token] for token in drawn) == expected
    [together] = sample_many(Table(unknown=never), config, 7, [prompt])
    assert together.text == expected
    assert "".join("abcde"[token] for token in plainly_drawn(config, 7, 0, prompt, never)) == expected


def test_every_option_has_choices_that_never_change() -> None:
    plain, changed = asdict(SamplingConfig()), set()
    for config, *_ in GOLDEN.values():
        changed |= {name for name, value in asdict(config).items() if value != plain[name]}
    assert changed == set(plain) - {"stop"}  # which has its own below


# ------------------------------------------------------------------------------------------------ laws

scores = st.lists(st.floats(-30, 0), min_size=1, max_size=30).map(np.array)
configs = st.builds(
    SamplingConfig,
    temperature=st.floats(0, 5),
    top_k=st.integers(0, 40),
    top_p=st.floats(0.01, 1),
    min_p=st.floats(0, 1),
    repetition_penalty=st.floats(1, 10),
)
recents = st.lists(st.integers(0, 100), max_size=8)
quick = settings(deadline=None, max_examples=60)


def chosen(log_probs: NDArray[np.float64], config: SamplingConfig, recent: list[int]) -> int:
    recent = [token for token in recent if token < len(log_probs)]
    return choose(log_probs, config, np.random.default_rng(1), None, recent)


@quick
@given(scores, configs, recents)
def test_one_of_the_k_likeliest_is_the_likeliest(
    log_probs: NDArray[np.float64], config: SamplingConfig, recent: list[int]
) -> None:
    greedy = chosen(log_probs, replace(config, temperature=0), recent)
    assert chosen(log_probs, replace(config, top_k=1), recent) == greedy
    tiny = chosen(log_probs, replace(config, top_p=1e-12), recent)
    assert tiny == greedy


@quick
@given(scores, configs)
def test_min_p_of_one_leaves_only_the_likeliest_and_its_equals(
    log_probs: NDArray[np.float64], config: SamplingConfig
) -> None:
    assume(config.temperature > 0.01)
    found = chosen(log_probs, replace(config, min_p=1), [])
    assert math.isclose(log_probs[found], log_probs.max(), abs_tol=1e-12)


@quick
@given(scores, configs, recents)
def test_whatever_is_cut_something_is_left_and_it_was_possible(
    log_probs: NDArray[np.float64], config: SamplingConfig, recent: list[int]
) -> None:
    log_probs = np.append(log_probs, -np.inf)
    assert 0 <= chosen(log_probs, config, recent) < len(log_probs) - 1


@quick
@given(scores, configs, recents)
def test_a_choice_leaves_the_chances_as_they_were(
    log_probs: NDArray[np.float64], config: SamplingConfig, recent: list[int]
) -> None:
    before = log_probs.copy()
    chosen(log_probs, config, recent)
    assert np.array_equal(before, log_probs)


@quick
@given(scores, st.floats(-5, 5))
def test_the_penalty_does_not_depend_on_where_a_model_puts_its_zero(
    log_probs: NDArray[np.float64], shift: float
) -> None:
    assume(len(set(np.round(log_probs, 6))) == len(log_probs))
    config = SamplingConfig(repetition_penalty=2)
    assert chosen(log_probs, config, [0, 1]) == chosen(log_probs + shift, config, [0, 1])


# ------------------------------------------------------------------------------------------------ stop strings


class Script(Table):
    """Writes the given pieces in their order, and then again."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        super().__init__(pieces)

    def begin(self) -> tuple[int, Tensor]:
        return 0, self.next(0)

    def step(self, state: int, token: int) -> tuple[int, Tensor]:
        return state + 1, self.next(state + 1)

    def step_many(self, states: Sequence[int], tokens: Sequence[int]) -> tuple[list[int], Tensor]:
        self.batches.append(len(tokens))
        rows = [self.next(state + 1).numpy() for state in states]
        return [state + 1 for state in states], log_probs_tensor(np.stack(rows))

    def next(self, state: int) -> Tensor:
        row = np.full(self.tokeniser.size, -np.inf)
        row[state % self.tokeniser.size] = 0.0
        return log_probs_tensor(row)


def streamed(pieces: list[str], *stop: str, tokens: int | None = None) -> list[str]:
    """What `sample` gives out, token by token."""
    model = Script([piece.encode() for piece in pieces])
    config = SamplingConfig(tokens=tokens or len(pieces), stop=stop)
    return [token.text.decode() for token in sample(model, config, np.random.default_rng(0))]


def test_writing_ends_before_a_stop_string_that_lies_within_a_token() -> None:
    assert streamed(["one ", "two END three ", "four"], "END") == ["one ", "two "]


def test_writing_ends_before_a_stop_string_across_tokens() -> None:
    assert streamed(["one ", "two E", "N", "D three ", "four"], "END") == ["one ", "two "]
    assert streamed(["one ", "E", "N", "D", "four"], "END") == ["one "]


def test_what_only_looked_like_a_stop_string_is_shown_after_all() -> None:
    assert streamed(["one ", "E", "N", "T", "E", "R"], "END") == ["one ", "E", "N", "T", "E", "R"]
    assert streamed(["x", "E", "N"], "END") == ["x", "E", "N"]


def test_the_earliest_stop_string_counts() -> None:
    assert streamed(["a", "b c d", "e"], "d", "b") == ["a"]
    assert streamed(["aa", "ab", "c"], "aab", "zz") == ["a"]


def test_a_stop_string_at_the_very_beginning_leaves_nothing() -> None:
    assert streamed(["END", "more"], "END") == []


def test_a_stop_string_of_many_bytes_is_found_when_tokens_cut_its_characters() -> None:
    pieces = [b"a", *(bytes([byte]) for byte in "東京".encode()), b"b"]
    drawn = sample(Script(pieces), SamplingConfig(tokens=8, stop=("京",)), np.random.default_rng(0))
    assert b"".join(token.text for token in drawn).decode() == "a東"


def test_the_prompt_may_hold_a_stop_string() -> None:
    [written] = sample_many(Table(), SamplingConfig(tokens=5, stop=("zz", "cab")), 1, ["cab"])
    assert len(written.tokens) == 5


def test_a_token_is_given_out_as_soon_as_it_cannot_belong_to_a_stop_string() -> None:
    model = Script([piece.encode() for piece in ["x", "\n", "y", "z", "\n", "\n", "w"]])
    config = SamplingConfig(tokens=7, stop=("\n\n",))
    # With each token, how many had been drawn when it was given out.
    given_after = [(t.text.decode(), len(model.batches) + 1) for t in sample(model, config, np.random.default_rng(0))]
    assert given_after == [("x", 1), ("\n", 3), ("y", 3), ("z", 4)]


@settings(deadline=None, max_examples=150)
@given(
    st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=8),
    st.lists(st.text("ab", min_size=1, max_size=4), max_size=3),
)
def test_what_is_shown_is_the_text_before_the_first_stop_string(pieces: list[str], stops: list[str]) -> None:
    text = ""
    expected = "".join(pieces)
    for piece in pieces:
        text += piece
        if places := [text.index(stop) for stop in stops if stop in text]:
            expected = text[: min(places)]
            break
    assert "".join(streamed(pieces, *stops)) == expected


# ------------------------------------------------------------------------------------------------ many at once


def network() -> Bigram:
    sizes = BigramConfig(dimension=8, hidden=12)
    return Bigram(sizes, random_parameters(sizes, TOKENISER.size, np.random.default_rng(0)), TOKENISER)


CONFIG = SamplingConfig(tokens=25, temperature=0.9, top_p=0.95, repetition_penalty=1.2, stop=("\n", " cat"))


@pytest.mark.parametrize("model", [MODEL, network()], ids=["ngram", "bigram"])
def test_a_sample_is_the_same_alone_and_among_others(model: LanguageModel[Any]) -> None:
    prompts = ["The", "At dawn", "", "The", "Xqz"]
    together = list(sample_many(model, CONFIG, 3, prompts))
    assert [one.number for one in together] == [0, 1, 2, 3, 4]
    assert together[0].tokens != together[3].tokens
    for one, prompt in zip(together, prompts, strict=True):
        alone = tuple(sample(model, CONFIG, np.random.default_rng((3, one.number)), prompt))
        assert one.tokens == alone
    assert list(sample_many(model, CONFIG, 3, prompts[:2])) == together[:2]


def test_samples_beyond_a_batch_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = list(sample_many(MODEL, CONFIG, 4, ["The"] * 7))
    monkeypatch.setattr(sampling, "BATCH_SAMPLES", 3)
    assert list(sample_many(MODEL, CONFIG, 4, ["The"] * 7)) == whole
    monkeypatch.setattr(sampling, "BATCH_CELLS", 1)
    assert list(sample_many(MODEL, CONFIG, 4, ["The"] * 7)) == whole


def test_all_samples_are_drawn_together_and_leave_when_they_end() -> None:
    model = Table()
    samples = list(sample_many(model, SamplingConfig(tokens=12, stop=("a",)), 5, ["e"] * 6))
    lengths = [12 if one.stopped is None else len(one.tokens) + 1 for one in samples]  # with the token that stopped it
    assert model.batches == [sum(length > step for length in lengths) for step in range(1, max(lengths))]
    assert len(set(lengths)) > 1
    assert all("a" not in one.text for one in samples)


def test_a_sample_says_what_stopped_it() -> None:
    model = Script([b"one ", b"two", b".\n", b"three"])
    [found] = sample_many(model, SamplingConfig(tokens=4, stop=("!", "\n")), 0, [""])
    assert (found.text, found.stopped) == ("one two.", "\n")
    [found] = sample_many(model, SamplingConfig(tokens=4), 0, [""])
    assert (found.text, found.stopped) == ("one two.\nthree", None)


def test_samples_are_given_out_in_order_as_soon_as_they_end() -> None:
    model = Table()
    config = SamplingConfig(tokens=40, stop=("a",))
    given_after: list[tuple[Sample, int]] = [
        (one, len(model.batches)) for one in sample_many(model, config, 2, ["e"] * 4)
    ]
    steps = [after for _, after in given_after]
    assert [one.number for one, _ in given_after] == [0, 1, 2, 3]
    ends = [len(one.tokens) for one, _ in given_after]
    assert steps == [max(ends[: i + 1]) for i in range(4)]


def test_the_cost_of_a_sample_is_that_of_its_tokens() -> None:
    [found] = sample_many(MODEL, SamplingConfig(tokens=20), 1, [""])
    assert found.nats == pytest.approx(float(MODEL.score([found.text]).nats.sum()), rel=1e-12)


def test_no_prompts_are_no_samples() -> None:
    assert list(sample_many(MODEL, CONFIG, 0, [])) == []


def test_characters_that_the_model_does_not_know_may_stand_in_a_prompt() -> None:
    tokeniser = train_tokeniser("character", [LINES])
    model = NGram.fit([tokeniser.encode(LINES)], tokeniser, NGramConfig(3))
    [found] = sample_many(model, SamplingConfig(tokens=10), 0, ["東京 é"])
    assert len(found.text) == 10

"""Sampling: seeded, cut as asked for, and never the unknown token."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inkling.errors import InklingError, UsageError
from inkling.models.ngram import NGram, NGramConfig
from inkling.models.sampling import SamplingConfig, choose, sample
from inkling.text.grammar import grammar_text
from inkling.text.tokenise import train_tokeniser

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
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="Sampling cannot use"):
        SamplingConfig(**wrong)  # type: ignore[arg-type]


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

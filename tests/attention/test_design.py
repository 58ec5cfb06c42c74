"""Heads made to order: wishes are met, with the leak that was promised, or the reason is one a reader can check."""

from __future__ import annotations

import json
import math
from itertools import product
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from inkling.attention.design import Design, design
from inkling.attention.fitting import Wanted, rank, sets_of
from inkling.attention.head import Head
from inkling.attention.wishes import parse_tokens, parse_wishes
from inkling.errors import InklingError, UsageError

Floats = NDArray[np.float64]


def written(tokens: str, wishes: str, **options: Any) -> Design:
    names, inputs = parse_tokens(tokens)
    return design(np.eye(len(names)), inputs, parse_wishes(wishes, names, len(inputs)), names=names, **options)


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0, 6.0])
@pytest.mark.parametrize("turned", [False, True])
def test_three_inputs_and_two_wishes_give_exactly_the_matrices_worked_out_by_hand(beta: float, turned: bool) -> None:
    axes = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 6)))[0][:4] if turned else np.eye(4)
    u_a, u_b, u_c, u_d = components = beta * axes
    names, inputs = parse_tokens("d+b, a, c+b")
    found = design(components, inputs, parse_wishes("1=b-c, 2=b", names), sharpness=beta**2, names=names)
    assert pytest.approx((np.outer(u_b, u_b) - np.outer(u_c, u_c)) / beta**2) == found.V
    assert found.K.tolist() == np.eye(len(u_a)).tolist()
    assert pytest.approx((np.outer(u_c, u_d) + np.outer(u_d, u_a)) / beta**2) == found.Q
    weight = math.exp(beta**2) / (math.exp(beta**2) + 2)
    assert found.weights[0, 2] == pytest.approx(weight)
    assert found.weights[1, 0] == pytest.approx(weight)
    assert dict(found.looks) == {0: (2,), 1: (0,)}
    assert found.gains == pytest.approx([0, 1, -1, 0])
    assert found.met
    assert found.residual == pytest.approx(0, abs=1e-12)
    # c₁ = α(b − c) + (1 − α)/2 · b, so it is off by ((1 − α)/2, α − 1) along b and c
    assert found.errors[0] == pytest.approx(beta * (1 - weight) * math.hypot(0.5, 1), abs=1e-14)
    assert found.errors[0] <= found.bounds[0] + 1e-14
    assert found.wanted == pytest.approx(np.array([u_b - u_c, u_b]))
    vectors = inputs @ components
    assert Head(found.K, found.Q, found.V).attend(vectors)[1][1] == pytest.approx(found.outputs[1] @ components)


@st.composite
def requests(draw: st.DrawFn) -> tuple[Floats, Floats, dict[int, Floats]]:
    generator = np.random.default_rng(draw(st.integers(0, 10**6)))
    tokens, m = int(generator.integers(1, 6)), int(generator.integers(1, 5))
    d = m + int(generator.integers(0, 3))
    axes = np.linalg.qr(generator.normal(size=(d, d)))[0][:m]
    components = axes * generator.uniform(0.5, 3, size=(m, 1))
    inputs = generator.integers(-1, 3, size=(tokens, m)).astype(float)
    who = generator.choice(tokens, size=int(generator.integers(1, min(3, tokens) + 1)), replace=False).tolist()
    return components, inputs, {i: generator.integers(-1, 2, size=m).astype(float) for i in who}


@settings(deadline=None, max_examples=80)
@given(requests(), st.sampled_from(["components", "linear"]))
def test_wishes_are_met_or_it_is_said_why_not(
    request: tuple[Floats, Floats, dict[int, Floats]], values: Literal["components", "linear"]
) -> None:
    components, inputs, wishes = request
    found = design(components, inputs, wishes, sharpness=30, values=values)
    squares = (components**2).sum(axis=1)
    outputs = Head(found.K, found.Q, found.V).attend(inputs @ components)[1]
    for i, wish in wishes.items():
        error = float(np.linalg.norm(outputs[i] - wish @ components))
        assert error == pytest.approx(found.errors[i], abs=1e-9)
        assert error <= found.bounds[i] + 1e-9
        others, k = len(inputs) - len(found.looks[i]), len(found.looks[i])
        assert found.leaks[i] <= others * math.exp(-30) / k * (1 + 1e-6)
        if found.met:
            assert error < 1e-6
    assert found.met == (found.residual <= 1e-6)
    assert found.met != bool(found.reasons)
    assert all(reason.endswith(".") for reason in found.reasons)
    if values == "components":
        assert found.gains is not None
        scaled = components / squares[:, None]
        assert pytest.approx(components.T @ np.diag(found.gains) @ scaled) == found.V


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6))
def test_what_some_head_gives_in_its_hard_limit_can_be_wished_for(seed: int) -> None:
    generator = np.random.default_rng(seed)
    m, tokens = int(generator.integers(2, 5)), int(generator.integers(2, 6))
    inputs = generator.integers(-2, 3, size=(tokens, m)).astype(float)
    scores = inputs @ generator.integers(-2, 3, size=(m, m)) @ inputs.T
    gains = generator.integers(-2, 3, size=m)
    best = [np.flatnonzero(scores[:, i] == scores[:, i].max()) for i in range(tokens)]
    wishes = {i: gains * inputs[best[i][0]] for i in range(tokens) if len(best[i]) == 1}
    for i in list(wishes)[3:]:
        del wishes[i]
    if wishes:
        assert design(np.eye(m), inputs, wishes).met


def test_the_ranking_is_that_of_trying_every_choice_in_plain_loops() -> None:
    generator = np.random.default_rng(4)
    inputs = generator.integers(-1, 3, size=(4, 3)).astype(float)
    wanted = Wanted(inputs, (0, 2), generator.integers(-1, 2, size=(2, 3)).astype(float), np.ones(3), "components")
    least = math.inf
    for choice in product(sets_of(4), repeat=2):
        y = np.array([inputs[list(seen)].mean(axis=0) for seen in choice])
        residual = 0.0
        for c in range(3):
            gain = np.linalg.lstsq(y[:, c : c + 1], wanted.wishes[:, c], rcond=None)[0]
            residual += float(((y[:, c] * gain - wanted.wishes[:, c]) ** 2).sum())
        least = min(least, residual)
    ranking = rank(wanted, [sets_of(4)] * 2)
    assert ranking.exhaustive
    assert ranking.misfits[0] == pytest.approx(math.sqrt(least / (wanted.wishes**2).sum()), abs=1e-8)
    assert list(ranking.misfits) == sorted(ranking.misfits)


def test_many_wishes_are_searched_one_at_a_time_and_still_found() -> None:
    tokens = 8
    inputs = np.eye(tokens)
    order = np.random.default_rng(1).permutation(tokens)
    found = design(np.eye(tokens), inputs, {i: 2.0 * np.eye(tokens)[order[i]] for i in range(tokens)})
    assert found.met  # 8⁸ choices
    assert {i: seen[0] for i, seen in found.looks.items()} == dict(enumerate(order.tolist()))


def test_pairs_are_averaged_where_single_tokens_do_not_do() -> None:
    found = written("a, b, c", "3=a+b, 1=2a")
    assert found.met
    assert dict(found.looks) == {0: (0,), 2: (0, 1)}
    assert found.gains is not None
    assert found.gains[:2] == pytest.approx([2, 2])


def test_equal_tokens_are_looked_at_together() -> None:
    found = written("a, b, b, b", "1=3b")
    assert found.met
    assert found.looks[0] == (1, 2, 3)
    assert found.by == "pairs"


def test_without_a_component_of_their_own_queries_come_from_the_smallest_q_with_a_margin() -> None:
    found = written("a+b, b+c, a+c", "1=b+c, 2=a+c, 3=a+b")
    assert found.met
    assert found.by == "margin"
    assert dict(found.looks) == {0: (1,), 1: (2,), 2: (0,)}


def test_any_linear_map_may_make_one_component_out_of_another() -> None:
    assert not written("a, b", "1=b, 2=-b").met
    free = written("a, b", "1=b, 2=-b", values="linear")
    assert free.met
    assert free.gains is None


@pytest.mark.parametrize(
    ("tokens", "wishes", "options", "words"),
    [
        ("a+b, a+b, c", "1=a, 2=b", {}, "Tokens 1 and 2 have equal inputs, so their outputs are equal"),
        ("a, b", "1=b, 2=-b", {}, "need the gain −1 for token 2 and 1 for token 1 (if it looked at token 2) at once"),
        ("a, 0", "1=-a, 2=a", {}, "need the gain −1 for token 1 (if it looked at token 1) and 2 for token 2 at once"),
        ("a, b", "1=a+b", {"looks": {0: (0,)}}, "Token 1 wants b, which token 1, where it looks, cannot give"),
        ("a+0c, b", "1=c", {}, "and no token has it"),
        ("a, b, 0.5a+0.5b", "1=a, 2=a, 3=b", {}, "depend on each other linearly"),
        ("a+2b, 4a+2b, 2a+2b", "1=2a+2b, 2=a+2b", {}, "No score can tell token 3 from the others"),
    ],
)
def test_a_wish_out_of_reach_has_its_reason(tokens: str, wishes: str, options: Any, words: str) -> None:
    found = written(tokens, wishes, **options)
    assert not found.met
    assert words in " ".join(found.reasons)
    assert found.summary().startswith("Not every wish is met")
    assert found.residual > 1e-3


def test_no_linear_map_breaks_a_linear_relation() -> None:
    found = design(np.eye(2), [[1.0, 0.0], [2.0, 0.0]], {0: [0.0, 1.0], 1: [1.0, 0.0]}, values="linear")
    assert not found.met
    assert "obeys a linear relation that their wishes break" in found.reasons[0]
    nothing = design(np.eye(2), [[0.0, 0.0]], {0: [0.0, 1.0]}, values="linear")
    assert "nothing in it" in nothing.reasons[0]


def test_where_a_token_looks_can_be_fixed() -> None:
    free, fixed = written("a, a+b, c", "3=a"), written("a, a+b, c", "3=a", looks={2: [0]})
    assert (free.looks[2], free.by) == ((1,), "pairs")  # of two equally good tokens the one with a mark of its own
    assert (fixed.looks[2], fixed.by) == ((0,), "margin")
    assert free.met
    assert fixed.met
    with pytest.raises(InklingError, match="No score can tell token 3 from the others"):
        written("a, b, 0.5a+0.5b", "1=a", looks={0: (2,)})
    with pytest.raises(InklingError, match="mixtures of the others"):
        written("a, b, 0.5a+0.5b", "1=a", looks={0: (0, 1)})
    with pytest.raises(InklingError, match="gives every token the same score"):
        written("a, 0", "2=a", looks={1: (0,)})
    with pytest.raises(InklingError, match="same input as another token"):
        written("a, a, b", "1=a, 2=b", looks={0: (0, 1), 1: (2,)})
    with pytest.raises(InklingError, match="depend on each other linearly; leave out"):
        written("a, b, a+b", "1=a, 2=a, 3=b", looks={0: (0,), 1: (0,), 2: (1,)})


@pytest.mark.parametrize("sharpness", [1e-3, 1e4, 1e8])
def test_any_sharpness_is_safe(sharpness: float) -> None:
    found = written("d+b, a, c+b", "1=b-c, 2=b", sharpness=sharpness)
    assert np.isfinite(found.outputs).all()
    assert all(found.errors[i] <= found.bounds[i] + 1e-12 for i in found.errors)
    if sharpness > 1:
        assert max(found.errors.values()) == 0


def test_where_rounding_decides_who_is_looked_at_it_is_said() -> None:
    inputs = np.random.default_rng(5).normal(size=(3, 2))  # equal scores of two tokens, to sixteen digits
    calm, wild = (
        design(np.eye(2), inputs, {2: [1.0, 0.0]}, sharpness=sharpness, looks={2: (0, 1)}) for sharpness in (30, 1e15)
    )
    assert calm.notes == ()
    assert "take less sharpness" in wild.notes[0]


@pytest.mark.parametrize(
    ("components", "inputs", "wishes", "options", "words"),
    [
        ([[1.0, 0.0], [1.0, 1.0]], [[1.0, 0.0]], {0: [1.0, 0.0]}, {}, "numbers 1 and 2 have the cosine 0.707"),
        ([[1.0, 0.0], [0.0, 0.0]], [[1.0, 0.0]], {0: [1.0, 0.0]}, {}, "number 2 is zero"),
        (np.eye(2), [[1.0]], {0: [1.0]}, {}, "1 coefficients for 2 components"),
        (np.eye(2), [[math.nan, 0.0]], {0: [1.0, 0.0]}, {}, "NaN"),
        (np.eye(2), np.ones((33, 2)), {0: [1.0, 0.0]}, {}, "at most 32"),
        (np.eye(2), np.eye(2), {}, {}, "No wishes"),
        (np.eye(2), np.eye(2), [1], {}, "No wishes"),
        (np.eye(2), np.eye(2), {2: [1.0, 0.0]}, {}, "Token 2 does not exist"),
        (np.eye(2), np.eye(2), {"1": [1.0, 0.0]}, {}, "not a whole number"),
        (np.eye(2), np.eye(2), {0: [1.0]}, {}, "1 coefficients for 2 components"),
        (np.eye(2), np.eye(2), {0: [1.0, math.inf]}, {}, "wish of token 0 holds NaN"),
        (np.eye(2), np.eye(2), {0: [1.0, 0.0]}, {"sharpness": 0}, "above 0"),
        (np.eye(2), np.eye(2), {0: [1.0, 0.0]}, {"sharpness": math.inf}, "sharpness is inf"),
        (np.eye(2), np.eye(2), {0: [1.0, 0.0]}, {"names": ["a"]}, "1 names for 2 components"),
        (np.eye(2), np.eye(2), {0: [1.0, 0.0]}, {"names": ["a", "a"]}, "different name"),
        (np.eye(2), np.eye(2), {0: [1.0, 0.0]}, {"values": "any"}, "'components' or 'linear'"),
        (np.eye(2), np.eye(2), {0: [1.0, 0.0]}, {"looks": {1: (0,)}}, "has no wish"),
        (np.eye(2), np.eye(2), {0: [1.0, 0.0]}, {"looks": {0: ()}}, "at no token"),
        (np.eye(2), np.eye(2), {0: [1.0, 0.0]}, {"looks": {0: (5,)}}, "Token 5 does not exist"),
        (np.eye(2), np.eye(2), {0: [1.0, 0.0]}, {"looks": {0: 1}}, "list of tokens"),
        (np.eye(2), np.eye(2), {0: [1.0, 0.0]}, {"looks": [0]}, "maps a token"),
    ],
)
def test_bad_input_is_one_sentence(components: Any, inputs: Any, wishes: Any, options: Any, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        design(components, inputs, wishes, **options)
    assert words in str(caught.value)


def test_a_design_goes_to_json_and_to_a_page() -> None:
    for found in (written("d+b, a, c+b", "1=b-c, 2=b"), written("a, b", "1=b, 2=-b")):
        again = json.loads(json.dumps(found.to_json(), allow_nan=False))
        assert again["met"] == found.met
        assert np.array(again["Q"]) == pytest.approx(found.Q)
        assert again["wishes"][0]["looks"] == list(found.looks[0])
        assert "x1 = " in found._repr_html_()
    assert "token 1 looks at token 3 and token 2 looks at token 1" in written("d+b, a, c+b", "1=b-c, 2=b").sentence

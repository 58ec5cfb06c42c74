"""What heads do: figures of made-up heads whose weights are known, and the heads of a model that was trained."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, fields, replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from inkling.errors import UsageError
from inkling.explain.attending import HeadSums, effective_beta, induction_places, sum_of_head
from inkling.explain.census import Census, HeadFigures, attention_maps
from inkling.explain.heads import census, rise_per_token
from inkling.figures import Bars, Panels, Table
from inkling.models.contracts import Look, Touch
from inkling.models.gpt import GPT, GPTConfig, initial_parameters
from inkling.recipes.induction import LENGTH, TOKENS, Repeats, cost_of_parts, repeats, train_induction

V = 5
FAR = 40.0  # a score that leaves e⁻⁴⁰ to the others


@dataclass
class MadeUp:
    """One layer whose heads look where `scores` (H×T×T) says; outputs are the attended one-hot tokens times `gains`.

    The residual is the sum of the outputs, and logits are the residual: what each head does can be worked out on paper.
    """

    scores: Tensor
    gains: tuple[float, ...]

    @property
    def layers(self) -> int:
        return 1

    @property
    def heads(self) -> int:
        return len(self.gains)

    def unembed(self, residual: Tensor) -> Tensor:
        return residual

    def look(self, ids: Tensor, touch: Touch | None = None) -> Look:
        touch, times = touch or Touch(), ids.shape[1]
        hidden = torch.ones(times, times, dtype=torch.bool).triu(1)
        scores = self.scores[:, :times, :times].masked_fill(hidden, -math.inf).expand(len(ids), -1, -1, -1).clone()
        for (_, head), share in touch.key_noise.items():  # noise that can be foreseen: the first key gains
            scores[:, head, :, 0] += share
        weights = torch.softmax(scores, dim=-1)
        values = torch.nn.functional.one_hot(ids, V).double()[:, None]
        outputs = weights @ values * torch.tensor(self.gains, dtype=torch.float64)[:, None, None]
        for (_, head), vector in touch.replaced.items():
            outputs[:, head] = vector
        residual = outputs.sum(1)
        return Look((scores,), (weights,), (outputs,), residual, torch.log_softmax(residual, dim=-1))


def even(times: int) -> Tensor:
    return torch.zeros(times, times, dtype=torch.float64)


def at(places: Tensor) -> Tensor:
    """All weight of each place on one place."""
    return FAR * torch.nn.functional.one_hot(places, len(places)).double()


def made_up(times: int, **gains: float) -> MadeUp:
    here = torch.arange(times)
    kinds = {
        "even": even(times),
        "back": at((here - 1).clamp(min=0)),
        "first": at(torch.zeros_like(here)),
        "itself": at(here),
    }
    return MadeUp(torch.stack([kinds[name] for name in gains]), tuple(gains.values()))


def some_ids(texts: int = 6, times: int = 8) -> Tensor:
    return torch.from_numpy(np.random.default_rng(0).integers(0, V, (texts, times)))


def test_a_head_that_spreads_evenly_has_the_figures_of_an_even_spread() -> None:
    times = 8
    found = census(made_up(times, even=1.0), some_ids(6, times)).of(0, 0)
    keys = range(3, times + 1)  # two places are skipped
    mean = sum(1 / n for n in keys) / len(keys)
    assert found.places == 6 * len(keys)
    assert found.entropy_nats == pytest.approx(sum(map(math.log, keys)) / len(keys))
    assert found.keys_in_use == pytest.approx(sum(keys) / len(keys))
    assert found.share_in_use == pytest.approx(1)
    for weight in (found.one_back, found.first_token, found.itself, found.top_weight, found.even):
        assert weight == pytest.approx(mean)
    assert found.induction == pytest.approx(found.induction_even)
    assert found.margin_median == pytest.approx(0)
    assert found.beta_median == pytest.approx(0, abs=1e-12)
    assert found.role == "averages"


@pytest.mark.parametrize(
    ("kind", "role", "figure"),
    [("back", "looks one back", "one_back"), ("first", "first token", "first_token"), ("itself", "itself", "itself")],
)
def test_a_head_that_looks_at_one_place_is_called_by_it(kind: str, role: str, figure: str) -> None:
    found = census(made_up(8, **{kind: 2.0}), some_ids()).of(0, 0)
    assert getattr(found, figure) == pytest.approx(1)
    assert found.one_back + found.first_token + found.itself == pytest.approx(1)
    assert found.role == role
    assert found.keys_in_use == pytest.approx(1)
    assert found.entropy_nats == pytest.approx(0, abs=1e-12)
    assert found.margin_median == pytest.approx(FAR)
    assert found.beta_median == pytest.approx(FAR)  # not infinite, though the weight is 1 in floating point
    assert found.copies == 1


def test_a_head_copies_only_if_it_raises_what_it_looks_at() -> None:
    looking = {"back": -1.0}  # lowers the token it looks at: all others are raised more
    assert census(made_up(8, **looking), some_ids()).of(0, 0).copies == 0
    silent = {"back": 0.0}  # adds nothing: no token is raised more than another
    assert census(made_up(8, **silent), some_ids()).of(0, 0).copies == 0


def test_induction_looks_for_what_followed_the_present_token() -> None:
    ids = torch.tensor([[4, 1, 2, 1, 3, 1]])
    found = induction_places(ids)[0]
    assert [torch.nonzero(row).flatten().tolist() for row in found] == [[], [], [], [2], [], [2, 4]]
    scores = FAR * torch.nn.functional.one_hot(torch.tensor([0, 1, 2, 2, 4, 4]), 6).double()
    seen = MadeUp(scores[None], (1.0,)).look(ids)
    sums = sum_of_head(ids, seen.scores[0][:, 0], seen.weights[0][:, 0], seen.outputs[0][:, 0], 2)
    assert (sums.places, sums.induction_places) == (4, 2)
    assert sums.induction == pytest.approx(2)
    assert sums.induction_even == pytest.approx(1 / 4 + 2 / 6)


def test_induction_needs_places_where_it_could_be_seen() -> None:
    figures = census(made_up(8, even=1.0), some_ids()).of(0, 0)
    sure = replace(figures, induction=0.9, induction_even=0.1, induction_places=10)
    assert sure.strengths["induction"] == pytest.approx(0.8 / 0.9)
    assert sure.role == "induction"
    assert replace(sure, induction_places=9).role == "averages"
    assert replace(sure, induction=0.5, share_in_use=0.4).role == "mixed"  # 0.44 of the way beyond an even spread
    none = census(made_up(5, even=1.0), torch.arange(5)[None].repeat(3, 1)).of(0, 0)  # no token comes twice
    assert none.induction_places == 0
    assert math.isnan(none.induction)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(-30, 30), min_size=2, max_size=20))
def test_effective_beta_gives_back_the_highest_weight(values: list[float]) -> None:
    scores = torch.tensor(values, dtype=torch.float64)
    beta, n = float(effective_beta(scores)), len(values)
    assert math.exp(beta) / (math.exp(beta) + n - 1) == pytest.approx(float(torch.softmax(scores, 0).max()), rel=1e-9)
    assert beta >= -1e-12


def test_effective_beta_of_the_laboratory_is_its_beta() -> None:
    masked = torch.tensor([3.0, 10.0, 3.0, 3.0, -math.inf], dtype=torch.float64)  # β = 7 above three other keys
    assert float(effective_beta(masked)) == pytest.approx(7)


def test_removal_of_a_head_with_known_output_costs_what_was_worked_out() -> None:
    """The text 0 1 0 1 …, and a head that looks one back: after 0 comes 1, which is what stood one back."""
    times, gain = 7, 3.0
    ids = torch.tensor([[0, 1] * 4])[:, :times].repeat(4, 1)
    charged = torch.zeros(4, times, dtype=torch.bool)
    charged[:, 2:] = True
    found = census(made_up(times, back=gain), ids, charged=charged)
    head = found.of(0, 0)
    right = math.log(math.exp(gain) + V - 1) - gain
    outputs = [0, 0, 1, 0, 1, 0, 1]  # the token one back of each place; the first has only itself
    mean = [gain * outputs.count(token) / times for token in range(V)]
    total = math.log(sum(map(math.exp, mean)))
    targets = ids[0, 2:].tolist()
    without = sum(total - mean[token] for token in targets) / len(targets)
    assert found.nats == pytest.approx(right)
    assert found.tokens == 4 * (times - 2)
    assert head.removed.value == pytest.approx(without - right)
    assert head.removed.low == pytest.approx(head.removed.high)  # four equal texts
    assert head.direct.value == pytest.approx(head.removed.value)  # nothing comes after
    assert head.made_up.value == pytest.approx(0, abs=1e-12)


def test_noise_moves_weights_by_the_distance_of_the_two_distributions() -> None:
    """Here noise raises the first score by 0.7: of n even keys, its weight goes from 1/n to e^0.7/(e^0.7 + n − 1)."""
    times, share = 6, 0.7
    found = census(made_up(times, even=1.0), some_ids(4, times), key_noise=share).of(0, 0)
    distances = [math.exp(share) / (math.exp(share) + n - 1) - 1 / n for n in range(3, times + 1)]
    assert found.weights_moved == pytest.approx(sum(distances) / len(distances))
    still = census(made_up(times, even=1.0), some_ids(4, times), key_noise=0.0).of(0, 0)
    assert (still.weights_moved, still.noised.value) == (0, 0)


def test_the_rise_is_a_ratio_of_sums_with_students_interval() -> None:
    found = rise_per_token(np.array([1.0, 2.0, 6.0]), np.array([10.0, 10.0, 10.0]))
    error = np.std([0.1, 0.2, 0.6], ddof=1) / math.sqrt(3)
    assert found.value == pytest.approx(0.3)
    assert found.high - found.value == pytest.approx(4.302653 * error, rel=1e-6)  # t of two degrees of freedom
    uneven = rise_per_token(np.array([1.0, 9.0, 5.0]), np.array([10.0, 30.0, 0.0]))
    assert uneven.value == pytest.approx(0.25)  # not the mean of 0.1 and 0.3; the third text has nothing charged
    alone = rise_per_token(np.array([1.0]), np.array([4.0]))
    assert (alone.value, math.isnan(alone.low), math.isnan(alone.high)) == (0.25, True, True)


def small_model(seed: int = 0, mlp: int = 16) -> GPT:
    config = GPTConfig(V, 16, 2, 2, mlp=mlp, context=16)
    parameters = initial_parameters(config, np.random.default_rng(seed))
    return GPT(config, {name: value.double() for name, value in parameters.items()})


def test_texts_in_parts_have_the_figures_of_all_together() -> None:
    model, ids = small_model(), some_ids(7, 9)
    together, parts = census(model, ids, seed=3), census(model, ids, seed=3, texts_at_once=3)
    assert parts.nats == pytest.approx(together.nats, rel=1e-12)
    for one, other in zip(together.to_json()["heads"], parts.to_json()["heads"], strict=True):
        for name, value in one.items():
            expected = list(value.values()) if isinstance(value, dict) else value
            found = list(other[name].values()) if isinstance(other[name], dict) else other[name]
            assert found == (value if isinstance(value, str) else pytest.approx(expected, rel=1e-9, abs=1e-12)), name


def test_who_waits_for_a_census_is_told_how_far_it_is() -> None:
    model, ids, told = small_model(), some_ids(7, 9), list[tuple[int, int]]()
    census(model, ids, texts_at_once=4, progress=lambda done, of: told.append((done, of)))
    of = 2 * model.layers * model.heads  # in two parts
    assert told == [(done + 1, of) for done in range(of)]


def test_sums_of_two_batches_add_up() -> None:
    model, ids = small_model(), some_ids(6, 9)

    def sums(part: Tensor) -> HeadSums:
        seen = model.look(part)
        raised = model.unembed(seen.outputs[1][:, 0])
        return sum_of_head(part, seen.scores[1][:, 0], seen.weights[1][:, 0], raised, 2)

    whole, added = sums(ids), sums(ids[:2]) + sums(ids[2:])
    for one in fields(HeadSums):
        assert getattr(added, one.name) == pytest.approx(getattr(whole, one.name), rel=1e-12), one.name


def test_direct_effect_and_compensation_are_those_of_the_residual_stream() -> None:
    """By hand: only the last residual is changed, against a whole pass in which later layers take notice."""
    model, ids = small_model(), some_ids(5, 9)
    found = census(model, ids).of(0, 1)
    look = model.look(ids)
    output = look.outputs[0][:, 1]
    mean = output.mean((0, 1))

    def nats(log_probs: Tensor) -> float:
        return -float(log_probs[:, :-1].gather(2, ids[:, 1:, None]).mean())

    direct = nats(torch.log_softmax(model.unembed(look.residual - output + mean), -1)) - nats(look.log_probs)
    removed = nats(model.look(ids, Touch(replaced={(0, 1): mean})).log_probs) - nats(look.log_probs)
    assert found.direct.value == pytest.approx(direct, rel=1e-9)
    assert found.removed.value == pytest.approx(removed, rel=1e-9)
    assert found.made_up.value == pytest.approx(direct - removed, rel=1e-9)
    assert abs(found.made_up.value) > 1e-5


def test_one_text_has_figures_but_no_intervals() -> None:
    found = census(small_model(), some_ids(1, 9))
    assert math.isnan(found.heads[0].removed.low)
    effects = found.effects()
    assert [column.show(cell) for column, cell in zip(effects.columns, effects.rows[0], strict=True)].count("–") == 2
    assert found.noise().rows[0][-1] is None
    assert found.bars().series[0].low == []
    assert "From one text no interval can be given" in found.sentences()[-1]
    assert json.loads(json.dumps(found.to_json(), allow_nan=False))["heads"][0]["removed"]["low"] is None


def test_what_cannot_be_counted_is_refused() -> None:
    model, ids = small_model(), some_ids(2, 9)
    for given_ids, options, sentence in [
        (ids[:0], {}, "There are no texts"),
        (ids[:, :2], {}, "The texts have 2 tokens; a head has a choice only with at least 3"),
        (ids[0], {}, r"shape \(9,\); give texts × tokens"),
        (ids, {"first_places_skipped": 0}, "skip from 1"),
        (ids, {"first_places_skipped": 9}, "to 8"),
        (ids, {"key_noise": -0.1}, "0 or more"),
        (ids, {"texts_at_once": 0}, "at least 1"),
        (ids, {"charged": torch.zeros(2, 9)}, "give True or False for each"),
        (ids, {"charged": torch.zeros(2, 9, dtype=torch.bool)}, "No token is charged"),
        (ids, {"tokens": ["a"]}, "1 names were given for the 9 tokens"),
    ]:
        with pytest.raises(UsageError, match=sentence):
            census(model, given_ids, **options)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="choose from induction"):
        census(model, ids).with_role("clever")
    with pytest.raises(UsageError, match="no head 7 in layer 0"):
        census(model, ids).of(0, 7)
    with pytest.raises(UsageError, match="ids of one text"):
        attention_maps(model, ids)


def test_maps_show_the_weights_and_leave_out_what_comes_later() -> None:
    model, ids = small_model(), some_ids(1, 4)[0]
    found = attention_maps(model, ids, ["to", "be", "or", "not"])
    assert [one.title for one in found.maps] == ["head 1.1", "head 1.2", "head 2.1", "head 2.2"]
    assert found.maps[2].rows == ("to", "be", "or", "not")
    weights = model.look(ids[None]).weights[1][0, 0]
    assert found.maps[2].values[2][:3] == pytest.approx(weights[2, :3].tolist())
    assert found.maps[2].values[2][3] is None


@pytest.fixture(scope="module")
def texts() -> Repeats:
    return repeats(np.random.default_rng(99), 48)


@pytest.fixture(scope="module")
def trained() -> GPT:
    return train_induction(0)


@pytest.fixture(scope="module")
def found(trained: GPT, texts: Repeats) -> Census:
    return census(trained, torch.from_numpy(texts.ids), charged=torch.from_numpy(texts.certain))


@pytest.mark.slow
def test_training_learns_repetitions_and_nothing_can_be_learned_of_chance(trained: GPT, texts: Repeats) -> None:
    cost = cost_of_parts(trained, texts)
    assert cost.certain_nats < 0.02
    assert abs(cost.random_nats - math.log(TOKENS)) < 0.15


@pytest.mark.slow
def test_a_first_layer_looks_one_back_and_a_second_does_induction(found: Census) -> None:
    back, induction = found.with_role("looks one back"), found.with_role("induction")
    assert back
    assert all(head.layer == 0 for head in back)
    assert induction
    assert all(head.layer == 1 for head in induction)
    best = max(induction, key=lambda head: head.induction)
    assert best.induction > 0.9 > 5 * best.induction_even
    assert best.copies > 0.4  # at places of the first stretch there is nothing to copy


def strongest(found: Census) -> HeadFigures:
    return max(found.with_role("induction"), key=lambda head: head.removed.value)


@pytest.mark.slow
def test_without_its_strongest_induction_head_repetitions_cost_more(found: Census) -> None:
    head = strongest(found)
    assert head.removed.low > 0.02
    assert head.direct.value == pytest.approx(head.removed.value, abs=1e-5)  # no layer comes after
    assert head.beta_median > 4  # of at most 41 keys: ln 40 = 3.7 would be a weight of one half


@pytest.mark.slow
def test_the_second_layer_lives_on_the_head_that_looks_one_back(found: Census) -> None:
    head = max(found.with_role("looks one back"), key=lambda head: head.removed.value)
    assert head.removed.low > 0.1
    assert abs(head.direct.value) < 0.02
    assert head.made_up.high < 0
    assert any(f"Later layers build on head {head.name}" in sentence for sentence in found.sentences())


@pytest.mark.slow
def test_a_model_that_was_not_trained_has_no_induction_head(trained: GPT, texts: Repeats) -> None:
    fresh = GPT(trained.config, initial_parameters(trained.config, np.random.default_rng(0)))
    assert trained.config.context == LENGTH
    untrained = census(fresh, torch.from_numpy(texts.ids))
    assert untrained.with_role("induction") == untrained.with_role("looks one back") == ()


@pytest.mark.slow
def test_a_page_has_sentences_tables_bars_and_maps(found: Census) -> None:
    kinds = [type(exhibit) for exhibit in found.page().exhibits]
    assert (kinds.count(Table), kinds.count(Bars), kinds.count(Panels)) == (4, 1, 1)
    assert all(len(table.rows) == len(found.heads) == 8 for table in found.tables())
    assert len(found.maps.maps) == 8
    assert found.sentences()[0].startswith("8 heads on 48 texts, by what they do most. induction: 2.")
    drawn = found._repr_html_()
    assert drawn.count("<svg") >= 2
    assert "What heads are worth" in drawn
    assert json.loads(json.dumps(found.to_json(), allow_nan=False))["heads"][4]["role"] == found.heads[4].role

"""The recurrent model against torch's own GRU and against finite differences, in float64."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch import Tensor

from inkling.errors import UsageError
from inkling.models.gru import GRU, GRUConfig, random_parameters
from inkling.models.gru_loss import Batch, GRULoss
from inkling.text.tokenise import train_tokeniser

SIZE = 7


def parameters_of(config: GRUConfig, seed: int = 0, size: int = SIZE) -> dict[str, Tensor]:
    generator = np.random.default_rng(seed)
    found = random_parameters(config, size, generator)
    for value in found.values():  # zeros would hide a forgotten term
        value += torch.from_numpy(generator.normal(0, 0.1, value.shape))
    return {name: value.double() for name, value in found.items()}


def batch_of(times: int, texts: int, seed: int = 1, size: int = SIZE, begins: int = 3) -> Batch:
    generator = np.random.default_rng(seed)
    ids = generator.integers(0, size, (times + 1, texts))
    fresh: dict[int, list[int]] = {}
    for _ in range(begins):
        t, text = int(generator.integers(0, times)), int(generator.integers(0, texts))
        if text not in fresh.setdefault(t, []):
            fresh[t].append(text)
    return Batch(ids[:-1], ids[1:], {t: np.array(sorted(found)) for t, found in fresh.items()})


def reference_nats(config: GRUConfig, P: dict[str, Tensor], batch: Batch, loss: GRULoss, step: int) -> Tensor:
    """The same loss written with torch.nn.GRUCell and automatic gradients, one token after the other."""
    masks = loss._masks(step)
    texts = batch.inputs.shape[1]
    states = [loss.memory[f"state{n}"][step % 2].clone() for n in range(1, config.layers + 1)]
    total = torch.zeros((), dtype=torch.float64)
    for t in range(len(batch.inputs)):
        x = P["embedding"][torch.from_numpy(batch.inputs[t])]
        for n in range(1, config.layers + 1):
            h = states[n - 1]
            if t in batch.fresh:
                alive = torch.ones(texts, 1, dtype=torch.float64)
                alive[torch.from_numpy(batch.fresh[t])] = 0
                h = h * alive
            seen = h * masks["state"][n - 1] if "state" in masks else h
            gi, gh = x @ P[f"W{n}"] + P[f"b{n}"], seen @ P[f"U{n}"]
            (ir, iz, ia), (hr, hz, ha) = gi.chunk(3, 1), gh.chunk(3, 1)
            r, z = torch.sigmoid(ir + hr), torch.sigmoid(iz + hz)
            new = torch.tanh(ia + r * (ha + P[f"c{n}"]))
            states[n - 1] = x = (1 - z) * new + z * h
            if config.norm:
                x = torch.nn.functional.layer_norm(x, x.shape[-1:], P[f"gain{n}"], P[f"shift{n}"], 1e-5)
            if "out" in masks:
                x = x * masks["out"][n - 1]
        out = P["embedding"].t() if config.tied else P["output"]
        logits = x @ out + P["bias"]
        total = total + torch.nn.functional.cross_entropy(logits, torch.from_numpy(batch.targets[t]), reduction="sum")
    return total


@pytest.mark.parametrize(
    ("layers", "tied", "norm", "dropout", "workers"),
    [
        (1, False, False, 0.0, 1),
        (1, True, False, 0.3, 2),
        (2, False, True, 0.0, 1),
        (2, True, True, 0.4, 2),
        (3, False, True, 0.2, 3),
    ],
)
def test_the_gradient_is_that_of_automatic_differentiation(
    layers: int, tied: bool, norm: bool, dropout: float, workers: int
) -> None:
    config = GRUConfig(6 if tied else 4, 6, layers, tied, norm)
    P = parameters_of(config)
    loss = GRULoss(config, P, 9, 5, dropout, dropout, seed=3, workers=workers)
    for step in range(2):  # the second step goes on from the carried state
        batch = batch_of(9, 5, seed=step)
        copies = {name: value.clone().requires_grad_() for name, value in P.items()}
        expected = reference_nats(config, copies, batch, loss, step)
        expected.backward()  # type: ignore[no-untyped-call]
        nats, tokens = loss.gradient(batch, step)
        assert nats == pytest.approx(float(expected.detach()), rel=1e-12)
        assert tokens == 45
        for name, value in P.items():
            torch.testing.assert_close(value.grad, copies[name].grad, rtol=1e-9, atol=1e-11, msg=name)


def test_a_vocabulary_larger_than_the_chunk_gives_the_same_gradient() -> None:
    config = GRUConfig(4, 6)
    P = parameters_of(config, size=200)
    batch = batch_of(5, 3, size=200)
    loss = GRULoss(config, P, 5, 3)
    copies = {name: value.clone().requires_grad_() for name, value in P.items()}
    reference_nats(config, copies, batch, loss, 0).backward()  # type: ignore[no-untyped-call]
    loss.gradient(batch, 0)
    for name, value in P.items():
        torch.testing.assert_close(value.grad, copies[name].grad, rtol=1e-9, atol=1e-11, msg=name)


def test_it_is_the_gru_of_torch() -> None:
    config = GRUConfig(4, 6)
    P = parameters_of(config)
    theirs = torch.nn.GRU(4, 6).double()
    weights = dict(theirs.named_parameters())
    with torch.no_grad():
        weights["weight_ih_l0"].copy_(P["W1"].t())
        weights["weight_hh_l0"].copy_(P["U1"].t())
        weights["bias_ih_l0"].copy_(P["b1"])
        weights["bias_hh_l0"].copy_(torch.cat([torch.zeros(12, dtype=torch.float64), P["c1"]]))
        batch = batch_of(9, 5, begins=0)
        hidden, last = theirs(P["embedding"][torch.from_numpy(batch.inputs)])
        log_probs = torch.log_softmax(hidden @ P["output"] + P["bias"], -1)
        expected = -log_probs.gather(2, torch.from_numpy(batch.targets).unsqueeze(2)).sum()
    loss = GRULoss(config, P, 9, 5)
    assert loss.gradient(batch, 0)[0] == pytest.approx(float(expected), rel=1e-12)
    torch.testing.assert_close(loss.memory["state1"][1], last[0])


def test_the_gradient_is_that_of_finite_differences() -> None:
    config = GRUConfig(3, 4, 2, norm=True)
    P = parameters_of(config)
    batch = batch_of(6, 2)

    def nats() -> float:
        return GRULoss(config, P, 6, 2, dropout=0.3, seed=5).gradient(batch, 0)[0]

    nats()
    gradients = {name: value.grad.clone() for name, value in P.items() if value.grad is not None}
    generator = np.random.default_rng(0)
    for name, value in P.items():
        direction = torch.from_numpy(generator.normal(size=value.shape))
        value += 1e-5 * direction
        above = nats()
        value -= 2e-5 * direction
        below = nats()
        value += 1e-5 * direction
        assert (above - below) / 2e-5 == pytest.approx(float((gradients[name] * direction).sum()), rel=1e-6, abs=1e-7)


TEXTS = ["a cab", "", "bad cabbages!\nand a bed\n", "a", "zebra" * 90, "deaf cad, bad cab\n" * 130]


def model_of(config: GRUConfig, workers: int = 1) -> GRU:
    from inkling.models.spelling import Speller

    tokeniser = train_tokeniser("character", [["a bad cab faced a deaf cabbage\n"]])
    speller = Speller.fit({"z": 1}, tokeniser)
    return GRU(config, parameters_of(config, size=tokeniser.size), tokeniser, None, speller, workers)


@pytest.mark.parametrize("config", [GRUConfig(3, 5), GRUConfig(5, 5, 2, tied=True, norm=True)])
def test_a_score_is_the_sum_of_steps_with_parts_warmed_up(config: GRUConfig) -> None:
    model = model_of(config)
    encodings = model.tokeniser.encode(TEXTS)
    whole = model.score_ids(encodings.ids, encodings.offsets, stride=10_000)
    for a, b in itertools.pairwise(encodings.offsets.tolist()):
        state, log_probs = model.begin()
        for place in range(a, b):
            assert whole[place] == pytest.approx(-float(log_probs[int(encodings.ids[place])]), abs=1e-12)
            state, log_probs = model.step(state, int(encodings.ids[place]))
    parts = model.score_ids(encodings.ids, encodings.offsets, stride=100, warm_up=64)
    assert np.abs(parts - whole).max() < 1e-3  # this small model forgets quickly
    assert np.abs(parts - whole).max() > 0


def test_a_stride_of_one_gives_each_token_exactly_the_stated_context() -> None:
    model = model_of(GRUConfig(3, 5))
    ids = model.tokeniser.encode(["a bad cab"]).ids
    offsets = np.array([0, len(ids)])
    zero: tuple[Tensor, ...] = (torch.zeros(5, dtype=torch.float64),)
    for k in (1, 2, 5):
        found = model.score_ids(ids, offsets, stride=1, warm_up=k)
        for place in range(len(ids)):
            seen = ids[max(0, place - k) : place].tolist()
            state = zero
            for token in seen if place > k else [model.tokeniser.begin, *seen]:
                state, log_probs = model.step(state, token)
            assert found[place] == pytest.approx(-float(log_probs[int(ids[place])]), abs=1e-12)


@pytest.mark.slow
def test_batch_order_neighbours_and_workers_change_nothing() -> None:
    config = GRUConfig(4, 8, 2)
    model, threaded = model_of(config), model_of(config, workers=2)
    together = model.score(TEXTS)
    reversed_scores = threaded.score(TEXTS[::-1])
    for number, text in enumerate(TEXTS):
        (alone,) = model.score([text])
        np.testing.assert_allclose(alone.nats, together[number].nats, atol=1e-12)
        np.testing.assert_allclose(alone.nats, reversed_scores[len(TEXTS) - 1 - number].nats, atol=1e-12)


def test_tied_outputs_need_equal_sizes() -> None:
    with pytest.raises(UsageError, match="--tied needs --dimension equal to --hidden, but they are 4 and 6"):
        GRUConfig(4, 6, tied=True)
    with pytest.raises(UsageError, match="--layers is 4; give 1, 2 or 3"):
        GRUConfig(layers=4)

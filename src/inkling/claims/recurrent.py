"""Claim B1: the character model learns over time, and what it writes looks like what it read.

The published loop is run as it was described (hidden 100, one layer, chunks of 400 from random places, one character a
step of Python), beside ours, for the same number of seconds each; both are judged by the same scorer on text that
neither has seen. "Looks like" is measured in two ways: the share of written words that stand in the training text, and
the bits per byte that a Kneser-Ney 6-gram of that text needs for what was written, beside what it needs for real text.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from inkling.claims.ledger import Claim, Context, Finding
from inkling.figures import Chart, Column, Line, Prose, Table
from inkling.measure.tally import tally
from inkling.models.gru import GRU, GRUConfig, random_parameters
from inkling.models.gru_loss import GRULoss
from inkling.models.ngram import NGram, NGramConfig
from inkling.models.sampling import SamplingConfig, sample_many
from inkling.models.spelling import Speller
from inkling.recipes.stream import TokenStream, encode_stream
from inkling.text.corpus import Corpus
from inkling.text.grammar import grammar_text
from inkling.text.tokenise import train_tokeniser
from inkling.training.loop import TrainingConfig, TrainingState, train

SECONDS = 20.0
PUBLISHED_HIDDEN, PUBLISHED_CHUNK, PUBLISHED_RATE = 100, 400, 0.005
OUR_HIDDEN, OUR_BATCH, OUR_CHUNK, OUR_RATE = 256, 64, 64, 0.008


class TorchModel(torch.nn.Module):
    """Embedding, torch.nn.GRU, linear layer: the model as it is usually written, to and from our layout."""

    def __init__(self, size: int, dimension: int, hidden: int) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(size, dimension)
        self.gru = torch.nn.GRU(dimension, hidden)
        self.output = torch.nn.Linear(hidden, size)

    def load(self, P: dict[str, torch.Tensor]) -> None:
        hidden, gru = len(P["U1"]), dict(self.gru.named_parameters())
        with torch.no_grad():
            self.embedding.weight.copy_(P["embedding"])
            gru["weight_ih_l0"].copy_(P["W1"].t())
            gru["weight_hh_l0"].copy_(P["U1"].t())
            gru["bias_ih_l0"].copy_(P["b1"])
            gru["bias_hh_l0"].copy_(torch.cat([torch.zeros(2 * hidden), P["c1"]]))
            self.output.weight.copy_(P["output"].t())
            self.output.bias.copy_(P["bias"])

    def plain(self) -> dict[str, torch.Tensor]:
        """The two biases of a gate are one in our layout."""
        hidden, gru = self.gru.hidden_size, dict(self.gru.named_parameters())
        hh = gru["bias_hh_l0"].detach()
        return {
            "embedding": self.embedding.weight.detach(),
            "W1": gru["weight_ih_l0"].detach().t().contiguous(),
            "U1": gru["weight_hh_l0"].detach().t().contiguous(),
            "b1": gru["bias_ih_l0"].detach() + torch.cat([hh[: 2 * hidden], torch.zeros(hidden)]),
            "c1": hh[2 * hidden :],
            "output": self.output.weight.detach().t().contiguous(),
            "bias": self.output.bias.detach(),
        }


def by_the_character(stream: TokenStream, size: int, seed: int = 0) -> tuple[TorchModel, Callable[[], float]]:
    """The published loop: the model, and a function that takes one step (400 characters) and gives its mean nats."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = TorchModel(size, PUBLISHED_HIDDEN, PUBLISHED_HIDDEN)
    optimiser = torch.optim.Adam(model.parameters(), lr=PUBLISHED_RATE)
    generator = np.random.default_rng(seed)
    ids = torch.from_numpy(np.asarray(stream.ids, np.int64))
    chunk = min(PUBLISHED_CHUNK, len(ids) - 2)

    def step() -> float:
        first = int(generator.integers(0, len(ids) - chunk - 1))
        state = torch.zeros(1, 1, PUBLISHED_HIDDEN)
        optimiser.zero_grad()
        loss = torch.zeros(())
        for place in range(first, first + chunk):
            out, state = model.gru(model.embedding(ids[place]).view(1, 1, -1), state)
            loss = loss + torch.nn.functional.cross_entropy(model.output(out.view(1, -1)), ids[place + 1].view(1))
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        return float(loss.detach()) / chunk

    return model, step


@dataclass(frozen=True)
class Curve:
    name: str
    seconds: list[float]
    nats: list[float]
    characters: int
    model: GRU

    @property
    def speed(self) -> float:
        return self.characters / self.seconds[-1]

    def thirds(self) -> tuple[float, float]:
        """Mean training loss over the first and over the last third of the steps."""
        third = max(1, len(self.nats) // 3)
        return float(np.mean(self.nats[:third])), float(np.mean(self.nats[-third:]))


def learns_and_writes(context: Context, seconds: float = SECONDS) -> Finding:
    path = context.file("tinyshakespeare/input.txt")
    text = _read(path) if path else grammar_text(np.random.default_rng(0), 60_000)
    cut = len(text) * 9 // 10
    learned, unseen = text[:cut], text[cut:]
    tokeniser = train_tokeniser("character", [[learned]])
    stream = encode_stream([[learned]], tokeniser, separate=False)
    speller = Speller.fit({}, tokeniser)

    context.say(f"B1: the published loop, {seconds:g} s …")
    plain, step = by_the_character(stream, tokeniser.size)
    spent: list[float] = []
    nats: list[float] = []
    started = time.perf_counter()
    while not spent or spent[-1] < seconds:
        nats.append(step())
        spent.append(time.perf_counter() - started)
    config = GRUConfig(PUBLISHED_HIDDEN, PUBLISHED_HIDDEN)
    published = Curve(
        "published loop, hidden 100",
        spent,
        nats,
        len(nats) * min(PUBLISHED_CHUNK, len(stream) - 2),
        GRU(config, plain.plain(), tokeniser, speller=speller),
    )
    context.say(f"B1: ours, {seconds:g} s …")
    ours = _ours(stream, seconds, published.model)

    ids = tokeniser.encode([unseen]).ids
    held_out = {curve.name: _held_out(curve.model, ids) for curve in (published, ours)}
    counts = NGram.fit([tokeniser.encode([learned])], tokeniser, NGramConfig(6), speller=speller)
    written = {
        curve.name: [found.text for found in sample_many(curve.model, SamplingConfig(0.8, tokens=1000), 0, [""] * 4)]
        for curve in (published, ours)
    }
    noise = random_parameters(ours.model.config, tokeniser.size, np.random.default_rng(1))
    untrained = GRU(ours.model.config, noise, tokeniser, speller=speller)
    written["before training"] = [
        found.text for found in sample_many(untrained, SamplingConfig(0.8, tokens=1000), 0, [""] * 4)
    ]
    written["the real text, unseen"] = [unseen[i * 1000 : (i + 1) * 1000] for i in range(4)]
    known = set(_words(learned))
    likeness = {
        name: (_share(texts, known), tally(counts.score(texts)).bits("byte")) for name, texts in written.items()
    }
    first, last = ours.thirds()
    falls = last < first and published.thirds()[1] < published.thirds()[0]
    like = likeness[ours.name]
    floor = likeness["before training"]
    looks = like[0] > 0.5 + 0.5 * floor[0] and like[1] < 0.5 * floor[1]
    figures = {
        "published_characters_per_second": published.speed,
        "our_characters_per_second": ours.speed,
        "published_held_out_nats": held_out[published.name],
        "our_held_out_nats": held_out[ours.name],
        "first_third_nats": first,
        "last_third_nats": last,
        "written_words_known": like[0],
        "real_words_known": likeness["the real text, unseen"][0],
        "written_bits_per_byte_under_6gram": like[1],
        "real_bits_per_byte_under_6gram": likeness["the real text, unseen"][1],
    }
    rows = tuple((name, *values) for name, values in likeness.items())
    table = Table(
        "B1: does it look like the training text?",
        (Column("who wrote it"), Column("words known", ".1%"), Column("6-gram's bits per byte", ".3f")),
        rows,
        (
            "Words known: share of the words written that stand in the training text. The 6-gram was fitted on the "
            "training text. 4,000 characters each, temperature 0.8.",
        ),
    )
    return Finding(
        f"in {seconds:g} s each, the published loop reads {published.speed:,.0f} characters a second and ends at "
        f"{held_out[published.name]:.3f} nats a character on unseen text; ours {ours.speed:,.0f} and "
        f"{held_out[ours.name]:.3f}. The loss falls ({first:.2f} → {last:.2f}); {like[0]:.0%} of the words that ours "
        f"writes are words of the training text (unseen real text: {likeness['the real text, unseen'][0]:.0%}, before "
        f"training: {floor[0]:.0%}).",
        "holds" if falls and looks else "fails",
        figures,
        (_chart((published, ours)), table, Prose(written[ours.name][0][:400], "Written at temperature 0.8", True)),
    )


def _ours(stream: TokenStream, seconds: float, like: GRU) -> Curve:
    config = GRUConfig(min(64, OUR_HIDDEN), OUR_HIDDEN)
    parameters = random_parameters(config, like.tokeniser.size, np.random.default_rng(0))
    batch = max(1, min(OUR_BATCH, len(stream) // (2 * OUR_CHUNK)))
    loss = GRULoss(config, parameters, OUR_CHUNK, batch)
    state = TrainingState(parameters, memory=loss.memory)
    plan = TrainingConfig(10**6, rate=OUR_RATE, schedule="linear", warm_up=30, max_seconds=seconds, clip=1.0)
    spent, nats = [], []
    for step in train(loss, lambda n: stream.chunk(n, OUR_CHUNK, batch, 0), plan, state):
        spent.append(step.seconds)
        nats.append(step.nats / step.tokens)
    model = GRU(config, parameters, like.tokeniser, speller=like.speller)
    return Curve(f"ours, hidden {OUR_HIDDEN}", spent, nats, len(nats) * OUR_CHUNK * batch, model)


def _held_out(model: GRU, ids: NDArray[np.int32]) -> float:
    return float(model.score_ids(ids, np.array([0, len(ids)])).mean())


def _read(path: Path) -> str:
    return "".join(
        line for block in Corpus([path], keep_line_ends=True, keep_empty=True).text_blocks() for line in block
    )


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W\d_]+", text.lower())


def _share(texts: list[str], known: set[str]) -> float:
    words = [word for text in texts for word in _words(text)]
    return sum(word in known for word in words) / len(words) if words else 0.0


def _chart(curves: tuple[Curve, ...]) -> Chart:
    lines = []
    for curve in curves:
        group = max(1, len(curve.nats) // 100)
        usable = len(curve.nats) // group * group
        bits = np.array(curve.nats[:usable]).reshape(-1, group).mean(axis=1) / math.log(2)
        lines.append(Line(curve.name, curve.seconds[group - 1 : usable : group], bits.tolist()))
    return Chart(
        "B1: the loss falls over time",
        "seconds",
        "bits per character of the training text",
        tuple(lines),
        reading="Lower is better; both were given the same time.",
    )


CLAIMS = (
    Claim(
        "B1",
        "Embedding → GRU → linear over characters: the loss falls over time, and samples look like the training text.",
        "a falling curve; about a thousand characters a second",
        learns_and_writes,
    ),
)

"""How fast the recurrent model learns and scores, beside the two ways in which it is usually written.

    python bench/recurrent.py [--text FILE] [--seconds 30] [--hidden 100 256] [--batch 128] [--json]

Learning, all from the first nine tenths of the text and judged by the same scorer on the rest:

    (a) by the character   one character a step of Python: embedding, torch.nn.GRU, linear layer; hidden 100, chunks of
                           400 from random places, Adam 0.005: the classroom's way
    (b) torch.nn.GRU       a batch of chunks at once, automatic gradients, torch's Adam, clipped; float32
    (c) inkling            the same chunks, start, rates and batch as (b)

Each has the same number of seconds of its own, given in turns of a few seconds, so that a disturbance of the computer
falls on all. (b) and (c) take the same steps, only in different time: their losses at equal steps are compared too.

Scoring: `inkling score` on a file of lines, start of the program included, and torch.nn.GRU with the same weights, one
line after the other.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import inkling  # first: it looks at the processor before torch does
from inkling.claims.recurrent import PUBLISHED_CHUNK, PUBLISHED_HIDDEN, TorchModel, by_the_character
from inkling.models.gru import GRU, GRUConfig, random_parameters
from inkling.models.gru_loss import GRULoss
from inkling.recipes.gru import GRURecipe, train_gru
from inkling.recipes.stream import TokenStream, encode_stream
from inkling.text.grammar import grammar_text
from inkling.text.tokenise import train_tokeniser
from inkling.training.loop import TrainingConfig, TrainingState, train

import torch  # isort: skip

assert inkling.__version__
CHUNK, DIMENSION, RATE, CLIP = 64, 64, 0.008, 1.0
TURNS = 6


@dataclass
class Contestant:
    """`advance` takes one step and says how many characters it read; `parameters` are in our layout."""

    name: str
    config: GRUConfig
    advance: Callable[[float], tuple[int, float]]  # progress 0…1 → characters, mean nats
    parameters: Callable[[], dict[str, torch.Tensor]]
    seconds: float = 0.0
    characters: int = 0
    losses: list[float] = field(default_factory=list)

    def run_for(self, seconds: float, of: float) -> None:
        until = self.seconds + seconds
        while self.seconds < until:
            started = time.perf_counter()
            characters, nats = self.advance(self.seconds / of)
            self.seconds += time.perf_counter() - started
            self.characters += characters
            self.losses.append(nats)


def rate_at(progress: float, step: int) -> float:
    return RATE * (1 - min(1.0, progress)) * min(1.0, (step + 1) / 30)


def slow_way(stream: TokenStream, size: int) -> Contestant:
    model, step = by_the_character(stream, size)
    config = GRUConfig(PUBLISHED_HIDDEN, PUBLISHED_HIDDEN)
    return Contestant("(a) by the character", config, lambda _: (PUBLISHED_CHUNK, step()), model.plain)


def in_batches(stream: TokenStream, size: int, hidden: int, batch: int) -> Contestant:
    config = GRUConfig(DIMENSION, hidden)
    model = TorchModel(size, DIMENSION, hidden)
    model.load(random_parameters(config, size, np.random.default_rng(0)))
    optimiser = torch.optim.Adam(model.parameters(), betas=(0.9, 0.99))
    carried = torch.zeros(1, batch, hidden)
    steps = 0

    def advance(progress: float) -> tuple[int, float]:
        nonlocal carried, steps
        chunk = stream.chunk(steps, CHUNK, batch, 0)
        inputs, targets = torch.from_numpy(chunk.inputs), torch.from_numpy(chunk.targets)
        if 0 in chunk.fresh:
            carried = carried.index_fill(1, torch.from_numpy(chunk.fresh[0]), 0)
        for group in optimiser.param_groups:
            group["lr"] = rate_at(progress, steps)
        optimiser.zero_grad()
        out, carried = model.gru(model.embedding(inputs), carried)
        carried = carried.detach()
        loss = torch.nn.functional.cross_entropy(model.output(out).view(-1, size), targets.view(-1))
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimiser.step()
        steps += 1
        return targets.numel(), float(loss.detach())

    return Contestant(f"(b) torch.nn.GRU, hidden {hidden}", config, advance, model.plain)


def ours(stream: TokenStream, size: int, hidden: int, batch: int) -> Contestant:
    config = GRUConfig(DIMENSION, hidden)
    parameters = random_parameters(config, size, np.random.default_rng(0))
    loss = GRULoss(config, parameters, CHUNK, batch, workers=torch.get_num_threads())
    state = TrainingState(parameters, memory=loss.memory)

    class ByTheClock(TrainingConfig):
        progress = 0.0

        def rate_at(self, step: int, seconds: float = 0.0) -> float:
            return rate_at(ByTheClock.progress, step)

    steps = train(loss, lambda step: stream.chunk(step, CHUNK, batch, 0), ByTheClock(steps=10**9, clip=CLIP), state)

    def advance(progress: float) -> tuple[int, float]:
        ByTheClock.progress = progress
        step = next(steps)
        return int(step.tokens), step.nats / step.tokens

    return Contestant(f"(c) inkling, hidden {hidden}", config, advance, lambda: parameters)


# The whole command, its start included: 26 × without AVX-512, where a line at a time is slow, and 9 × with it.
TIMES_SCORING = 6.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, help="text in UTF-8 [default: generated]")
    parser.add_argument("--seconds", type=float, default=30, help="of training, for each")
    parser.add_argument("--hidden", type=int, nargs="+", default=[100, 256])
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--score-hidden", type=int, default=256, help="of the model that scores")
    parser.add_argument("--score-characters", type=int, default=2_000_000)
    parser.add_argument("--check", action="store_true", help="fail below 100 × (a), 1.5 × (b) and 6 × in scoring")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    text = options.text.read_text("utf-8") if options.text else grammar_text(np.random.default_rng(0), 200_000)
    cut = len(text) * 9 // 10
    tokeniser = train_tokeniser("character", [[text[:cut]]])
    stream = encode_stream([[text[:cut]]], tokeniser, separate=False)
    held_out = tokeniser.encode([text[cut:]]).ids

    contestants = [slow_way(stream, tokeniser.size)]
    for hidden in options.hidden:
        contestants.append(in_batches(stream, tokeniser.size, hidden, options.batch))
        contestants.append(ours(stream, tokeniser.size, hidden, options.batch))
    for _ in range(TURNS):
        for contestant in contestants:
            contestant.run_for(options.seconds / TURNS, options.seconds)
    slow = contestants[0].characters / contestants[0].seconds
    rows: list[dict[str, Any]] = []
    failures = []
    before: dict[str, Any] = {}
    for contestant in contestants:
        model = GRU(contestant.config, contestant.parameters(), tokeniser)
        speed = contestant.characters / contestant.seconds
        row = {
            "method": contestant.name,
            "characters_per_second": speed,
            "times_a": speed / slow,
            "held_out_nats": float(model.score_ids(held_out, np.array([0, len(held_out)])).mean()),
            "loss_at_step_10": contestant.losses[min(9, len(contestant.losses) - 1)],
        }
        if contestant.name.startswith("(c)"):
            row["times_b"] = speed / before["characters_per_second"]
            if abs(row["loss_at_step_10"] - before["loss_at_step_10"]) > 0.05:
                failures.append(f"{contestant.name} is not the same training as (b)")
            if speed < 1.5 * before["characters_per_second"]:
                failures.append(f"{contestant.name} is not 1.5 times as fast as (b)")
            if row["held_out_nats"] > min(before["held_out_nats"], rows[0]["held_out_nats"]):
                failures.append(f"{contestant.name} has not the better loss after the same time")
        rows.append(row)
        before = row
    if max(row["times_a"] for row in rows) < 100:
        failures.append("nothing is 100 times as fast as (a)")
    scoring = measure_scoring(text[:cut], text, options)
    if scoring["ratio"] < TIMES_SCORING:
        failures.append(f"scoring is not {TIMES_SCORING:g} times as fast as line by line")
    if options.json:
        print(json.dumps({"learning": rows, "scoring": scoring, "failures": failures}, indent=1))
    else:
        print(f"Learning, {options.seconds:g} s each, batch {options.batch} × {CHUNK} for (b) and (c)\n")
        for row in rows:
            beside = f"   {row['times_b']:.2f} × (b)" if "times_b" in row else ""
            print(
                f"{row['method']:32} {row['characters_per_second']:>9,.0f} characters/s  {row['times_a']:>6.1f} × (a)"
                f"   held out {row['held_out_nats']:.4f} nats/character{beside}"
            )
        print(
            f"\nScoring lines, hidden {options.score_hidden}\n\n"
            f"torch.nn.GRU, line by line        {scoring['naive']:>9,.0f} characters/s\n"
            f"inkling score, the whole command  {scoring['ours']:>9,.0f} characters/s   {scoring['ratio']:.1f} ×"
        )
    if options.check and failures:
        sys.exit("; ".join(failures))


def measure_scoring(learned: str, text: str, options: argparse.Namespace) -> dict[str, float]:
    """Characters a second of the command on a file, and of torch's model in a loop over some of its lines."""
    with tempfile.TemporaryDirectory() as folder:
        train_file, file = Path(folder) / "train.txt", Path(folder) / "lines.txt"
        train_file.write_text(learned, "utf-8", newline="")
        repeated = (text * (1 + options.score_characters // len(text)))[: options.score_characters]
        file.write_text(repeated, "utf-8", newline="")
        run = Path(folder) / "run"
        recipe = GRURecipe(files=(str(train_file),), hidden=options.score_hidden, steps=20, batch=64)
        for _ in train_gru(recipe, run):
            pass
        command = [sys.executable, "-m", "inkling", "score", str(run), str(file), "--out", f"{folder}/scores.jsonl"]
        started = time.perf_counter()
        subprocess.run(command, check=True)
        ours_speed = len(repeated) / (time.perf_counter() - started)
        rows = [json.loads(line) for line in (Path(folder) / "scores.jsonl").read_text("utf-8").splitlines()]
        trained = inkling.load(run)
        assert isinstance(trained, GRU)
    tokeniser = trained.tokeniser
    naive = TorchModel(tokeniser.size, trained.config.dimension, trained.config.hidden)
    naive.load(trained.parameters)
    lines = repeated.splitlines(keepends=True)
    characters, spent, number = 0, 0.0, 0
    with torch.no_grad():
        while spent < 5 and number < len(lines):
            started = time.perf_counter()
            ids = torch.from_numpy(tokeniser.encode([lines[number]]).ids.astype(np.int64))
            inputs = torch.cat([torch.tensor([tokeniser.begin]), ids[:-1]])
            out, _ = naive.gru(naive.embedding(inputs).unsqueeze(1))
            log_probs = torch.log_softmax(naive.output(out.squeeze(1)), dim=1)
            nats = -float(log_probs.gather(1, ids.unsqueeze(1)).sum())
            spent += time.perf_counter() - started
            assert abs(nats - rows[number]["nats"]) < 1e-3 * max(1.0, nats), "the two do not agree"
            characters += len(ids)
            number += 1
    slow = characters / spent
    return {"naive": slow, "ours": ours_speed, "ratio": ours_speed / slow}


if __name__ == "__main__":
    main()

"""How much time the exact method saves: both methods in one run, on one text, to one loss.

    python bench/bigram.py --data FOLDER [--json]       Penn Treebank, 2,000 words, GloVe 50-d (claim A5)
    python bench/bigram.py                              the generated language, vectors of its own

The reference samples 40,000 batches of 50 pairs, as published. The exact method is given the same model (50 units, the
same fixed vectors) and counts from nothing: pair counts, start point and steps are all in its time. Then it is let run
to its end with learned vectors, beside the Kneser-Ney bigram, and once with all 10,000 words of the text.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the command does; the reference is fastest so

import numpy as np
import torch

from inkling.claims.bigram import Trained, count, fit, lines_of, perplexity
from inkling.models.bigram import BigramConfig, ExactLoss, PlainLoss, random_parameters
from inkling.models.pairs import count_pairs
from inkling.recipes.bigram import BigramRecipe, Prepared, prepare
from inkling.text.grammar import grammar_text
from inkling.training.loop import TrainingConfig, TrainingState, train


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with ptb/ and glove/")
    parser.add_argument("--steps", type=int, default=40_000, help="of the reference")
    parser.add_argument("--at-least", type=float, default=0, help="fail if the exact method saves less than this")
    parser.add_argument("--quick", action="store_true", help="leave the run with all 10,000 words out")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(options.data, Path(folder), options.steps, options.quick)
    if options.json:
        print(json.dumps(figures, indent=1))
    else:
        for name, value in figures.items():
            print(f"{name:45} {value:12,.4f}")
        print(
            f"\nThe exact method reached the reference's final training loss in 1/{figures['ratio']:.0f} of its time "
            f"({figures['exact_seconds_to_reference']:.3f} s against {figures['reference_seconds']:.1f} s)."
        )
    if figures["ratio"] < options.at_least:
        raise SystemExit(f"only {figures['ratio']:.0f} times faster; at least {options.at_least:g} was wanted")


def measure(data: Path | None, folder: Path, steps: int, quick: bool) -> dict[str, float]:
    base = recipe(data, folder)
    prepared = prepare(replace(base, method="sgd"))
    say("the reference …")
    reference, final_nats = run_reference(prepared, steps)
    say(f"{reference:.1f} s; the exact method …")
    seconds, taken, nats = run_exact(prepared, final_nats)
    figures = {
        "reference_seconds": reference,
        "reference_final_train_perplexity": math.exp(final_nats),
        "exact_seconds_to_reference": seconds,
        "exact_steps_to_reference": float(taken),
        "exact_train_perplexity_there": math.exp(nats),
        "ratio": reference / seconds,
    }
    say(f"{seconds:.3f} s; learned vectors to the end …")
    learned: Trained
    learned, _ = fit("", replace(base, learn_vectors=True, hidden=100, discount=0.4, dropout=0.3))
    held_out = lines_of(base.held_out[0])
    figures["exact_learned_seconds"] = learned.seconds[-1]
    figures["exact_learned_dev_perplexity"] = perplexity(learned.model, held_out)
    figures["kneser_ney_dev_perplexity"] = perplexity(count(prepared), held_out)
    if data and not quick:
        say("all 10,000 words …")
        started = time.perf_counter()
        whole, _ = fit("", replace(base, learn_vectors=True, hidden=100, vocabulary=10_000, minutes=1.5, dropout=0.3))
        figures["words_10000_seconds"] = time.perf_counter() - started
        figures["words_10000_steps"] = float(len(whole.nats))
        figures["words_10000_dev_perplexity"] = perplexity(whole.model, held_out)
    figures["peak_memory_megabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return figures


def say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def recipe(data: Path | None, folder: Path) -> BigramRecipe:
    if data:
        return BigramRecipe(
            files=(str(data / "ptb/ptb.train.txt"),),
            held_out=(str(data / "ptb/ptb.valid.txt"),),
            vocabulary=2000,
            pieces="spaces",
            exclude=("<unk>",),
            vectors=str(data / "glove/glove.6B.50d.top100k.npz"),
            learn_vectors=False,
            hidden=50,
            patience=0,
        )
    generator = np.random.default_rng(0)
    (folder / "train.txt").write_text(grammar_text(generator, 400_000), encoding="utf-8", newline="")
    (folder / "dev.txt").write_text(grammar_text(generator, 40_000), encoding="utf-8", newline="")
    return BigramRecipe(
        files=(str(folder / "train.txt"),), held_out=(str(folder / "dev.txt"),), vocabulary=512, hidden=50, patience=0
    )


def run_reference(prepared: Prepared, steps: int) -> tuple[float, float]:
    """Seconds of plain sampled SGD in float32, no logging and no evaluation in between; final loss on all pairs."""
    assert isinstance(prepared.objective, PlainLoss)
    objective, draw = prepared.objective, prepared.batches
    started = time.perf_counter()
    for step in range(steps):
        _, tokens = objective.gradient(draw(step), step)
        rate = (0.3 if step < steps / 2 else 0.15) / tokens
        for parameter in objective.parameters.values():
            assert parameter.grad is not None
            parameter.data.add_(parameter.grad, alpha=-rate)
    seconds = time.perf_counter() - started
    p = {name: value.double() for name, value in objective.plain(objective.parameters).items()}
    h = torch.sigmoid(p["vectors"] @ p["W1"] + p["b1"])
    log_probs = torch.log_softmax(h @ p["W2"] + p["b2"], dim=1).numpy().reshape(-1)
    counts = prepared.counts
    return seconds, -float(log_probs[counts.keys] @ counts.values) / counts.tokens


def run_exact(prepared: Prepared, target: float) -> tuple[float, int, float]:
    """Seconds and steps until the loss of the whole corpus is at or below `target`, from the token ids on."""
    tokeniser = prepared.tokeniser
    encodings = [tokeniser.encode(block) for block in prepared.text.train_blocks()]
    assert isinstance(prepared.objective, PlainLoss)
    vectors = prepared.objective.vectors
    started = time.perf_counter()
    counts = count_pairs(encodings, tokeniser.size, tokeniser.begin)
    sizes = BigramConfig(vectors.shape[1], prepared.sizes.hidden)
    start = random_parameters(sizes, tokeniser.size, np.random.default_rng(1), vectors)
    exact = ExactLoss(counts, start, learn_vectors=False)
    for step in train(exact, lambda _: counts, TrainingConfig(1000), TrainingState(exact.parameters)):
        if step.nats / step.tokens <= target:  # the loss before this step, which a caller could have stopped at
            return time.perf_counter() - started, step.step - 1, step.nats / step.tokens
    raise SystemExit("the exact method did not reach the reference's loss in 1,000 steps")


if __name__ == "__main__":
    main()

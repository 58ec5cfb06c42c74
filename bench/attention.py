"""A million samples of noisy attention: ours beside the ways it is usually written.

    loop     one sample after the other in NumPy: draw n×d keys, two products, two softmaxes
    batched  the same for 50 samples at a time in torch, float32, all cores (20, 200, 1,000 and 4,000 are slower)
    ours     only the scores are drawn: n×2 numbers a sample, with the covariance that the keys would have given them

100 keys of 128 dimensions, two heads, noise on every key and more along the first one; all three give the mean weights
of both heads, the mean output with its standard error, and how often head 1 fails; figures are compared, too. The loop
and the batched way are timed on fewer samples (both are linear in them) and the time is scaled up. Peak memory is that
of a process of its own, less what it holds after importing.

    python bench/attention.py            two minutes
    python bench/attention.py --check    exit 1 unless ours is at least 20 times as fast as the batched way
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import time

import numpy as np

KEYS, DIMENSION, BETA, ALPHA, NOISE = 100, 128, 10.0, 0.01, 0.5
WAYS = ("loop", "batched", "ours")
Result = dict[str, float | list[float]]


def case_arrays() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Key means (n×d), queries (2×d), values (n×d)."""
    means = np.eye(KEYS, DIMENSION)
    return means, BETA * means[:2], np.random.default_rng(1).normal(size=(KEYS, DIMENSION))


def loop(samples: int) -> Result:
    means, queries, values = case_arrays()
    generator = np.random.default_rng(0)
    weights, output, squares, failures = np.zeros((2, KEYS)), np.zeros(DIMENSION), np.zeros(DIMENSION), 0
    for _ in range(samples):
        keys = means + math.sqrt(ALPHA) * generator.normal(size=means.shape)
        keys[0] += math.sqrt(NOISE) * generator.normal() * means[0]
        scores = queries @ keys.T
        alpha = np.exp(scores - scores.max(axis=1, keepdims=True))
        alpha /= alpha.sum(axis=1, keepdims=True)
        c = alpha.mean(axis=0) @ values
        weights, output, squares = weights + alpha, output + c, squares + c**2
        failures += alpha[0, 0] < 0.5
    return _result(weights, output, squares, failures, samples)


def batched(samples: int, at_once: int = 50) -> Result:
    import torch

    means, queries, values = (torch.tensor(array, dtype=torch.float32) for array in case_arrays())
    generator = torch.Generator().manual_seed(0)
    weights = torch.zeros(2, KEYS, dtype=torch.float64)
    output, squares = torch.zeros(2, DIMENSION, dtype=torch.float64)
    failures = 0
    with torch.inference_mode():
        for _ in range(samples // at_once):
            keys = means + math.sqrt(ALPHA) * torch.randn(at_once, KEYS, DIMENSION, generator=generator)
            keys[:, 0] += math.sqrt(NOISE) * torch.randn(at_once, 1, generator=generator) * means[0]
            alpha = torch.softmax(keys @ queries.T, dim=1)  # samples×n×2
            c = alpha.mean(dim=2) @ values
            weights += alpha.sum(dim=0).T
            output += c.sum(dim=0)
            squares += (c**2).sum(dim=0)
            failures += int((alpha[:, 0, 0] < 0.5).sum())
    return _result(weights.numpy(), output.numpy(), squares.numpy(), failures, samples // at_once * at_once)


def ours(samples: int) -> Result:
    from inkling.attention.case import build
    from inkling.attention.simulate import simulate

    case = build(KEYS, BETA, [(0,), (1,)], dimension=DIMENSION, alpha=ALPHA, noise=NOISE, values=case_arrays()[2])
    found = simulate(case, np.random.default_rng(0), samples)
    mean, error = found.mean_output()
    squares = samples * (samples * error**2 + mean**2)
    return _result(found.weight_sums, samples * mean, squares, int(found.failures[0]), samples)


def _result(weights: np.ndarray, output: np.ndarray, squares: np.ndarray, failures: int, samples: int) -> Result:
    mean = output / samples
    return {
        "samples": samples,
        "weights": (weights / samples)[:, :3].ravel().tolist(),
        "output": mean[:3].tolist(),
        "variance": (squares / samples - mean**2)[:3].tolist(),
        "failure": failures / samples,
    }


def measure(way: str, samples: int) -> Result:
    """One way in this process: its figures, seconds and peak memory beyond what imports take."""
    import torch  # noqa: F401

    import inkling.attention.simulate  # noqa: F401  so that every way starts from the same

    run = {"loop": loop, "batched": batched, "ours": ours}[way]
    run(max(1000, samples // 100))  # first use of torch, threads and memory is not what is measured
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    found = run(samples)
    found["seconds"] = time.perf_counter() - started
    found["peak_megabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    found["more_megabytes"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return found


def in_own_process(way: str, samples: int) -> Result:
    call = [sys.executable, __file__, "--way", way, "--samples", str(samples)]
    done = subprocess.run(call, capture_output=True, text=True, check=True)
    found: Result = json.loads(done.stdout)
    return found


def agree(found: dict[str, Result]) -> float:
    """The largest difference between ours and the batched way, in standard errors."""
    a, b = found["ours"], found["batched"]
    smaller = 1 / _number(a, "samples") + 1 / _number(b, "samples")
    failure, other = _number(a, "failure"), _number(b, "failure")
    worst = abs(failure - other) / math.sqrt(failure * (1 - failure) * smaller)
    for one, other, variance in zip(_numbers(a, "output"), _numbers(b, "output"), _numbers(a, "variance"), strict=True):
        worst = max(worst, abs(one - other) / math.sqrt(variance * smaller))
    return worst


def _number(found: Result, name: str) -> float:
    value = found[name]
    assert not isinstance(value, list)
    return value


def _numbers(found: Result, name: str) -> list[float]:
    value = found[name]
    assert isinstance(value, list)
    return value


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--share", type=float, default=0.1, help="part of the samples that the batched way is timed on")
    parser.add_argument("--rounds", type=int, default=3, help="ours and batched in turn; the median ratio counts")
    parser.add_argument("--at-least", type=float, default=20.0)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--way", choices=WAYS)
    options = parser.parse_args()
    if options.way:
        print(json.dumps(measure(options.way, options.samples)))
        return 0
    print(f"{options.samples:,} samples, {KEYS} keys, {DIMENSION} dimensions, two heads")
    found: dict[str, Result] = {}
    ratios = []
    for _ in range(options.rounds):
        found["ours"] = in_own_process("ours", options.samples)
        found["batched"] = in_own_process("batched", max(1000, int(options.share * options.samples)))
        ratios.append(_seconds(found["batched"], options.samples) / _seconds(found["ours"], options.samples))
    found["loop"] = in_own_process("loop", max(1000, options.samples // 200))
    for way in WAYS:
        each = found[way]
        print(
            f"{way:8}  {_seconds(each, options.samples):8.1f} s   peak {_number(each, 'peak_megabytes'):6.0f} MB   "
            f"failures {_number(each, 'failure'):.4f}   (timed on {_number(each, 'samples'):,.0f} samples)"
        )
    ratio = sorted(ratios)[len(ratios) // 2]
    apart = agree(found)
    loop_ratio = _seconds(found["loop"], options.samples) / _seconds(found["ours"], options.samples)
    print(f"ours is {ratio:.1f} times as fast as batched torch (rounds: {', '.join(f'{r:.1f}' for r in ratios)})")
    print(f"ours is {loop_ratio:.0f} times as fast as the loop")
    print(f"ours and batched are at most {apart:.1f} standard errors apart")
    if options.check and (ratio < options.at_least or apart > 5):
        print(f"expected at least {options.at_least:g} times and at most 5 standard errors")
        return 1
    return 0


def _seconds(found: Result, samples: int) -> float:
    return _number(found, "seconds") * samples / _number(found, "samples")


if __name__ == "__main__":
    sys.exit(main())

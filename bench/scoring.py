"""How fast `inkling score` goes through a large file, beside KenLM on the same text.

    python bench/scoring.py [--text FILE] [--megabytes 100] [--model bigram|ngram] [--json]

The text is FILE, or text from the generated grammar, repeated until it has so many megabytes (1 MB = 10⁶ bytes).
Repeating flatters both: what is looked up often lies in the processor's cache. What each does with a line:

    inkling score   cuts it without loss, charges every byte (unknown words letter by letter), counts bytes and
                    unknown words, writes a line of JSON; one process, time of the whole command from start to end
    KenLM           cuts it at spaces, adds up log-probabilities; an unknown word is one event, its letters are free,
                    bytes are not counted, nothing is written; time of the loop over the lines in Python alone
    KenLM, JSON     the same, and writes the row, its cost and its tokens as a line of JSON

The models have as many words (4,096) and are learned from the same text: ours as `inkling train` makes it, KenLM's a
Kneser-Ney bigram of the words between spaces, written as an ARPA file here (KenLM's Python package cannot estimate
models). That both give a text the same probability is checked before anything is timed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from inkling.models.ngram import Counts, KneserNey  # without torch: see `run_command`
from inkling.text.grammar import grammar_text

MEGABYTE = 1_000_000
LEARNED_BYTES = 12 * MEGABYTE
UNKNOWN, BEGIN, END = "<unk>", "<s>", "</s>"
BIGRAM_STEPS = 30  # speed does not depend on what was learned


@dataclass(frozen=True)
class Command:
    seconds: float
    cpu_seconds: float
    peak_megabytes: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, help="text in UTF-8 to repeat [default: generated]")
    parser.add_argument("--megabytes", type=float, default=100, help="size of the file that is scored")
    parser.add_argument("--model", choices=("bigram", "ngram"), default="bigram", help="ngram has order 3")
    parser.add_argument("--vocabulary", type=int, default=4096)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(options.text, options.megabytes, options.model, options.vocabulary, Path(folder))
    if options.json:
        print(json.dumps(figures, indent=1))
    else:
        show(figures)


def measure(text: Path | None, megabytes: float, model: str, vocabulary: int, folder: Path) -> dict[str, Any]:
    source = folder / "source.txt"
    source.write_bytes(text.read_bytes() if text else grammar_text(np.random.default_rng(0), 300_000).encode())
    learned, large, scores = folder / "learned.txt", folder / "large.txt", folder / "scores.jsonl"
    repeat(source, learned, min(LEARNED_BYTES, source.stat().st_size))
    repeat(source, large, int(megabytes * MEGABYTE))
    (folder / "line.txt").write_text("one line\n", encoding="utf-8")

    run = folder / "run"
    kind = ["--steps", str(BIGRAM_STEPS)] if model == "bigram" else ["--order", "3"]
    run_command("train", model, str(learned), "--vocabulary", str(vocabulary), *kind, "--out", str(run), "--json")
    start = run_command("score", str(run), str(folder / "line.txt"), "--out", str(scores))
    ours = run_command("score", str(run), str(large), "--out", str(scores))
    rows, tokens, unknown = totals(scores)
    scores.unlink()

    kenlm = learn_kenlm(learned, vocabulary, folder)
    silent_seconds, words = query(kenlm, large)
    writing_seconds, _ = query(kenlm, large, folder / "kenlm.jsonl")
    size = large.stat().st_size / MEGABYTE
    return {
        "text": text.name if text else "generated grammar",
        "model": model,
        "vocabulary": vocabulary,
        "megabytes": size,
        "repeats": size * MEGABYTE / source.stat().st_size,
        "lines": rows,
        "tokens": tokens,
        "unknown_share": unknown / tokens,
        "kenlm_tokens": words,
        "start_seconds": start.seconds,
        "inkling": {
            "seconds": ours.seconds,
            "cpu_seconds": ours.cpu_seconds,
            "megabytes_per_second": size / ours.seconds,
            "tokens_per_second": tokens / ours.seconds,
            "lines_per_second": rows / ours.seconds,
            "peak_memory_megabytes": ours.peak_megabytes,
        },
        "kenlm": rates(silent_seconds, size, words, rows),
        "kenlm_json": rates(writing_seconds, size, words, rows),
        "ratio": silent_seconds / ours.seconds,
        "ratio_json": writing_seconds / ours.seconds,
    }


def rates(seconds: float, megabytes: float, tokens: int, lines: int) -> dict[str, float]:
    return {
        "seconds": seconds,
        "megabytes_per_second": megabytes / seconds,
        "tokens_per_second": tokens / seconds,
        "lines_per_second": lines / seconds,
    }


def show(figures: dict[str, Any]) -> None:
    print(
        f"{figures['text']}, {figures['megabytes']:,.0f} MB ({figures['repeats']:.1f} times the text), "
        f"{figures['lines']:,} lines; {figures['model']} of {figures['vocabulary']:,} words, "
        f"{figures['unknown_share']:.1%} of the tokens unknown\n"
    )
    print(f"{'':16}{'seconds':>10}{'MB/s':>10}{'tokens/s':>14}{'lines/s':>12}{'peak memory':>14}")
    for name, title in (("inkling", "inkling score"), ("kenlm", "KenLM"), ("kenlm_json", "KenLM, JSON")):
        one = figures[name]
        peak = f"{one['peak_memory_megabytes']:,.0f} MB" if "peak_memory_megabytes" in one else "–"
        print(
            f"{title:16}{one['seconds']:10.2f}{one['megabytes_per_second']:10.2f}{one['tokens_per_second']:14,.0f}"
            f"{one['lines_per_second']:12,.0f}{peak:>14}"
        )
    print(
        f"\ninkling score, of which {figures['start_seconds']:.1f} s to start and load, does "
        f"{figures['ratio']:.2f} of the bytes a second that KenLM does, {figures['ratio_json']:.2f} of those it does "
        "when it writes JSON too."
    )


def repeat(source: Path, target: Path, size_bytes: int) -> None:
    """The source again and again, cut at the last line end within `size_bytes`."""
    content = source.read_bytes()
    content = content if content.endswith(b"\n") else content + b"\n"
    with target.open("wb") as file:
        for _ in range(size_bytes // len(content)):
            file.write(content)
        file.write(content[: content.rfind(b"\n", 0, size_bytes % len(content)) + 1])


def run_command(*arguments: str) -> Command:
    """One `inkling` command as a process of its own, and the largest memory it held.

    Linux counts the memory of the parent at the start of a process as the process's own, so this program must stay
    smaller than the command: it does not import torch.
    """
    before = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "inkling", *arguments], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - before
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"inkling {' '.join(arguments)} ended with exit code {process.returncode}")
    bytes_per_unit = 1 if sys.platform == "darwin" else 1024
    return Command(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * bytes_per_unit / MEGABYTE)


def totals(scores: Path) -> tuple[int, int, int]:
    """Rows, tokens and unknown tokens."""
    rows = tokens = unknown = 0
    with scores.open(encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            rows, tokens, unknown = rows + 1, tokens + row["tokens"], unknown + row["unknown"]
    return rows, tokens, unknown


# ------------------------------------------------------------------------------------------------ KenLM


def lines_of(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8", newline="\n") as file:
        yield from file


def learn_kenlm(path: Path, vocabulary: int, folder: Path) -> Any:
    """KenLM's model of the commonest words between spaces, checked against the model it was written from."""
    import kenlm

    counted = Counter(word for line in lines_of(path) for word in line.split())
    for special in (UNKNOWN, BEGIN, END):
        del counted[special]
    words = [UNKNOWN, BEGIN, END, *(word for word, _ in counted.most_common(vocabulary - 3))]
    numbers = {word: i for i, word in enumerate(words)}
    texts = [[*(numbers.get(word, 0) for word in line.split()), numbers[END]] for line in lines_of(path)]
    offsets = np.append(0, np.cumsum([len(text) for text in texts]))
    ids = np.fromiter((i for text in texts for i in text), np.int64, int(offsets[-1]))
    ones = np.ones(len(texts), np.int64)
    table = KneserNey.smooth(Counts.of(ids, offsets, ones, len(words), 2, numbers[BEGIN]), numbers[BEGIN], "modified")
    arpa = folder / "words.arpa"
    write_arpa(table, words, arpa)
    config = kenlm.Config()
    config.show_progress, config.arpa_complain = False, kenlm.ARPALoadComplain.NONE
    model = kenlm.Model(str(arpa), config)

    checked = min(1000, len(texts))
    expected = -table.nats(ids[: offsets[checked]], offsets[: checked + 1]).sum() / math.log(10)
    found = sum(model.score(line) for line, _ in zip(lines_of(path), range(checked), strict=False))
    if abs(found - expected) > 1e-4 * abs(expected):
        raise SystemExit(
            f"KenLM gives 10^{found:.4f} to the text where the model it was made from gives 10^{expected:.4f}"
        )
    return model


def write_arpa(table: KneserNey, words: list[str], path: Path) -> None:
    """A bigram model in the text format of language models: log₁₀ p, the n-gram, log₁₀ λ of it as a context."""
    unigrams, backoffs, bigrams = (np.log10(values) for values in (table.probs[0], table.backoffs[0], table.probs[1]))
    with path.open("w", encoding="utf-8") as file:
        file.write(f"\\data\\\nngram 1={len(words)}\nngram 2={len(bigrams)}\n\n\\1-grams:\n")
        file.writelines(f"{unigrams[i]:.7f}\t{word}\t{backoffs[i]:.7f}\n" for i, word in enumerate(words))
        file.write("\n\\2-grams:\n")
        for key, logarithm in zip(table.keys[1].tolist(), bigrams.tolist(), strict=True):
            first, second = divmod(key, len(words))
            file.write(f"{logarithm:.7f}\t{words[first]} {words[second]}\n")
        file.write("\n\\end\\\n")


def query(model: Any, path: Path, out: Path | None = None) -> tuple[float, int]:
    """Seconds for all lines, and the number of words and line ends scored."""
    score = model.score
    before = time.perf_counter()
    if out is None:
        for line in lines_of(path):
            score(line)
    else:
        with out.open("w", encoding="utf-8") as file:
            for row, line in enumerate(lines_of(path), start=1):
                file.write('{"row": %d, "log10": %.12g, "tokens": %d}\n' % (row, score(line), len(line.split()) + 1))  # noqa: UP031
    seconds = time.perf_counter() - before
    return seconds, sum(len(line.split()) + 1 for line in lines_of(path))


if __name__ == "__main__":
    main()

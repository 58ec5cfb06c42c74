"""Small runs, all but one made without training, and the real server on loopback that serves them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from inkling.cli.app import main
from inkling.models.bigram import BigramConfig
from inkling.models.bigram import random_parameters as bigram_parameters
from inkling.models.gpt import GPTConfig, initial_parameters
from inkling.models.gpt_layout import to_layout
from inkling.models.spelling import Speller
from inkling.runs.loading import constant_files, dump_arrays
from inkling.runs.recording import dump
from inkling.runs.run import Checkpoint, Run
from inkling.text.grammar import grammar_text
from inkling.text.tokenise import train_tokeniser

MOST_TOKENS = 1_000_000  # a completion of so many is never finished here
SCRIPT = "<script>alert(1)</script>"
LINES = grammar_text(np.random.default_rng(3), 2000).splitlines(keepends=True)


@dataclass(frozen=True)
class Served:
    """A server that runs, and its runs by name: writer (a transformer over characters), words (a bigram), verdicts."""

    url: str
    token: str
    curl: str
    runs: Path
    client: httpx.Client

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def get(self, path: str) -> httpx.Response:
        return self.client.get(path)

    def post(self, path: str, body: Any) -> httpx.Response:
        return self.client.post(path, json=body)

    def complete(self, **body: Any) -> dict[str, Any]:
        answer = self.post("/v1/completions", {"model": "writer", **body})
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found


def create(folder: Path, kind: str, constant: dict[str, bytes], weights: bytes, normalise: str = "none") -> None:
    info = {"kind": kind, "recipe": {}, "normalise": normalise, "seed": 0, "threads": 1, "data": {}}
    Run.create(folder, info=info, constant=constant, checkpoint=Checkpoint(0, weights, dump_arrays({}), {"step": 0}))


def build_writer(folder: Path) -> None:
    tokeniser = train_tokeniser("character", [LINES])
    config = GPTConfig(tokeniser.size, dimension=32, layers=2, heads=2, mlp=48, context=64)
    drawn = initial_parameters(config, np.random.default_rng(0))
    _, tensors = to_layout(config, {name: 1.5 * value for name, value in drawn.items()}, tokeniser.begin)
    create(folder, "gpt", constant_files("gpt", asdict(config), tokeniser, None), dump(tensors))


def build_words(folder: Path) -> None:
    tokeniser, speller = train_tokeniser("word", [LINES], 60), Speller.fit(["boat", "net", "loaf", "captain"])
    sizes = BigramConfig(dimension=8, hidden=12)
    weights = bigram_parameters(sizes, tokeniser.size, np.random.default_rng(0))
    create(folder, "bigram", constant_files("bigram", asdict(sizes), tokeniser, speller), dump(weights))


def build_verdicts(folder: Path) -> None:
    random, rows = np.random.default_rng(0), ["text,label"]
    for i in range(400):
        words = [
            *random.choice(("superb", "lovely") if i % 2 else ("dull", "awful"), 2),
            *random.choice(("the", "a"), 4),
        ]
        rows.append(f"{' '.join(words)} {'abcdefghij'[i // 40]},{'good' if i % 2 else SCRIPT}")
    table = folder.with_suffix(".csv")
    table.write_text("\n".join(rows) + "\n", "utf-8")
    assert main(["train", "dan", str(table), "--words", "1", "--out", str(folder)]) == 0


def build_runs(folder: Path) -> None:
    build_writer(folder / "writer")
    build_words(folder / "words")
    build_verdicts(folder / "verdicts")


@contextmanager
def serving(runs: Path, *options: str) -> Iterator[Served]:
    """`inkling serve` on all runs, until the block ends."""
    names = [str(runs / name) for name in ("writer", "words", "verdicts")]
    command = [sys.executable, "-m", "inkling", "serve", *names, "--port", "0", "--json", *options]
    command += ["--max-tokens", str(MOST_TOKENS), "--threads", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            line = process.stdout.readline()
            assert line, process.stderr.read()
            said = json.loads(line)
            headers = {"Authorization": f"Bearer {said['token']}"}
            with httpx.Client(
                base_url=said["url"], headers=headers, timeout=60, verify=False, trust_env=False
            ) as client:
                yield Served(said["url"], said["token"], said["curl"], runs, client)
        finally:
            process.send_signal(signal.SIGINT)
            try:
                _, complained = process.communicate(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        assert "Traceback" not in complained, complained

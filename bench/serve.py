"""How many completions a server gives, and how soon, when many ask at once.

    python bench/serve.py [--seconds 60] [--clients 64] [--quick] [--check] [--json]

The server is `inkling serve` in a process of its own, with a transformer of about a million parameters over characters
(weights drawn, not trained: what it writes does not matter here). Clients ask again as soon as they are answered, each
over one connection: prompts of 10 to 60 characters, 64 to 192 tokens, temperature 0.8, top-p 0.95. A 503 is waited out
for as long as it says.

    endurance   `--clients` for `--seconds`, every fourth with its tokens streamed: completions and tokens a second,
                half and 99 % of all waits, what went wrong, and the memory of the server after a tenth of the time and
                at the end; /health is asked meanwhile
    batching    32 clients, none of them streamed to: tokens a second with `--batch 32` beside `--batch 1`, which is one
                text at a time

`--check` fails on any error but the documented 503, memory that grew by more than a tenth, a /health that took longer
than 100 ms at the median, or batching below 4 ×.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import inkling  # first: it looks at the processor before torch does
from inkling.models.gpt import GPTConfig, initial_parameters
from inkling.models.gpt_layout import to_layout
from inkling.runs.loading import constant_files, dump_arrays
from inkling.runs.recording import dump
from inkling.runs.run import Checkpoint, Run
from inkling.text.grammar import grammar_text
from inkling.text.tokenise import train_tokeniser

TOKENS = 128
TIMES_BATCHED = 4.0
MEMORY_GROWTH = 1.1
HEALTH_SECONDS = 0.1
CLIENTS_BATCHED = 32
WARM_TOKENS = 4000  # after which all that will be compiled is


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="of the endurance run")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--at-least", type=float, default=TIMES_BATCHED, help="times that batching must give")
    parser.add_argument("--quick", action="store_true", help="endurance for 10 s, batching for 5 s each")
    parser.add_argument("--check", action="store_true", help="fail where the figures above are not reached")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    seconds = 10.0 if options.quick else options.seconds
    turns, each = (1, 5.0) if options.quick else (3, 8.0)
    with tempfile.TemporaryDirectory() as name:
        run = build_run(Path(name) / "drawn")
        with serving(run, "--batch", "32") as server:
            endurance = asyncio.run(load(server, options.clients, seconds, streamed=4))
        speeds: dict[int, list[float]] = {32: [], 1: []}
        for _ in range(turns):  # in turns, because other work on the machine comes and goes
            for batch, found in speeds.items():
                with serving(run, "--batch", str(batch)) as server:
                    found.append(asyncio.run(load(server, CLIENTS_BATCHED, each)).tokens_a_second)
    batched, alone = statistics.median(speeds[32]), statistics.median(speeds[1])
    failures = list(complaints(endurance, batched / alone, options.at_least))
    result = {
        "endurance": asdict(endurance) | {"tokens_a_second": endurance.tokens_a_second},
        "batched": {"tokens_a_second": speeds[32]},
        "one_by_one": {"tokens_a_second": speeds[1]},
        "times": batched / alone,
        "failures": failures,
    }
    print(json.dumps(result, indent=1) if options.json else told(endurance, batched, alone))
    if options.check and failures:
        sys.exit("; ".join(failures))


def complaints(endurance: Load, times: float, at_least: float) -> Iterator[str]:
    if endurance.errors:
        yield f"errors: {endurance.errors}"
    if endurance.memory_end > MEMORY_GROWTH * endurance.memory_start:
        yield f"memory grew from {endurance.memory_start:,} to {endurance.memory_end:,} bytes"
    if endurance.health_median > HEALTH_SECONDS:
        yield f"/health took {1000 * endurance.health_median:.0f} ms"
    if times < at_least:
        yield f"batching gives {times:.2f} ×, less than {at_least:g} ×"


def told(endurance: Load, batched: float, alone: float) -> str:
    one = endurance
    return (
        f"endurance  {one.clients} clients, {one.seconds:.0f} s: {one.completions:,} completions, "
        f"{one.tokens_a_second:,.0f} tokens/s, p50 {one.p50:.3f} s, p99 {one.p99:.3f} s\n"
        f"           busy (503) {one.busy:,}, errors {one.errors or 'none'}\n"
        f"           memory {one.memory_start / 1e6:.0f} → {one.memory_end / 1e6:.0f} MB, "
        f"/health p50 {1000 * one.health_median:.1f} ms, largest {1000 * one.health_most:.1f} ms\n"
        f"batching   {CLIENTS_BATCHED} clients: {batched:,.0f} tokens/s together, {alone:,.0f} one by one: "
        f"{batched / alone:.2f} ×"
    )


def build_run(folder: Path) -> Path:
    """A transformer of 1.1 million parameters over 91 characters, with weights as they are before training."""
    text = grammar_text(np.random.default_rng(0), 20_000) + "".join(map(chr, range(32, 100)))
    tokeniser = train_tokeniser("character", [[text]])
    config = GPTConfig(tokeniser.size, dimension=128, layers=5, heads=4, mlp=384, context=256)
    parameters = initial_parameters(config, np.random.default_rng(0))
    _, tensors = to_layout(config, parameters, tokeniser.begin)
    Run.create(
        folder,
        info={"kind": "gpt", "recipe": {}, "normalise": "none", "seed": 0, "threads": 1, "data": {}},
        constant=constant_files("gpt", asdict(config), tokeniser, None),
        checkpoint=Checkpoint(0, dump(tensors), dump_arrays({}), {"step": 0}),
    )
    return folder


@contextlib.contextmanager
def serving(run: Path, *options: str) -> Iterator[dict[str, Any]]:
    """What the server says of itself, once it listens."""
    command = [sys.executable, "-m", "inkling", "serve", str(run), "--port", "0", "--json", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            said = json.loads(process.stdout.readline())
            asyncio.run(warm_up(said))
            yield said
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()


async def warm_up(server: dict[str, Any]) -> None:
    client = await Client.connect(server)
    for _ in range(-(-WARM_TOKENS // (16 * TOKENS))):
        await client.ask({"prompt": "The", "max_tokens": TOKENS, "n": 16})
    client.close()


# ------------------------------------------------------------------------------------------------ clients


class Client:
    """HTTP over one connection, with as little work as it takes: clients and server share the cores."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, server: dict[str, Any]) -> None:
        self.reader, self.writer = reader, writer
        self.host = server["url"].removeprefix("http://")
        self.token = server["token"]

    @classmethod
    async def connect(cls, server: dict[str, Any]) -> Client:
        host, _, port = server["url"].removeprefix("http://").rpartition(":")
        return cls(*await asyncio.open_connection(host, int(port)), server)

    def close(self) -> None:
        self.writer.close()

    async def ask(
        self, body: dict[str, Any] | None, path: str = "/v1/completions"
    ) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of an answer; without a body it is a GET."""
        raw = b"" if body is None else json.dumps(body).encode()
        method = "GET" if body is None else "POST"
        head = f"{method} {path} HTTP/1.1\r\nHost: {self.host}\r\nAuthorization: Bearer {self.token}\r\n"
        self.writer.write(f"{head}Content-Length: {len(raw)}\r\n\r\n".encode() + raw)
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:] if line)}
        if headers.get("transfer-encoding") == "chunked":
            parts = []
            while size := int(await self.reader.readline(), 16):
                parts.append((await self.reader.readexactly(size + 2))[:-2])
            await self.reader.readline()
            answer = b"".join(parts)
        else:
            answer = await self.reader.readexactly(int(headers["content-length"]))
        return int(lines[0].split()[1]), headers, answer


@dataclass
class Load:
    """What came of it. Seconds are of single completions but for `seconds`, which is the whole."""

    clients: int
    seconds: float = 0.0
    completions: int = 0
    tokens: int = 0
    busy: int = 0
    errors: dict[str, int] = field(default_factory=dict)
    p50: float = 0.0
    p99: float = 0.0
    memory_start: int = 0
    memory_end: int = 0
    health_median: float = 0.0
    health_most: float = 0.0

    @property
    def tokens_a_second(self) -> float:
        return self.tokens / self.seconds


async def load(server: dict[str, Any], clients: int, seconds: float, streamed: int = 0) -> Load:
    """`streamed`: every which client has its tokens one by one; 0: none."""
    found, waits, health, errors = Load(clients), list[float](), list[float](), Counter[str]()
    lines = grammar_text(np.random.default_rng(1), 4000)
    started = time.perf_counter()
    ends = started + seconds

    async def client(number: int) -> None:
        random, connection = np.random.default_rng(number), await Client.connect(server)
        while time.perf_counter() < ends:
            place, length = int(random.integers(len(lines) - 60)), int(random.integers(10, 60))
            body: dict[str, Any] = {"prompt": lines[place : place + length]}
            body["max_tokens"] = int(random.integers(64, 193))
            body |= {"temperature": 0.8, "top_p": 0.95, "seed": int(random.integers(1 << 31))}
            body["stream"] = streamed > 0 and number % streamed == 0
            asked = time.perf_counter()
            try:
                status, headers, answer = await connection.ask(body)
            except (OSError, EOFError, ValueError) as error:
                errors[type(error).__name__] += 1
                connection = await Client.connect(server)
                continue
            if status == 503:
                found.busy += 1
                await asyncio.sleep(float(headers["retry-after"]))
            elif status != 200:
                errors[f"{status} {answer[:100].decode()}"] += 1
            else:
                waits.append(time.perf_counter() - asked)
                if body["stream"]:
                    assert answer.endswith(b"data: [DONE]\n\n"), answer[-100:]
                    assert b'"error"' not in answer, answer[-300:]
                    found.tokens += int(body["max_tokens"])
                else:
                    found.tokens += json.loads(answer)["usage"]["completion_tokens"]
        connection.close()

    async def watch() -> None:
        connection = await Client.connect(server)
        while time.perf_counter() < ends:
            asked = time.perf_counter()
            await connection.ask(None, "/health")
            health.append(time.perf_counter() - asked)
            if not found.memory_start and asked - started > seconds / 10:
                found.memory_start = await memory(connection)
            await asyncio.sleep(0.1)
        found.memory_end = await memory(connection)
        connection.close()

    await asyncio.gather(watch(), *(client(number) for number in range(clients)))
    found.seconds, found.completions, found.errors = time.perf_counter() - started, len(waits), dict(errors)
    found.p50, found.p99 = (float(value) for value in np.quantile(waits, [0.5, 0.99]))
    found.health_median, found.health_most = statistics.median(health), max(health)
    return found


async def memory(connection: Client) -> int:
    _, _, answer = await connection.ask(None, "/metrics")
    line = next(line for line in answer.decode().splitlines() if line.startswith("process_resident_memory_bytes"))
    return int(line.split()[1])


if __name__ == "__main__":
    assert inkling.__version__
    main()

"""What the studio costs: CPU until the first page is painted, and the speed that a training loses while it is watched.

    python bench/studio.py                eight rounds of stretches of one training, watched and not
    python bench/studio.py --check        exits with 1 beyond the bounds

The server, and Chromium as the one who watches, run on the same cores as the training, and Chromium draws without a
graphics card: this is the worst case of a laptop. In one training, stretches in which its page is open (twice as long)
lie between stretches in which it is closed, so that what drifts falls on both sides; steps are counted by their own
times.
First paint is that of the browser (first contentful paint); CPU is that of the server's process up to then. Updates are
counted in the page, after the stretch that is timed: pictures of the figures beside the curve that differ from the one
before.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
MOST_CPU_SECONDS = 3.0
LEAST_UPDATES = 5.0
MOST_LOSS = 0.05
WARM_STEPS = 20
SETTLE_SECONDS = 1.5  # until the page is there
# Pictures of the figures that differ from the one before, in so many milliseconds.
COUNT = """async (milliseconds) => {
  const figures = document.querySelector('.figures canvas');
  const copy = document.createElement('canvas');
  [copy.width, copy.height] = [figures.clientWidth, figures.clientHeight];
  const pen = copy.getContext('2d', { willReadFrequently: true });
  let [before, changes, began] = [null, 0, performance.now()];
  while (performance.now() - began < milliseconds) {
    pen.clearRect(0, 0, copy.width, copy.height);
    pen.drawImage(figures, 0, 0, copy.width, copy.height);
    const now = pen.getImageData(0, 0, copy.width, copy.height).data;
    if (before && now.some((value, i) => value !== before[i])) changes += 1;
    before = now;
    await new Promise((resolve) => setTimeout(resolve, 40));
  }
  return changes;
}"""
COUNT_SECONDS = 4.0
PAINTED = """() => performance.getEntriesByName('first-contentful-paint').length > 0
  && document.querySelector('.stage h1') !== null"""


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "inkling", *words]


def cpu_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def opened(folder: Path) -> Iterator[tuple[str, int]]:
    """A studio: its address and its process."""
    words = command("studio", "--no-browser", "--port", "0", "--json")
    with subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = ""
        while not said.rstrip().endswith("}"):
            said += process.stdout.readline()
        try:
            yield json.loads(said)["address"], process.pid
        finally:
            process.terminate()  # where this was started in the background, an interrupt would be ignored


def browser_cpu_seconds() -> float:
    """Of all processes of Chromium on this computer."""
    total = 0.0
    for found in Path("/proc").glob("[0-9]*"):
        try:
            if (found / "comm").read_text().startswith("chromium"):
                total += cpu_seconds(int(found.name))
        except OSError:
            continue
    return total


def stretch(seconds: float) -> tuple[float, float]:
    """Lets the training go on; from when to when."""
    began = time.time()
    time.sleep(seconds)
    return began, time.time()


def wait_until_idle(process: int) -> None:
    """Until a server has forgotten a page that was closed."""
    spent = -1.0
    while (now := cpu_seconds(process)) > spent:
        spent = now
        time.sleep(1.0)


def steps_of(metrics: Path) -> list[tuple[float, int]]:
    """When each step of a training ended, by the clock that stretches are measured with."""
    written, lines = metrics.stat().st_mtime, metrics.read_bytes().splitlines(keepends=True)
    rows = [json.loads(line) for line in lines if line.endswith(b"\n")]
    return [(written - (rows[-1]["seconds"] - row["seconds"]), row["step"]) for row in rows]


def steps_a_second(marks: list[tuple[float, int]], during: tuple[float, float]) -> float:
    """Of a training whose steps ended at these moments."""
    inside = [(moment, step) for moment, step in marks if during[0] <= moment <= during[1]]
    (first, a), (last, b) = inside[0], inside[-1]
    return (b - a) / (last - first)


Round = tuple[float, float]  # steps a second unwatched, and watched


def watch(folder: Path, browser: Any, rounds: int, seconds: float) -> tuple[list[Round], list[float]]:
    """Speeds, and updates a second in the page."""
    words = command("train", "gpt", "world.txt", "--steps", "1000000", "--out", "runs/watched")
    words += ["--layers", "2", "--width", "128", "--context", "64", "--batch", "32"]
    rounds_seen: list[Round] = []
    updates = []
    quiet = subprocess.DEVNULL
    with (
        opened(folder) as (address, server),
        subprocess.Popen(words, cwd=folder, stdout=quiet, stderr=quiet) as training,
    ):
        metrics = folder / "runs/watched/metrics.jsonl"
        while not (metrics.exists() and metrics.read_bytes().count(b"\n") >= WARM_STEPS):
            time.sleep(0.2)
        for number in range(1, rounds + 1):
            before = stretch(seconds)
            page = browser.new_page()
            page.goto(address)
            page.locator("tr", has_text="watched").first.click()
            page.locator("[data-testid=figure-state]", has_text="running").wait_for()
            time.sleep(SETTLE_SECONDS)
            spent, drawn = cpu_seconds(server), browser_cpu_seconds()
            watched = stretch(2 * seconds)
            spent, drawn = cpu_seconds(server) - spent, browser_cpu_seconds() - drawn
            updates.append(page.evaluate(COUNT, 1000 * COUNT_SECONDS) / COUNT_SECONDS)
            page.close()
            wait_until_idle(server)
            after = stretch(seconds)
            marks = steps_of(metrics)
            alone = math.sqrt(steps_a_second(marks, before) * steps_a_second(marks, after))
            beside = steps_a_second(marks, watched)
            rounds_seen.append((alone, beside))
            spent, drawn = spent / (2 * seconds), drawn / (2 * seconds)
            print(
                f"round {number}: alone {alone:.2f} steps/s, watched {beside:.2f} ({beside / alone - 1:+.1%}); "
                f"CPU while watching: server {spent:.1%}, browser {drawn:.1%} of one core",
                flush=True,
            )
        training.kill()
    return rounds_seen, updates


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=6.0, help="unwatched, watched twice that, unwatched again")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("Chromium is needed: install Debian's package `chromium`.")
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        folder = Path(temporary)
        subprocess.run(command("data", "make", "text", "world.txt"), cwd=folder, check=True, stdout=subprocess.DEVNULL)
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM)
        costs = []
        for _ in range(3):
            with opened(folder) as (address, process):
                page = browser.new_page()
                page.goto(address)
                page.wait_for_function(PAINTED)
                costs.append(cpu_seconds(process))
                page.close()
        print(f"CPU of the server until first paint: {', '.join(f'{cost:.2f}' for cost in costs)} s")

        rounds, updates = watch(folder, browser, options.rounds, options.seconds)
        browser.close()
    logs = [math.log(beside / alone) for alone, beside in rounds]
    loss = 1 - math.exp(statistics.fmean(logs))
    error = statistics.stdev(logs) / math.sqrt(len(logs))
    print(f"loss of training speed while watched: {loss:+.1%} ± {error:.1%} (geometric mean of {len(logs)} rounds)")
    print(f"updates a second in the page: {min(updates):.1f} at least")
    bad = []
    if min(costs) >= MOST_CPU_SECONDS:
        bad.append(f"first paint takes {min(costs):.2f} s of CPU, wanted below {MOST_CPU_SECONDS:g}")
    if min(updates) < LEAST_UPDATES:
        bad.append(f"{min(updates):.1f} updates a second, wanted at least {LEAST_UPDATES:g}")
    if loss - 2 * error >= MOST_LOSS:  # beyond doubt
        bad.append(f"training loses {loss:.1%} of its speed, wanted below {MOST_LOSS:.0%}")
    for sentence in bad:
        print(f"BEYOND THE BOUND: {sentence}")
    return 1 if bad and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
